//! The members of a set of one controller: they follow its row in the transaction that moves it.
//!
//! A set has its own row among the changes, which is planned and applied like a change. While its members are in it, they
//! are not handled alone.

use heddle_core::change::{ChangeSpec, ChangeStatus, OutcomeState, Stage};
use heddle_core::fault::Effect;
use heddle_core::{Timestamp, UserId};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_store::Tx;
use heddle_store::changes::{self, ChangeRow, Followed};

use super::detail::{ChangeResult, Detail};
use super::job::has_left;
use super::plan::asked_of;

/// Returns every user that staged a member of the set.
pub(super) async fn stagers(tx: &mut Tx, row: &ChangeRow) -> Result<Vec<UserId>, Error> {
    if !row.is_set {
        return Ok(vec![row.staged_by]);
    }
    Ok(changes::members(tx, row.id).await?.into_iter().map(|member| member.staged_by).collect())
}

/// Returns what people asked for with the members of a set: in the words of the model where it was asked in them.
pub(super) async fn meant(app: &App, row: &ChangeRow) -> Result<Vec<ChangeSpec>, Error> {
    let mut tx = app.db.single().await?;
    Ok(changes::members(&mut tx, row.id).await?.iter().flat_map(asked_of).collect())
}

/// Updates the members of a set in the transaction that moved the set. Does nothing when the row is no set.
pub(super) async fn follow(tx: &mut Tx, row: &ChangeRow, now: Timestamp) -> Result<(), Error> {
    if !row.is_set {
        return Ok(());
    }
    let detail = Detail::of(row);
    let items = &detail.items;
    let members = changes::members(tx, row.id).await?;
    let told_apart = items.len() == members.iter().map(parts_of).sum::<usize>();
    let mut at = 0;
    for member in &members {
        let count = parts_of(member);
        let words = if told_apart { &items[at..at + count] } else { &[] };
        let of_member = |result: &&ChangeResult| (at..at + count).contains(&(result.index as usize));
        let results: Vec<&ChangeResult> = detail.results.iter().filter(of_member).collect();
        at += count;
        let (status, state, message) = standing_of_member(row, words, (&results, count));
        let is_applied = status == ChangeStatus::Applied;
        let told = Followed {
            ids: vec![member.id],
            status,
            state,
            message,
            applied_by: row.attempts.last().filter(|_| is_applied).map(|attempt| attempt.started_by),
            applied_at: row.applied_at.or(Some(now)).filter(|_| is_applied),
            reverted_by: row.reverted_by,
        };
        changes::follow(tx, row.id, &told, now).await?;
    }
    Ok(())
}

/// How many changes of the vendor's own features a member is.
fn parts_of(member: &ChangeRow) -> usize {
    member.expressed_as.as_ref().map_or(1 + member.also.len(), Vec::len)
}

/// Returns the state of a member from what the device shows; where that is not known, from what the device said of it,
/// else the state of its set. What was said of the apply does not count once calls of the way back left.
fn standing_of_member(
    set: &ChangeRow,
    words: &[String],
    (results, count): (&[&ChangeResult], usize),
) -> (ChangeStatus, OutcomeState, Option<String>) {
    let message = set.outcome_message.clone();
    let is_taken_back = has_left(set, Stage::Undo) || has_left(set, Stage::Restore);
    let results = if is_taken_back { &[] } else { results };
    let failure = results.iter().find_map(|result| result.failed.as_ref());
    let is_said = words.is_empty() && results.len() == count;
    let all = |wanted: &[&str]| !words.is_empty() && words.iter().all(|word| wanted.contains(&word.as_str()));
    if set.outcome_state != OutcomeState::Partial {
        return (set.status, set.outcome_state, message);
    }
    if all(&["after", "adjusted", "stored"]) || (is_said && failure.is_none()) {
        // The member stays on the device, whatever happens to the others.
        let status = if set.status == ChangeStatus::Discarded { ChangeStatus::Applied } else { set.status };
        return (
            status,
            OutcomeState::Applied,
            Some("in effect, unlike other changes of its set".to_owned()),
        );
    }
    let is_unchanged =
        |result: &&ChangeResult| result.failed.as_ref().is_some_and(|failed| failed.effect == Effect::None);
    if all(&["before"]) || (is_said && results.iter().all(is_unchanged)) {
        let why = failure.map(|failed| format!(": {}", failed.message)).unwrap_or_default();
        let message = format!("not on the device, unlike others of its set{why}");
        return (set.status, OutcomeState::Failed, Some(message));
    }
    let message = failure.map(|failed| failed.message.clone()).or(message);
    (set.status, OutcomeState::Partial, message)
}
