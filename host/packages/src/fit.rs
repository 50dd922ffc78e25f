//! Whether a package may serve an id: it must have the key that the id is bound to, its version must not be older than one that
//! served before, and no catalogue may have taken it out of service. Pure: the facts are given.

use heddle_marketplace::{TrustedKey, Verified};
use heddle_store::packages::Binding;
use semver::Version;

use crate::ground::Ground;

/// Returns the signer to which a package is bound: the bound key, or a key that may replace it.
pub(crate) fn signer<'a>(
    package: &'a Verified,
    binding: &Binding,
    ground: &Ground,
) -> Option<&'a TrustedKey> {
    let signers = package.signers();
    if let Some(key) = signers.iter().find(|key| key.key_id() == binding.key_id) {
        return Some(key);
    }
    // A key may replace the bound one when the operator lists this id with the new key, and the old key is removed or
    // is of the same publisher.
    let is_gone = !ground.has_key(&binding.key_id);
    signers
        .iter()
        .find(|key| key.names(&binding.adapter_id) && (is_gone || key.publisher == binding.publisher))
}

/// Whether a package may serve an id that is bound.
pub fn check(package: &Verified, binding: &Binding, ground: &Ground) -> Result<(), String> {
    let manifest = package.manifest();
    let Binding { adapter_id: id, publisher, key_id, version: served, .. } = binding;
    if signer(package, binding, ground).is_none() {
        let found = package.key_ids().join(", ");
        return Err(format!(
            "'{id}' belongs to publisher '{publisher}' (key {key_id}), and this package is by '{}' (key {found}); to hand \
             '{id}' over, take the old key out of the trusted keys and name '{id}' among the 'ids' of the new one",
            manifest.publisher
        ));
    }
    let is_older = Version::parse(served).is_ok_and(|served| manifest.version < served);
    let asked = format!("{id}@{}", manifest.version);
    if is_older && !ground.downgrades.contains(&asked) {
        return Err(format!(
            "version {} of '{id}' is older than version {served}, which served before; install {served} or newer, or set \
             ADAPTER_DOWNGRADES={asked}",
            manifest.version
        ));
    }
    ground.may_run(package)
}
