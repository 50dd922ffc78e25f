//! What clients see of the VLANs of a site. Pure: made of facts.

use heddle_core::adapter::Origin;
use heddle_core::page::PageRequest;
use heddle_core::vlan::VlanFault;
use heddle_core::{ControllerId, Timestamp};
use heddle_store::model_objects::ModelObjectId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::Finding;
use crate::site::facts::{Carriage, Domain, End, Facts};

/// A controller whose VLANs are looked at, or one of the vendor's sites below it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VlanController")]
pub(crate) struct ControllerView {
    controller_id: ControllerId,
    name: String,
    vendor: String,
    /// The vendor's id of the site; null where the VLANs are the controller's.
    site_ref: Option<String>,
    /// What the vendor calls that site; null where the VLANs are the controller's.
    site_name: Option<String>,
    /// Whether every VLAN of it is known: only then one that is not listed is surely not there.
    is_known: bool,
    /// When its VLANs were last read to the end; null if never.
    read_at: Option<Timestamp>,
    /// Virtual networks of it whose numbers are not known.
    unnumbered: usize,
}

impl ControllerView {
    fn of(domain: &Domain) -> Self {
        Self {
            controller_id: domain.controller_id,
            name: domain.name.clone(),
            vendor: domain.vendor.clone(),
            site_ref: domain.site_ref.clone(),
            site_name: domain.site_name.clone(),
            is_known: domain.knows_vlans,
            read_at: domain.read_at,
            unnumbered: domain.unnumbered,
        }
    }

    pub(crate) fn all(facts: &Facts) -> Vec<Self> {
        facts.domains.iter().map(Self::of).collect()
    }
}

/// The VLANs of a site, a line each, with all controllers side by side.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VlansSideBySide")]
pub(crate) struct SideBySide {
    /// The columns of each line.
    controllers: Vec<ControllerView>,
    /// By their numbers.
    items: Vec<Line>,
    total: usize,
    page: u32,
    per_page: u32,
    pages: usize,
    /// Whether every object of the site was looked at.
    is_complete: bool,
}

/// A VLAN at all controllers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VlanLine")]
struct Line {
    /// Number in tags.
    #[schemars(range(min = 1, max = 4094))]
    vlan_id: u16,
    /// All names that it has.
    names: Vec<String>,
    /// One for each controller, in the same order.
    cells: Vec<Cell>,
}

heddle_core::words! {
    /// Whether a controller has a VLAN.
    pub enum Presence {
        Present = "present",
        /// All of its VLANs are known, and this one is not among them.
        Absent = "absent",
        Unknown = "unknown",
    }
}

/// A VLAN at a controller. What is not known is left out.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VlanCell")]
struct Cell {
    state: Presence,
    /// The object of the inventory that says it, or the first of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    object_id: Option<ModelObjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Which of people and devices made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    /// Prefixes of its addresses.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    subnets: Vec<String>,
    /// Address of its gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<String>,
    /// Which device gives addresses in it, in the word of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    dhcp: Option<String>,
    /// Ports and interfaces that have it with a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    tagged_ports: Option<usize>,
    /// Ports and interfaces that have it without a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    untagged_ports: Option<usize>,
}

impl Cell {
    fn without(state: Presence) -> Self {
        Self {
            state,
            object_id: None,
            name: None,
            origin: None,
            subnets: Vec::new(),
            gateway: None,
            dhcp: None,
            tagged_ports: None,
            untagged_ports: None,
        }
    }

    fn of(domain: &Domain, vlan: u16) -> Self {
        let rows = domain.rows(vlan);
        let Some(first) = rows.first() else {
            return Self::without(if domain.lacks(vlan) { Presence::Absent } else { Presence::Unknown });
        };
        let mut subnets: Vec<String> = rows.iter().flat_map(|row| row.subnets.iter().cloned()).collect();
        subnets.sort();
        subnets.dedup();
        let are_known = rows.iter().all(|row| row.members.is_some());
        let members = || rows.iter().flat_map(|row| row.members.iter().flatten());
        let count =
            |is_tagged| are_known.then(|| members().filter(|one| one.is_tagged == Some(is_tagged)).count());
        Self {
            object_id: first.id,
            name: domain.name_of(vlan).map(str::to_owned),
            origin: Some(first.origin),
            subnets,
            gateway: rows.iter().find_map(|row| row.gateway.clone()),
            dhcp: rows.iter().find_map(|row| row.dhcp.clone()),
            tagged_ports: count(true),
            untagged_ports: count(false),
            ..Self::without(Presence::Present)
        }
    }
}

