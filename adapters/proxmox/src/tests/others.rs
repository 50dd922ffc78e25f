//! What others do meanwhile is not lost, and what a reviewer must know is said.

use heddle_sdk::{Adapter as _, Danger, FaultExt, Operation, Stage};
use serde_json::{Value, json};

use super::device::Device;
use super::{change, plan, run, standing};
use crate::Proxmox;

fn update(device: &Device, feature: &str, payload: &Value) -> heddle_sdk::ChangePlan {
    plan(device, &change(feature, Operation::Update, payload)).unwrap()
}

#[test]
fn a_guest_that_moved_to_another_node_is_found_there() {
    let device = Device::new();
    let made =
        plan(&device, &change("vm.migrate", Operation::Create, &json!({ "vmid": 103, "target": "pve1" })))
            .unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    let made = update(&device, "vm.config", &json!({ "vmid": 103, "name": "moved" }));
    assert!(made.native[0].path.starts_with("/api2/json/nodes/pve1/"), "{}", made.native[0].path);
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(device.state()["guests"]["103"]["config"]["name"], "moved");
}

#[test]
fn an_edit_at_the_console_is_not_written_over() {
    let device = Device::new();
    let made = update(&device, "vm.config", &json!({ "vmid": 103, "cores": 8 }));
    device.edit(&json!({ "edit": "guest_config", "vmid": 103, "values": { "cores": 6 } }));
    let writes = device.writes.get();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert_eq!(fault.info().code.as_deref(), Some("state-moved"));
    assert_eq!(
        (device.writes.get(), &device.state()["guests"]["103"]["config"]["cores"]),
        (writes, &json!(6))
    );
}

#[test]
fn a_write_of_one_key_leaves_the_others_alone() {
    let device = Device::new();
    let before = device.state()["guests"]["101"]["config"].clone();
    let made = update(&device, "vm.config", &json!({ "vmid": 101, "description": "two" }));
    run(&device, Stage::Apply, &made).unwrap();
    let mut now = device.state()["guests"]["101"]["config"].clone();
    now["description"] = before["description"].clone();
    assert_eq!(now, before);
}

#[test]
fn one_part_of_a_card_is_changed_and_its_address_stays() {
    let device = Device::new();
    let made = update(&device, "vm.config", &json!({ "vmid": 103, "net0": { "tag": 77 } }));
    assert_eq!(made.danger, Danger::Destructive);
    run(&device, Stage::Apply, &made).unwrap();
    let card = device.state()["guests"]["103"]["config"]["net0"].clone();
    assert_eq!(card, "e1000=BC:24:11:00:04:00,bridge=vmbr0,tag=77");
}

#[test]
fn a_value_that_waits_for_a_reboot_is_stored() {
    let device = Device::new();
    let made = update(&device, "vm.config", &json!({ "vmid": 101, "cores": 8 }));
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "stored, needs reboot");
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!(standing(&device, &made), "before");
    assert!(device.state()["guests"]["101"].get("pending").is_none());
}

#[test]
fn a_disk_that_goes_raises_the_danger() {
    let device = Device::new();
    let detached = update(&device, "vm.config", &json!({ "vmid": 103, "sata0": null }));
    assert_eq!(detached.danger, Danger::Destructive);
    run(&device, Stage::Apply, &detached).unwrap();
    let deleted = update(&device, "vm.config", &json!({ "vmid": 103, "unused0": null }));
    assert_eq!(deleted.danger, Danger::Catastrophic);
    assert!(
        deleted.warnings.iter().any(|warning| warning.contains("deleted with all")),
        "{:?}",
        deleted.warnings
    );
}

