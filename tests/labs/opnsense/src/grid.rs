//! Lists as the pages ask for them: paging, order and search.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use crate::call::{Answer, Call, scalar};

/// What a caller asks of a list.
pub(crate) struct Paging {
    current: usize,
    /// All rows when absent.
    row_count: Option<usize>,
    pub(crate) sort: Vec<(String, bool)>,
    pub(crate) words: Vec<String>,
}

impl Paging {
    /// From the body, or from the query string of a list that holds stored items alone.
    pub(crate) fn of_items(call: &Call) -> Self {
        Self::of(if call.is_post || call.facts.live { &call.body } else { &call.query })
    }

    fn of(from: &Map<String, Value>) -> Self {
        let number = |key: &str| from.get(key).and_then(scalar).and_then(|text| text.parse::<i64>().ok());
        let sort = from.get("sort").and_then(Value::as_object).into_iter().flatten();
        Self {
            current: number("current").and_then(|n| usize::try_from(n).ok()).unwrap_or(1).max(1),
            row_count: number("rowCount").map_or(Some(9999), |n| usize::try_from(n).ok()),
            sort: sort.map(|(field, how)| (field.clone(), how != "desc")).collect(),
            words: from
                .get("searchPhrase")
                .and_then(scalar)
                .unwrap_or_default()
                .split_whitespace()
                .map(str::to_lowercase)
                .collect(),
        }
    }

    /// The page of a list, and the frame around it.
    pub(crate) fn page<T>(&self, mut rows: Vec<T>, show: impl Fn(T) -> Value) -> Answer {
        let total = rows.len();
        let count = self.row_count.unwrap_or(total);
        let page: Vec<Value> =
            rows.drain(..).skip((self.current - 1).saturating_mul(count)).take(count).map(show).collect();
        Answer::json(&json!({
            "total": total, "rowCount": page.len(), "current": self.current, "rows": page
        }))
    }

    /// Orders by the fields asked for.
    pub(crate) fn order(&self, field: impl Fn(&str) -> (String, String)) -> Ordering {
        let compared = self.sort.iter().map(|(name, ascending)| {
            let (a, b) = field(name);
            if *ascending { natural(&a, &b) } else { natural(&b, &a) }
        });
        compared.fold(Ordering::Equal, Ordering::then)
    }
}

/// A list made of live data. It reads its paging only from the body.
pub(crate) fn live(call: &Call, mut rows: Vec<Value>) -> Answer {
    let paging = Paging::of(&call.body);
    if !paging.words.is_empty() {
        rows.retain(|row| {
            let text = row.to_string().to_lowercase();
            paging.words.iter().all(|word| text.contains(word))
        });
    }
    let text = |row: &Value, name: &str| row.get(name).and_then(scalar).unwrap_or_default();
    rows.sort_by(|a, b| paging.order(|name| (text(a, name), text(b, name))));
    paging.page(rows, |row| row)
}

fn natural(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        _ => a.to_lowercase().cmp(&b.to_lowercase()),
    }
}
