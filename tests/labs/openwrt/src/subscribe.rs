//! `GET /ubus/list` and `GET /ubus/subscribe/{object}`: what daemons notify, as server-sent events.

use std::collections::BTreeMap;
use std::time::Duration;

use heddle_lab::{Answer, Instant, Request};
use serde_json::{Map, Value, json};

use crate::device::Device;
use crate::objects;

/// The web server ends an answer that is quiet for so long (`network_timeout`).
const QUIET_MAX: Duration = Duration::from_secs(30);
/// The object of the DHCP server: it notifies, and nothing else of it is simulated.
const DNSMASQ: &str = "dnsmasq";
const INTERFACES: &str = "network.interface";
/// No right to subscribe, or a session that is over: the same, as the number of an error of the system.
const DENIED: i64 = -13;
const NOT_FOUND: i64 = 4;

/// An answer that is open.
struct Stream {
    object: String,
    /// What is not sent yet.
    events: Vec<String>,
    sent_at: Instant,
}

/// The answers that are open, by their numbers.
#[derive(Default)]
pub(crate) struct Streams {
    open: BTreeMap<u64, Stream>,
    opened: u64,
}

impl Streams {
    fn open(&mut self, object: &str, now: Instant) -> u64 {
        self.opened += 1;
        let stream = Stream { object: object.to_owned(), events: Vec::new(), sent_at: now };
        self.open.insert(self.opened, stream);
        self.opened
    }

    /// What is sent now; `None` ends the answer.
    pub(crate) fn take(&mut self, number: u64, now: Instant) -> Option<Vec<String>> {
        let stream = self.open.get_mut(&number)?;
        let events = std::mem::take(&mut stream.events);
        if !events.is_empty() {
            stream.sent_at = now;
        }
        (now < stream.sent_at + QUIET_MAX).then_some(events)
    }

    pub(crate) fn close(&mut self, number: u64) {
        self.open.remove(&number);
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    fn notify(&mut self, object: &str, event: &str, data: &Value) {
        for stream in self.open.values_mut().filter(|stream| stream.object == object) {
            stream.events.push(format!("event: {event}\ndata: {data}\n\n"));
        }
    }
}

impl Device {
    /// The newer form of the web server; `None` where the request is none of it.
    pub(crate) fn newer_form(&mut self, request: &Request) -> Option<Answer> {
        if request.method != "GET" || self.lacks_streams {
            return None;
        }
        match request.segments().as_slice() {
            ["ubus", "list"] => Some(Answer::json(200, &self.all_objects())),
            ["ubus", "subscribe", object] => {
                let sid = request.header("authorization").and_then(|given| given.strip_prefix("Bearer "));
                let opened = self.subscribe(sid.unwrap_or_default(), object);
                Some(match opened {
                    Ok(number) => Answer::stream(number, "text/event-stream"),
                    Err(code) => {
                        let message = if code == DENIED { "Permission denied" } else { "Not found" };
                        Answer::json(200, &json!({ "error": { "code": code, "message": message } }))
                    }
                })
            }
            _ => None,
        }
    }

    /// Objects with the signatures of their methods. It needs no login.
    fn all_objects(&self) -> Value {
        let mut all = Map::new();
        for name in objects::present(&self.missing) {
            all.insert(name.to_owned(), objects::signatures(name));
        }
        if !self.missing.contains(DNSMASQ) {
            all.insert(DNSMASQ.to_owned(), json!({}));
        }
        Value::Object(all)
    }

    /// Opens an answer with the notices of an object, or says the code of the error. The right is asked for first.
    pub(crate) fn subscribe(&mut self, sid: &str, object: &str) -> Result<u64, i64> {
        self.sessions.renew(sid, self.now);
        if !self.sessions.may(sid, "ubus", object, ":subscribe") {
            return Err(DENIED);
        }
        let is_there = objects::present(&self.missing).contains(&object)
            || object == DNSMASQ && !self.missing.contains(DNSMASQ);
        if is_there { Ok(self.streams.open(object, self.now)) } else { Err(NOT_FOUND) }
    }

    /// netifd notifies of each interface when it has taken the file.
    pub(crate) fn notify_interfaces(&mut self) {
        for interface in self.interfaces() {
            let event = if interface["up"] == true { "update" } else { "down" };
            self.streams.notify(INTERFACES, event, &interface);
        }
    }

    /// The host with this MAC leaves the house: no lease, no hint, no station.
    pub(crate) fn leaves(&mut self, mac: &str) {
        if self.away.insert(mac.to_ascii_lowercase()) {
            self.notify_host(mac, "disassoc", "dhcp.release");
        }
    }

    /// The host is back.
    pub(crate) fn returns(&mut self, mac: &str) {
        if self.away.remove(&mac.to_ascii_lowercase()) {
            self.notify_host(mac, "assoc", "dhcp.ack");
        }
    }

    fn notify_host(&mut self, mac: &str, of_station: &str, of_lease: &str) {
        let mac = mac.to_ascii_lowercase();
        let Some((ifname, address)) = Self::host(&mac) else { return };
        if let Some(ifname) = ifname {
            self.streams.notify(&format!("hostapd.{ifname}"), of_station, &json!({ "address": mac }));
        }
        let lease = json!({ "mac": mac, "ip": address, "interface": "br-lan" });
        self.streams.notify(DNSMASQ, of_lease, &lease);
    }
}
