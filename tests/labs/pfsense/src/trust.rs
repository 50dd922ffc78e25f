//! Certificates: real ones that the firewall makes, and what it reads of others.

use chrono::Datelike as _;
use heddle_lab::Answer;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, PublicKeyData,
    SanType, SignatureAlgorithm, date_time_ymd,
};
use serde_json::{Value, json};

use crate::call::Call;
use crate::device::Pfsense;
use crate::draft::Draft;
use crate::hooks::{secret, validated};
use crate::reply::Refusal;
use crate::represent::{self, Row};
use crate::store::{Config, Object, text};
use crate::{api, der};

/// Makes the certificate, authority or request that a new object asks for.
pub(crate) fn issue(draft: &mut Draft) -> Result<(), Refusal> {
    let name = draft.model.name.as_str();
    let failed =
        |error: rcgen::Error| Refusal::server("CERTIFICATE_COULD_NOT_BE_CREATED", &error.to_string());
    if name == "CertificateSigningRequestSign" {
        return sign(draft).map_err(failed);
    }
    if !["CertificateGenerate", "CertificateAuthorityGenerate", "CertificateSigningRequest"].contains(&name) {
        return Ok(());
    }
    let key = KeyPair::generate().map_err(failed)?;
    let params = params(draft).map_err(failed)?;
    draft.set("prv", json!(key.serialize_pem()));
    if name == "CertificateSigningRequest" {
        let request = params.serialize_request(&key).and_then(|request| request.pem()).map_err(failed)?;
        draft.set("csr", json!(request));
        return Ok(());
    }
    let made = match authority(draft) {
        Some((pem, key_pem)) => {
            let signer = KeyPair::from_pem(&key_pem).map_err(failed)?;
            params.signed_by(&key, &issuer(&pem, signer)).map_err(failed)?
        }
        None => params.self_signed(&key).map_err(failed)?,
    };
    draft.set("crt", json!(made.pem()));
    Ok(())
}

/// Certificate and key of the authority that the draft names.
fn authority(draft: &Draft) -> Option<(String, String)> {
    let own = draft.config().having("CertificateAuthority", "refid", draft.text("caref"))?;
    Some((text(own, "crt").to_owned(), text(own, "prv").to_owned()))
}

/// The issuer has the name of the subject of its certificate.
fn issuer(pem: &str, key: KeyPair) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    let subject = der::subject(pem).unwrap_or_default();
    params.distinguished_name.push(DnType::CommonName, subject);
    Issuer::new(params, key)
}

fn params(draft: &Draft) -> Result<CertificateParams, rcgen::Error> {
    let names = draft.value("dn_dns_sans").as_array().into_iter().flatten();
    let names: Vec<String> = names.filter_map(Value::as_str).map(str::to_owned).collect();
    let mut params = CertificateParams::new(names)?;
    let addresses = draft.value("dn_ip_sans").as_array().into_iter().flatten().filter_map(Value::as_str);
    params
        .subject_alt_names
        .extend(addresses.filter_map(|text| Some(SanType::IpAddress(text.parse().ok()?))));
    params.distinguished_name.push(DnType::CommonName, draft.text("dn_commonname"));
    for (field, kind) in [
        ("dn_country", DnType::CountryName),
        ("dn_state", DnType::StateOrProvinceName),
        ("dn_city", DnType::LocalityName),
        ("dn_organization", DnType::OrganizationName),
        ("dn_organizationalunit", DnType::OrganizationalUnitName),
    ] {
        if !draft.text(field).is_empty() {
            params.distinguished_name.push(kind, draft.text(field));
        }
    }
    if draft.model.name == "CertificateAuthorityGenerate" {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    limit(&mut params, draft.firewall, draft.number("lifetime").unwrap_or(3650));
    Ok(params)
}

/// From today on, for so many days.
fn limit(params: &mut CertificateParams, firewall: &Pfsense, days: i64) {
    let date = |secs: u64| {
        let secs = i64::try_from(secs).unwrap_or_default();
        let date = chrono::DateTime::from_timestamp(secs, 0).unwrap_or_default().date_naive();
        let part = |number: u32| u8::try_from(number).unwrap_or(1);
        date_time_ymd(date.year(), part(date.month()), part(date.day()))
    };
    let now = firewall.time.as_secs();
    params.not_before = date(now);
    params.not_after = date(now + u64::try_from(days).unwrap_or(1) * 86_400);
}

/// The public key of a request, for the certificate that it asks for.
struct Requested(der::Key);

impl PublicKeyData for Requested {
    fn der_bytes(&self) -> &[u8] {
        &self.0.bits
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        if self.0.is_rsa { &rcgen::PKCS_RSA_SHA256 } else { &rcgen::PKCS_ECDSA_P256_SHA256 }
    }
}

fn sign(draft: &mut Draft) -> Result<(), rcgen::Error> {
    let Some((subject, key)) = der::request(draft.text("csr")) else {
        return Err(rcgen::Error::CouldNotParseCertificationRequest);
    };
    let Some((pem, signer)) = authority(draft) else { return Err(rcgen::Error::CouldNotParseCertificate) };
    let mut params = params(draft)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, subject);
    let made = params.signed_by(&Requested(key), &issuer(&pem, KeyPair::from_pem(&signer)?))?;
    draft.set("crt", json!(made.pem()));
    Ok(())
}

