//! Certificates: templates, and real keys and signatures once they are signed.

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use sha2::{Digest, Sha256};

use crate::call::{Answered, Call, Done, Output};
use crate::device::{Due, Router};
use crate::files::{self, Content};
use crate::refusal::Refusal;
use crate::store::{Origin, Record, Row, Values};

const MENU: &str = "certificate";
/// Where key and certificate are kept; nothing shows them.
const KEY: &str = "x-key";
const PEM: &str = "x-certificate";
/// Bits from which a key takes time.
const LARGE: u32 = 4_096;
/// Seconds that a large key takes.
const LARGE_SECS: u64 = 8;
/// What can be changed once the certificate is signed.
const FREE: [&str; 4] = ["name", "trusted", "trust-store", "comment"];

/// A signature that is made when its key is.
#[derive(Clone)]
pub(crate) struct Signing {
    id: u64,
    authority: Option<u64>,
}

pub(crate) fn complete(row: &Row, old: Option<&Row>) -> Result<(), Refusal> {
    let Some(old) = old.filter(|old| !old.text("fingerprint").is_empty()) else { return Ok(()) };
    let is_fixed = |name: &&String| !FREE.contains(&name.as_str());
    let mut changed = row.values.keys().chain(old.values.keys()).filter(is_fixed);
    if changed.any(|name| row.values.get(name) != old.values.get(name)) {
        return Err(Refusal::failure("can not change signed certificate"));
    }
    Ok(())
}

/// A service that used the certificate shows its bare id from now on.
pub(crate) fn forget(router: &mut Router, id: u64) {
    router.due.retain(|due| !matches!(due, Due::Signed(signing) if signing.id == id));
}

pub(crate) fn fill(router: &Router, row: &Row, out: &mut Record) {
    let is_signed = !row.text("fingerprint").is_empty();
    let mut flag = |name: &str, is_on: bool| drop(out.insert(name.to_owned(), is_on.to_string()));
    flag("private-key", !row.text(KEY).is_empty());
    flag("crl", false);
    flag("ca", row.text("key-usage").contains("key-cert-sign") && is_signed);
    flag("issued", is_signed && !row.text("issuer").is_empty());
    flag("authority", is_signed && row.text("ca-of-own") == "true");
    flag("expired", row.text("ends").parse::<u64>().is_ok_and(|ends| ends <= router.unix));
    flag("revoked", row.text("revoked") == "true");
    if let Ok(ends) = row.text("ends").parse::<u64>() {
        out.insert("expires-after".to_owned(), crate::duration::show_secs(ends.saturating_sub(router.unix)));
    }
    out.remove("invalid");
}

pub(crate) fn answer(router: &mut Router, call: &Call) -> Option<Answered> {
    Some(match (call.path, call.command) {
        (MENU, "sign") => sign(router, call),
        (MENU, "export-certificate") => export(router, call),
        (MENU, "import") => import(router, call),
        (MENU, "issued-revoke") => call.ids(router).map(|ids| {
            for id in ids {
                router.store.set(MENU, id, "revoked", "true");
            }
            Done::nothing()
        }),
        // Nothing outside of the simulation is reached.
        (MENU, "add-acme" | "add-scep" | "enable-ssl-certificate" | "scep-renew") => {
            Err(Refusal::failure("could not connect to the authority"))
        }
        _ => return None,
    })
}

/// Small keys are there with the answer, large ones follow it.
fn sign(router: &mut Router, call: &Call) -> Answered {
    let id = call.id(router)?;
    let row = router.store.find(MENU, id).ok_or(Refusal::NoSuchItem)?;
    if !row.text("fingerprint").is_empty() {
        return Err(Refusal::failure("certificate already signed"));
    }
    let size = row.text("key-size").parse::<u32>().unwrap_or(2_048);
    let authority = match call.args.get("ca").filter(|name| !name.is_empty()) {
        None => None,
        Some(name) => {
            let authority = crate::call::id_of(router, MENU, name).map_err(|_| Refusal::no_match("ca"))?;
            let has_key = router.store.find(MENU, authority).is_some_and(|row| !row.text(KEY).is_empty());
            if !has_key {
                return Err(Refusal::failure("CA does not have private key"));
            }
            Some(authority)
        }
    };
    if let Some(name) = call.args.get("name") {
        router.store.set(MENU, id, "name", name.as_str());
    }
    let signing = Signing { id, authority };
    if size >= LARGE {
        router.due.at(router.now + Duration::from_secs(LARGE_SECS), Due::Signed(signing));
        let progress: Record = [("progress".to_owned(), "started".to_owned())].into();
        return Ok(Done { output: Output::Rows(vec![progress]), secs: Some(1) });
    }
    if router.met.sign_fails {
        return Err(Refusal::failure("could not make the key"));
    }
    signed(router, signing);
    let progress: Record = [("progress".to_owned(), "done".to_owned())].into();
    Ok(Done { output: Output::Rows(vec![progress]), secs: Some(1) })
}

