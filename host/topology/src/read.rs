//! Reads what is stored of a site, and keeps the graphs that were made last.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use heddle_core::adapter::Completeness;
use heddle_core::{ControllerId, OrgId, SiteId, Timestamp};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::task;
use heddle_store::topology::{self, SiteDevice, SiteObject, Source};
use ipnet::IpNet;
use url::Url;

use crate::TopologySettings;
use crate::build::build;
use crate::facts::{ControllerFact, DeviceFact, Fact, Facts, KINDS, Object};
use crate::site::Site;

/// Most objects of a site that its graph is made of.
const OBJECTS_MAX: i64 = 200_000;
/// Most devices of a site.
const DEVICES_MAX: i64 = 20_000;
/// Graphs that are kept.
const KEPT_MAX: usize = 16;
/// Most nodes of all graphs that are kept.
const KEPT_NODES_MAX: usize = 400_000;
/// Lists that are named where they are not whole.
const GAPS_NAMED: usize = 10;

/// Kinds without which links between devices are not known.
const OF_LINKS: &[&str] = &["client", "interface", "neighbour", "port"];

/// The graphs that were made last, the newest at the end.
#[derive(Default)]
pub(crate) struct Graphs(Mutex<Vec<Kept>>);

impl std::fmt::Debug for Graphs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graphs").finish_non_exhaustive()
    }
}

struct Kept {
    site_id: SiteId,
    /// How the lists were read that it is made of.
    sources: Vec<Source>,
    own_addresses: Vec<IpAddr>,
    site: Arc<Site>,
}

impl Graphs {
    fn find(&self, site_id: SiteId, sources: &[Source], own: &[std::net::IpAddr]) -> Option<Arc<Site>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|kept| kept.site_id == site_id)?;
        (found.sources == sources && found.own_addresses == own).then(|| Arc::clone(&found.site))
    }

    fn keep(&self, new: Kept) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|known| known.site_id != new.site_id);
        if new.site.nodes.len() > KEPT_NODES_MAX {
            return;
        }
        kept.push(new);
        let nodes = |kept: &[Kept]| kept.iter().map(|kept| kept.site.nodes.len()).sum::<usize>();
        while kept.len() > KEPT_MAX || nodes(&kept) > KEPT_NODES_MAX {
            kept.remove(0);
        }
    }
}

/// The graph of a site, as its lists were last read.
///
/// # Errors
/// The database does not answer.
pub(crate) async fn graph(app: &App, org: OrgId, site_id: SiteId) -> Result<Arc<Site>, Error> {
    let own_addresses = own_addresses(app);
    let graphs: &Graphs = app.part();
    // One statement where the graph is kept: every plan asks for one.
    let sources = topology::sources(&mut app.db.single().await?, org, site_id).await?;
    if let Some(known) = graphs.find(site_id, &sources, &own_addresses) {
        return Ok(known);
    }
    let mut tx = app.db.read().await?;
    let sources = topology::sources(&mut tx, org, site_id).await?;
    let objects = topology::objects(&mut tx, org, site_id, (KINDS, OBJECTS_MAX)).await?;
    let devices = topology::devices(&mut tx, org, site_id, DEVICES_MAX).await?;
    drop(tx);
    let (read, own) = (sources.clone(), own_addresses.clone());
    let site = Arc::new(task::block(move || build(&facts(&read, objects, devices, own))).await);
    graphs.keep(Kept { site_id, sources, own_addresses, site: Arc::clone(&site) });
    Ok(site)
}

/// Addresses that devices see the service come from: as an operator says, else those of this machine.
fn own_addresses(app: &App) -> Vec<IpAddr> {
    let told = &app.config.of::<TopologySettings>().service_addresses;
    if told.is_empty() {
        return heddle_runtime::own_addresses();
    }
    told.iter().map(IpNet::addr).collect()
}

/// What the rows say.
fn facts(
    sources: &[Source],
    objects: Vec<SiteObject>,
    devices: Vec<SiteDevice>,
    own_addresses: Vec<IpAddr>,
) -> Facts {
    let mut gaps = gaps(sources);
    if i64::try_from(objects.len()).is_ok_and(|count| count >= OBJECTS_MAX) {
        gaps.push(format!(
            "the site has more than {OBJECTS_MAX} objects; the rest of them was not looked at"
        ));
    }
    if i64::try_from(devices.len()).is_ok_and(|count| count >= DEVICES_MAX) {
        gaps.push(format!(
            "the site has more than {DEVICES_MAX} devices; the rest of them was not looked at"
        ));
    }
    let mut unread = 0;
    let mut known = Vec::with_capacity(objects.len());
    for row in objects {
        let Some(fact) = Fact::parse(&row.kind, row.fields.get()) else {
            unread += 1;
            continue;
        };
        known.push(Object {
            id: row.id,
            controller: row.controller_id,
            site_ref: row.site_ref,
            key: row.key,
            label: row.label,
            device_key: row.device_key,
            native: row.native,
            fact,
        });
    }
    if unread > 0 {
        gaps.push(format!("{unread} objects could not be read"));
    }
    let device = |row: SiteDevice| DeviceFact {
        controller: row.controller_id,
        id: Some(row.id),
        identity: row.identity,
        name: row.name,
        mac: row.mac,
        addresses: row.addresses,
    };
    Facts {
        controllers: controllers(sources),
        devices: devices.into_iter().map(device).collect(),
        objects: known,
        gaps,
        observed_at: sources.iter().filter_map(read_at).min(),
        own_addresses,
    }
}

