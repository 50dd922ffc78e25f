//! The captive portal: sessions, vouchers and templates of its pages.

use serde_json::{Map, Value, json};

use crate::call::{Answer, Call};
use crate::choices::effective;
use crate::config::{Values, values};
use crate::crud::having;
use crate::device::Firewall;
use crate::grid;
use crate::hooks::with;
use crate::live::Session;

const ZONES: &str = "CaptivePortal/CaptivePortal:zones.zone";
const TEMPLATES: &str = "CaptivePortal/CaptivePortal:templates.template";
/// Vouchers: the id is the code.
const VOUCHERS: &str = "vouchers";

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match (call.controller, call.command) {
        ("captiveportal/session", "search") => Ok(grid::live(call, rows(firewall, ""))),
        ("captiveportal/session", "list") => Ok(Answer::json(&json!(rows(firewall, call.param(0))))),
        ("captiveportal/session", "zones") => {
            let zones = firewall.running.rows(ZONES).map(|(_, zone)| {
                (effective(ZONES, "zoneid", zone).to_owned(), json!(effective(ZONES, "description", zone)))
            });
            Ok(Answer::json(&Value::Object(zones.collect::<Map<_, _>>())))
        }
        ("captiveportal/session", "connect") => Ok(connect(firewall, call)),
        ("captiveportal/session", "disconnect") => {
            let id = call.text("sessionId");
            firewall.live.sessions.retain(|session| session.id != id);
            Ok(Answer::json(&json!({ "terminateCause": "Admin-Reset", "sessionId": id })))
        }
        ("captiveportal/voucher", "listproviders") => Ok(Answer::json(&json!(["Vouchers"]))),
        ("captiveportal/voucher", "generatevouchers") => generate(firewall, call),
        ("captiveportal/voucher", "listvouchergroups") => {
            let mut groups: Vec<&str> = firewall
                .stored
                .rows(VOUCHERS)
                .filter_map(|(_, own)| own.get("group"))
                .map(String::as_str)
                .collect();
            groups.dedup();
            Ok(Answer::json(&json!(groups)))
        }
        ("captiveportal/voucher", "listvouchers") => {
            let own = having(&firewall.stored, VOUCHERS, "group", call.param(1));
            let rows = own.map(|(code, own)| {
                let state = if own.contains_key("expired") { "expired" } else { "unused" };
                json!({ "username": code, "validity": own.get("validity"), "state": state,
                    "starttime": null })
            });
            Ok(Answer::json(&json!(rows.collect::<Vec<_>>())))
        }
        ("captiveportal/voucher", "dropvouchergroup") => drop_vouchers(firewall, call, |_| true),
        ("captiveportal/voucher", "dropexpiredvouchers") => {
            drop_vouchers(firewall, call, |own| own.contains_key("expired"))
        }
        ("captiveportal/voucher", "expirevoucher") => {
            let code = call.text("username");
            let mut config = firewall.stored.clone();
            let own = config.find(VOUCHERS, &code).map(|own| with(own, "expired", "1"));
            let Some(own) = own else { return Some(Ok(Answer::status("error"))) };
            config.put(VOUCHERS, &code, own);
            firewall.save(call, config).map(|()| Answer::status("ok"))
        }
        ("captiveportal/template", "gettemplate") => Ok(Answer::zip()),
        ("captiveportal/template", "savetemplate") => save_template(firewall, call),
        _ => return None,
    })
}

fn drop_vouchers(
    firewall: &mut Firewall,
    call: &Call,
    is_meant: impl Fn(&Values) -> bool,
) -> Result<Answer, Answer> {
    let mut config = firewall.stored.clone();
    let own = having(&config, VOUCHERS, "group", call.param(1));
    let codes: Vec<String> = own.filter(|(_, own)| is_meant(own)).map(|(code, _)| code.to_owned()).collect();
    for code in &codes {
        config.remove(VOUCHERS, code);
    }
    firewall.save(call, config)?;
    Ok(Answer::json(&json!({ "status": "drop", "count": codes.len() })))
}

fn rows(firewall: &Firewall, zone: &str) -> Vec<Value> {
    if firewall.service_status("captiveportal") != "running" {
        return Vec::new();
    }
    let is_zone = |id: &str| having(&firewall.running, ZONES, "zoneid", id).next().is_some();
    let sessions = firewall
        .live
        .sessions
        .iter()
        .filter(|session| is_zone(&session.of) && (zone.is_empty() || session.of == zone));
    let rows = sessions.map(|session| {
        json!({ "zoneid": session.of, "sessionId": session.id, "userName": session.user,
            "ipAddress": session.address,
            "macAddress": session.mac, "authenticated_via": "API", "startTime": firewall.time.as_secs(),
            "last_accessed": 0 })
    });
    rows.collect()
}

fn connect(firewall: &mut Firewall, call: &Call) -> Answer {
    let serial = firewall.next_serial();
    let session = Session {
        id: format!("session-{serial}"),
        user: call.text("user"),
        address: call.text("ip"),
        mac: crate::hardware::mac(&call.text("ip")),
        of: if call.param(0).is_empty() { "0".to_owned() } else { call.param(0).to_owned() },
    };
    let answer = json!({ "sessionId": session.id, "userName": session.user, "clientState": "AUTHORIZED" });
    firewall.live.sessions.push(session);
    Answer::json(&answer)
}

/// New codes are answered once with their passwords.
fn generate(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let count: u32 = call.text("count").parse().unwrap_or(0);
    let (group, validity) = (call.text("vouchergroup"), call.text("validity"));
    let mut config = firewall.stored.clone();
    let mut made = Vec::new();
    for _ in 0..count.min(1000) {
        let code = format!("V{:06}", firewall.next_serial());
        config.put(VOUCHERS, &code, values(&[("group", &group), ("validity", &validity)]));
        made.push(json!({ "username": code, "password": crate::accounts::hash(&code)[3..13],
            "vouchergroup": group, "validity": validity }));
    }
    firewall.save(call, config)?;
    Ok(Answer::json(&json!(made)))
}

/// By name when no id is given; answers no id.
fn save_template(firewall: &mut Firewall, call: &Call) -> Result<Answer, Answer> {
    let name = call.text("name");
    if name.is_empty() || call.text("content").is_empty() {
        return Ok(Answer::json(&json!({ "name": name, "error": "template or name missing" })));
    }
    let known = having(&firewall.stored, TEMPLATES, "name", &name).next().map(|(id, _)| id.to_owned());
    let asked = Some(call.text("uuid")).filter(|id| !id.is_empty());
    let id = asked.or(known).unwrap_or_else(|| firewall.new_uuid());
    let mut config = firewall.stored.clone();
    config.put(
        TEMPLATES,
        &id,
        values(&[("name", &name), ("content", &call.text("content")), ("fileid", &id)]),
    );
    firewall.save(call, config)?;
    Ok(Answer::json(&json!({ "name": name })))
}