/// Key and certificate are there.
pub(crate) fn signed(router: &mut Router, signing: Signing) {
    let Some(row) = router.store.find(MENU, signing.id).map(|row| Row::clone(row)) else { return };
    let authority = signing.authority.and_then(|id| router.store.find(MENU, id).cloned());
    match make(router.unix, row, authority.as_deref()) {
        Ok(row) => router.store.put(MENU, row),
        Err(why) => router.note("certificate,error", &format!("signing failed: {why}")),
    }
}

fn make(unix: u64, mut row: Row, authority: Option<&Row>) -> Result<Row, rcgen::Error> {
    let names = row.text("subject-alt-name").split(',').filter_map(|name| name.split_once(':'));
    let names: Vec<String> = names.map(|(_, name)| name.to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, row.text("common-name"));
    let usage = row.text("key-usage");
    let is_authority = usage.is_empty() || usage.contains("key-cert-sign");
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate()?;
    let certificate = match authority {
        Some(authority) => {
            let mut own = CertificateParams::default();
            own.distinguished_name.push(DnType::CommonName, authority.text("common-name"));
            let signer = Issuer::new(own, KeyPair::from_pem(authority.text(KEY))?);
            params.signed_by(&key, &signer)?
        }
        None => params.self_signed(&key)?,
    };
    let digest = hex::encode(Sha256::digest(certificate.der()));
    let days: u64 = row.text("days-valid").parse().unwrap_or(365);
    let ends = unix + days * 86_400;
    let time = |unix: u64| crate::device::date_time(unix).format("%Y-%m-%d %H:%M:%S").to_string();
    let issuer = authority.map_or("", |authority| authority.text("common-name")).to_owned();
    for (name, value) in [
        ("fingerprint", digest.clone()),
        ("serial-number", digest[..16].to_uppercase()),
        ("invalid-before", time(unix)),
        ("invalid-after", time(ends)),
        ("ends", ends.to_string()),
        ("key-type", "ec".to_owned()),
        ("trusted", "true".to_owned()),
        ("ca-of-own", is_authority.to_string()),
        (KEY, key.serialize_pem()),
        (PEM, certificate.pem()),
    ] {
        row.values.insert(name.to_owned(), value.into());
    }
    if !issuer.is_empty() {
        row.values.insert("issuer".to_owned(), format!("CN={issuer}").into());
    }
    Ok(row)
}

/// The key is written only with a passphrase.
fn export(router: &mut Router, call: &Call) -> Answered {
    for id in call.ids(router)? {
        let row = router.store.find(MENU, id).ok_or(Refusal::NoSuchItem)?.clone();
        if row.text(PEM).is_empty() {
            return Err(Refusal::failure("certificate is not signed"));
        }
        let usual = format!("cert_export_{}", row.text("name"));
        let name = call.args.get("file-name").cloned().unwrap_or(usual);
        files::put(router, &format!("{name}.crt"), Content::Text(row.text(PEM).to_owned()));
        let passphrase = call.arg("export-passphrase");
        if passphrase.len() >= 8 {
            files::put(router, &format!("{name}.key"), Content::Text(row.text(KEY).to_owned()));
        } else if !passphrase.is_empty() {
            return Err(Refusal::failure("passphrase must be at least 8 characters long"));
        }
    }
    Ok(Done::nothing())
}

fn import(router: &mut Router, call: &Call) -> Answered {
    let name = call.need("file-name")?;
    let text = files::text(router, name).ok_or_else(|| Refusal::no_match("file-name"))?.to_owned();
    let counted = |certificates: u32, keys: u32| {
        let pairs = [
            ("certificates-imported", certificates),
            ("private-keys-imported", keys),
            ("files-imported", 1),
            ("decryption-failures", 0),
            ("keys-with-no-certificate", 0),
        ];
        let row = pairs.into_iter().map(|(name, number)| (name.to_owned(), number.to_string())).collect();
        Ok(Done::rows(vec![row]))
    };
    if text.contains("PRIVATE KEY") {
        let last =
            router.store.rows(MENU).iter().rev().find(|row| row.text(KEY).is_empty()).map(|row| row.id);
        return match last {
            Some(id) => {
                router.store.set(MENU, id, KEY, text);
                counted(0, 1)
            }
            None => counted(0, 0),
        };
    }
    if !text.contains("BEGIN CERTIFICATE") {
        return counted(0, 0);
    }
    let own = call.args.get("name").cloned().unwrap_or_else(|| format!("{name}_0"));
    let digest = hex::encode(Sha256::digest(text.trim()));
    let values: Values = [
        ("name", own.as_str()),
        ("common-name", own.as_str()),
        ("fingerprint", digest.as_str()),
        ("trusted", "true"),
        (PEM, text.as_str()),
    ]
    .map(|(field, value)| (field.to_owned(), value.into()))
    .into();
    router.store.add(MENU, Origin::Own, values);
    counted(1, 0)
}
