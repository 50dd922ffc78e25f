//! Requests about many objects: each succeeds or fails by itself, and the answer says how.

use std::collections::HashSet;
use std::hash::Hash;

use schemars::JsonSchema;
use serde::Serialize;

use crate::checks::Checks;
use crate::http::error::Error;

/// Why one of many was not done. The words are the same as for a request about one object.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BulkError")]
pub struct ItemError {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

impl From<Error> for ItemError {
    fn from(error: Error) -> Self {
        let message = match &error {
            Error::Validation(details) => {
                let details = details.iter().map(|detail| format!("{}: {}", detail.field, detail.message));
                details.collect::<Vec<_>>().join("; ")
            }
            Error::Internal(source) => {
                tracing::error!(error = %source, "one of many requested objects failed");
                error.to_string()
            }
            other => other.to_string(),
        };
        Self { kind: error.kind(), message }
    }
}

/// The outcome of each, in the order of the request.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Results")]
pub struct Outcomes<T> {
    results: Vec<T>,
    succeeded: usize,
    failed: usize,
}

impl<T> Outcomes<T> {
    /// Counts the results for which `has_succeeded` is true; all others count as failed. The results stay in
    /// the given order, which has to be that of the request.
    pub fn of(results: Vec<T>, has_succeeded: impl Fn(&T) -> bool) -> Self {
        let succeeded = results.iter().filter(|item| has_succeeded(item)).count();
        Self { succeeded, failed: results.len() - succeeded, results }
    }
}

/// Requires that a request has ids, not too many, and each once.
pub fn check_ids<I: Eq + Hash>(checks: &mut Checks, field: &str, ids: &[I], most: usize) {
    let fits = (1..=most).contains(&ids.len());
    checks.require(fits, field, &format!("must hold 1 to {most} ids"));
    let unique: HashSet<&I> = ids.iter().collect();
    checks.require(unique.len() == ids.len(), field, "must hold each id once");
}
