//! What a server asks of a catalogue.

use semver::Version;

use super::listing::{Catalog, Plugin, PluginVersion, Publisher};
use super::revocation::{self, Revocation, RevokedKind, Subject};
use super::time::Time;
use crate::grant::{self, Grant};
use crate::keys::{self, TrustedKey};
use crate::manifest::Capabilities;

impl Catalog {
    /// Keys that may sign this plugin at a moment, for this id alone: those of its publisher, or of every publisher that is
    /// listed for the id where the catalogue does not have the plugin. Revoked keys are left out.
    ///
    /// The moment is now for what is signed now, and the release for what the catalogue has long listed.
    #[must_use]
    pub fn signing_keys(&self, id: &str, at: Time, revocations: &[Revocation]) -> Vec<TrustedKey> {
        let owner = self.plugin(id).map(|plugin| plugin.publisher.as_str());
        let may_sign = |publisher: &&Publisher| {
            owner.is_none_or(|owner| owner == publisher.id) && keys::covers(&publisher.ids, id)
        };
        let is_revoked =
            |keyid: &str| revocations.iter().any(|one| one.kind == RevokedKind::Key && one.value == keyid);
        let keys_of = |publisher: &Publisher| -> Vec<TrustedKey> {
            let valid = publisher.keys.iter().filter(|key| key.not_before <= at && at < key.not_after);
            let sound = valid.filter(|key| !is_revoked(&key.keyid));
            sound
                .filter_map(|key| {
                    let ids = vec![id.to_owned()];
                    Some(TrustedKey { publisher: publisher.id.clone(), key: keys::decode(&key.public)?, ids })
                })
                .collect()
        };
        self.publishers.iter().filter(may_sign).flat_map(keys_of).collect()
    }

    /// The highest version of a plugin that this host may install: for one of its interface versions, not yanked, not
    /// revoked, and no pre-release. `None` when there is none, or the plugin is not listed.
    #[must_use]
    pub fn newest_installable(
        &self,
        id: &str,
        host: &Version,
        apis: &[&str],
        revocations: &[Revocation],
    ) -> Option<&PluginVersion> {
        self.plugin(id)?.newest_installable(host, apis, revocations)
    }

    /// Plugins of other publishers whose ids could be taken for this one: see [`is_lookalike`]. A plugin of this very id by
    /// another publisher is one, too.
    #[must_use]
    pub fn lookalikes(&self, id: &str, publisher: &str) -> Vec<&Plugin> {
        let others = self.plugins.iter().filter(|plugin| plugin.publisher != publisher);
        others.filter(|plugin| plugin.id == id || is_lookalike(&plugin.id, id)).collect()
    }
}

impl PluginVersion {
    /// What it asks for, as far as the catalogue says: nothing of actions and limits. `None` where the catalogue says nothing,
    /// or in words that this host does not know. What counts is the manifest.
    #[must_use]
    pub fn asks_for(&self) -> Option<Grant> {
        let capabilities: Capabilities = serde_json::from_str(self.capabilities.as_ref()?.get()).ok()?;
        Some(grant::of_capabilities(&capabilities))
    }

    /// Why this host cannot run it; `None` where it can.
    #[must_use]
    pub fn misfit(&self, host: &Version, apis: &[&str]) -> Option<String> {
        if !apis.contains(&self.api.as_str()) {
            return Some(format!(
                "it is for version {} of the interface; this host has {}",
                self.api,
                apis.join(", ")
            ));
        }
        let newer = self.min_host.as_ref().filter(|min| min.cmp_precedence(host).is_gt())?;
        Some(format!("it needs version {newer} of this host, which is version {host}"))
    }
}

impl Plugin {
    /// The highest version that a host may install: see [`Catalog::newest_installable`].
    #[must_use]
    pub fn newest_installable(
        &self,
        host: &Version,
        apis: &[&str],
        revocations: &[Revocation],
    ) -> Option<&PluginVersion> {
        let mut versions: Vec<&PluginVersion> = self.versions.iter().collect();
        versions.sort_by(|one, other| other.version.cmp_precedence(&one.version));
        // Revocations may be many: they are asked about last, and of the newest first.
        versions.into_iter().find(|version| {
            !version.yanked
                && version.version.pre.is_empty()
                && version.misfit(host, apis).is_none()
                && self.revoked(version, revocations).is_none()
        })
    }

    /// A version by its number. Build metadata does not count.
    #[must_use]
    pub fn version(&self, version: &Version) -> Option<&PluginVersion> {
        self.versions.iter().find(|one| one.version.cmp_precedence(version).is_eq())
    }

    /// The gravest of the revocations of a listed version.
    #[must_use]
    pub fn revoked<'a>(
        &self,
        version: &PluginVersion,
        revocations: &'a [Revocation],
    ) -> Option<&'a Revocation> {
        let subject = Subject {
            plugin: &self.id,
            version: &version.version,
            package_sha256: Some(&version.package.sha256),
            manifest_sha256: Some(&version.manifest_sha256),
            component_sha256: Some(&version.component_sha256),
            key_ids: &version.signed_by,
        };
        revocation::gravest(revocations, &subject)
    }
}

/// Whether two different ids could be taken for each other: one byte is added, left out or changed, or two neighbours are
/// exchanged.
#[must_use]
pub fn is_lookalike(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let (short, long) = (short.as_bytes(), long.as_bytes());
    let Some(at) = (0..long.len()).find(|at| short.get(*at) != long.get(*at)) else { return false };
    if short.len() < long.len() {
        return long.len() - short.len() == 1 && short[at..] == long[at + 1..];
    }
    let is_changed = short[at + 1..] == long[at + 1..];
    let is_exchanged = at + 1 < long.len()
        && (short[at], short[at + 1]) == (long[at + 1], long[at])
        && short[at + 2..] == long[at + 2..];
    is_changed || is_exchanged
}
