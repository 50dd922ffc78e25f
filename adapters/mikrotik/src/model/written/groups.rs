//! A group of addresses is the rows with one name: each member is a change of its own.

use heddle_sdk::crud::{Asked, Expressed, refused};
use heddle_sdk::{Fault, Host, Operation};
use serde_json::{Value, json};

use super::super::filter::is_address;
use super::super::text;
use super::{asked_text, change, own, rows, texts};

const IPV4: &str = "firewall.address-list";
const IPV6: &str = "firewall.ipv6-address-list";

pub(super) fn group(host: &dyn Host, asked: &Asked<'_>, changes: &mut Vec<Expressed>) -> Result<(), Fault> {
    let operation = own(changes)?.operation;
    let name = match asked.row {
        Some(row) => text(row, "list").unwrap_or_default().to_owned(),
        None => asked_text(asked, "name").unwrap_or_default().to_owned(),
    };
    let wanted = asked.fields.get("members").map(texts);
    if let Some(kind) = asked_text(asked, "type") {
        let members = wanted.clone().unwrap_or_default();
        let fits = match kind {
            "addresses" => members.iter().all(|one| is_address(one)),
            "names" => !members.iter().any(|one| is_address(one)),
            "mixed" => true,
            _ => false,
        };
        if !fits {
            return Err(refused("type", "is what the members are there: addresses, names or mixed"));
        }
    }
    let is_v6 = |member: &str| member.contains(':');
    let kind = match (asked.row, &wanted) {
        (Some(row), _) => {
            if is_v6(text(row, "address").unwrap_or_default()) {
                IPV6
            } else {
                IPV4
            }
        }
        (None, Some(members)) if members.iter().any(|member| is_v6(member)) => IPV6,
        (None, _) => IPV4,
    };
    let known: Vec<String> = rows(host, kind)?
        .iter()
        .filter(|row| text(row, "list") == Some(name.as_str()))
        .filter_map(|row| text(row, "address").map(str::to_owned))
        .collect();
    let wanted = match (operation, wanted) {
        (Operation::Delete, _) => Vec::new(),
        (_, None) => known.clone(),
        (_, Some(members)) if members.is_empty() => {
            return Err(refused("members", "cannot be empty there: without a member there is no group"));
        }
        (_, Some(members)) => members,
    };
    if operation == Operation::Create && !known.is_empty() {
        return Err(refused("name", "is a group already"));
    }
    let is_mixed = wanted.iter().any(|member| is_address(member) && is_v6(member) != (kind == IPV6));
    if is_mixed {
        return Err(refused("members", "are of one family there: IPv4 and IPv6 have lists of their own"));
    }
    let of = |operation, member: &String| {
        let payload: Value = json!({ "list": name, "address": member });
        change(kind, operation, payload)
    };
    let new =
        wanted.iter().filter(|member| !known.contains(member)).map(|member| of(Operation::Create, member));
    let gone =
        known.iter().filter(|member| !wanted.contains(member)).map(|member| of(Operation::Delete, member));
    *changes = new.chain(gone).collect();
    Ok(())
}