/// Whether a private key belongs to a certificate.
pub(crate) fn is_pair(certificate: &str, key: &str) -> bool {
    match (der::public_key(certificate), KeyPair::from_pem(key)) {
        (Some(own), Ok(key)) => own == key.subject_public_key_info(),
        _ => false,
    }
}

/// The seconds since 1970 from and until which a certificate is valid.
pub(crate) fn validity(certificate: &str) -> Option<(i64, i64)> {
    der::validity(certificate)
}

/// Whether a setting or another object names a certificate.
pub(crate) fn is_used(config: &Config, refid: &str) -> bool {
    let names = |model: &str, field: &str| {
        config.list(model).iter().any(|own| match own.get(field) {
            Some(Value::Array(items)) => items.contains(&json!(refid)),
            Some(own) => own == &json!(refid),
            None => false,
        })
    };
    names("WebGUISettings", "sslcertref")
        || names("OpenVPNServer", "certref")
        || names("OpenVPNClient", "certref")
        || names("IPsecPhase1", "certref")
        || names("User", "cert")
}

pub(crate) fn is_authority_used(config: &Config, refid: &str) -> bool {
    ["OpenVPNServer", "OpenVPNClient", "IPsecPhase1"]
        .iter()
        .any(|model| config.having(model, "caref", refid).is_some())
}

/// Makes a certificate anew, with a new serial number where that is asked for.
pub(crate) fn renew(firewall: &mut Pfsense, call: &Call) -> Result<Value, Refusal> {
    let mut values = validated(firewall, call)?;
    let (model, field) = match call.model.name.as_str() {
        "CertificateRenew" => ("Certificate", "certref"),
        _ => ("CertificateAuthority", "caref"),
    };
    let refid = text(&values, field).to_owned();
    let mut config = firewall.stored.clone();
    let authorities = config.list("CertificateAuthority").to_vec();
    let unavailable = || {
        let id = if model == "Certificate" {
            "CERTIFICATE_RENEW_UNAVAILABLE"
        } else {
            "CERTIFICATE_AUTHORITY_RENEW_UNAVAILABLE"
        };
        Refusal::new(406, id, "The certificate cannot be renewed here.")
    };
    let Some(own) = config.list_mut(model).iter_mut().find(|own| text(own, "refid") == refid) else {
        return Err(unavailable());
    };
    let key = KeyPair::from_pem(text(own, "prv")).map_err(|_| unavailable())?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, der::subject(text(own, "crt")).unwrap_or_default());
    if model == "CertificateAuthority" {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let old = der::serial(text(own, "crt")).unwrap_or_default();
    let is_kept = crate::store::is_true(&values, "reuseserial");
    let serial = if is_kept { old.clone() } else { secret(firewall, &old, 8) };
    params.serial_number = Some(rcgen::SerialNumber::from(hex::decode(&serial).unwrap_or_default()));
    limit(&mut params, firewall, 398);
    let above = authorities.iter().find(|above| text(above, "refid") == text(own, "caref"));
    let made = match above
        .filter(|_| model == "Certificate")
        .map(|above| (above, KeyPair::from_pem(text(above, "prv"))))
    {
        Some((above, Ok(signer))) => params.signed_by(&key, &issuer(text(above, "crt"), signer)),
        _ => params.self_signed(&key),
    };
    let pem = made.map_err(|_| unavailable())?.pem();
    values.insert("oldserial".to_owned(), json!(old));
    values.insert("newserial".to_owned(), json!(der::serial(&pem)));
    own.insert("crt".to_owned(), json!(pem));
    if !call.is_dry_run {
        firewall.save("Renewed certificate", config)?;
        firewall.running.take_over(model, &firewall.stored);
    }
    Ok(represent::shown(firewall, call.model, &Row { id: None, parent: None, values }))
}

/// Certificate and key as one file. Its content is not encrypted here.
pub(crate) fn export(firewall: &Pfsense, call: &Call) -> Result<Answer, Refusal> {
    let values = validated(firewall, call)?;
    let own: Object =
        firewall.stored.having("Certificate", "refid", text(&values, "certref")).cloned().unwrap_or_default();
    let mut body = vec![0x30, 0x82];
    body.extend(text(&own, "crt").bytes().chain(text(&own, "prv").bytes()));
    let name = format!("attachment; filename=\"{}.p12\"", text(&own, "descr").replace(' ', "_"));
    Ok(Answer::body(200, api::BINARY, body).with_header("content-disposition", &name))
}