#[test]
fn a_rule_is_found_wherever_others_put_theirs() {
    let device = Device::new();
    let rule = json!({ "comment": "ours", "type": "in", "action": "ACCEPT", "enable": true, "macro": "SSH" });
    let made = plan(&device, &change("firewall.rule", Operation::Create, &rule)).unwrap();
    assert!(made.warnings.iter().any(|warning| warning.contains("position 0")), "{:?}", made.warnings);
    assert!(made.lockout_risk && made.danger == Danger::Destructive);
    run(&device, Stage::Apply, &made).unwrap();
    let change_it = update(&device, "firewall.rule", &json!({ "comment": "ours", "action": "DROP" }));
    let theirs = json!({ "edit": "rule_add", "scope": "cluster", "pos": 0,
        "values": { "type": "in", "action": "ACCEPT", "comment": "theirs", "enable": 1 } });
    device.edit(&theirs);
    run(&device, Stage::Apply, &change_it).unwrap();
    let rules = device.state()["firewalls"]["cluster"]["rules"].clone();
    assert_eq!((rules[0]["comment"].as_str(), rules[0]["action"].as_str()), (Some("theirs"), Some("ACCEPT")));
    assert_eq!((rules[1]["comment"].as_str(), rules[1]["action"].as_str()), (Some("ours"), Some("DROP")));
    let comparison = Proxmox::compare(&device.host(), &[], &change_it.token).unwrap();
    assert!(comparison.foreign.iter().any(|text| text.contains("theirs")), "{:?}", comparison.foreign);
    run(&device, Stage::Restore, &made).unwrap_err();
}

#[test]
fn two_rules_with_one_comment_are_not_guessed_at() {
    let device = Device::new();
    for pos in [0, 1] {
        device.edit(&json!({ "edit": "rule_add", "scope": "cluster", "pos": pos,
            "values": { "type": "in", "action": "ACCEPT", "comment": "twice", "enable": 1 } }));
    }
    let payload = json!({ "comment": "twice", "action": "DROP" });
    let fault = plan(&device, &change("firewall.rule", Operation::Update, &payload)).unwrap_err();
    assert!(fault.info().message.contains("2 objects"), "{}", fault.info().message);
}

#[test]
fn an_address_that_is_not_changed_stays_at_the_interface() {
    let device = Device::new();
    let made = update(&device, "node.network", &json!({ "node": "pve1", "iface": "vmbr0", "mtu": 1400 }));
    assert!(made.lockout_risk);
    assert!(made.also.iter().any(|told| told.contains("pending network edits")), "{:?}", made.also);
    run(&device, Stage::Apply, &made).unwrap();
    let live = device.state()["nodes"]["pve1"]["network"].clone();
    let bridge = live["live"].as_array().unwrap().iter().find(|row| row["iface"] == "vmbr0").unwrap().clone();
    assert_eq!((bridge["cidr"].as_str(), bridge["mtu"].as_str()), (Some("192.0.2.11/24"), Some("1400")));
    assert!(live.get("pending").is_none());
}

#[test]
fn an_sdn_edit_runs_after_its_apply() {
    let device = Device::new();
    let made = plan(
        &device,
        &change("sdn.vnet", Operation::Create, &json!({ "vnet": "guest", "zone": "lan", "tag": 60 })),
    )
    .unwrap();
    assert_eq!(made.native.iter().filter(|call| call.stage == Stage::Apply).count(), 2);
    run(&device, Stage::Apply, &made).unwrap();
    let sdn = device.state()["sdn"].clone();
    assert_eq!(sdn["running"]["vnets"]["guest"]["tag"], 60);
    run(&device, Stage::Restore, &made).unwrap();
    assert!(device.state()["sdn"]["running"]["vnets"].get("guest").is_none());
}

#[test]
fn a_machine_that_is_protected_is_not_deleted_and_says_why() {
    let device = Device::new();
    let made = plan(&device, &change("vm.config", Operation::Delete, &json!({ "vmid": 102 }))).unwrap();
    assert_eq!(made.danger, Danger::Catastrophic);
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(matches!(fault, heddle_sdk::Fault::Conflict(_)), "{fault:?}");
    assert!(device.state()["guests"].get("102").is_some());
}

#[test]
fn a_token_that_may_not_write_is_denied_and_changes_nothing() {
    let device = Device::new().for_auditor();
    let state = device.state();
    let made = update(&device, "vm.config", &json!({ "vmid": 103, "name": "x" }));
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(
        matches!(&fault, heddle_sdk::Fault::Denied(info) if matches!(info.effect, heddle_sdk::Effect::None))
    );
    assert_eq!(device.state(), state);
}

