//! The cluster as it is at start: two nodes, a small household of guests, and as many more as were asked for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::access::Token;
use crate::answer::{Object, object};
use crate::cluster::{Cluster, Node, hash};
use crate::firewall::AddressSet;
use crate::guests::{GIB, Guest, GuestKind, Run, is_disk_key, parse_size};
use crate::network::{Network, plain_card};
use crate::privileges::Grant;
use crate::property;
use crate::setup::{AUDITOR_TOKEN, ROOT_TOKEN};
use crate::storage::Volume;

/// The vmid of the first of the guests that are made by number.
const FIRST_NUMBERED: u64 = 1000;

/// Fills an empty cluster.
pub(crate) fn fill(cluster: &mut Cluster, password: &str) {
    let booted_ms = cluster.now_ms.saturating_sub(19 * 86_400_000);
    cluster.nodes = vec![node("pve1", 1, booted_ms), node("pve2", 2, booted_ms)];
    accounts(cluster, password);
    storages(cluster);
    household(cluster);
    numbered(cluster);
    networks(cluster);
    firewalls(cluster);
    jobs(cluster);
    if cluster.settings.has_ceph {
        cluster.seed_ceph();
    }
    cluster.log("root@pam", "info", "starting worker");
}

fn node(name: &str, number: u64, booted_ms: u64) -> Node {
    let address = format!("192.0.2.{}", 10 + number);
    let bridge = json!({
        "iface": "vmbr0", "type": "bridge", "method": "static", "method6": "manual", "families": ["inet"],
        "priority": 5, "active": 1, "autostart": 1, "address": address, "netmask": "24",
        "cidr": format!("{address}/24"), "gateway": "192.0.2.1", "bridge_ports": "eno1", "bridge_stp": "off",
        "bridge_fd": "0", "bridge_vlan_aware": 1, "bridge_vids": "2-4094",
    });
    let vlan = json!({
        "iface": "vmbr0.20", "type": "vlan", "method": "static", "method6": "manual", "families": ["inet"],
        "priority": 6, "active": 1, "autostart": 1, "address": format!("10.20.0.{number}"), "netmask": "24",
        "cidr": format!("10.20.0.{number}/24"), "vlan-raw-device": "vmbr0", "vlan-id": "20", "mtu": "1500",
    });
    let live = vec![plain_card("eno1"), plain_card("eno2"), object(bridge), object(vlan)];
    let services = [
        "chrony",
        "corosync",
        "cron",
        "postfix",
        "pve-cluster",
        "pve-firewall",
        "pve-ha-crm",
        "pve-ha-lrm",
        "pvedaemon",
        "pveproxy",
        "pvestatd",
        "sshd",
    ];
    Node {
        name: name.to_owned(),
        number,
        address,
        is_online: true,
        booted_ms,
        network: Network { live, pending: None },
        services: services.iter().map(|service| ((*service).to_owned(), true)).collect::<BTreeMap<_, _>>(),
    }
}

fn accounts(cluster: &mut Cluster, password: &str) {
    let access = &mut cluster.access;
    for (user, password, comment) in [
        ("root@pam", password, "built-in superuser"),
        ("auditor@pve", "auditor", "reads everything"),
        ("operator@pve", "operator", "looks after the web server"),
    ] {
        let body =
            json!({ "enable": 1, "expire": 0, "comment": comment, "email": format!("{user}.example.org") });
        access.users.insert(user.to_owned(), object(body));
        access.passwords.insert(user.to_owned(), password.to_owned());
    }
    for (header, separated) in [(ROOT_TOKEN, 0), (AUDITOR_TOKEN, 1)] {
        let text = header.trim_start_matches("PVEAPIToken=");
        let (id, secret) = text.split_once('=').unwrap_or_default();
        let (user, name) = id.split_once('!').unwrap_or_default();
        let info = object(json!({ "privsep": separated, "expire": 0, "comment": "manager" }));
        access.tokens.insert((user.to_owned(), name.to_owned()), Token { info, secret: secret.to_owned() });
    }
    for (path, kind, holder, role) in [
        ("/", "user", "auditor@pve", "PVEAuditor"),
        ("/", "token", "auditor@pve!heddle", "PVEAuditor"),
        ("/vms/101", "user", "operator@pve", "PVEVMUser"),
    ] {
        access.acl.push(Grant {
            path: path.to_owned(),
            kind: kind.to_owned(),
            holder: holder.to_owned(),
            role: role.to_owned(),
            propagates: true,
        });
    }
    for (realm, comment) in
        [("pam", "Linux PAM standard authentication"), ("pve", "Proxmox VE authentication server")]
    {
        let body = object(json!({ "realm": realm, "type": realm, "comment": comment }));
        cluster.store.insert("/access/domains", realm, body);
    }
}

