//! Makes the facts of a site out of the objects and lists that the store has. Pure.

use std::collections::{BTreeMap, BTreeSet};

use heddle_core::ControllerId;
use heddle_store::model_objects::of_site::{AtSite, ListAtSite};
use serde_json::Value;

use super::facts::{Domain, Facts, Member, Port, Ssids, Tagged, VlanRow, by_port, folded};
use super::links::{Heard, Interface, System, Wire};

/// What an adapter fills of the model: asked by vendor, kind and field. Without a field it is about the kind as a whole.
pub(crate) type Fills<'a> = &'a dyn Fn(&str, &str, Option<&str>) -> bool;

/// The kinds that VLANs are compared by.
pub(crate) const KINDS: [&str; 6] = ["vlan", "port", "ssid", "neighbour", "interface", "system"];

/// The facts of a site: of its lists, and of all of its objects of [`KINDS`].
pub(crate) fn gathered(
    lists: &[ListAtSite],
    (objects, are_whole): (&[AtSite], bool),
    fills: Fills<'_>,
) -> Facts {
    let mut facts = Facts { domains: domains(lists, are_whole, fills), links: Vec::new(), are_whole };
    let places = Places::of(&facts.domains);
    let mut wire = Wire::default();
    let with_places: Vec<(usize, &AtSite)> =
        objects.iter().filter_map(|object| Some((places.find(object)?, object))).collect();
    let devices = Devices::of(facts.domains.len(), &with_places);
    for (at, object) in with_places {
        let domain = &mut facts.domains[at];
        let device = devices.of_object(at, object);
        match object.kind.as_str() {
            "vlan" => add_vlan(domain, device, object),
            "port" => domain.add_port(port(device, object)),
            "ssid" => add_ssid(domain, object),
            "neighbour" => wire.heard.extend(Heard::of((at, device), object)),
            "interface" => wire.interfaces.push(Interface::of((at, device), object)),
            "system" => wire.systems.push(System::of((at, device), object)),
            _ => {}
        }
    }
    for domain in &mut facts.domains {
        // What has no number may be several VLANs.
        domain.knows_vlans &= domain.unnumbered == 0;
    }
    facts.links = wire.links(&facts.domains);
    facts
}

/// Where the domains of a site are in their list.
struct Places(BTreeMap<ControllerId, BTreeMap<String, usize>>);

impl Places {
    fn of(domains: &[Domain]) -> Self {
        let mut places: BTreeMap<ControllerId, BTreeMap<String, usize>> = BTreeMap::new();
        for (at, domain) in domains.iter().enumerate() {
            let site = domain.site_ref.clone().unwrap_or_default();
            places.entry(domain.controller_id).or_default().insert(site, at);
        }
        Self(places)
    }

    /// The domain of an object. What is the controller's as a whole belongs to its only domain.
    fn find(&self, object: &AtSite) -> Option<usize> {
        let of_controller = self.0.get(&object.controller_id)?;
        let is_of_all = object.site_ref.is_empty() && of_controller.len() == 1;
        let only = of_controller.values().next().filter(|_| is_of_all);
        of_controller.get(&object.site_ref).or(only).copied()
    }
}

/// The devices of each domain, as its objects name them.
struct Devices<'o>(Vec<BTreeSet<&'o str>>);

