//! Self-signed certificates: the controller's own, and those that a client must not accept.

use std::sync::Arc;

use anyhow::Context;
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;

/// Which certificate new connections get. Each has a key of its own, and is made when the lab starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certificate {
    /// Valid, for the addresses and names of the lab.
    #[default]
    Good,
    /// As good as the first, but another one: the controller was replaced, or someone is in between.
    Other,
    /// Ended in 2020.
    Expired,
    /// Valid, for a name that is not the lab's.
    WrongName,
}

impl Certificate {
    pub(crate) const ALL: [Self; 4] = [Self::Good, Self::Other, Self::Expired, Self::WrongName];

    /// Its name in orders.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Other => "other",
            Self::Expired => "expired",
            Self::WrongName => "wrong_name",
        }
    }
}

/// A certificate with its key, ready to serve.
pub(crate) struct Made {
    pub(crate) acceptor: TlsAcceptor,
    /// Of the certificate's DER, lower-case hex.
    pub(crate) sha256: String,
    pub(crate) pem: String,
}

/// One of each kind, in the order of [`Certificate::ALL`].
pub(crate) struct Certificates([Made; 4]);

impl Certificates {
    /// For these names and addresses besides the loopback ones.
    pub(crate) fn make(names: &[String]) -> anyhow::Result<Self> {
        let [good, other, expired, wrong] = Certificate::ALL.map(|which| make(which, names));
        Ok(Self([good?, other?, expired?, wrong?]))
    }

    pub(crate) fn get(&self, which: Certificate) -> &Made {
        &self.0[which as usize]
    }
}

fn make(which: Certificate, names: &[String]) -> anyhow::Result<Made> {
    let subjects = match which {
        Certificate::WrongName => vec!["another-controller.example".to_owned()],
        _ => names.iter().cloned().chain(["localhost", "127.0.0.1"].map(str::to_owned)).collect(),
    };
    let mut params = CertificateParams::new(subjects).context("the certificate's names are not valid")?;
    if let Some(name) = names.first() {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    if which == Certificate::Expired {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    }
    let key = KeyPair::generate()?;
    let own = params.self_signed(&key).context("the certificate could not be made")?;
    let der = own.der().clone();
    let sha256 = hex::encode(Sha256::digest(&der));
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![der], private)?;
    Ok(Made { acceptor: TlsAcceptor::from(Arc::new(config)), sha256, pem: own.pem() })
}