fn storages(cluster: &mut Cluster) {
    for body in [
        json!({ "storage": "local", "type": "dir", "path": "/var/lib/vz", "content": "iso,backup,vztmpl" }),
        json!({ "storage": "local-lvm", "type": "lvmthin", "vgname": "pve", "thinpool": "data",
            "content": "images,rootdir" }),
        json!({
            "storage": "nas", "type": "nfs", "server": "192.0.2.5", "export": "/srv/pve",
            "path": "/mnt/pve/nas", "content": "backup,images,iso", "shared": 1, "prune-backups": "keep-last=3",
        }),
    ] {
        let id = body["storage"].as_str().unwrap_or_default().to_owned();
        cluster.store.insert("/storage", &id, object(body));
    }
    for (volid, content, bytes, node) in [
        ("local:iso/debian-13.1.0-amd64-netinst.iso", "iso", 790_626_304_u64, Some("pve1")),
        ("local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst", "vztmpl", 130_023_424, Some("pve1")),
        ("nas:iso/virtio-win-0.1.285.iso", "iso", 790_000_000, None),
    ] {
        cluster.volumes.push(Volume {
            volid: volid.to_owned(),
            node: node.map(str::to_owned),
            content: content.to_owned(),
            bytes,
            created_secs: cluster.now_ms / 1000 - 40 * 86_400,
            vmid: None,
            notes: None,
            is_protected: false,
            sha256: None,
            archived: None,
        });
    }
}

/// The guests of `household.json`: by vmid type, node, days that it has run (0 is stopped), and configuration.
fn household(cluster: &mut Cluster) {
    let guests: Object =
        serde_json::from_str(include_str!("../household.json")).expect("the file is valid JSON");
    for (vmid, guest) in guests {
        let kind = if guest["type"] == "lxc" { GuestKind::Lxc } else { GuestKind::Qemu };
        let (node, days) = (guest["node"].as_str().unwrap_or_default(), guest["days"].as_u64().unwrap_or(0));
        place(cluster, vmid.parse().unwrap_or_default(), kind, node, days, object(guest["config"].clone()));
    }
    cluster.archive(101, "nas", None, false);
    let pool = object(json!({ "comment": "Production systems", "vms": "101,102", "storage": "" }));
    cluster.store.insert("/pools", "production", pool);
    let resource = object(
        json!({ "sid": "vm:102", "type": "vm", "state": "started", "max_restart": 1, "max_relocate": 1 }),
    );
    cluster.store.insert("/cluster/ha/resources", "vm:102", resource);
}

/// Guests by number: every fourth a container, two of three running, on both nodes.
fn numbered(cluster: &mut Cluster) {
    for number in 0..cluster.settings.guests as u64 {
        let vmid = FIRST_NUMBERED + number;
        let node = if number % 2 == 0 { "pve1" } else { "pve2" };
        let mac = hash(&format!("mac {vmid}"), 6).to_uppercase();
        let mac = format!("BC:24:11:{}:{}:{}", &mac[..2], &mac[2..4], &mac[4..]);
        let tag = 100 + number % 50;
        let (kind, config) = if number % 4 == 3 {
            (
                GuestKind::Lxc,
                json!({
                    "hostname": format!("ct-{vmid}"), "memory": 512, "swap": 512, "cores": 1,
                    "ostype": "debian",
                    "net0": format!("name=eth0,bridge=vmbr0,hwaddr={mac},ip=dhcp,tag={tag},type=veth"),
                }),
            )
        } else {
            (
                GuestKind::Qemu,
                json!({
                    "name": format!("vm-{vmid}"), "memory": "1024", "cores": 1, "sockets": 1,
                    "ostype": "l26", "agent": "1",
                    "net0": format!("virtio={mac},bridge=vmbr0,tag={tag}"),
                }),
            )
        };
        place(cluster, vmid, kind, node, if number % 3 == 2 { 0 } else { 3 }, object(config));
    }
}