#[test]
fn a_restore_over_a_guest_that_exists_is_catastrophic() {
    let device = Device::new();
    let payload =
        |force| json!({ "node": "pve1", "vmid": 101, "archive": "nas:backup/x.vma.zst", "force": force });
    let danger =
        |force| plan(&device, &change("vm.restore", Operation::Create, &payload(force))).unwrap().danger;
    assert_eq!((danger(false), danger(true)), (Danger::Destructive, Danger::Catastrophic));
    let stop = |service| {
        let payload = json!({ "node": "pve1", "service": service });
        plan(&device, &change("node.service-stop", Operation::Create, &payload)).unwrap().danger
    };
    assert_eq!((stop("cron"), stop("corosync")), (Danger::Destructive, Danger::Catastrophic));
}

#[test]
fn a_plan_of_one_guest_takes_few_requests_however_many_there_are() {
    let device =
        Device::of(heddle_lab_proxmox::Setup { guests: 2000, ..heddle_lab_proxmox::Setup::default() });
    let made = update(&device, "vm.config", &json!({ "vmid": 1000, "name": "x" }));
    assert!(device.asked.borrow().len() <= 3, "{:?}", device.asked.borrow());
    run(&device, Stage::Apply, &made).unwrap();
    let rule = json!({ "vmid": 101, "comment": "ours", "type": "in", "action": "DROP", "enable": false });
    device.asked.borrow_mut().clear();
    let made = plan(&device, &change("firewall.vm-rule", Operation::Create, &rule)).unwrap();
    assert!(device.asked.borrow().len() <= 3, "{:?}", device.asked.borrow());
    assert!(made.warnings.iter().any(|warning| warning.contains("is off")), "{:?}", made.warnings);
}

#[test]
fn a_storage_that_is_full_fails_the_task_and_nothing_is_there() {
    let device = Device::new();
    device.lab().fault(heddle_lab::Fault::vendor("storage_full", json!({ "storage": "local-lvm" })));
    device.wait_ms(1);
    let payload = json!({ "vmid": 300, "node": "pve1", "scsi0": { "file": "local-lvm:32" } });
    let made = plan(&device, &change("vm.config", Operation::Create, &payload)).unwrap();
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert_eq!(fault.info().code.as_deref(), Some("vendor:task-failed"));
    assert_eq!(standing(&device, &made), "before");
}

#[test]
fn a_new_disk_is_adjusted_to_the_volume_that_it_became() {
    let device = Device::new();
    let payload = json!({ "vmid": 300, "node": "pve1", "scsi0": { "file": "local-lvm:32" }, "net0": { "model": "virtio", "bridge": "vmbr0" } });
    let made = plan(&device, &change("vm.config", Operation::Create, &payload)).unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    let found = standing(&device, &made);
    assert!(found.starts_with("adjusted") && found.contains("size"), "{found}");
    run(&device, Stage::Restore, &made).unwrap();
    assert!(device.state()["guests"].get("300").is_none());
}

#[test]
fn without_quorum_nothing_is_written() {
    let device = Device::new();
    let made = update(&device, "cluster.options", &json!({ "keyboard": "de" }));
    device.lab().fault(heddle_lab::Fault::vendor("quorum_lost", Value::Null));
    device.wait_ms(1);
    let fault = run(&device, Stage::Apply, &made).unwrap_err();
    assert!(
        matches!(&fault, heddle_sdk::Fault::NotReady(info) if matches!(info.effect, heddle_sdk::Effect::None))
    );
}

#[test]
fn new_objects_have_their_whole_name_in_the_review() {
    let device = Device::new();
    let named = |feature: &str, payload: &Value| {
        let made = plan(&device, &change(feature, Operation::Create, payload)).unwrap();
        (made.steps[0].summary.clone(), made.touches[0].clone())
    };
    let snapshot = named("snapshot.vm", &json!({ "vmid": 101, "name": "before" }));
    assert_eq!(
        snapshot,
        ("create snapshot of a VM '101:before'".to_owned(), "snapshot.vm/101:before".to_owned())
    );
    let grant = json!({ "path": "/vms", "roleid": "PVEAuditor", "ugid": "operator@pve" });
    assert_eq!(named("access.acl-user", &grant).1, "access.acl-user//vms:PVEAuditor:operator@pve");
    assert_eq!(named("pool.vm", &json!({ "poolid": "production", "vmid": 103 })).1, "pool.vm/production:103");
    assert_eq!(named("access.group", &json!({ "groupid": "x" })).0, "create group 'x'");
}

