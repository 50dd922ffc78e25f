//! Objects of the model, made of the vendor's own as bindings say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value, json};

use super::binding::{KindBinding, ModelBinding, Shape, Source};
use super::joined::Joined;
use super::objects::{self, Listed};
use super::read::{self, Row};
use super::several::{is_not_offered, together, without};
use super::source::{is_meant, of_row};
use super::{Vendor, told};
use crate::{Completeness, Fault, FaultExt, Host, Level, Listing, ModelObject, ModelPage, Origin, fault};

/// Rows that a page is made of.
pub(super) const PAGE_ROWS: u32 = 500;
/// The same where each is read by itself: requests of a call are bounded.
const PAGE_WHOLE: u32 = 40;

/// Where a row says that its object could not be read.
pub(super) const UNREAD: &str = "!";

/// An object of the model, before a vendor had its say.
#[derive(Debug, Clone)]
pub struct Modelled {
    pub key: String,
    pub label: String,
    pub origin: Origin,
    /// Identity of the device that it belongs to.
    pub device: Option<String>,
    /// As the kind's schema says.
    pub fields: Map<String, Value>,
}

/// A page of the objects of a kind of the model. Pages follow the sources, and a source that fails hides no other: its page
/// is empty, and less than complete. The fault only where no source was read.
pub fn list_model(
    vendor: &dyn Vendor,
    host: &dyn Host,
    kind: &str,
    site: Option<&str>,
    cursor: Option<&str>,
) -> Result<ModelPage, Fault> {
    let binding = ModelBinding::of(host, kind)?;
    let Page { items, next, complete, .. } = page(vendor, host, (kind, &binding), site, cursor)?;
    Ok(ModelPage { items: items.into_iter().map(|(object, _)| object).collect(), next, complete })
}

/// Objects of one source, each with the row or part that it was made of.
pub(crate) struct Page {
    /// Place of the source among those of the kind.
    pub(crate) source: usize,
    pub(crate) items: Vec<(ModelObject, Value)>,
    pub(crate) next: Option<String>,
    pub(crate) complete: Completeness,
}

/// A page, with what its objects were made of.
pub(crate) fn page(
    vendor: &dyn Vendor,
    host: &dyn Host,
    (kind, binding): (&str, &ModelBinding),
    site: Option<&str>,
    cursor: Option<&str>,
) -> Result<Page, Fault> {
    let at = Position::of(cursor)?;
    let empty = |complete| Page { source: at.source, items: Vec::new(), next: None, complete };
    let Some(source) = binding.sources.get(at.source) else { return Ok(empty(Completeness::Complete)) };
    let own = KindBinding::of(host, &source.from)?;
    let limit = if source.whole { PAGE_WHOLE } else { PAGE_ROWS };
    let listing = Listing { site, cursor: at.inner.as_deref(), ..Listing::of(&source.from, limit) };
    let page = match told::before(vendor, host, binding, at.source, site) {
        Ok(told) => read(vendor, host, kind, (source, &own, told.as_ref()), &listing),
        Err(fault) => Err(fault),
    };
    let (mut page, of_page) = match page {
        Ok((page, is_offered)) => {
            (Page { source: at.source, ..page }, Outcome { is_offered, is_read: is_offered })
        }
        // A part of the vendor's API that this device, version or licence has not fills nothing.
        Err(fault) if is_not_offered(&fault) && at.inner.is_none() => {
            (empty(Completeness::Complete), Outcome { is_offered: false, is_read: false })
        }
        Err(fault) if at.can_do_without(binding, &fault) => {
            let message = format!("objects of kind '{}' are not read: {}", source.from, fault.info().message);
            host.log(Level::Warn, &message, &[("kind", kind)]);
            (empty(without(&fault)), Outcome { is_offered: true, is_read: false })
        }
        Err(fault) => return Err(fault),
    };
    page.next = at.following(binding, of_page, page.next.take()).map(|next| next.to_string());
    Ok(page)
}

/// What became of pages.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    /// The device has what the source is made of.
    is_offered: bool,
    /// Something was read.
    is_read: bool,
}

/// How far a list was read.
#[derive(Debug, Default)]
struct Position {
    source: usize,
    /// What became of the source's pages so far, and whether any source was read.
    before: Outcome,
    /// The cursor within the source.
    inner: Option<String>,
}

