//! How a controller's certificate is judged: by roots, by a pin, or not at all.
//!
//! The signature of the handshake is checked in every mode, so that the peer that shows a certificate also holds its
//! key.

use std::sync::{Arc, OnceLock};

use heddle_core::fault::{Fault, FaultKind};
use heddle_core::tls::{TlsMode, TlsPolicy};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// A certificate that the policy does not accept; names it, so that it can be pinned.
#[derive(Debug, thiserror::Error)]
#[error("certificate sha256 {fingerprint} is not trusted: {reason}")]
pub(super) struct Untrusted {
    pub(super) fingerprint: String,
    pub(super) reason: String,
}

#[derive(Debug)]
enum Judgement {
    Roots(Arc<WebPkiServerVerifier>),
    /// There are no roots to judge by.
    Nothing,
    Pin(String),
    Insecure,
}

#[derive(Debug)]
struct Judge {
    judgement: Judgement,
    provider: Arc<CryptoProvider>,
}

/// The client side of TLS under a policy.
pub(super) fn config(policy: &TlsPolicy) -> Result<ClientConfig, Fault> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let judgement = match policy.mode {
        TlsMode::Insecure => Judgement::Insecure,
        TlsMode::Pin => Judgement::Pin(
            policy
                .pinned()
                .filter(|pin| pin.len() == 64)
                .ok_or_else(|| unusable("the pinned fingerprint is not a SHA-256 in 64 hex digits"))?,
        ),
        TlsMode::Verify => roots_judgement(policy, &provider)?,
    };
    let judge = Arc::new(Judge { judgement, provider: Arc::clone(&provider) });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| unusable("no TLS version is available"))?
        .dangerous()
        .with_custom_certificate_verifier(judge)
        .with_no_client_auth();
    Ok(config)
}

fn unusable(message: &str) -> Fault {
    Fault::new(FaultKind::Connection, format!("the TLS policy cannot be used: {message}"))
        .with_code("tls-policy")
}

fn roots_judgement(policy: &TlsPolicy, provider: &Arc<CryptoProvider>) -> Result<Judgement, Fault> {
    let roots = match &policy.ca_pem {
        None => native_roots(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|_| unusable("'ca_pem' is not PEM"))?;
                roots.add(certificate).map_err(|_| unusable("'ca_pem' holds what is not a certificate"))?;
            }
            if roots.is_empty() {
                return Err(unusable("'ca_pem' holds no certificate"));
            }
            Arc::new(roots)
        }
    };
    if roots.is_empty() {
        return Ok(Judgement::Nothing);
    }
    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
        .build()
        .map(Judgement::Roots)
        .map_err(|_| unusable("its roots cannot be used"))
}

/// The system's roots, read once.
fn native_roots() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let load = || {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            tracing::warn!(
                "the system has no root certificates; controllers need a pin or a CA of their own"
            );
        }
        Arc::new(roots)
    };
    Arc::clone(ROOTS.get_or_init(load))
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let fingerprint = hex::encode(Sha256::digest(leaf));
        let reason = match &self.judgement {
            Judgement::Insecure => return Ok(ServerCertVerified::assertion()),
            Judgement::Pin(pin) if bool::from(pin.as_bytes().ct_eq(fingerprint.as_bytes())) => {
                return Ok(ServerCertVerified::assertion());
            }
            Judgement::Pin(_) => "it is not the pinned one".to_owned(),
            Judgement::Nothing => "there are no root certificates".to_owned(),
            Judgement::Roots(roots) => match roots.verify_server_cert(leaf, intermediates, name, ocsp, now) {
                Ok(verified) => return Ok(verified),
                Err(error) => reason_of(&error).to_owned(),
            },
        };
        Err(rustls::Error::Other(OtherError(Arc::new(Untrusted { fingerprint, reason }))))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn reason_of(error: &rustls::Error) -> &'static str {
    use rustls::CertificateError as Certificate;
    match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            Certificate::Expired | Certificate::ExpiredContext { .. } => "it has expired",
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => "it is not valid yet",
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                "it is for another name"
            }
            Certificate::UnknownIssuer => "its issuer is unknown",
            Certificate::Revoked => "it was revoked",
            _ => "it is not valid",
        },
        _ => "it cannot be read",
    }
}

/// The judge's refusal inside of a connection error.
pub(super) fn untrusted<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Untrusted> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = of_tls(error) {
            return Some(found);
        }
        // An I/O error shows its inner error's source, not the inner error.
        if let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref)
            && let Some(found) = untrusted(inner)
        {
            return Some(found);
        }
        next = error.source();
    }
    None
}

fn of_tls<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Untrusted> {
    match error.downcast_ref::<rustls::Error>() {
        Some(rustls::Error::Other(OtherError(inner))) => {
            let inner: &(dyn std::error::Error + 'static) = &**inner;
            inner.downcast_ref::<Untrusted>()
        }
        _ => None,
    }
}
