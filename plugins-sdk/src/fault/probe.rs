//! What an adapter's `check` makes of the device's answers: whether the release is new enough, what the device can do, and
//! the profile that says so.

use serde_json::{Value, json};

use super::unsupported;
use crate::json::digest;
use crate::{Attribute, Availability, Capability, DeviceProfile, Fault};

/// Refuses a release below the oldest that the adapter works with, given as major and minor.
///
/// `version` begins with these two, such as `8.4-1` or `6.2.0.18`; one that does not passes.
pub fn refuse_older(product: &str, version: &str, oldest: (u32, u32)) -> Result<(), Fault> {
    let mut parts = version.split(['.', '-', '_']).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else { return Ok(()) };
    if (major, minor) >= oldest {
        return Ok(());
    }
    let (major, minor) = oldest;
    Err(unsupported(format!("{product} {version} is too old; {major}.{minor} is the oldest that works")))
}

impl Capability {
    /// A capability that is there or not, with the reason where it is not; `None` where the device does not tell.
    #[must_use]
    pub fn known(id: &str, is_there: Option<bool>, reason: impl Into<String>) -> Self {
        let (available, reason) = match is_there {
            Some(true) => (Availability::Yes, None),
            Some(false) => (Availability::No, Some(reason.into())),
            None => (Availability::Unknown, None),
        };
        Capability { id: id.to_owned(), available, reason }
    }

    /// A capability that stands or falls with a read: `unsupported` says that the device lacks it, and `denied` that the
    /// credential may not use it. No other fault tells.
    ///
    /// `purpose` says what it is for; `denied` says what is not permitted: "the user may not use it".
    #[must_use]
    pub fn probed<T>(id: &str, purpose: &str, denied: &str, answer: &Result<T, Fault>) -> Self {
        match answer {
            Ok(_) => Self::known(id, Some(true), ""),
            Err(Fault::Unsupported(_)) => Self::known(id, Some(false), format!("absent: {purpose}")),
            Err(Fault::Denied(_)) => Self::known(id, Some(false), format!("{denied}: {purpose}")),
            Err(_) => Self::known(id, None, ""),
        }
    }
}

impl DeviceProfile {
    /// The same with a fact for people to see; without a value nothing is added.
    #[must_use]
    pub fn with_fact(mut self, key: &str, value: impl Into<Option<String>>) -> Self {
        self.facts.extend(value.into().map(|value| Attribute { key: key.to_owned(), value }));
        self
    }

    /// The same with what the device can do. The fingerprint becomes a digest of `identity` and of the ids of those
    /// capabilities that are available, so that an upgrade, another device and a new package are seen.
    #[must_use]
    pub fn with_capabilities(
        mut self,
        identity: impl IntoIterator<Item = Value>,
        capabilities: Vec<Capability>,
    ) -> Self {
        let present = capabilities.iter().filter(|one| matches!(one.available, Availability::Yes));
        let present: Vec<&str> = present.map(|one| one.id.as_str()).collect();
        let whole: Value = identity.into_iter().chain([json!(present)]).collect();
        self.fingerprint = hex::encode(digest(&whole));
        self.capabilities = capabilities;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultExt, fault};

    #[test]
    fn only_a_release_that_is_known_to_be_older_is_refused() {
        for version in ["8.4", "8.4-1", "8.10.2", "9.0_1", "10.0", "snapshot", "9", ""] {
            assert!(refuse_older("Acme", version, (8, 4)).is_ok(), "{version}");
        }
        let fault = refuse_older("Acme", "8.3.9", (8, 4)).unwrap_err();
        assert!(matches!(fault, Fault::Unsupported(_)), "{fault:?}");
        assert_eq!(fault.info().message, "Acme 8.3.9 is too old; 8.4 is the oldest that works");
    }

    #[test]
    fn only_two_faults_tell_that_a_capability_is_not_there() {
        let of =
            |answer: Result<(), Fault>| Capability::probed("kea", "Kea", "the user may not use it", &answer);
        let found = [
            of(Ok(())),
            of(Err(fault::unsupported("x"))),
            of(Err(fault::denied("x"))),
            of(Err(fault::timeout("x"))),
        ];
        let reasons: Vec<Option<&str>> = found.iter().map(|one| one.reason.as_deref()).collect();
        assert_eq!(reasons, [None, Some("absent: Kea"), Some("the user may not use it: Kea"), None]);
        assert!(matches!(found[3].available, Availability::Unknown));
    }

    #[test]
    fn fingerprint_tells_versions_and_packages_apart() {
        let of = |version: &str, has_kea: Option<bool>| {
            let kea = Capability::known("kea", has_kea, "install it");
            DeviceProfile::new("Acme", version).with_capabilities([json!(version)], vec![kea]).fingerprint
        };
        assert_eq!(of("1", Some(false)), of("1", None));
        assert_ne!(of("1", Some(true)), of("1", None));
        assert_ne!(of("1", None), of("2", None));
        let profile = DeviceProfile::new("Acme", "1")
            .with_fact("site", None::<String>)
            .with_fact("node", "a".to_owned());
        assert_eq!(profile.facts.len(), 1);
        assert_eq!((profile.facts[0].key.as_str(), profile.facts[0].value.as_str()), ("node", "a"));
    }
}
