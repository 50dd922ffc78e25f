//! Details of an outcome in addition to its state and message, stored as JSON with the change.

use heddle_core::adapter::{Comparison, ItemResult, Standing};
use heddle_core::change::Plan;
use heddle_core::fault::{Effect, Fault};
use heddle_store::Set;
use heddle_store::changes::ChangeRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most entries of each list, and most characters of one.
const ENTRIES_MAX: usize = 100;
const CHARS_MAX: usize = 400;
/// Most entries that a message names; further ones are only counted.
const NAMED_MAX: usize = 5;

/// An object that has changed since the review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Moved {
    /// The object's place, as the adapter names it.
    pub(super) object: String,
    /// Its reviewed state and its present state.
    pub(super) message: String,
}

/// What the device said of one change of the plan, where a call or a job carried out several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ChangeResult {
    /// Which change, counted from 0 in the order of the plan.
    pub(super) index: u32,
    /// Why it was not done; null where it was done.
    pub(super) failed: Option<ChangeFailure>,
}

/// Why one change was not done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ChangeFailure {
    /// Such as `conflict` or `adapter_timeout`.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The vendor's code, where it has one.
    pub(super) code: Option<String>,
    pub(super) message: String,
    /// Whether a part of it may be at the device nevertheless.
    pub(super) effect: Effect,
}

impl From<&Fault> for ChangeFailure {
    fn from(fault: &Fault) -> Self {
        let kind = fault.kind.public().1.to_owned();
        Self { kind, code: fault.code.clone(), message: short(&fault.message), effect: fault.effect }
    }
}

/// The details of an outcome.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "OutcomeDetail")]
pub(super) struct Detail {
    /// Warnings of the adapter while the change was applied, and changes that others made meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    /// Steps that are still needed before the change is in effect: `reboot`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) needs: Vec<String>,
    /// How the parts that the plan touches differ from the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub(super) difference: Option<Value>,
    /// Changes that others made at the device since the plan was made, as of the last reading.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) foreign: Vec<String>,
    /// Changes of others that are gone, because the device's own rollback takes everything back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) lost: Vec<String>,
    /// Objects that changed since the plan was made and so kept the change from being sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) moved: Vec<Moved>,
    /// The state of each change of a set, in its order: `before`, `after`, `adjusted` (as planned, but for values that the
    /// device writes in its own way), `stored`, `moved_on` (others changed it since), `other` or `unseen` (nothing of it
    /// can be read).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) items: Vec<String>,
    /// What the device said of each change, where one call or job carried out several and told them apart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) results: Vec<ChangeResult>,
}

impl Detail {
    /// Reads the stored detail of a change. Of details that an earlier version stored, the known fields are read.
    pub(super) fn of(row: &ChangeRow) -> Self {
        let kept = row.outcome_detail.clone().unwrap_or_default();
        serde_json::from_value(kept).unwrap_or_default()
    }

    pub(super) fn to_set(&self) -> Set<Value> {
        if *self == Self::default() {
            return Set::Clear;
        }
        serde_json::to_value(self).map_or(Set::Clear, Set::To)
    }

    /// Stores the result of a comparison.
    pub(super) fn saw(&mut self, found: &Comparison) {
        self.foreign.clone_from(&found.foreign);
        self.items = found.items.iter().map(|standing| standing.as_str().to_owned()).collect();
        self.difference = match &found.standing {
            Standing::Adjusted(difference) | Standing::MovedOn(difference) | Standing::Other(difference) => {
                Some(difference.clone())
            }
            Standing::Before | Standing::After | Standing::Stored(_) | Standing::Unseen => None,
        };
        match &found.standing {
            Standing::After | Standing::Adjusted(_) => self.needs.clear(),
            Standing::Stored(needs) => self.needs.clone_from(needs),
            Standing::Before | Standing::MovedOn(_) | Standing::Other(_) | Standing::Unseen => {}
        }
        self.bound();
    }

    /// Stores the objects that had changed when the adapter refused to send.
    pub(super) fn moved_by(&mut self, fault: &Fault) {
        let moved = |field: &heddle_core::fault::FieldError| Moved {
            object: short(&field.pointer),
            message: short(&field.message),
        };
        self.moved = fault.fields.iter().take(ENTRIES_MAX).map(moved).collect();
    }

