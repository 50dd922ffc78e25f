//! Certificates: real ones, made by the box, and what can be read of them.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Map, Value, json};

use crate::call::{Answer, Call, scalar};
use crate::choices::effective;
use crate::config::{Config, Values};
use crate::crud::having;
use crate::device::Firewall;
use crate::grid;
use crate::hooks::base64;

pub(crate) const CAS: &str = "Trust/Ca:ca";
pub(crate) const CERTIFICATES: &str = "Trust/Cert:cert";
/// Revocation lists, by the refid of their authority.
const LISTS: &str = "crl";

/// Carries out the action of a write: a new key with its certificate, an import, or an edit by hand.
///
/// # Errors
/// The answer, when there is no authority to sign with.
pub(crate) fn issue(
    firewall: &mut Firewall,
    node: &str,
    values: &mut Values,
    config: &mut Config,
) -> Result<(), Answer> {
    // A write that says nothing makes a new key.
    let action = effective(node, "action", values).to_owned();
    if values.get("refid").is_none_or(String::is_empty) {
        let serial = firewall.next_serial();
        values.insert("refid".to_owned(), format!("{:08x}{serial:05x}", firewall.time.as_secs()));
    }
    let name = values.get("commonname").filter(|name| !name.is_empty()).or_else(|| values.get("descr"));
    let name = name.cloned().unwrap_or_default();
    let makes_key = ["internal", "reissue", "external", "sign_csr"].contains(&action.as_str());
    if makes_key && !name.is_empty() {
        let caref = values.get("caref").cloned().unwrap_or_default();
        let lifetime: i64 = effective(node, "lifetime", values).parse().unwrap_or(397);
        let made = make(firewall, node == CAS, &name, &caref, lifetime, values, config)
            .map_err(|error| Answer::refused(firewall.release, "Certificate", &error))?;
        values.extend(made);
    }
    for (payload, field) in [("crt_payload", "crt"), ("prv_payload", "prv"), ("csr_payload", "csr")] {
        if !makes_key && let Some(text) = values.get(payload).filter(|text| !text.is_empty()) {
            let (text, encoded) = (text.clone(), base64(text.as_bytes()));
            values.insert(field.to_owned(), encoded);
            values.insert(format!("x_{}", if field == "prv" { "key" } else { field }), text);
        }
    }
    if node == CAS {
        values.entry("serial".to_owned()).or_insert_with(|| "0".to_owned());
    }
    Ok(())
}

/// Key and certificate, and what can be read of them without a parser.
fn make(
    firewall: &Firewall,
    is_authority: bool,
    name: &str,
    caref: &str,
    lifetime: i64,
    values: &Values,
    config: &mut Config,
) -> Result<Values, String> {
    let text = |error: rcgen::Error| error.to_string();
    let names = values.get("altnames_dns").map_or("", String::as_str).split(['\n', ',']).map(str::trim);
    let names: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let mut params = CertificateParams::new(names.clone()).map_err(text)?;
    params.distinguished_name.push(DnType::CommonName, name);
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().map_err(text)?;
    let authority =
        having(config, CAS, "refid", caref).next().map(|(id, values)| (id.to_owned(), values.clone()));
    let (certificate, issuer) = match (caref.is_empty(), authority) {
        (false, Some((id, authority))) => {
            let issuer = authority.get("x_subject").cloned().unwrap_or_default();
            let mut own = CertificateParams::default();
            own.distinguished_name.push(DnType::CommonName, issuer.as_str());
            let pem = authority.get("x_key").cloned().unwrap_or_default();
            let signer = Issuer::new(own, KeyPair::from_pem(&pem).map_err(text)?);
            let serial =
                authority.get("serial").and_then(|serial| serial.parse::<u32>().ok()).unwrap_or(0) + 1;
            config.set(CAS, &id, "serial", &serial.to_string());
            (params.signed_by(&key, &signer).map_err(text)?, issuer)
        }
        (false, None) => return Err("the certificate authority does not exist".to_owned()),
        (true, _) => (params.self_signed(&key).map_err(text)?, name.to_owned()),
    };
    let from = i64::try_from(firewall.time.as_secs()).unwrap_or_default();
    let pairs = [
        ("crt", base64(certificate.pem().as_bytes())),
        ("prv", base64(key.serialize_pem().as_bytes())),
        ("x_key", key.serialize_pem()),
        ("x_crt", certificate.pem()),
        ("x_subject", name.to_owned()),
        ("x_issuer", issuer),
        ("x_names", names.join(",")),
        ("x_from", from.to_string()),
        ("x_to", (from + lifetime * 86_400).to_string()),
    ];
    Ok(pairs.into_iter().map(|(field, value)| (field.to_owned(), value)).collect())
}

/// What the box reads from a stored certificate.
pub(crate) fn show(values: &Values, out: &mut Map<String, Value>) {
    let text = |field: &str| json!(values.get(field).map_or("", String::as_str));
    for (shown, stored) in [
        ("valid_from", "x_from"),
        ("valid_to", "x_to"),
        ("commonname", "x_subject"),
        ("altnames_dns", "x_names"),
        ("crt_payload", "x_crt"),
    ] {
        out.insert(shown.to_owned(), text(stored));
    }
    out.insert(
        "name".to_owned(),
        json!(format!("/CN={}", values.get("x_subject").map_or("", String::as_str))),
    );
}

