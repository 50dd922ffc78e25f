//! Which channels of a controller are opened, and where. Pure.

use std::collections::BTreeMap;

use heddle_core::release::ReleaseSpan;
use heddle_inventory::controllers::releases::is_offered;
use heddle_marketplace::push::{Channel, SiteIs, Transport};
use heddle_runtime::{CHANNELS_PER_CONTROLLER_MAX, Place, ToldSite};
use heddle_store::push::PushSite;

/// A channel that is opened at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Connection {
    /// Its name in the manifest.
    pub(crate) channel: String,
    pub(crate) place: Place,
}

/// What is opened at a controller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) connections: Vec<Connection>,
    /// Channels that the controller opens.
    pub(crate) hooks: Vec<String>,
    /// Connections beyond [`CHANNELS_PER_CONTROLLER_MAX`].
    pub(crate) left_out: usize,
    /// Whether each connection is of a site.
    pub(crate) is_of_sites: bool,
}

fn is_hook(channel: &Channel) -> bool {
    matches!(channel.transport(), Some(Transport::Hook(_)))
}

/// Whether the host opens channels of a package.
pub(crate) fn is_opened(channels: &BTreeMap<String, Channel>) -> bool {
    channels.values().any(|channel| !is_hook(channel))
}

/// The hooks that a controller of this version has.
pub(crate) fn hooks(channels: &BTreeMap<String, Channel>, version: Option<&str>) -> Vec<String> {
    let offered = channels.iter().filter(|(_, channel)| is_hook(channel) && has(channel, version));
    offered.map(|(name, _)| name.clone()).collect()
}

/// Whether channels that the host opens at a controller of this version are opened at its sites, or name them in messages.
pub(crate) fn needs_sites(channels: &BTreeMap<String, Channel>, version: Option<&str>) -> bool {
    offered(channels, version).any(|(_, channel)| !channel.per.is_controller() || channel.site.is_some())
}

/// Whether messages on channels that the host opens call sites by their names.
pub(crate) fn names_sites(channels: &BTreeMap<String, Channel>) -> bool {
    let opened = channels.values().filter(|channel| !is_hook(channel));
    opened.filter_map(|channel| channel.site.as_ref()).any(|site| site.is == SiteIs::Name)
}

/// The channels that the host opens at a controller of this version.
fn offered<'c>(
    channels: &'c BTreeMap<String, Channel>,
    version: Option<&str>,
) -> impl Iterator<Item = (&'c String, &'c Channel)> {
    channels.iter().filter(move |(_, channel)| !is_hook(channel) && has(channel, version))
}

/// The channels that a controller of this version has: those that the host opens, at the controller or at each of its sites,
/// and hooks. `None` where it has none.
pub(crate) fn plan(
    channels: &BTreeMap<String, Channel>,
    version: Option<&str>,
    sites: &[PushSite],
) -> Option<Plan> {
    let offered: Vec<(&String, &Channel)> = offered(channels, version).collect();
    let hooks = hooks(channels, version);
    if offered.is_empty() && hooks.is_empty() {
        return None;
    }
    let mut connections = Vec::new();
    for (name, channel) in &offered {
        let at = |place| Connection { channel: (*name).clone(), place };
        if channel.per.is_controller() {
            connections.push(at(Place::Controller));
        } else {
            let read = sites.iter().filter(|site| !site.is_ignored);
            connections.extend(read.map(|site| at(Place::Site(site.site_ref.clone()))));
        }
    }
    let left_out = connections.len().saturating_sub(CHANNELS_PER_CONTROLLER_MAX);
    connections.truncate(CHANNELS_PER_CONTROLLER_MAX);
    let is_of_sites = offered.len() == 1
        && hooks.is_empty()
        && offered.iter().all(|(_, channel)| !channel.per.is_controller());
    Some(Plan { connections, hooks, left_out, is_of_sites })
}

fn has(channel: &Channel, version: Option<&str>) -> bool {
    let span = channel.releases.as_ref();
    let span = span.map(|span| ReleaseSpan { from: span.from.clone(), to: span.to.clone() });
    is_offered(span.as_ref(), version)
}