impl<'o> Devices<'o> {
    fn of(domains: usize, placed: &[(usize, &'o AtSite)]) -> Self {
        let mut devices = vec![BTreeSet::new(); domains];
        for (at, object) in placed {
            devices[*at].extend(object.device_key.as_deref());
        }
        Self(devices)
    }

    /// The device of an object: the only one of its domain, where it does not say so itself.
    fn of_object(&self, at: usize, object: &AtSite) -> Option<String> {
        let only = || self.0[at].first().filter(|_| self.0[at].len() == 1).map(|device| (*device).to_owned());
        object.device_key.clone().or_else(only)
    }
}

/// The domains: one for each list of VLANs, and one for a controller without any.
fn domains(lists: &[ListAtSite], are_whole: bool, fills: Fills<'_>) -> Vec<Domain> {
    let mut by_controller: BTreeMap<ControllerId, Vec<&ListAtSite>> = BTreeMap::new();
    let mut order = Vec::new();
    for list in lists {
        let of_controller = by_controller.entry(list.controller_id).or_default();
        if of_controller.is_empty() {
            order.push(list.controller_id);
        }
        of_controller.push(list);
    }
    let of_controller = |id: &ControllerId| {
        let rows = &by_controller[id];
        let vlans: Vec<&ListAtSite> =
            rows.iter().filter(|row| row.kind.as_deref() == Some("vlan")).copied().collect();
        let begun = if vlans.is_empty() { &rows[..1] } else { &vlans[..] };
        begun.iter().map(|row| domain(row, rows, are_whole, fills)).collect::<Vec<_>>()
    };
    order.iter().flat_map(of_controller).collect()
}

fn domain(of: &ListAtSite, rows: &[&ListAtSite], are_whole: bool, fills: Fills<'_>) -> Domain {
    let vendor = of.vendor.as_str();
    let is_vlans = of.kind.as_deref() == Some("vlan");
    let site_ref = of.site_ref.clone().filter(|site| is_vlans && !site.is_empty());
    let list =
        |kind: &str| rows.iter().find(|row| row.kind.as_deref() == Some(kind) && row.site_ref == of.site_ref);
    let knows =
        |kind: &str| are_whole && fills(vendor, kind, None) && list(kind).is_some_and(|list| list.is_whole());
    let ssids = match (fills(vendor, "ssid", None), fills(vendor, "ssid", Some("vlan_id"))) {
        // It has no wireless networks that anything is known of.
        (false, _) => Ssids::Known(BTreeSet::new()),
        (true, true) if knows("ssid") => Ssids::Known(BTreeSet::new()),
        (true, false) if fills(vendor, "vlan", Some("interface")) => Ssids::ByInterface,
        _ => Ssids::Unknown,
    };
    Domain {
        controller_id: of.controller_id,
        site_name: of.site_name.clone().filter(|_| site_ref.is_some()),
        site_ref,
        name: of.name.clone(),
        vendor: of.vendor.clone(),
        read_at: of.read_at.filter(|_| is_vlans),
        knows_vlans: is_vlans && knows("vlan"),
        knows_ports: is_vlans && knows("port"),
        ssids,
        vlans: BTreeMap::new(),
        unnumbered: 0,
        ports: Vec::new(),
        named_by_ports: BTreeSet::new(),
    }
}

/// A field that is a text with something in it.
pub(super) fn text(object: &AtSite, field: &str) -> Option<String> {
    let found = object.fields.get(field).and_then(Value::as_str).map(str::trim);
    found.filter(|text| !text.is_empty()).map(str::to_owned)
}

fn number(value: Option<&Value>) -> Option<u16> {
    value.and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok())
}

fn texts(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn add_vlan(domain: &mut Domain, device: Option<String>, object: &AtSite) {
    let Some(vlan) = number(object.fields.get("vlan_id")) else {
        domain.unnumbered += 1;
        return;
    };
    let member = |value: &Value| {
        let port = value.get("port").and_then(Value::as_str)?.to_owned();
        Some(Member { port, is_tagged: value.get("tagged").and_then(Value::as_bool) })
    };
    let members = object.fields.get("members").and_then(Value::as_array);
    let members: Option<Vec<Member>> = members.map(|members| members.iter().filter_map(member).collect());
    domain.vlans.entry(vlan).or_default().push(VlanRow {
        id: Some(object.id),
        key: object.key.clone(),
        device,
        origin: object.origin,
        name: text(object, "name"),
        subnets: texts(object.fields.get("subnets")),
        gateway: text(object, "gateway"),
        dhcp: text(object, "dhcp").filter(|word| word != "unknown"),
        interface: text(object, "interface"),
        by_port: members.as_deref().map(by_port).unwrap_or_default(),
        members,
    });
}

fn port(device: Option<String>, object: &AtSite) -> Port {
    let fields = &object.fields;
    let list = || fields.get("tagged_vlans").and_then(Value::as_array);
    let numbers = |list: &Vec<Value>| list.iter().filter_map(|one| number(Some(one))).collect();
    let tagged = match fields.get("tagged_mode").and_then(Value::as_str) {
        Some("all") => Tagged::All,
        Some("none") => Tagged::List(BTreeSet::new()),
        Some("list") | None => list().map_or(Tagged::Unknown, |list| Tagged::List(numbers(list))),
        Some(_) => Tagged::Unknown,
    };
    let own = [Some(object.key.clone()), Some(object.label.clone()), text(object, "name")];
    let mut names: BTreeSet<String> = own.iter().flatten().map(|name| folded(name)).collect();
    // Keys of ports begin with their device, where a controller has several.
    let rest = device.as_deref().and_then(|device| object.key.strip_prefix(device));
    names.extend(rest.and_then(|rest| rest.strip_prefix(':')).map(folded));
    Port {
        key: object.key.clone(),
        device,
        names,
        number: fields.get("number").and_then(Value::as_u64),
        native: number(fields.get("native_vlan")),
        tagged,
    }
}

/// An SSID that does not say its VLAN may lead to any.
fn add_ssid(domain: &mut Domain, object: &AtSite) {
    let Ssids::Known(vlans) = &mut domain.ssids else { return };
    match number(object.fields.get("vlan_id")) {
        Some(vlan) => {
            vlans.insert(vlan);
        }
        None => domain.ssids = Ssids::Unknown,
    }
}
