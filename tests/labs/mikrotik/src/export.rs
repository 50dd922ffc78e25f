//! The configuration as a script: menus in an order in which what is named comes first.

use crate::check;
use crate::device::Router;
use crate::facts::{Facts, Kind, Menu, Type};
use crate::script::quoted;
use crate::store::{Origin, Row};

/// Menus that others name. All further ones follow in the order of their paths.
const FIRST: [&str; 40] = [
    "interface/bridge",
    "interface/ethernet",
    "interface/bonding",
    "interface/wireguard",
    "interface/vlan",
    "interface/list",
    "interface/wifi/channel",
    "interface/wifi/datapath",
    "interface/wifi/security",
    "interface/wifi/configuration",
    "interface/wifi",
    "interface/wireless/security-profiles",
    "interface/wireless",
    "ip/vrf",
    "routing/table",
    "ip/pool",
    "ip/dhcp-server/option",
    "ip/dhcp-server/option/sets",
    "ip/dhcp-server",
    "ip/hotspot/profile",
    "ip/hotspot/user/profile",
    "ip/hotspot",
    "ip/ipsec/profile",
    "ip/ipsec/proposal",
    "ip/ipsec/policy/group",
    "ip/ipsec/mode-config",
    "ip/ipsec/peer",
    "ipv6/pool",
    "ppp/profile",
    "queue/type",
    "queue/simple",
    "queue/tree",
    "routing/ospf/instance",
    "routing/ospf/area",
    "routing/bgp/instance",
    "routing/bgp/template",
    "system/logging/action",
    "user/group",
    "system/script",
    "interface/bridge/port",
];
/// What no export holds: accounts, keys, files and what only runs.
const LEFT_OUT: [&str; 6] =
    ["user", "user/ssh-keys", "certificate", "file", "system/routerboard", "interface"];

/// The whole configuration.
pub(crate) fn text(router: &Router, shows_secrets: bool) -> String {
    let mut out = format!(
        "# {} by RouterOS {}\n# software id = LAB0-0001\n#\n",
        crate::device::time_text(router.unix),
        router.version()
    );
    let first = FIRST.iter().filter_map(|path| Facts::get().menu(path));
    let rest = Facts::get().menus().filter(|(path, _)| !FIRST.contains(path));
    for (path, menu) in first.chain(rest) {
        if LEFT_OUT.contains(&path) || !router.has_menu(path) {
            continue;
        }
        let lines = lines(router, path, menu, shows_secrets);
        if !lines.is_empty() {
            out.push_str(&format!("/{}\n", path.replace('/', " ")));
            lines.iter().for_each(|line| out.push_str(&format!("{line}\n")));
        }
    }
    while out.len() < router.settings.export_bytes_min {
        out.push_str("# filled up to the size that was asked for, with a line that says nothing else\n");
    }
    out
}

fn lines(router: &Router, path: &'static str, menu: &Menu, shows_secrets: bool) -> Vec<String> {
    let rows = router.store.rows(path).iter().filter(|row| row.origin != Origin::Dynamic);
    let lines = rows.filter_map(|row| {
        let pairs = pairs(router, menu, row, shows_secrets);
        if menu.kind_in(router.release) == Kind::Object {
            return (!pairs.is_empty()).then(|| format!("set {pairs}"));
        }
        match (row.origin, path) {
            (Origin::Own, _) => Some(format!("add {pairs}")),
            (_, "interface/ethernet") => {
                Some(format!("set [ find default-name={} ] {pairs}", row.text("default-name")))
            }
            // Rows of the vendor are set where they can be; those without a name are left as they are.
            _ if menu.can("set")
                && !row.text("name").is_empty()
                && !["interface/list", "user/group"].contains(&path) =>
            {
                Some(format!("set [ find name={} ] {pairs}", quoted(row.text("name"))))
            }
            _ => None,
        }
    });
    lines.collect()
}

/// The fields that differ from their defaults.
fn pairs(router: &Router, menu: &Menu, row: &Row, shows_secrets: bool) -> String {
    let fields = menu.fields(router.release).filter(|field| !field.secret || shows_secrets);
    let pairs = fields.filter_map(|field| {
        let value = router.store.shown(row.values.get(&field.name)?);
        let is_usual = field.default.as_deref() == Some(value.as_str());
        let value = match check::boolean(&value).filter(|_| field.kind == Type::Bool) {
            Some(on) => if on { "yes" } else { "no" }.to_owned(),
            None => value,
        };
        (!is_usual).then(|| format!("{}={}", field.name, quoted(&value)))
    });
    pairs.collect::<Vec<_>>().join(" ")
}
