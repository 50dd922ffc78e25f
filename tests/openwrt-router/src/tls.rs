//! A self-signed certificate, as the router makes one on first boot.

use std::sync::Arc;

use anyhow::Context;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;

/// The acceptor, and the SHA-256 of the certificate's DER in hex.
pub(crate) fn self_signed() -> anyhow::Result<(TlsAcceptor, String)> {
    let names = ["OpenWrt", "localhost", "127.0.0.1"].map(str::to_owned).to_vec();
    let own = rcgen::generate_simple_self_signed(names).context("the certificate could not be made")?;
    let der = own.cert.der().clone();
    let fingerprint = hex::encode(Sha256::digest(&der));
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![der], key)?;
    Ok((TlsAcceptor::from(Arc::new(config)), fingerprint))
}