    /// Stores what came of changes of a plan that has so many. A failure stays, whatever a later call says of the change.
    pub(super) fn add_results(&mut self, results: &[ItemResult], changes: usize) {
        for result in results.iter().filter(|result| (result.index as usize) < changes) {
            let failed = result.failed.as_ref().map(ChangeFailure::from);
            match self.results.iter_mut().find(|known| known.index == result.index) {
                Some(known) => known.failed = known.failed.take().or(failed),
                None => self.results.push(ChangeResult { index: result.index, failed }),
            }
        }
        self.results.sort_by_key(|result| result.index);
    }

    /// What the device said of the changes that it did not carry out.
    pub(super) fn failures(&self) -> impl Iterator<Item = &ChangeFailure> {
        self.results.iter().filter_map(|result| result.failed.as_ref())
    }

    pub(super) fn add_warnings(&mut self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) && self.warnings.len() < ENTRIES_MAX {
                self.warnings.push(warning);
            }
        }
    }

    /// Turns changes of others into warnings of a change that was applied nevertheless.
    pub(super) fn warn_of_foreign(&mut self) {
        let foreign = self.foreign.clone();
        self.add_warnings(foreign.into_iter().map(|what| format!("others changed meanwhile: {what}")));
    }

    /// Limits the lists of an adapter.
    pub(super) fn bound(&mut self) {
        for list in [&mut self.warnings, &mut self.needs, &mut self.foreign, &mut self.lost] {
            list.truncate(ENTRIES_MAX);
            list.iter_mut().for_each(|text| *text = short(text));
        }
        // A set may have many changes, and each may have further ones.
        self.items.truncate(ENTRIES_MAX * 10);
    }
}

fn short(text: &str) -> String {
    text.chars().take(CHARS_MAX).collect()
}

/// Names the first few entries, and counts the others.
pub(super) fn named(list: &[String]) -> String {
    let shown: Vec<&str> = list.iter().take(NAMED_MAX).map(String::as_str).collect();
    match list.len().saturating_sub(NAMED_MAX) {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}

/// Returns the warning for a plan whose rollback also takes back changes that others save.
pub(super) fn takes_all_warning(plan: &Plan) -> Option<String> {
    plan.undo_takes_all.then(|| {
        "if this change is taken back before it is confirmed, what others save at the device meanwhile may be \
         taken back with it"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_device_shows_replaces_what_it_showed() {
        let mut detail = Detail { needs: vec!["reboot".to_owned()], ..Detail::default() };
        let found = |standing, foreign: &[&str]| Comparison {
            standing,
            items: Vec::new(),
            foreign: foreign.iter().map(|text| (*text).to_owned()).collect(),
        };
        detail.saw(&found(Standing::Other(json!({"a": 1})), &["x was added"]));
        assert_eq!((detail.difference.is_some(), detail.needs.len(), detail.foreign.len()), (true, 1, 1));
        detail.saw(&found(Standing::Stored(vec!["restart".to_owned()]), &[]));
        assert_eq!((detail.difference.is_some(), &detail.needs[..]), (false, &["restart".to_owned()][..]));
        detail.saw(&found(Standing::After, &[]));
        assert_eq!(detail, Detail::default(), "in effect: nothing is needed any more");
        assert_eq!(detail.to_set(), Set::Clear);
    }

    #[test]
    fn a_change_that_failed_stays_so_and_an_unknown_change_is_left_out() {
        let fault = Fault::new(heddle_core::fault::FaultKind::Conflict, "the name is taken");
        let of = |index, failed: Option<&Fault>| ItemResult { index, failed: failed.cloned() };
        let mut detail = Detail::default();
        detail.add_results(&[of(1, Some(&fault)), of(0, None), of(2, None)], 2);
        detail.add_results(&[of(1, None)], 2);
        let told: Vec<_> =
            detail.results.iter().map(|result| (result.index, result.failed.is_some())).collect();
        assert_eq!(told, [(0, false), (1, true)]);
        let failure = detail.failures().next().unwrap();
        assert_eq!((failure.kind.as_str(), failure.message.as_str()), ("conflict", "the name is taken"));
    }

    #[test]
    fn a_message_names_the_first_few() {
        let list: Vec<String> = (0..7).map(|n| n.to_string()).collect();
        assert_eq!(named(&list), "0; 1; 2; 3; 4; and 2 more");
        assert_eq!(named(&list[..1]), "0");
    }
}
