//! Tools: they run for seconds, and their rows come at the end. No packet leaves the simulation.

use std::net::IpAddr;

use crate::call::{Answered, Call, Done, Output};
use crate::check;
use crate::device::Router;
use crate::duration;
use crate::monitors::bound;
use crate::refusal::Refusal;
use crate::store::Record;

pub(crate) fn answer(router: &mut Router, call: &Call) -> Option<Answered> {
    Some(match (call.path, call.command) {
        ("" | "tool", "ping") => ping(router, call),
        ("tool", "traceroute") => traceroute(call),
        ("tool", "torch") => Ok(timed(call, torch)),
        ("tool", "profile") => {
            Ok(timed(call, |_| vec![record(&[("name", "networking"), ("usage", "1.5"), ("cpu", "0")])]))
        }
        ("tool", "bandwidth-test" | "speed-test") => Ok(timed(call, bandwidth)),
        ("tool", "flood-ping") => {
            Ok(timed(call, |_| vec![record(&[("sent", "100"), ("received", "100"), ("avg-rtt", "0")])]))
        }
        ("tool", "ip-scan" | "mac-scan") => Ok(timed(call, |_| {
            vec![record(&[("address", "192.168.88.10"), ("mac-address", "02:10:AA:00:10:01")])]
        })),
        // The simulation reaches no other host.
        ("tool", "fetch") => call.need("url").and_then(|url| {
            router.note("fetch,info", &format!("Download from {url} FAILED: Fail 1: connection refused"));
            Err(Refusal::failure("connection refused"))
        }),
        ("tool", "wol") => call.need("mac").and_then(|mac| match crate::address::mac(mac) {
            Some(_) => Ok(Done::nothing()),
            None => Err(Refusal::invalid("mac")),
        }),
        ("tool/e-mail", "send") => call.need("to").map(|_| {
            let id = router.store.object("tool/e-mail").map_or(0, |row| row.id);
            router.store.set("tool/e-mail", id, "last-status", "failed");
            Done::nothing()
        }),
        _ => return None,
    })
}

fn record(pairs: &[(&str, &str)]) -> Record {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A tool that needs a bound.
fn timed(call: &Call, rows: impl Fn(&Call) -> Vec<Record>) -> Done {
    match bound(call) {
        None => Done::endless(),
        secs => Done { output: Output::Rows(rows(call)), secs },
    }
}

/// A frame needs two intervals.
fn torch(call: &Call) -> Vec<Record> {
    if bound(call).is_some_and(|secs| secs < 2) {
        return Vec::new();
    }
    vec![record(&[
        ("src-address", "192.168.88.10"),
        ("dst-address", "203.0.113.7"),
        ("ip-protocol", "tcp"),
        ("tx", "84000"),
        ("rx", "12000"),
        ("tx-packets", "12"),
        ("rx-packets", "9"),
    ])]
}

fn bandwidth(call: &Call) -> Vec<Record> {
    let secs = bound(call).unwrap_or_default();
    let section = |number: u64, status: &str| {
        let mut row = record(&[("status", status), ("direction", "receive"), ("rx-current", "940000000")]);
        row.insert("duration".to_owned(), duration::show_secs(number));
        row.insert(".section".to_owned(), number.to_string());
        row
    };
    (0..=secs).map(|at| section(at, if at == secs { "done testing" } else { "running" })).collect()
}

/// Hosts of the documentation network 192.0.2.0/24 never answer.
fn ping(router: &Router, call: &Call) -> Answered {
    let address = call.need("address")?.to_owned();
    let is_name = address.chars().any(|c| c.is_ascii_alphabetic()) && !address.contains(':');
    if address.parse::<IpAddr>().is_err() && !is_name {
        return Err(Refusal::invalid("address"));
    }
    let Some(secs) = bound(call) else { return Ok(Done::endless()) };
    let count: u64 = match call.args.get("count") {
        Some(text) => check::number(text)
            .and_then(|count| u64::try_from(count).ok())
            .ok_or_else(|| Refusal::invalid("count"))?,
        None => secs.max(1),
    };
    let is_lost = address.starts_with("192.0.2.")
        || (is_name && !router.store.setting("ip/dns", "servers").contains('.'));
    let rows = (0..count).map(|seq| {
        let mut row = record(&[("host", &address)]);
        let mut put = |name: &str, value: String| drop(row.insert(name.to_owned(), value));
        put("seq", seq.to_string());
        put("sent", (seq + 1).to_string());
        put("received", if is_lost { 0 } else { seq + 1 }.to_string());
        put("packet-loss", if is_lost { "100" } else { "0" }.to_owned());
        if is_lost {
            put("status", "timeout".to_owned());
        } else {
            for name in ["time", "min-rtt", "avg-rtt", "max-rtt"] {
                put(name, format!("{}ms{}us", 3 + seq % 2, 110 + seq));
            }
            put("size", "56".to_owned());
            put("ttl", "64".to_owned());
        }
        row
    });
    Ok(Done { output: Output::Rows(rows.collect()), secs: Some(secs) })
}

fn traceroute(call: &Call) -> Answered {
    let address = call.need("address")?;
    let Some(secs) = bound(call) else { return Ok(Done::endless()) };
    let hops = ["198.51.100.1", "203.0.113.1", address];
    let rows = hops.iter().enumerate().map(|(at, hop)| {
        let mut row =
            record(&[("address", hop), ("loss", "0"), ("sent", "1"), ("last", "1.9"), ("avg", "1.9")]);
        row.insert(".section".to_owned(), "0".to_owned());
        row.insert(".id".to_owned(), format!("*{}", at + 1));
        row
    });
    Ok(Done { output: Output::Rows(rows.collect()), secs: Some(secs) })
}