/// The part of a list that a page asks for, and how many pages there are.
fn part_of<T>(all: &[T], page: PageRequest) -> (&[T], usize) {
    let size = usize::try_from(page.per_page).unwrap_or(usize::MAX).max(1);
    let first = usize::try_from(page.page.saturating_sub(1)).unwrap_or(usize::MAX).saturating_mul(size);
    let rest = all.get(first..).unwrap_or_default();
    (&rest[..rest.len().min(size)], all.len().div_ceil(size))
}

impl SideBySide {
    pub(crate) fn of(facts: &Facts, page: PageRequest) -> Self {
        let vlans: Vec<u16> = facts.vlans().into_iter().collect();
        let (part, pages) = part_of(&vlans, page);
        let line = |vlan: &u16| {
            let mut names: Vec<String> =
                facts.domains.iter().filter_map(|domain| domain.name_of(*vlan)).map(str::to_owned).collect();
            names.sort();
            names.dedup();
            let cells = facts.domains.iter().map(|domain| Cell::of(domain, *vlan)).collect();
            Line { vlan_id: *vlan, names, cells }
        };
        Self {
            controllers: ControllerView::all(facts),
            items: part.iter().map(line).collect(),
            total: vlans.len(),
            page: page.page,
            per_page: page.per_page,
            pages,
            is_complete: facts.are_whole,
        }
    }
}

/// One end of a link.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "VlanLinkEnd")]
pub(crate) struct EndView {
    controller_id: ControllerId,
    /// The vendor's id of the site; null where the VLANs are the controller's.
    site_ref: Option<String>,
    /// Identity of the device; null where the controller is the device.
    device_key: Option<String>,
    /// As the VLANs of the controller name it.
    port: String,
    /// VLAN of packets without a tag; null where it is not known.
    native_vlan: Option<u16>,
}

impl EndView {
    fn of(facts: &Facts, end: &End) -> Self {
        let domain = facts.domain_of(end);
        Self {
            controller_id: domain.controller_id,
            site_ref: domain.site_ref.clone(),
            device_key: end.device.clone(),
            port: end.port.clone(),
            native_vlan: facts.native(end),
        }
    }
}

/// A link between two devices of the site, as what they heard of one another tells it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VlanLink")]
struct LinkView {
    /// One end.
    a: EndView,
    /// The other end.
    b: EndView,
}

heddle_core::words! {
    /// Whether a VLAN passes an end of a link, and how.
    pub enum AtEnd {
        Tagged = "tagged",
        Untagged = "untagged",
        No = "no",
        Unknown = "unknown",
    }
}

impl From<Carriage> for AtEnd {
    fn from(carriage: Carriage) -> Self {
        match carriage {
            Carriage::Tagged => Self::Tagged,
            Carriage::Untagged => Self::Untagged,
            Carriage::No => Self::No,
            Carriage::Unknown => Self::Unknown,
        }
    }
}

/// Which VLANs pass which links, and whether both ends agree.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VlanTruthMap")]
pub(crate) struct TruthMap {
    /// The links whose ends are both known.
    links: Vec<LinkView>,
    /// By their numbers.
    items: Vec<VlanOnLinks>,
    total: usize,
    page: u32,
    per_page: u32,
    pages: usize,
    /// Whether every object of the site was looked at.
    is_complete: bool,
}

/// A VLAN on the links of a site.
#[derive(Debug, Serialize, JsonSchema)]
struct VlanOnLinks {
    /// Number in tags.
    #[schemars(range(min = 1, max = 4094))]
    vlan_id: u16,
    /// The first name that it has; null where it has none.
    name: Option<String>,
    /// Where it passes an end, or may do so.
    on_links: Vec<OnLink>,
}

/// A VLAN on a link.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "VlanOnLink")]
struct OnLink {
    /// Place of the link in the list of links; counts from 0.
    link: usize,
    a: AtEnd,
    b: AtEnd,
    /// Whether both ends treat it alike; null where that is not known.
    agrees: Option<bool>,
}

