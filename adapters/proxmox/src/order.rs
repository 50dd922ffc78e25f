//! The way back of a deleted firewall rule: made again, a rule stands before all others, so that it has to be moved to
//! where it was. The strategies know no places, and call such a delete final.

use heddle_sdk::crud::{Purpose, Vendor as _, Written};
use heddle_sdk::{
    Change, ChangePlan, Completion, Effect, Fault, FaultExt as _, Host, Method, NativeCall, Operation,
    Outcome, Readiness, Response, Stage, Start, fault, json as sdk_json,
};
use serde_json::{Value, json};

use crate::answer::{BASE, Proxmox, read};

/// How a token begins that has more than that of the strategies.
const MARK: &[u8] = b"rule\n";
/// What a new rule takes of an old one.
const FIELDS: [&str; 13] = [
    "type",
    "action",
    "enable",
    "macro",
    "proto",
    "source",
    "dest",
    "sport",
    "dport",
    "icmp-type",
    "iface",
    "log",
    "comment",
];

/// Where a deleted rule stood.
struct Rule {
    /// Path of the list.
    base: String,
    comment: String,
    place: u64,
}

impl Rule {
    /// The rules now, by their places, that have the comment.
    fn places(&self, host: &dyn Host) -> Result<Vec<u64>, Fault> {
        let rows = read(host, self.base.trim_start_matches(BASE))?;
        let own = sdk_json::items(&rows, "").iter().filter(|row| is_named(row, &self.comment));
        Ok(own.filter_map(|row| sdk_json::number(row, "/pos")).collect())
    }
}

fn is_named(row: &Value, comment: &str) -> bool {
    sdk_json::text(row, "/comment").map(str::trim) == Some(comment)
}

/// Whether a feature writes rules of a firewall.
pub(crate) fn is_rule(feature: &str) -> bool {
    feature.starts_with("proxmox.firewall.") && feature.ends_with("rule")
}

/// Gives the plan of one deleted rule its way back.
pub(crate) fn complete(host: &dyn Host, plan: &mut ChangePlan, changes: &[Change]) -> Result<(), Fault> {
    let ([change], [call]) = (changes, plan.native.as_slice()) else { return Ok(()) };
    if change.operation != Operation::Delete || !is_rule(&change.feature) {
        return Ok(());
    }
    let (Some((base, _)), Some(deleted)) = (call.path.split_once("/{{hole."), call.id.clone()) else {
        return Ok(());
    };
    let base = base.to_owned();
    let payload: Value = serde_json::from_str(&change.payload).unwrap_or_default();
    let comment = sdk_json::text(&payload, "/comment").unwrap_or_default().trim().to_owned();
    let rows = read(host, base.trim_start_matches(BASE))?;
    let Some(row) = sdk_json::items(&rows, "").iter().find(|row| is_named(row, &comment)) else {
        return Ok(());
    };
    let Some(place) = sdk_json::number(row, "/pos") else { return Ok(()) };
    let session = Proxmox::of(host).session();
    let call = |method, path: String, form: Vec<(String, String)>| {
        let call = NativeCall::new(Stage::Restore, method, path).in_session(session);
        call.with_form(form).only_after(deleted.clone())
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields = FIELDS.iter().filter_map(|name| Some(((*name).to_owned(), text(row.get(*name)?))));
    let made = call(Method::Post, base.clone(), fields.collect());
    // It is put in front of the rule that follows it; the new one has moved that down.
    let moved =
        || call(Method::Put, format!("{base}/0"), vec![("moveto".to_owned(), (place + 1).to_string())]);
    let back: Vec<NativeCall> = std::iter::once(made).chain((place > 0).then(moved)).collect();
    plan.native.extend(back);
    plan.warnings.retain(|warning| !warning.contains("cannot be taken back"));
    let inner = String::from_utf8_lossy(&plan.token).into_owned();
    let token = json!({ "base": base, "comment": comment, "place": place, "inner": inner });
    plan.token = [MARK, token.to_string().as_bytes()].concat();
    Ok(())
}

/// The token of the strategies, and the rule that was deleted.
fn opened(token: &[u8]) -> (Vec<u8>, Option<Rule>) {
    let whole = token.strip_prefix(MARK).and_then(|rest| serde_json::from_slice::<Value>(rest).ok());
    let Some(whole) = whole else { return (token.to_vec(), None) };
    let text = |name: &str| whole[name].as_str().unwrap_or_default().to_owned();
    let rule = Rule {
        base: text("base"),
        comment: text("comment"),
        place: whole["place"].as_u64().unwrap_or_default(),
    };
    (text("inner").into_bytes(), Some(rule))
}

/// The token of the strategies.
pub(crate) fn inner(token: &[u8]) -> Vec<u8> {
    opened(token).0
}

/// Whether the way back of a deleted rule can be gone, and from where on; none for any other plan.
pub(crate) fn ready(
    host: &dyn Host,
    stage: Stage,
    token: &[u8],
    left: u32,
) -> Option<Result<Readiness, Fault>> {
    let rule = opened(token).1.filter(|_| stage == Stage::Restore)?;
    let moved = || {
        let message = format!("the rule '{}' is not where it was left; plan again", rule.comment);
        Err(fault::state_moved(message).with_code("state-moved"))
    };
    let send = |from| Ok(Readiness::Send(Start { from, found: Vec::new() }));
    Some(match (rule.places(host), left) {
        (Err(fault), _) => Err(fault),
        (Ok(places), 0) if places.is_empty() => send(0),
        (Ok(places), 0) if places.len() == 1 => Ok(Readiness::Nothing(Completion::default())),
        (Ok(places), 1..) if places == [rule.place] => Ok(Readiness::Nothing(Completion::default())),
        (Ok(places), 1) if places == [0] => send(1),
        _ => moved(),
    })
}

/// What came of a call of that way back; none for any other call.
pub(crate) fn judge(
    host: &dyn Host,
    (stage, index): (Stage, usize),
    answer: &Result<Response, Fault>,
    token: &[u8],
) -> Option<Result<Outcome, Fault>> {
    opened(token).1.filter(|_| stage == Stage::Restore)?;
    let purpose = if index == 0 { Purpose::Create } else { Purpose::Update };
    let written = match answer {
        Ok(response) => Proxmox::of(host).written(purpose, response),
        Err(fault) => Err(fault.clone()),
    };
    // The rule is there again once the first call was done.
    let written = written.map_err(|fault| if index > 0 { fault.with_effect(Effect::Certain) } else { fault });
    Some(written.map(|written| match written {
        Written::Task(task) => Outcome::Pending(task),
        Written::Warned(warnings) => Outcome::Done(Completion { warnings, ..Completion::default() }),
        Written::Done => Outcome::Done(Completion::default()),
    }))
}