impl Position {
    fn of(cursor: Option<&str>) -> Result<Self, Fault> {
        let Some(cursor) = cursor else { return Ok(Self::default()) };
        let at = cursor.split_once('|').and_then(|(at, inner)| {
            let source = at.trim_end_matches(['o', 'r']);
            let before = Outcome { is_offered: at.contains('o'), is_read: at.contains('r') };
            let inner = Some(inner.to_owned()).filter(|inner| !inner.is_empty());
            Some(Self { source: source.parse().ok()?, before, inner })
        });
        at.ok_or_else(|| fault::invalid("the cursor is not one that a list answered"))
    }

    /// Whether the list goes on without a source: others told or may tell something. A login that is refused is refused to
    /// all of them.
    fn can_do_without(&self, binding: &ModelBinding, fault: &Fault) -> bool {
        let has_others = self.before.is_read || self.source_behind(binding, true).is_some();
        has_others && binding.sources.len() > 1 && !matches!(fault, Fault::Authentication(_))
    }

    /// The place of the source behind this one. What takes the place of a source is not needed where that one is offered.
    fn source_behind(&self, binding: &ModelBinding, is_offered: bool) -> Option<usize> {
        let behind = self.source + 1;
        let skipped = binding.sources[behind..].iter().take_while(|next| next.instead && is_offered).count();
        Some(behind + skipped).filter(|behind| *behind < binding.sources.len())
    }

    fn following(&self, binding: &ModelBinding, of_page: Outcome, inner: Option<String>) -> Option<Self> {
        let is_offered = self.before.is_offered || of_page.is_offered;
        let is_read = self.before.is_read || of_page.is_read;
        if inner.is_some() {
            return Some(Self { source: self.source, before: Outcome { is_offered, is_read }, inner });
        }
        let source = self.source_behind(binding, is_offered)?;
        Some(Self { source, before: Outcome { is_offered: false, is_read }, inner: None })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { is_offered, is_read } = self.before;
        let (offered, read) = (if is_offered { "o" } else { "" }, if is_read { "r" } else { "" });
        write!(f, "{}{offered}{read}|{}", self.source, self.inner.as_deref().unwrap_or_default())
    }
}

/// A page of a source, and whether the device has what it is made of.
fn read(
    vendor: &dyn Vendor,
    host: &dyn Host,
    kind: &str,
    (source, own, told): (&Source, &KindBinding, Option<&BTreeSet<String>>),
    listing: &Listing<'_>,
) -> Result<(Page, bool), Fault> {
    let Listed { rows, next, complete, is_offered, .. } = match told {
        None => objects::rows(vendor, host, own, listing)?,
        Some(told) => told::others(vendor, host, (source, own), told, listing)?,
    };
    let (rows, complete) =
        if source.whole { wholes(vendor, host, own, (rows, complete)) } else { (rows, complete) };
    let rows: Vec<Row> = rows.into_iter().filter(|row| is_meant(source, &row.value)).collect();
    let none = BTreeMap::new();
    let joins = if rows.is_empty() { &none } else { &source.join };
    let joined = Joined::read(vendor, host, joins, listing.site)?;
    let complete = together(joined.complete, complete);
    let items = rows.iter().flat_map(|row| of_row(vendor, kind, (source, own, &joined), row)).collect();
    Ok((Page { source: 0, items, next, complete }, is_offered))
}

/// The rows with the whole objects. Those that vanished meanwhile are left out; of those that cannot be read there is what
/// the list tells.
fn wholes(
    vendor: &dyn Vendor,
    host: &dyn Host,
    own: &KindBinding,
    (rows, mut complete): (Vec<Row>, Completeness),
) -> (Vec<Row>, Completeness) {
    if own.shape != Shape::Items || own.get.is_none() {
        return (rows, complete);
    }
    let (known, only_listed): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| read::is_writable(own, row));
    let mut out = only_listed;
    for (found, row) in read::objects(vendor, host, own, &known).into_iter().zip(known) {
        match found {
            Ok(found) => out.extend(found.map(|found| whole(row, found))),
            Err(fault) => {
                complete = together(complete, without(&fault));
                out.push(whole(row, json!({ UNREAD: true })));
            }
        }
    }
    (out, complete)
}

/// The row with all that its object has. What the list alone tells, such as a state, stays; the row of the list stands
/// at `^`, for names that mean something else in the object.
fn whole(row: Row, found: Value) -> Row {
    let (Value::Object(mut fields), Value::Object(more)) = (row.value.clone(), found) else { return row };
    fields.extend(more);
    fields.insert("^".to_owned(), row.value);
    Row { value: Value::Object(fields), ..row }
}
