//! What is known of the VLANs of a site, in the form in which it is compared. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use heddle_core::adapter::Origin;
use heddle_core::{ControllerId, Timestamp};
use heddle_store::model_objects::ModelObjectId;

/// The VLAN that devices have without being told. Firewalls have no object for it and switches do, so nothing is missing or
/// too much because of it.
pub(crate) const DEFAULT_VLAN: u16 = 1;

/// Everything that the VLANs of a site are compared by.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) domains: Vec<Domain>,
    /// Links whose ends are both known.
    pub(crate) links: Vec<Link>,
    /// Whether every object of the site was looked at.
    pub(crate) are_whole: bool,
}

/// A VLAN database: that of a controller, or that of one of the vendor's sites below it.
#[derive(Debug, Clone)]
pub(crate) struct Domain {
    pub(crate) controller_id: ControllerId,
    pub(crate) site_ref: Option<String>,
    /// Name of the controller.
    pub(crate) name: String,
    /// What the vendor calls its site.
    pub(crate) site_name: Option<String>,
    pub(crate) vendor: String,
    /// When its VLANs were last read to the end.
    pub(crate) read_at: Option<Timestamp>,
    /// Every VLAN is known: one that is not listed is not there.
    pub(crate) knows_vlans: bool,
    /// Every port is known.
    pub(crate) knows_ports: bool,
    pub(crate) ssids: Ssids,
    pub(crate) vlans: BTreeMap<u16, Vec<VlanRow>>,
    /// Virtual networks whose numbers are not known.
    pub(crate) unnumbered: usize,
    pub(crate) ports: Vec<Port>,
    /// The VLANs that ports name: kept beside them, because it is asked for each VLAN of each link.
    pub(crate) named_by_ports: BTreeSet<u16>,
}

/// What is known of the VLANs that wireless networks lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ssids {
    Known(BTreeSet<u16>),
    /// They lead to interfaces, and which VLANs these are on is told by the VLANs.
    ByInterface,
    Unknown,
}

/// An object that says something of a VLAN. A domain can have several of one number, such as one for each of its devices.
#[derive(Debug, Clone)]
pub(crate) struct VlanRow {
    pub(crate) id: Option<ModelObjectId>,
    pub(crate) key: String,
    pub(crate) device: Option<String>,
    pub(crate) origin: Origin,
    pub(crate) name: Option<String>,
    pub(crate) subnets: Vec<String>,
    pub(crate) gateway: Option<String>,
    pub(crate) dhcp: Option<String>,
    pub(crate) interface: Option<String>,
    pub(crate) members: Option<Vec<Member>>,
    /// What the members say, by the folded names of their ports.
    pub(crate) by_port: HashMap<String, AtPort>,
}

/// A port or interface in a VLAN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) port: String,
    pub(crate) is_tagged: Option<bool>,
}

/// What the members of a VLAN say of one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AtPort {
    /// Place of the first one in the list of members.
    pub(crate) first: usize,
    /// Whether any of them has no tag.
    pub(crate) is_untagged: bool,
}

/// What members say of each port.
pub(crate) fn by_port(members: &[Member]) -> HashMap<String, AtPort> {
    let mut all: HashMap<String, AtPort> = HashMap::new();
    for (first, member) in members.iter().enumerate() {
        let at = all.entry(folded(&member.port)).or_insert(AtPort { first, is_untagged: false });
        at.is_untagged |= member.is_tagged == Some(false);
    }
    all
}

#[derive(Debug, Clone)]
pub(crate) struct Port {
    pub(crate) key: String,
    pub(crate) device: Option<String>,
    /// By which others may name it, folded.
    pub(crate) names: BTreeSet<String>,
    pub(crate) number: Option<u64>,
    pub(crate) native: Option<u16>,
    pub(crate) tagged: Tagged,
}

/// The VLANs that have a tag at a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tagged {
    List(BTreeSet<u16>),
    /// All that the domain has.
    All,
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) ends: [End; 2],
}

/// One end of a link.
#[derive(Debug, Clone)]
pub(crate) struct End {
    /// Place in the list of domains.
    pub(crate) domain: usize,
    pub(crate) device: Option<String>,
    /// As it is written in the VLANs of the domain.
    pub(crate) port: String,
    /// By which the VLANs of the domain may name it, folded.
    pub(crate) names: BTreeSet<String>,
    /// Place in the ports of the domain, where it has an object for it.
    pub(crate) port_at: Option<usize>,
    /// The bridge that it is a part of, folded.
    pub(crate) bridge: Option<String>,
}

/// Whether a VLAN passes a port, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carriage {
    Tagged,
    Untagged,
    No,
    Unknown,
}

/// The form in which names of ports are compared.
pub(crate) fn folded(name: &str) -> String {
    name.trim().to_lowercase()
}

impl Domain {
    /// Whether it has an object of the VLAN.
    pub(crate) fn has(&self, vlan: u16) -> bool {
        self.vlans.contains_key(&vlan)
    }

    /// Whether it surely does not have the VLAN. One that a port of it has is there in some way.
    pub(crate) fn lacks(&self, vlan: u16) -> bool {
        vlan != DEFAULT_VLAN && self.knows_vlans && !self.has(vlan) && !self.named_by_ports.contains(&vlan)
    }

    pub(crate) fn add_port(&mut self, port: Port) {
        self.named_by_ports.extend(port.native);
        if let Tagged::List(list) = &port.tagged {
            self.named_by_ports.extend(list);
        }
        self.ports.push(port);
    }

