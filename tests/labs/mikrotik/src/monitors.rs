//! Commands without code of their own: those that only act, and those whose output goes on until it is bounded.

use crate::call::{Answered, Call, Done, Output};
use crate::device::Router;
use crate::duration;
use crate::facts::{Command, Kind};
use crate::print;
use crate::refusal::Refusal;

/// Seconds that a bounded command runs; `None` when nothing bounds it.
pub(crate) fn bound(call: &Call) -> Option<u64> {
    if call.has("once") {
        return Some(0);
    }
    if let Some(secs) = call.args.get("duration").and_then(|text| duration::secs(text)) {
        return Some(secs);
    }
    let interval = call.args.get("interval").and_then(|text| duration::secs(text)).unwrap_or(1);
    call.args
        .get("count")
        .and_then(|text| text.parse::<u64>().ok())
        .map(|count| count.saturating_sub(1) * interval)
}

/// Rows of what a command names, or nothing.
pub(crate) fn run(router: &Router, call: &Call, facts: &Command) -> Answered {
    let ids = match call.named() {
        Some(_) if call.menu.kind_in(router.release) == Kind::List => call.ids(router)?,
        Some(_) => Vec::new(),
        None if facts.needs_rows() => return Err(Refusal::missing("numbers")),
        None => Vec::new(),
    };
    if !facts.runs {
        return Ok(Done::nothing());
    }
    // A check, a scan or a transfer ends by itself; a monitor does not.
    let is_endless = ["monitor", "scan", "sniff", "snoop", "torch", "profile"]
        .iter()
        .any(|word| call.command.contains(word));
    let secs = match bound(call) {
        None if is_endless => return Ok(Done::endless()),
        secs => secs.or(Some(1)),
    };
    let mut rows = Vec::new();
    for id in ids {
        let row = print::get(router, call.path, call.menu, call.who, id)?;
        let kept = ["name", "interface", "status", "running", "disabled"];
        rows.push(row.into_iter().filter(|(name, _)| kept.contains(&name.as_str())).collect());
    }
    Ok(Done { output: Output::Rows(rows), secs })
}