/// The vendor's id of the site that something was told of; empty for all of them. A site that is not read stays without a
/// reading: it means none. A name that no site has, or several, means all of them.
pub(crate) fn site_ref(told: &ToldSite, sites: &[PushSite]) -> Option<String> {
    match told {
        ToldSite::All => Some(String::new()),
        ToldSite::Id(id) => {
            sites.iter().any(|site| site.site_ref == *id && !site.is_ignored).then(|| id.clone())
        }
        ToldSite::Name(name) => {
            let named: Vec<&PushSite> = sites.iter().filter(|site| site.name == *name).collect();
            match named.as_slice() {
                [only] => (!only.is_ignored).then(|| only.site_ref.clone()),
                several => {
                    let is_read = several.is_empty() || several.iter().any(|site| !site.is_ignored);
                    is_read.then(String::new)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn site(site_ref: &str, name: &str) -> PushSite {
        PushSite { site_ref: site_ref.to_owned(), name: name.to_owned(), is_ignored: false }
    }

    fn ignored(site_ref: &str, name: &str) -> PushSite {
        PushSite { is_ignored: true, ..site(site_ref, name) }
    }

    fn channels(of: Value) -> BTreeMap<String, Channel> {
        serde_json::from_value(of).unwrap()
    }

    fn socket(more: Value) -> Value {
        let mut channel = json!({
            "socket": { "ping-s": 15, "silence-s": 45 },
            "ways": [{ "session": "s", "path": "/events" }],
            "rules": [{ "when": { "/a": ["b"] }, "reads": ["device"] }]
        });
        channel.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        channel
    }

    #[test]
    fn a_channel_is_opened_at_the_controller_or_at_each_site() {
        let sites = [site("1", "Head"), site("2", "Branch"), ignored("3", "Garage")];
        let of_sites = channels(json!({ "events": socket(json!({ "per": "site" })) }));
        let opened = plan(&of_sites, None, &sites).unwrap();
        let places: Vec<&Place> = opened.connections.iter().map(|one| &one.place).collect();
        assert_eq!(places, [&Place::Site("1".to_owned()), &Place::Site("2".to_owned())]);
        assert!(opened.is_of_sites && opened.left_out == 0);
        let one = plan(&channels(json!({ "events": socket(json!({})) })), None, &sites).unwrap();
        let at = Connection { channel: "events".to_owned(), place: Place::Controller };
        assert_eq!(one.connections, [at]);
        assert!(!one.is_of_sites);
        let many: Vec<PushSite> = (0..40).map(|n| site(&n.to_string(), "x")).collect();
        let opened = plan(&of_sites, None, &many).unwrap();
        assert_eq!((opened.connections.len(), opened.left_out), (32, 8));
        assert!(plan(&of_sites, None, &[]).unwrap().connections.is_empty());
    }

    #[test]
    fn sites_are_looked_for_where_a_channel_is_about_them() {
        let at = |is: &str| json!({ "site": { "at": "/site", "is": is } });
        for (more, needs, names) in [
            (json!({}), false, false),
            (json!({ "per": "site" }), true, false),
            (at("id"), true, false),
            (at("name"), true, true),
        ] {
            let channels = channels(json!({ "events": socket(more.clone()) }));
            assert_eq!((needs_sites(&channels, None), names_sites(&channels)), (needs, names), "{more}");
        }
        let since =
            channels(json!({ "events": socket(json!({ "per": "site", "releases": { "from": "9.1" } })) }));
        assert!(!needs_sites(&since, Some("9.0.4")));
    }

    #[test]
    fn what_a_release_lacks_is_not_opened() {
        let since = channels(json!({ "events": socket(json!({ "releases": { "from": "9.1" } })) }));
        assert!(plan(&since, Some("9.0.4"), &[]).is_none());
        assert!(plan(&since, Some("9.1.0"), &[]).is_some());
        assert!(plan(&since, None, &[]).is_some(), "it was not read yet");
    }

    #[test]
    fn a_hook_is_no_connection_and_a_channel_of_the_controller() {
        let hook = json!({ "hook": { "proof": { "scheme": "token", "at": { "json": "/secret" } }, "quiet-s": 600 },
            "rules": [{ "when": { "/a": ["b"] }, "reads": ["device"] }] });
        let mut all = json!({ "webhook": hook });
        let alone = plan(&channels(all.clone()), None, &[]).unwrap();
        assert_eq!((alone.hooks.as_slice(), alone.connections.len()), (["webhook".to_owned()].as_slice(), 0));
        assert_eq!(hooks(&channels(all.clone()), None), ["webhook"]);
        all["events"] = socket(json!({ "per": "site" }));
        let both = plan(&channels(all.clone()), None, &[site("1", "Head")]).unwrap();
        assert_eq!((both.hooks.len(), both.connections.len(), both.is_of_sites), (1, 1, false));
        all["webhook"]["releases"] = json!({ "from": "6.0" });
        assert!(hooks(&channels(all), Some("5.15.20")).is_empty());
    }

    #[test]
    fn a_message_is_about_the_site_that_it_names() {
        let mut sites = vec![site("1", "Head"), site("2", "Branch"), site("3", "Branch")];
        sites.extend([ignored("4", "Garage"), ignored("5", "Barn"), ignored("6", "Barn")]);
        let of = |told: ToldSite| site_ref(&told, &sites);
        assert_eq!(of(ToldSite::All).as_deref(), Some(""));
        assert_eq!(of(ToldSite::Id("2".to_owned())).as_deref(), Some("2"));
        assert_eq!(of(ToldSite::Id("9".to_owned())), None, "it is not read");
        assert_eq!(of(ToldSite::Name("Head".to_owned())).as_deref(), Some("1"));
        assert_eq!(of(ToldSite::Name("Branch".to_owned())).as_deref(), Some(""));
        assert_eq!(of(ToldSite::Name("None".to_owned())).as_deref(), Some(""));
        for name in ["Garage", "Barn"] {
            assert_eq!(of(ToldSite::Name(name.to_owned())), None, "what is ignored has nothing read");
        }
        assert_eq!(of(ToldSite::Id("4".to_owned())), None);
    }
}
