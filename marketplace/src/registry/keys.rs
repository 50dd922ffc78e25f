//! Keys as arguments: public ones as hex or as the file of a key, secret ones as files.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use heddle_marketplace::{PublisherKey, key_id};

use crate::say;

/// Makes a key and prints its public half, which `init`, `rotate` and `publisher` take.
pub(crate) fn make(name: &str, out: &Path) -> anyhow::Result<()> {
    let key = PublisherKey::generate(name)?;
    key.save(out).with_context(|| format!("key file '{}' not written", out.display()))?;
    let public = key.trusted().key;
    say(&format!("{name}: public {}", hex::encode(public)))?;
    say(&format!("{name}: id {}", key_id(&public)))
}

/// Reads a public key: 64 hex digits, or the file of a key.
pub(crate) fn public(text: &str) -> anyhow::Result<[u8; 32]> {
    if let Some(key) = hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok()) {
        return Ok(key);
    }
    let key = PublisherKey::load(Path::new(text));
    Ok(key
        .map_err(|error| {
            anyhow!("'{text}' is neither a public key as 64 hex digits nor a key file: {error}")
        })?
        .trusted()
        .key)
}

/// Reads secret keys.
pub(crate) fn load(paths: &[PathBuf]) -> anyhow::Result<Vec<PublisherKey>> {
    let load = |path: &PathBuf| {
        PublisherKey::load(path).with_context(|| format!("key file '{}' not accepted", path.display()))
    };
    paths.iter().map(load).collect()
}
