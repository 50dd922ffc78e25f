//! Whether a package can use what its plugin stored.

use heddle_kernel::http::error::Error;
use heddle_runtime::Plugin;
use heddle_store::Tx;
use heddle_store::plugins::storage::{self, StorageRow};
use heddle_store::plugins::values::Keeper;
use semver::Version;

/// The storage of a plugin in an organization, where the plugin has any.
pub(crate) async fn of(tx: &mut Tx, plugin: &Plugin, keeper: Keeper) -> Result<Option<StorageRow>, Error> {
    if plugin.manifest().capabilities.kv.is_none() {
        return Ok(None);
    }
    Ok(storage::find(tx, keeper).await?)
}

/// Why a package cannot use the storage as it is.
pub(crate) fn unfit(plugin: &Plugin, storage: Option<&StorageRow>) -> Option<String> {
    let storage = storage?;
    let (id, version) = (plugin.id(), plugin.version());
    let is_other = plugin.has_migration() && storage.version != version;
    // A version without a migration takes what others stored as it is, but not what a newer one brought to a form of its own.
    let is_newer = storage.migrated_to.as_deref().is_some_and(|migrated| is_older(version, migrated));
    let is_unfit = storage.draft_generation.is_some() || is_other || is_newer;
    is_unfit.then(|| {
        format!(
            "version {version} of '{id}' waits for what version {} stored to be brought to its form; \
            GET /plugins/{id}/triggers says where that fails",
            storage.version
        )
    })
}

/// Whether the first version is older than the second one.
pub(crate) fn is_older(version: &str, other: &str) -> bool {
    let parsed = |text: &str| Version::parse(text).ok();
    parsed(version).zip(parsed(other)).is_some_and(|(version, other)| version < other)
}
