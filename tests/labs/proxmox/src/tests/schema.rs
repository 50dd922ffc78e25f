//! Every route answers, and parameters are verified as the schema says.

use super::*;
use crate::facts;

/// What stands for the variables of paths, and for parameters that must be there.
const VALUES: [(&str, &str); 30] = [
    ("node", "pve1"),
    ("vmid", "100"),
    ("storage", "local"),
    ("vnet", "servers"),
    ("zone", "lan"),
    ("subnet", "lan-10.40.0.0-24"),
    ("userid", "root@pam"),
    ("tokenid", "heddle"),
    ("poolid", "production"),
    ("name", "office"),
    ("group", "webserver"),
    ("pos", "0"),
    ("roleid", "PVEAuditor"),
    ("realm", "pam"),
    ("sid", "vm:102"),
    ("iface", "vmbr0"),
    ("service", "pveproxy"),
    ("ipam", "pve"),
    ("id", "backup-nightly"),
    ("volume", "local:iso/debian-13.1.0-amd64-netinst.iso"),
    ("cidr", "192.0.2.0/24"),
    ("target", "pve2"),
    ("newid", "300"),
    ("snapname", "before"),
    ("disk", "scsi0"),
    ("size", "+1G"),
    ("ip", "192.0.2.9"),
    ("controller", "one"),
    ("dns", "one"),
    ("upid", "UPID:pve1:00000001:00000001:00000001:qmstart:1:root@pam:"),
];

fn value_of(field: &facts::Field) -> String {
    let known = VALUES.iter().find(|(name, _)| *name == field.name).map(|(_, value)| (*value).to_owned());
    let lowest = field.minimum.map(|minimum| minimum.to_string());
    field.words.first().cloned().or(known).or(lowest).unwrap_or_else(|| "1".to_owned())
}

/// A call of a route with what it requires: path, and the parameters that do not stand in it.
fn example(route: &facts::Route) -> (String, Vec<(String, String)>) {
    let (mut path, mut rest) = (route.path.clone(), Vec::new());
    for field in route.fields() {
        let value = if route.path.contains("lxc/{vmid}") && field.name == "vmid" {
            "200".to_owned()
        } else {
            value_of(field)
        };
        let variable = format!("{{{}}}", field.name);
        if path.contains(&variable) {
            path = path.replace(&variable, &value);
        } else if field.is_required() {
            rest.push((field.name.clone(), value));
        }
    }
    (path, rest)
}

#[tokio::test]
async fn every_read_of_the_schema_answers_in_its_type() {
    let peer = Peer::with(Setup { release: (9, 2), ..Setup::default() }).await;
    let mut answered = 0;
    for route in facts::routes().iter().filter(|route| route.method == "GET") {
        let (path, rest) = example(route);
        let reply =
            peer.send(peer.request("GET", &path).header("authorization", peer.token).query(&rest)).await;
        assert_ne!(reply.status, 501, "{path}: {reply:?}");
        if reply.status != 200 {
            continue;
        }
        answered += 1;
        let data = &reply.body["data"];
        let fits = match route.answers {
            facts::Kind::Array => data.is_array(),
            facts::Kind::Object => data.is_object(),
            _ => true,
        };
        assert!(fits, "{path}: {data}");
    }
    assert!(answered > 250, "{answered}");
}