/// When a list that counts here was read.
fn read_at(source: &Source) -> Option<Timestamp> {
    let kind = source.kind.as_deref()?;
    source.read_at.filter(|_| KINDS.contains(&kind))
}

fn controllers(sources: &[Source]) -> Vec<ControllerFact> {
    let mut all: BTreeMap<ControllerId, ControllerFact> = BTreeMap::new();
    for source in sources {
        let url = Url::parse(&source.url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        all.entry(source.controller_id).or_insert_with(|| ControllerFact {
            id: source.controller_id,
            name: source.name.clone(),
            host: host.to_owned(),
            port: url.as_ref().and_then(Url::port_or_known_default).unwrap_or(443),
        });
    }
    all.into_values().collect()
}

/// What of the lists is not whole: what was never read, and what a reading could not give.
fn gaps(sources: &[Source]) -> Vec<String> {
    let mut never: BTreeSet<&str> = BTreeSet::new();
    let mut partial: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        match source.kind.as_deref() {
            None => {
                never.insert(&source.name);
            }
            Some(kind) if OF_LINKS.contains(&kind) => {
                let is_whole = source.complete == Some(Completeness::Complete) && source.error.is_none();
                if source.read_at.is_none() || !is_whole {
                    partial.entry(kind).or_default().insert(&source.name);
                }
            }
            Some(_) => {}
        }
    }
    let list = |names: BTreeSet<&str>| {
        let more = names.len().saturating_sub(GAPS_NAMED);
        let shown: Vec<String> = names.into_iter().take(GAPS_NAMED).map(|name| format!("'{name}'")).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", shown.join(", "))
    };
    let mut said = Vec::new();
    if sources.is_empty() {
        said.push("the site has no controller".to_owned());
    }
    if !never.is_empty() {
        said.push(format!("nothing was read of {}", list(never)));
    }
    for (kind, names) in partial {
        said.push(format!("the list of kind '{kind}' is not known to be whole of {}", list(names)));
    }
    said
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    fn source(name: &str, kind: Option<&str>, complete: Completeness) -> Source {
        let clock = Clock::default();
        Source {
            controller_id: clock.new_id(),
            name: name.to_owned(),
            url: "https://192.0.2.1:8443/base".to_owned(),
            last_sync_at: None,
            kind: kind.map(str::to_owned),
            site_ref: kind.map(|_| String::new()),
            read_at: kind.map(|_| clock.now()),
            complete: kind.map(|_| complete),
            error: None,
            objects: kind.map(|_| 1),
        }
    }

    #[test]
    fn what_was_not_read_is_said() {
        let whole = source("edge", Some("port"), Completeness::Complete);
        assert!(gaps(std::slice::from_ref(&whole)).is_empty());
        assert_eq!(gaps(&[]), ["the site has no controller"]);
        let said = gaps(&[
            whole,
            source("new", None, Completeness::Unknown),
            source("lab", Some("client"), Completeness::Partial),
            source("lab", Some("dns-record"), Completeness::Partial),
        ]);
        assert_eq!(
            said,
            ["nothing was read of 'new'", "the list of kind 'client' is not known to be whole of 'lab'"]
        );
    }

    #[test]
    fn controllers_have_the_host_and_the_port_of_their_address() {
        let found = controllers(&[source("edge", None, Completeness::Unknown)]);
        assert_eq!((found[0].host.as_str(), found[0].port), ("192.0.2.1", 8443));
    }

    #[test]
    fn a_graph_is_kept_until_a_list_was_read_again() {
        let (graphs, clock) = (Graphs::default(), Clock::default());
        let id: SiteId = clock.new_id();
        let sources = vec![source("edge", Some("port"), Completeness::Complete)];
        let kept = |site_id: SiteId| Kept {
            site_id,
            sources: sources.clone(),
            own_addresses: Vec::new(),
            site: Arc::default(),
        };
        graphs.keep(kept(id));
        assert!(graphs.find(id, &sources, &[]).is_some());
        let again = vec![Source { read_at: Some(clock.now()), ..sources[0].clone() }];
        assert!(graphs.find(id, &again, &[]).is_none(), "it was read again");
        assert!(graphs.find(id, &sources, &["10.0.0.5".parse().unwrap()]).is_none(), "the service moved");
        for _ in 0..KEPT_MAX {
            graphs.keep(kept(clock.new_id()));
        }
        assert!(graphs.find(id, &sources, &[]).is_none(), "others took its place");
    }
}