#[test]
fn what_a_release_does_not_have_is_unsupported() {
    let device =
        Device::of(heddle_lab_proxmox::Setup { release: (8, 4), ..heddle_lab_proxmox::Setup::default() });
    let rule = json!({ "rule": "x", "type": "node-affinity", "resources": "vm:102", "nodes": "pve1" });
    let fault = plan(&device, &change("ha.rule", Operation::Create, &rule)).unwrap_err();
    assert!(matches!(fault, heddle_sdk::Fault::Unsupported(_)), "{fault:?}");
    let made = update(&device, "vm.config", &json!({ "vmid": 103, "name": "older" }));
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "after");
}

#[test]
fn changes_of_several_kinds_are_planned_and_taken_back_together() {
    let device = Device::new();
    let before = device.state();
    let changes = [
        change("pool.pool", Operation::Create, &json!({ "poolid": "lab" })),
        change("vm.config", Operation::Update, &json!({ "vmid": 103, "name": "lab" })),
        change("firewall.vm-options", Operation::Update, &json!({ "vmid": 103, "enable": true })),
        change("node.dns", Operation::Update, &json!({ "node": "pve2", "dns1": "192.0.2.3" })),
    ];
    let made = Proxmox::plan(&device.host(), &changes).unwrap();
    assert_eq!(made.native.iter().filter(|call| call.stage == Stage::Apply).count(), 4);
    // The second call starts a task; the host goes on when that is done.
    run(&device, Stage::Apply, &made).unwrap();
    assert_eq!(standing(&device, &made), "after");
    run(&device, Stage::Restore, &made).unwrap();
    assert_eq!((standing(&device, &made), device.state()), ("before".to_owned(), before));
}

#[test]
fn a_deleted_rule_goes_back_to_its_place() {
    for place in [0, 1, 2] {
        let device = Device::new();
        let rule =
            json!({ "type": "in", "action": "DROP", "comment": "ours", "enable": 1, "source": "192.0.2.9" });
        device.edit(&json!({ "edit": "rule_add", "scope": "cluster", "pos": place, "values": rule }));
        let before = device.state();
        let made = plan(&device, &change("firewall.rule", Operation::Delete, &json!({ "comment": "ours" })))
            .unwrap();
        assert!(
            !made.warnings.iter().any(|warning| warning.contains("cannot be taken back")),
            "{:?}",
            made.warnings
        );
        assert_eq!(standing(&device, &made), "before");
        run(&device, Stage::Apply, &made).unwrap();
        assert_eq!(standing(&device, &made), "after");
        run(&device, Stage::Restore, &made).unwrap();
        assert_eq!(
            (standing(&device, &made), device.state()),
            ("before".to_owned(), before),
            "place {place}"
        );
    }
}

#[test]
fn the_way_back_of_a_rule_goes_on_where_it_stopped() {
    let device = Device::new();
    let rule = json!({ "type": "in", "action": "DROP", "comment": "ours", "enable": 1 });
    device.edit(&json!({ "edit": "rule_add", "scope": "cluster", "pos": 1, "values": rule }));
    let made =
        plan(&device, &change("firewall.rule", Operation::Delete, &json!({ "comment": "ours" }))).unwrap();
    run(&device, Stage::Apply, &made).unwrap();
    let ready = |left| Proxmox::ready(&device.host(), Stage::Restore, &[], &made.token, left);
    let from = |left| match ready(left).unwrap() {
        heddle_sdk::Readiness::Send(start) => Some(start.from),
        heddle_sdk::Readiness::Nothing(_) => None,
    };
    assert_eq!(from(0), Some(0));
    // The rule was to be made, and is not there: it is not made twice.
    assert!(matches!(ready(1), Err(heddle_sdk::Fault::StateMoved(_))));
    device.edit(&json!({ "edit": "rule_add", "scope": "cluster", "pos": 0, "values": rule }));
    assert_eq!(from(1), Some(1));
    device.edit(&json!({ "edit": "rule_delete", "scope": "cluster", "pos": 0 }));
    device.edit(&json!({ "edit": "rule_add", "scope": "cluster", "pos": 1, "values": rule }));
    assert_eq!((from(1), from(2)), (None, None));
}
