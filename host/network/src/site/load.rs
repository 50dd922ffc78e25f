//! Loads what is known of a site: two statements, however many controllers it has.

use std::collections::{HashMap, HashSet};

use heddle_core::SiteId;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_store::model_objects::of_site::{self, AtSite, ListAtSite};
use heddle_store::{Scope, Tx, sites};

use super::facts::Facts;
use super::gathered::gathered;

/// What is stored of a site. The facts are made of it on a thread for work that takes long.
pub(crate) struct Stored {
    lists: Vec<ListAtSite>,
    objects: Vec<AtSite>,
    are_whole: bool,
    filled: Filled,
}

/// Fields of the model that adapters fill, by vendor and kind.
type Filled = HashMap<String, HashMap<String, HashSet<String>>>;

impl Stored {
    pub(crate) fn facts(&self) -> Facts {
        let fills = |vendor: &str, kind: &str, field: Option<&str>| {
            let fields = self.filled.get(vendor).and_then(|kinds| kinds.get(kind));
            fields.is_some_and(|fields| field.is_none_or(|field| fields.contains(field)))
        };
        gathered(&self.lists, (&self.objects, self.are_whole), &fills)
    }
}

/// What is stored of a site, as far as objects of these kinds tell it.
///
/// # Errors
/// 404 where the scope has no such site.
pub(crate) async fn stored(
    tx: &mut Tx,
    app: &App,
    scope: &Scope,
    site: SiteId,
    kinds: &[&'static str],
) -> Result<Stored, Error> {
    let lists = of_site::lists(tx, scope, site).await?;
    // A site that has controllers in the scope is there.
    if lists.is_empty() && sites::visible(tx, scope, &[site]).await?.is_empty() {
        return Err(Error::NotFound("site"));
    }
    let (objects, are_whole) = of_site::objects(tx, scope, site, kinds).await?;
    let mut filled = Filled::new();
    for adapter in app.runtime.adapters() {
        let of_vendor = filled.entry(adapter.id().to_owned()).or_default();
        for model in &adapter.description().model {
            // Where a kind is told of twice, the first one counts.
            of_vendor.entry(model.kind.clone()).or_insert_with(|| model.fields.iter().cloned().collect());
        }
    }
    Ok(Stored { lists, objects, are_whole, filled })
}