pub(crate) fn answer(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    Some(match (call.controller, call.command) {
        ("trust/ca" | "trust/cert", "calist") => {
            let rows = firewall
                .stored
                .rows(CAS)
                .map(|(_, values)| json!({ "caref": values.get("refid"), "descr": values.get("descr") }));
            let rows: Vec<Value> = rows.collect();
            Ok(Answer::json(&json!({ "count": rows.len(), "rows": rows })))
        }
        ("trust/ca" | "trust/cert", "cainfo") => {
            let found = having(&firewall.stored, CAS, "refid", call.param(0)).next();
            Ok(found.map_or_else(Answer::empty, |(_, values)| {
                Answer::json(&json!({ "commonname": values.get("x_subject"), "descr": values.get("descr") }))
            }))
        }
        ("trust/cert", "userlist") => {
            let rows =
                firewall.stored.rows(crate::choices::USERS).filter_map(|(_, values)| values.get("name"));
            Ok(Answer::json(&json!({ "rows": rows.map(|name| json!({ "name": name })).collect::<Vec<_>>() })))
        }
        ("trust/ca" | "trust/cert", "rawdump") => {
            let found = firewall.stored.find(call.node(), call.param(0));
            Ok(found.map_or_else(Answer::empty, |values| {
                Answer::json(&json!({ "stdout": dump(values), "stderr": "" }))
            }))
        }
        ("trust/ca" | "trust/cert", "generatefile") => Ok(file(firewall, call)),
        ("trust/crl", _) => return revocation(firewall, call),
        _ => return None,
    })
}

fn dump(values: &Values) -> String {
    let text = |field: &str| values.get(field).map_or("", String::as_str);
    format!(
        "Certificate:\n    Issuer: CN={}\n    Validity from {} to {}\n    Subject: CN={}\n    Names: {}\n",
        text("x_issuer"),
        text("x_from"),
        text("x_to"),
        text("x_subject"),
        text("x_names")
    )
}

/// A file of a certificate: `crt`, `prv` or `csr`.
fn file(firewall: &Firewall, call: &Call) -> Answer {
    let node = if call.controller == "trust/ca" { CAS } else { CERTIFICATES };
    let Some(values) = firewall.stored.find(node, call.param(0)) else { return Answer::failed() };
    let field = match call.param(1) {
        "prv" => "x_key",
        "" | "crt" => "x_crt",
        _ => "x_csr",
    };
    match values.get(field) {
        Some(text) => Answer::json(&json!({ "status": "ok", "descr": values.get("descr"), "payload": text })),
        None => Answer::json(&json!({ "status": "failed" })),
    }
}

/// One row per authority, with or without a list. Words of success are `saved` and `deleted`, under `status`.
fn revocation(firewall: &mut Firewall, call: &Call) -> Option<Result<Answer, Answer>> {
    let caref = call.param(0).to_owned();
    let known = || having(&firewall.stored, CAS, "refid", &caref).next().is_some();
    Some(match call.command {
        "search" => {
            let rows = firewall.stored.rows(CAS).map(|(_, authority)| {
                let refid = authority.get("refid").map_or("", String::as_str);
                let mut row = json!({ "refid": refid, "descr": authority.get("descr") });
                if let Some(list) = firewall.stored.find(LISTS, refid) {
                    row["crl_descr"] = json!(list.get("descr"));
                }
                row
            });
            Ok(grid::live(call, rows.collect()))
        }
        "get" if !known() => Ok(Answer::empty()),
        "get" => {
            let empty = Values::new();
            let list = firewall.stored.find(LISTS, &caref).map_or(&empty, |values| values);
            Ok(Answer::json(
                &json!({ "crl": { "caref": caref, "descr": list.get("descr"), "serial": list.get("serial"),
                "crlmethod": { "internal": { "value": "internal", "selected": 1 },
                "existing": { "value": "existing", "selected": 0 } },
                "revoked_reason_0": list.get("revoked_reason_0") } }),
            ))
        }
        "set" => {
            let Some(posted) = call.body.get("crl").and_then(Value::as_object).filter(|_| known()) else {
                return Some(Ok(Answer::status("failed")));
            };
            let mut values: Values =
                posted.iter().filter_map(|(name, value)| Some((name.clone(), scalar(value)?))).collect();
            let serial = firewall.stored.value(LISTS, &caref, "serial").parse::<u32>().unwrap_or(0) + 1;
            values.insert("serial".to_owned(), serial.to_string());
            let mut config = firewall.stored.clone();
            config.put(LISTS, &caref, values);
            firewall.save(call, config).map(|()| Answer::status("saved"))
        }
        "del" => {
            let mut config = firewall.stored.clone();
            if config.remove(LISTS, &caref) {
                firewall.save(call, config).map(|()| Answer::status("deleted"))
            } else {
                Ok(Answer::status("not found"))
            }
        }
        _ => return None,
    })
}
