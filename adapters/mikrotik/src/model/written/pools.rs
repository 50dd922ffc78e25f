//! DHCP: a server, the pool that it names, and the network of its interface are objects of their own.

use heddle_sdk::crud::{Asked, Expressed, refused};
use heddle_sdk::{Fault, Host, Operation};
use serde_json::{Map, Value, json};

use super::super::addressing::{is_within, network};
use super::super::{beside, text};
use super::{asked_text, change, own, rows};

/// Fields of the network.
const OF_NETWORK: [&str; 3] = ["gateway", "dns_servers", "domain"];

pub(super) fn pool(host: &dyn Host, asked: &Asked<'_>, changes: &mut Vec<Expressed>) -> Result<(), Fault> {
    match own(changes)?.operation {
        Operation::Create => made(host, asked, changes),
        Operation::Update => changed(asked, changes),
        Operation::Delete => Ok(()),
    }
}

/// `a-b` for each range.
fn ranges(asked: &Asked<'_>) -> Option<Vec<String>> {
    let one = |range: &Value| {
        let part = |name: &str| range.get(name).and_then(Value::as_str).unwrap_or_default();
        format!("{}-{}", part("from"), part("to"))
    };
    Some(asked.fields.get("ranges")?.as_array()?.iter().map(one).collect())
}

/// What the network is asked to have.
fn of_network(asked: &Asked<'_>) -> Map<String, Value> {
    let mut out = Map::new();
    if let Some(gateway) = asked.fields.get("gateway") {
        out.insert("gateway".to_owned(), if gateway.is_null() { Value::Null } else { json!([gateway]) });
    }
    if let Some(servers) = asked.fields.get("dns_servers") {
        let joined = super::texts(servers).join(",");
        out.insert("dns-server".to_owned(), if joined.is_empty() { Value::Null } else { json!(joined) });
    }
    if let Some(domain) = asked.fields.get("domain") {
        out.insert("domain".to_owned(), domain.clone());
    }
    out
}

fn made(host: &dyn Host, asked: &Asked<'_>, changes: &mut Vec<Expressed>) -> Result<(), Fault> {
    let interface = asked_text(asked, "interface").unwrap_or_default();
    let ranges = ranges(asked).filter(|ranges| !ranges.is_empty());
    let ranges =
        ranges.ok_or_else(|| refused("ranges", "is needed: the addresses that the server gives out"))?;
    let first = ranges[0].split('-').next().unwrap_or_default().to_owned();
    let addresses = rows(host, "ip.address")?;
    let is_own = |row: &&Value| {
        text(row, "interface") == Some(interface)
            && is_within(&first, text(row, "address").unwrap_or_default())
    };
    let address = addresses.iter().find(is_own).and_then(|row| text(row, "address"));
    let network = address.and_then(super::super::addressing::network_of);
    let network = network.ok_or_else(|| {
        refused("ranges", "is in no network of the interface; give it an address first: mikrotik.ip.address")
    })?;
    let name = format!("dhcp-{interface}");
    let server = own(changes)?;
    server.payload.insert("name".to_owned(), json!(name));
    server.payload.insert("address-pool".to_owned(), json!(name));
    let pool = change("dhcp.pool", Operation::Create, json!({ "name": name, "ranges": ranges }));
    // The server names its pool, which has to be there.
    changes.insert(0, pool);
    let known = rows(host, "dhcp.server-network")?;
    let mut payload = of_network(asked);
    let is_there = known.iter().any(|row| text(row, "address") == Some(network.as_str()));
    payload.insert("address".to_owned(), json!(network));
    let operation = if is_there { Operation::Update } else { Operation::Create };
    if !is_there || payload.len() > 1 {
        changes.push(change("dhcp.server-network", operation, Value::Object(payload)));
    }
    Ok(())
}

fn changed(asked: &Asked<'_>, changes: &mut Vec<Expressed>) -> Result<(), Fault> {
    let Some(row) = asked.row else { return Ok(()) };
    if let Some(ranges) = ranges(asked) {
        let pool = beside(row, "pool").and_then(|pool| text(pool, "name"));
        let pool = pool.ok_or_else(|| refused("ranges", "needs a server with a pool"))?;
        changes.push(change("dhcp.pool", Operation::Update, json!({ "name": pool, "ranges": ranges })));
    }
    let mut payload = of_network(asked);
    if !payload.is_empty() {
        let field = OF_NETWORK.iter().find(|field| asked.fields.contains_key(**field)).unwrap_or(&"gateway");
        let network = network(row).and_then(|network| text(network, "address"));
        let network = network.ok_or_else(|| refused(field, "needs a network of the server's interface"))?;
        payload.insert("address".to_owned(), json!(network));
        changes.push(change("dhcp.server-network", Operation::Update, Value::Object(payload)));
    }
    // What is left of the server alone may be its name.
    if own(changes)?.payload.len() == 1 {
        changes.remove(0);
    }
    Ok(())
}
