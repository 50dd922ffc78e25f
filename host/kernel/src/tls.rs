//! Checks the TLS policy in the body of a request.

use heddle_core::tls::{CA_PEM_BYTES_MAX, FINGERPRINT_CHARS_MAX, FINGERPRINT_DIGITS, TlsMode, TlsPolicy};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::checks::Checks;

/// The policy in the field `tls` of a body, with its fingerprint in lower-case hex.
pub fn check_tls(policy: TlsPolicy, checks: &mut Checks) -> TlsPolicy {
    check_tls_at("tls", policy, checks)
}

/// The same in a field of another name, such as `oidc.tls`.
pub fn check_tls_at(field: &str, mut policy: TlsPolicy, checks: &mut Checks) -> TlsPolicy {
    let (fingerprint, ca_pem) = (format!("{field}.fingerprint"), format!("{field}.ca_pem"));
    match policy.mode {
        TlsMode::Pin => {
            let pinned = policy.fingerprint.as_deref().and_then(parse_fingerprint);
            checks.require(
                pinned.is_some(),
                &fingerprint,
                "mode 'pin' needs the SHA-256 fingerprint of the certificate: 64 hex digits, colons are accepted",
            );
            policy.fingerprint = pinned;
        }
        TlsMode::Verify | TlsMode::Insecure => {
            checks.require(policy.fingerprint.is_none(), &fingerprint, "is only for mode 'pin'");
        }
    }
    if let Some(pem) = &policy.ca_pem {
        checks.require(policy.mode == TlsMode::Verify, &ca_pem, "is only for mode 'verify'");
        checks.require(
            is_certificates(pem),
            &ca_pem,
            &format!("must hold one or more certificates in PEM, {CA_PEM_BYTES_MAX} bytes at most"),
        );
    }
    policy
}

fn parse_fingerprint(text: &str) -> Option<String> {
    let text = text.trim();
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    let fits = text.len() <= FINGERPRINT_CHARS_MAX
        && digits.len() == FINGERPRINT_DIGITS
        && digits.bytes().all(|b| b.is_ascii_hexdigit());
    fits.then(|| digits.to_ascii_lowercase())
}

fn is_certificates(pem: &str) -> bool {
    if pem.len() > CA_PEM_BYTES_MAX {
        return false;
    }
    let Ok(certificates) = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>()
    else {
        return false;
    };
    let mut roots = RootCertStore::empty();
    !certificates.is_empty() && certificates.into_iter().all(|certificate| roots.add(certificate).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error::Error;

    #[track_caller]
    fn check_policy(
        mode: TlsMode,
        fingerprint: Option<&str>,
        ca_pem: Option<&str>,
        wrong: &[&str],
    ) -> TlsPolicy {
        let mut checks = Checks::default();
        let given = TlsPolicy {
            mode,
            fingerprint: fingerprint.map(str::to_owned),
            ca_pem: ca_pem.map(str::to_owned),
        };
        let policy = check_tls(given, &mut checks);
        let fields: Vec<String> = match checks.done() {
            Ok(()) => Vec::new(),
            Err(Error::Validation(details)) => details.into_iter().map(|detail| detail.field).collect(),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(fields, wrong);
        policy
    }

    #[test]
    fn a_pin_needs_a_whole_fingerprint() {
        let plain = "AB".repeat(32);
        let colons = vec!["ab"; 32].join(":");
        assert_eq!(check_policy(TlsMode::Pin, Some(&plain), None, &[]).fingerprint, Some("ab".repeat(32)));
        assert_eq!(check_policy(TlsMode::Pin, Some(&colons), None, &[]).fingerprint, Some("ab".repeat(32)));
        check_policy(TlsMode::Pin, None, None, &["tls.fingerprint"]);
        check_policy(TlsMode::Pin, Some(&format!("{colons}:")), None, &["tls.fingerprint"]);
        check_policy(TlsMode::Pin, Some("abcd"), None, &["tls.fingerprint"]);
        check_policy(TlsMode::Pin, Some(&"zz".repeat(32)), None, &["tls.fingerprint"]);
    }

    #[test]
    fn what_a_mode_does_not_use_is_refused() {
        check_policy(TlsMode::Verify, None, None, &[]);
        check_policy(TlsMode::Insecure, None, None, &[]);
        check_policy(TlsMode::Verify, Some(&"ab".repeat(32)), None, &["tls.fingerprint"]);
        check_policy(TlsMode::Verify, None, Some("no certificate"), &["tls.ca_pem"]);
        check_policy(TlsMode::Insecure, None, Some("no certificate"), &["tls.ca_pem", "tls.ca_pem"]);
    }
}