    /// Whether it has VLANs of its own at all.
    pub(crate) fn uses_vlans(&self) -> bool {
        self.vlans.keys().any(|vlan| *vlan != DEFAULT_VLAN)
    }

    pub(crate) fn rows(&self, vlan: u16) -> &[VlanRow] {
        self.vlans.get(&vlan).map_or(&[], Vec::as_slice)
    }

    /// Those that people made: only these are compared with what should be there, and deleted.
    pub(crate) fn own_rows(&self, vlan: u16) -> impl Iterator<Item = &VlanRow> {
        self.rows(vlan).iter().filter(|row| row.origin == Origin::Own)
    }

    /// The first name that people gave the VLAN.
    pub(crate) fn name_of(&self, vlan: u16) -> Option<&str> {
        self.rows(vlan).iter().find_map(|row| row.name.as_deref())
    }

    /// How a VLAN passes one of its ports.
    pub(crate) fn carriage(&self, port: &Port, vlan: u16) -> Carriage {
        let said = self.said_by_port(port, vlan);
        if said == Carriage::Unknown {
            self.said_by_members(&port.names, port.device.as_deref(), vlan)
        } else {
            said
        }
    }

    fn said_by_port(&self, port: &Port, vlan: u16) -> Carriage {
        if port.native == Some(vlan) {
            return Carriage::Untagged;
        }
        let without = if port.native.is_some() { Carriage::No } else { Carriage::Unknown };
        match &port.tagged {
            Tagged::List(list) if list.contains(&vlan) => Carriage::Tagged,
            Tagged::List(_) => without,
            Tagged::All if port.native.is_none() => Carriage::Unknown,
            Tagged::All if self.has(vlan) => Carriage::Tagged,
            Tagged::All if self.lacks(vlan) => Carriage::No,
            Tagged::All | Tagged::Unknown => Carriage::Unknown,
        }
    }

    fn said_by_members(&self, names: &BTreeSet<String>, device: Option<&str>, vlan: u16) -> Carriage {
        let rows = || self.rows(vlan).iter().filter(|row| row.is_of(device));
        if let Some(member) = rows().find_map(|row| row.member(names)) {
            return match member.is_tagged {
                Some(true) => Carriage::Tagged,
                Some(false) => Carriage::Untagged,
                None => Carriage::Unknown,
            };
        }
        let are_known = self.knows_vlans && rows().all(|row| row.members.is_some());
        if are_known { Carriage::No } else { Carriage::Unknown }
    }

    /// The one VLAN whose packets have no tag at a port that has no object.
    fn native_by_members(&self, names: &BTreeSet<String>, device: Option<&str>) -> Option<u16> {
        let is_untagged = |row: &VlanRow| row.at_ports(names).any(|at| at.is_untagged);
        let has = |rows: &[VlanRow]| rows.iter().filter(|row| row.is_of(device)).any(is_untagged);
        let mut found = self.vlans.iter().filter(|(_, rows)| has(rows)).map(|(vlan, _)| *vlan);
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }
}

impl VlanRow {
    /// Whether it speaks of this device, or of all.
    fn is_of(&self, device: Option<&str>) -> bool {
        match (self.device.as_deref(), device) {
            (Some(own), Some(device)) => own == device,
            _ => true,
        }
    }

    fn at_ports<'r>(&'r self, names: &'r BTreeSet<String>) -> impl Iterator<Item = &'r AtPort> {
        names.iter().filter_map(|name| self.by_port.get(name))
    }

    /// The first member with one of these names.
    fn member(&self, names: &BTreeSet<String>) -> Option<&Member> {
        let first = self.at_ports(names).map(|at| at.first).min()?;
        self.members.as_deref()?.get(first)
    }
}

impl Facts {
    pub(crate) fn domain_of(&self, end: &End) -> &Domain {
        &self.domains[end.domain]
    }

    /// The port of an end, where it has an object.
    pub(crate) fn port_of(&self, end: &End) -> Option<&Port> {
        self.domain_of(end).ports.get(end.port_at?)
    }

    /// How a VLAN passes an end.
    pub(crate) fn carriage(&self, end: &End, vlan: u16) -> Carriage {
        let domain = self.domain_of(end);
        let said = self.port_of(end).map_or(Carriage::Unknown, |port| domain.said_by_port(port, vlan));
        let said = match said {
            Carriage::Unknown => domain.said_by_members(&end.names, end.device.as_deref(), vlan),
            said => said,
        };
        // The bridge as a whole is in the VLAN, and nothing tells its ports apart: they may all pass it.
        if said == Carriage::No && end.bridge.as_ref().is_some_and(|bridge| domain.is_on_bridge(bridge, vlan))
        {
            return Carriage::Unknown;
        }
        said
    }

    /// The VLAN of packets without a tag at an end.
    pub(crate) fn native(&self, end: &End) -> Option<u16> {
        let own = self.port_of(end).and_then(|port| port.native);
        own.or_else(|| self.domain_of(end).native_by_members(&end.names, end.device.as_deref()))
    }

    /// Every VLAN that any domain has, by its number.
    pub(crate) fn vlans(&self) -> BTreeSet<u16> {
        self.domains.iter().flat_map(|domain| domain.vlans.keys().copied()).collect()
    }
}

impl Domain {
    /// Whether the bridge is all that the VLAN is on.
    fn is_on_bridge(&self, bridge: &str, vlan: u16) -> bool {
        let mut members = self.rows(vlan).iter().flat_map(|row| row.members.iter().flatten()).peekable();
        members.peek().is_some() && members.all(|member| folded(&member.port) == bridge)
    }
}
