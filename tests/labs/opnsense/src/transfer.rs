//! Files of comma-separated values: lists of items out and in.

use serde_json::json;

use crate::call::{Answer, Call};
use crate::config::Values;
use crate::crud::{having, is_uuid};
use crate::device::Firewall;
use crate::facts::{Facts, Operation};
use crate::{hooks, validate};

/// Columns of the files that carry few of the fields.
const COLUMNS: [(&str, &[&str]); 2] = [
    ("Kea/KeaDhcpv4:reservations.reservation", &["ip_address", "hw_address", "hostname", "description"]),
    ("Auth/User:user", &["name", "descr", "email", "comment", "disabled"]),
];

/// Downloads and uploads of lists.
pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let has_node = !call.node().is_empty();
    if has_node && call.command.starts_with("download") {
        return Some(Ok(Answer::csv(download(firewall, call.node()))));
    }
    (has_node && call.facts.op == Operation::Import && call.command.starts_with("upload"))
        .then(|| upload(firewall, call))
}

fn columns(firewall: &Firewall, node: &str) -> Vec<String> {
    if let Some((_, columns)) = COLUMNS.iter().find(|(own, _)| *own == node) {
        return columns.iter().map(|name| (*name).to_owned()).collect();
    }
    let fields =
        Facts::get().fields(node, firewall.release).filter(|field| !field.volatile && !field.is_items());
    ["@uuid".to_owned()].into_iter().chain(fields.map(|field| field.name.clone())).collect()
}

fn download(firewall: &Firewall, node: &str) -> String {
    let columns = columns(firewall, node);
    let mut out = columns.join(",") + "\n";
    for (id, values) in firewall.stored.rows(node) {
        let cells = columns.iter().map(|name| match name.as_str() {
            "@uuid" => id.to_owned(),
            name => quoted(crate::choices::effective(node, name, values)),
        });
        out += &(cells.collect::<Vec<_>>().join(",") + "\n");
    }
    out
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Good rows are saved and bad ones dropped, in the same call.
fn upload(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let node = call.node();
    let rows = parse(&call.text("payload"));
    let Some((names, rows)) = rows.split_first() else { return Ok(Answer::status("failed")) };
    let mut config = firewall.stored.clone();
    let (mut inserted, mut updated, mut faults) = (0, 0, Vec::new());
    for (line, row) in rows.iter().enumerate() {
        let mut values: Values = names.iter().cloned().zip(row.iter().cloned()).collect();
        let given = values.remove("@uuid").filter(|id| is_uuid(id));
        let known = given.clone().filter(|id| config.find(node, id).is_some()).or_else(|| {
            let key =
                ["hw_address", "name", "description"].into_iter().find(|key| values.contains_key(*key))?;
            having(&config, node, key, &values[key])
                .next()
                .filter(|_| given.is_none())
                .map(|(id, _)| id.to_owned())
        });
        let is_new = known.is_none();
        let id = known.or(given).unwrap_or_else(|| firewall.new_uuid());
        let mut merged = config.find(node, &id).map(|values| Values::clone(values)).unwrap_or_default();
        merged.extend(values);
        if node.ends_with("reservations.reservation") && !merged.contains_key("subnet") {
            let list = "Kea/KeaDhcpv4:subnets.subnet4";
            let address = merged.get("ip_address").cloned().unwrap_or_default();
            let holds = |subnet: &Values| {
                subnet.get("subnet").is_some_and(|network| validate::contains(network, &address))
            };
            if let Some((subnet, _)) = config.rows(list).find(|(_, subnet)| holds(subnet)) {
                merged.insert("subnet".to_owned(), subnet.to_owned());
            }
        }
        hooks::number(node, &id, &mut merged, &config, is_new);
        let wrong = validate::item(node, &id, &merged, &config, firewall.release, |_| true);
        if wrong.is_empty() {
            config.put(node, &id, merged);
            inserted += usize::from(is_new);
            updated += usize::from(!is_new);
        }
        faults.extend(
            wrong
                .into_iter()
                .map(|(field, message)| json!({ "sequence": line, "field": field, "message": message })),
        );
    }
    firewall.save(call, config)?;
    Ok(Answer::json(
        &json!({ "status": "ok", "inserted": inserted, "updated": updated, "validations": faults }),
    ))
}

/// Rows of cells; a cell in quotes may hold commas and line ends.
fn parse(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut is_quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let row = rows.last_mut();
        let Some(cell) = row.and_then(|row| row.last_mut()) else { break };
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => rows.last_mut().into_iter().for_each(|row| row.push(String::new())),
            '\n' if !is_quoted => rows.push(vec![String::new()]),
            '\r' => {}
            c => cell.push(c),
        }
    }
    rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
    rows
}
