//! Virtual routers: the box is the master of all of them.

use crate::refusal::Refusal;
use crate::store::{Record, Row};

pub(crate) fn complete(row: &Row) -> Result<(), Refusal> {
    let checked = |field: &str, max: i64| {
        let text = row.text(field);
        let fits = text.is_empty() || text.parse::<i64>().is_ok_and(|number| (1..=max).contains(&number));
        if fits { Ok(()) } else { Err(Refusal::unclear(format!("value of {field} out of range (1..{max})"))) }
    };
    checked("priority", 254)?;
    checked("vrid", 255)
}

/// A flag of the role is there only while it holds.
pub(crate) fn fill(row: &Row, out: &mut Record) {
    for field in ["on-master", "on-backup", "on-fail", "password"] {
        out.entry(field.to_owned()).or_default();
    }
    if row.is_disabled() {
        out.remove("invalid");
    } else if out.get("running").is_some_and(|running| running == "true") {
        out.insert("master".to_owned(), "true".to_owned());
    } else {
        out.insert("backup".to_owned(), "true".to_owned());
    }
}