impl TruthMap {
    pub(crate) fn of(facts: &Facts, page: PageRequest) -> Self {
        let vlans: Vec<u16> = facts.vlans().into_iter().collect();
        let (part, pages) = part_of(&vlans, page);
        let on_link = |(link, ends): (usize, &[End; 2]), vlan: u16| {
            let [a, b] = ends.each_ref().map(|end| facts.carriage(end, vlan));
            let is_known = a != Carriage::Unknown && b != Carriage::Unknown;
            let is_there = a != Carriage::No || b != Carriage::No;
            is_there.then(|| OnLink { link, a: a.into(), b: b.into(), agrees: is_known.then_some(a == b) })
        };
        let on_links = |vlan: &u16| VlanOnLinks {
            vlan_id: *vlan,
            name: facts.domains.iter().find_map(|domain| domain.name_of(*vlan)).map(str::to_owned),
            on_links: facts
                .links
                .iter()
                .enumerate()
                .filter_map(|(at, link)| on_link((at, &link.ends), *vlan))
                .collect(),
        };
        let link =
            |ends: &[End; 2]| LinkView { a: EndView::of(facts, &ends[0]), b: EndView::of(facts, &ends[1]) };
        Self {
            links: facts.links.iter().map(|one| link(&one.ends)).collect(),
            items: part.iter().map(on_links).collect(),
            total: vlans.len(),
            page: page.page,
            per_page: page.per_page,
            pages,
            is_complete: facts.are_whole,
        }
    }
}

/// A difference between a controller and what it is compared with.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "VlanFinding")]
pub(crate) struct FindingView {
    class: VlanFault,
    /// Number in tags.
    #[schemars(range(min = 1, max = 4094))]
    vlan_id: u16,
    /// The controller that differs; of a link, that of the end which would have to change.
    controller_id: ControllerId,
    /// The vendor's id of the site; null where the VLANs are the controller's.
    site_ref: Option<String>,
    /// What should be there, such as a name; null where that is more than a text.
    expected: Option<String>,
    /// What is there; null where nothing is.
    found: Option<String>,
    /// The end of the link; null where it is about none.
    end: Option<EndView>,
    /// What it was compared with; null where that is none of the controllers.
    other: Option<OtherView>,
    /// The same in a sentence.
    message: String,
}

/// What a difference was found with.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "VlanFindingOther")]
struct OtherView {
    controller_id: ControllerId,
    /// The vendor's id of the site; null where the VLANs are the controller's.
    site_ref: Option<String>,
    /// Number in tags.
    #[schemars(range(min = 1, max = 4094))]
    vlan_id: u16,
    /// The other end of the link; null where it is about none.
    end: Option<EndView>,
}

impl FindingView {
    pub(crate) fn of(facts: &Facts, finding: &Finding) -> Self {
        let domain = &facts.domains[finding.domain];
        let ends = finding.link.map(|(link, side)| {
            let ends = &facts.links[link].ends;
            (EndView::of(facts, &ends[side]), EndView::of(facts, &ends[1 - side]))
        });
        let (end, other_end) = ends.unzip();
        let other = finding.other.map(|(other, vlan_id)| OtherView {
            controller_id: facts.domains[other].controller_id,
            site_ref: facts.domains[other].site_ref.clone(),
            vlan_id,
            end: other_end,
        });
        Self {
            class: finding.class,
            vlan_id: finding.vlan,
            controller_id: domain.controller_id,
            site_ref: domain.site_ref.clone(),
            expected: finding.expected.clone(),
            found: finding.found.clone(),
            message: message(facts, finding, end.as_ref().map(|end| end.port.as_str())),
            end,
            other,
        }
    }
}

fn message(facts: &Facts, finding: &Finding, port: Option<&str>) -> String {
    let (vlan, name) = (finding.vlan, &facts.domains[finding.domain].name);
    let text = |of: &Option<String>| of.as_deref().unwrap_or_default().to_owned();
    let (expected, found, port) = (text(&finding.expected), text(&finding.found), port.unwrap_or_default());
    let other = finding.other.map(|(at, vlan)| (facts.domains[at].name.as_str(), vlan));
    let (other, other_vlan) = other.unwrap_or_default();
    match finding.class {
        VlanFault::Missing => format!("'{name}' does not have VLAN {vlan}"),
        VlanFault::Extra => format!("'{name}' has VLAN {vlan}, which is not expected"),
        VlanFault::NameDiffers => format!("'{name}' calls VLAN {vlan} '{found}', not '{expected}'"),
        VlanFault::SubnetOverlaps => {
            format!(
                "{found} of VLAN {vlan} at '{name}' overlaps with a subnet of VLAN {other_vlan} at '{other}'"
            )
        }
        VlanFault::NativeMismatch => format!(
            "packets without a tag are of VLAN {vlan} at port '{port}' of '{name}', and of VLAN {other_vlan} at the other end, \
             at '{other}'"
        ),
        VlanFault::TaggedOnOneEnd => {
            format!("port '{port}' of '{name}' does not tag VLAN {vlan}, as the other end does, at '{other}'")
        }
        VlanFault::Orphan => format!("nothing at the site uses VLAN {vlan}, which '{name}' has"),
    }
}
