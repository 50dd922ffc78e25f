//! Pages of lists.

use serde_json::{Value, json};

use crate::official::{Call, filter, mismatch};
use crate::reply::Outcome;

const USUAL: usize = 25;
const MOST: usize = 200;
/// Vouchers come in larger pages.
const VOUCHERS: (usize, usize) = (100, 1000);

/// The rows that the filter lets pass, as the page that the query asks for.
pub(super) fn of(call: &Call<'_>, mut rows: Vec<Value>) -> Outcome<Value> {
    if let Some(text) = call.request.query("filter").filter(|text| !text.is_empty()) {
        let filter = filter::parse(&text, &call.route.filter)?;
        rows.retain(|row| filter.matches(row));
    }
    let (usual, most) = if call.route.path == "hotspot/vouchers" { VOUCHERS } else { (USUAL, MOST) };
    let offset = number(call, "offset")?.unwrap_or(0);
    // More than the most is cut to it without a word.
    let limit = number(call, "limit")?.unwrap_or(usual).min(most);
    let total = rows.len();
    let data: Vec<Value> = rows.into_iter().skip(offset).take(limit).collect();
    Ok(json!({ "offset": offset, "limit": limit, "count": data.len(), "totalCount": total, "data": data }))
}

fn number(call: &Call<'_>, name: &str) -> Outcome<Option<usize>> {
    match call.request.query(name) {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| mismatch(name, &text)),
    }
}
