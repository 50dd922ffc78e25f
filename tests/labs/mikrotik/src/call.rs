//! A command of the console, as REST and scripts give it, and what comes of it.

use std::collections::BTreeMap;

use crate::access::Who;
use crate::device::Router;
use crate::facts::Menu;
use crate::refusal::Refusal;
use crate::store::{Record, parse_id};

/// A command with its parameters.
pub(crate) struct Call<'a> {
    /// The menu's path.
    pub(crate) path: &'static str,
    pub(crate) menu: &'static Menu,
    pub(crate) command: &'a str,
    pub(crate) args: BTreeMap<String, String>,
    /// The words of a query, in reverse Polish order.
    pub(crate) query: Vec<String>,
    /// Names that rows are limited to.
    pub(crate) proplist: Option<Vec<String>>,
    pub(crate) who: &'a Who,
}

/// What a command gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Nothing,
    Rows(Vec<Record>),
    /// One object, of menus without rows.
    Object(Record),
    /// One value, such as the id of a new row.
    Value(String),
}

/// A command that was carried out.
pub(crate) struct Done {
    pub(crate) output: Output,
    /// Seconds that it ran; `None` when it never ends by itself.
    pub(crate) secs: Option<u64>,
}

pub(crate) type Answered = Result<Done, Refusal>;

impl Done {
    pub(crate) fn nothing() -> Self {
        Self { output: Output::Nothing, secs: Some(0) }
    }

    pub(crate) fn rows(rows: Vec<Record>) -> Self {
        Self { output: Output::Rows(rows), secs: Some(0) }
    }

    pub(crate) fn value(value: String) -> Self {
        Self { output: Output::Value(value), secs: Some(0) }
    }

    pub(crate) fn endless() -> Self {
        Self { output: Output::Nothing, secs: None }
    }
}

impl Call<'_> {
    /// A parameter; empty when it is not given.
    pub(crate) fn arg(&self, name: &str) -> &str {
        self.args.get(name).map_or("", String::as_str)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.args.contains_key(name)
    }

    /// A parameter that must be there.
    pub(crate) fn need(&self, name: &str) -> Result<&str, Refusal> {
        self.args.get(name).map(String::as_str).ok_or_else(|| Refusal::missing(name))
    }

    /// The texts that name the rows of the command.
    pub(crate) fn named(&self) -> Option<&str> {
        [".id", "numbers", "number"].iter().find_map(|name| self.args.get(*name)).map(String::as_str)
    }

    /// The rows of the command by their ids, names or places.
    pub(crate) fn ids(&self, router: &Router) -> Result<Vec<u64>, Refusal> {
        let text = self.named().ok_or_else(|| Refusal::missing(".id"))?;
        text.split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| id_of(router, self.path, part))
            .collect()
    }

    /// The one row of the command.
    pub(crate) fn id(&self, router: &Router) -> Result<u64, Refusal> {
        self.ids(router)?.first().copied().ok_or_else(|| Refusal::missing(".id"))
    }
}

/// The id of a row by its shown id, its name or its place.
pub(crate) fn id_of(router: &Router, path: &str, text: &str) -> Result<u64, Refusal> {
    let rows = crate::print::ids(router, path);
    if let Some(id) = parse_id(text) {
        return if rows.contains(&id) { Ok(id) } else { Err(Refusal::NoSuchItem) };
    }
    if let Some(id) = crate::print::id_by_name(router, path, text) {
        return Ok(id);
    }
    let place = text.parse::<usize>().ok().and_then(|place| rows.get(place));
    place.copied().ok_or(Refusal::NoSuchItem)
}
