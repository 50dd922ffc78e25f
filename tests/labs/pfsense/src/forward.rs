//! The filter rule that belongs to a port forward.

use serde_json::{Value, json};

use crate::call::Call;
use crate::device::Pfsense;
use crate::draft::Draft;
use crate::facts::Facts;
use crate::reply::Refusal;
use crate::store::{Object, text};

pub(crate) fn is_linked(values: &Object) -> bool {
    !["", "pass"].contains(&text(values, "associated_rule_id"))
}

/// The filter rule of a port forward, with the fields that follow it.
pub(crate) fn linked_rule(values: &Object) -> Object {
    let mut rule = Object::new();
    for (name, from) in [
        ("disabled", "disabled"),
        ("ipprotocol", "ipprotocol"),
        ("protocol", "protocol"),
        ("source", "source"),
        ("source_port", "source_port"),
        ("destination", "target"),
        ("destination_port", "local_port"),
        ("associated_rule_id", "associated_rule_id"),
    ] {
        rule.insert(name.to_owned(), values.get(from).cloned().unwrap_or(Value::Null));
    }
    let link = text(values, "associated_rule_id");
    rule.insert("type".to_owned(), json!("pass"));
    rule.insert("interface".to_owned(), json!([values.get("interface")]));
    rule.insert("descr".to_owned(), json!(format!("Associated rule for port forward rule {link}")));
    rule
}

/// Makes or changes the rule of a port forward. A forward whose rule is not valid stays without one.
pub(crate) fn store_rule(
    firewall: &mut Pfsense,
    call: &Call,
    values: &Object,
    at: Option<usize>,
) -> Result<(), Refusal> {
    let Some(model) = Facts::get().model("FirewallRule") else { return Ok(()) };
    let mut draft = Draft::new(firewall, model, &call.client);
    let before = at.and_then(|at| firewall.stored.list("FirewallRule").get(at)).cloned();
    if let (Some(at), Some(before)) = (at, &before) {
        draft.id = Some(json!(at));
        draft.values = crate::represent::values(firewall, model, draft.id.as_ref(), before);
        draft.initial = Some(draft.values.clone());
    }
    let mut values = values.clone();
    if at.is_some() {
        values.shift_remove("descr");
    }
    draft.lay_over(&values);
    let what = if at.is_some() { "UPDATE" } else { "CREATION" };
    draft.validate().map_err(|refusal| {
        let id = format!("PORT_FORWARD_ASSOCIATED_FIREWALL_RULE_{what}_FAILED");
        Refusal::server(&id, &format!("The linked rule is not valid: {}", refusal.message))
    })?;
    let stored = draft.stored(before.as_ref());
    let mut config = firewall.stored.clone();
    let rules = config.list_mut("FirewallRule");
    match at {
        Some(at) => rules[at] = stored,
        None => rules.push(stored),
    }
    firewall.save(" Modified Firewall Rule via API", config)
}