/// Puts a guest on a node with its disks; `days` is how long it has run, 0 is stopped.
fn place(cluster: &mut Cluster, vmid: u64, kind: GuestKind, node: &str, days: u64, config: Object) {
    let shared = "nas:";
    for (_, value) in config.iter().filter(|(key, _)| is_disk_key(key) && *key != "ide2") {
        let text = value.as_str().unwrap_or_default();
        let volid = property::first(text);
        cluster.volumes.push(Volume {
            volid: volid.to_owned(),
            node: (!volid.starts_with(shared)).then(|| node.to_owned()),
            content: if kind == GuestKind::Lxc { "rootdir" } else { "images" }.to_owned(),
            bytes: property::find(text, "size").and_then(parse_size).unwrap_or(GIB),
            created_secs: cluster.now_ms / 1000 - 30 * 86_400,
            vmid: Some(vmid),
            notes: None,
            is_protected: false,
            sha256: None,
            archived: None,
        });
    }
    let mut guest = Guest::new(vmid, kind, node, config);
    if days > 0 {
        let since_ms = cluster.now_ms.saturating_sub(days * 86_400_000);
        guest.run = Some(Run { since_ms, pid: 2000 + vmid, is_paused: false });
    }
    cluster.guests.insert(vmid, guest);
}

fn networks(cluster: &mut Cluster) {
    let sdn = &mut cluster.sdn;
    sdn.insert(
        "zones",
        "lan",
        object(json!({ "zone": "lan", "type": "vlan", "bridge": "vmbr0", "ipam": "pve" })),
    );
    sdn.insert(
        "vnets",
        "servers",
        object(json!({ "vnet": "servers", "zone": "lan", "tag": 40, "type": "vnet", "alias": "Servers" })),
    );
    sdn.insert(
        "subnets",
        "lan-10.40.0.0-24",
        object(json!({
            "subnet": "lan-10.40.0.0-24", "cidr": "10.40.0.0/24", "network": "10.40.0.0", "mask": "24",
            "type": "subnet",
            "vnet": "servers", "zone": "lan", "gateway": "10.40.0.1",
        })),
    );
    // As the start of a guest reserves it.
    sdn.addresses.push(object(json!({
        "zone": "lan", "vnet": "servers", "subnet": "lan-10.40.0.0-24", "ip": "10.40.0.8",
        "mac": "BC:24:11:00:03:00", "hostname": "db", "vmid": 102,
    })));
    sdn.running = sdn.edited.clone();
    cluster.store.insert("/cluster/sdn/ipams", "pve", object(json!({ "ipam": "pve", "type": "pve" })));
    for node in ["pve1", "pve2"] {
        let dns = object(json!({ "search": "example.org", "dns1": "192.0.2.1" }));
        *cluster.store.single_mut(&format!("/nodes/{node}/dns")) = dns;
        let hosts =
            "127.0.0.1 localhost\n192.0.2.11 pve1.example.org pve1\n192.0.2.12 pve2.example.org pve2\n";
        let zone = object(json!({ "timezone": "Europe/Berlin" }));
        *cluster.store.single_mut(&format!("/nodes/{node}/time")) = zone;
        *cluster.store.single_mut(&format!("/nodes/{node}/hosts")) = object(json!({ "data": hosts }));
    }
}

fn firewalls(cluster: &mut Cluster) {
    let rule = |value: Value| object(value);
    let file = cluster.firewalls.entry("cluster".to_owned()).or_default();
    file.options = object(json!({ "enable": 0, "policy_in": "DROP" }));
    file.aliases.insert(
        "office".to_owned(),
        object(json!({
            "name": "office", "cidr": "198.51.100.0/24", "ipversion": 4, "comment": "Headquarters",
        })),
    );
    file.sets.insert("management".to_owned(), AddressSet::default());
    file.rules = vec![
        rule(json!({ "type": "in", "action": "ACCEPT", "macro": "SSH", "source": "office", "enable": 1,
                "comment": "ssh from the office" })),
        rule(json!({ "type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "8006", "enable": 1,
                "source": "+management" })),
    ];
    let group = cluster.firewalls.entry("groups/webserver".to_owned()).or_default();
    group.rules = vec![rule(json!({ "type": "in", "action": "ACCEPT", "macro": "HTTPS", "enable": 1 }))];
    let guest = cluster.firewalls.entry("guests/101".to_owned()).or_default();
    guest.options = object(json!({ "enable": 1 }));
    guest.rules = vec![rule(json!({ "type": "group", "action": "webserver", "enable": 1 }))];
}

fn jobs(cluster: &mut Cluster) {
    let job = json!({
        "id": "backup-nightly", "type": "vzdump", "schedule": "02:30", "storage": "nas", "pool": "production",
        "mode": "snapshot", "enabled": 1, "compress": "zstd", "prune-backups": { "keep-last": "3" },
    });
    cluster.store.insert("/cluster/backup", "backup-nightly", object(job));
    let keyboard = cluster.store.single_mut("/cluster/options");
    keyboard.insert("keyboard".to_owned(), Value::from("en-us"));
}