#[tokio::test]
async fn every_write_of_the_schema_is_answered() {
    let (mut done, mut refused) = (0, Vec::new());
    for route in facts::routes().iter().filter(|route| route.method != "GET") {
        // Each on its own cluster, since some of them take users, nodes and guests away.
        let peer = Peer::with(Setup { release: (9, 2), ..Setup::default() }).await;
        let (path, rest) = example(route);
        let request = peer.request(&route.method, &path).header("authorization", peer.token);
        let reply = peer
            .send(if route.method == "DELETE" { request.query(&rest) } else { request.form(&rest) })
            .await;
        assert_ne!(reply.status, 501, "{path}: {reply:?}");
        if reply.status == 200 {
            done += 1;
        } else {
            refused.push(format!(
                "{} {path} {} {} {}",
                route.method, reply.status, reply.reason, reply.body["errors"]
            ));
        }
    }
    assert!(done > 160, "{done}, without {refused:#?}");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_501() {
    let peer = Peer::new().await;
    let (status, reason) = peer.refused("GET", "/cluster/nothing", &[]).await;
    assert_eq!((status, reason.as_str()), (501, "Method 'GET /cluster/nothing' not implemented"));
    assert_eq!(peer.refused("PUT", "/version", &[]).await.0, 501);
}

#[tokio::test]
async fn parameters_are_verified_by_type_range_words_and_pattern() {
    let peer = Peer::new().await;
    let qemu = "/nodes/pve1/qemu";
    for (form, name, text) in [
        (vec![], "vmid", "property is missing and it is not optional"),
        (vec![("vmid", "99")], "vmid", "value must have a minimum value of 100"),
        (vec![("vmid", "x")], "vmid", "type check ('integer') failed - got 'x'"),
        (vec![("vmid", "105"), ("onboot", "maybe")], "onboot", "type check ('boolean') failed - got 'maybe'"),
        (
            vec![("vmid", "105"), ("nothing", "1")],
            "nothing",
            "property is not defined in schema and the schema does not allow additional properties",
        ),
        (
            vec![("vmid", "105"), ("bios", "award")],
            "bios",
            "value 'award' does not have a value in the enumeration 'seabios, ovmf'",
        ),
        (vec![("vmid", "105"), ("vmgenid", "abc")], "vmgenid", "value does not match the regex pattern"),
        (
            vec![("vmid", "105"), ("net40", "virtio")],
            "net40",
            "property is not defined in schema and the schema does not allow additional properties",
        ),
        (
            vec![("vmid", "105"), ("force", "1")],
            "archive",
            "missing property - 'force' requires this property",
        ),
    ] {
        assert_eq!(peer.error("POST", qemu, &form, name).await, text, "{form:?}");
    }
}

#[tokio::test]
async fn property_strings_are_verified_part_by_part() {
    let peer = Peer::new().await;
    let config = "/nodes/pve1/qemu/100/config";
    let text = peer.error("PUT", config, &[("net2", "bridge=vmbr0")], "net2").await;
    assert_eq!(text, "invalid format - format error\nmodel: property is missing and it is not optional\n");
    let text = peer.error("PUT", config, &[("net2", "virtio,tag=x")], "net2").await;
    assert_eq!(text, "invalid format - format error\ntag: type check ('integer') failed - got 'x'\n");
}

#[tokio::test]
async fn plain_objects_follow_the_grammar_of_their_paths() {
    let peer = Peer::new().await;
    let path = "/cluster/notifications/matchers";
    peer.ok("POST", path, &[("name", "nightly"), ("comment", "one")]).await;
    let (status, reason) = peer.refused("POST", path, &[("name", "nightly")]).await;
    assert_eq!((status, reason.as_str()), (500, "matcher 'nightly' already exists"));
    let digest = peer.get(&format!("{path}/nightly")).await["digest"].as_str().unwrap().to_owned();
    let item = format!("{path}/nightly");
    peer.ok("PUT", &item, &[("mode", "any"), ("delete", "comment"), ("digest", &digest)]).await;
    let (_, reason) = peer.refused("PUT", &item, &[("mode", "all"), ("digest", &digest)]).await;
    assert!(reason.starts_with("detected modified configuration"), "{reason}");
    let read = peer.get(&item).await;
    assert_eq!((&read["mode"], &read["comment"]), (&json!("any"), &json!(null)));
    peer.ok("DELETE", &item, &[]).await;
    assert_eq!(peer.refused("GET", &item, &[]).await.0, 404);
}

#[tokio::test]
async fn bodies_may_be_json_and_nothing_else_but_forms() {
    let peer = Peer::new().await;
    let request = |kind: &str, body: &str| {
        let request = peer.request("PUT", "/nodes/pve1/qemu/100/config").header("authorization", peer.token);
        request.header("content-type", kind).body(body.to_owned())
    };
    assert_eq!(peer.send(request("application/json", r#"{"onboot":false,"cores":3}"#)).await.status, 200);
    let config = peer.get("/nodes/pve1/qemu/100/config").await;
    assert_eq!((&config["onboot"], &config["cores"]), (&json!(0), &json!(3)));
    assert_eq!(peer.send(request("text/xml", "<a/>")).await.status, 506);
    let (status, reason) = peer.refused("DELETE", "/pools", &[("poolid", "production")]).await;
    assert_eq!((status, reason.as_str()), (501, "Unexpected content for method 'DELETE'"));
}
