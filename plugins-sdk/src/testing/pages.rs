//! Lists that come page by page.

use crate::{Completeness, Fault, ModelObject, ModelPage};

/// More pages than a practice device has of one kind.
const PAGES_MAX: usize = 500;

/// All objects of a list of the model, and whether every page is complete. `ask` reads the page at a cursor.
///
/// # Panics
///
/// When a page cannot be read, and when the pages do not end.
#[track_caller]
pub fn every_page(mut ask: impl FnMut(Option<&str>) -> Result<ModelPage, Fault>) -> (Vec<ModelObject>, bool) {
    let (mut objects, mut cursor, mut is_complete) = (Vec::new(), None::<String>, true);
    for _ in 0..PAGES_MAX {
        let page = match ask(cursor.as_deref()) {
            Ok(page) => page,
            Err(fault) => panic!("a page cannot be read: {fault:?}"),
        };
        objects.extend(page.items);
        is_complete &= matches!(page.complete, Completeness::Complete);
        cursor = page.next;
        if cursor.is_none() {
            return (objects, is_complete);
        }
    }
    panic!("the pages do not end");
}
