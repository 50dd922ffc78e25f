//! What cannot be made good again, and what may cut the path, says so.

use super::every::feature;

/// Features whose calls nothing makes good again.
const CATASTROPHIC: [(&str, &str); 44] = [
    ("access.password", "create"),
    ("access.realm", "delete"),
    ("access.user", "delete"),
    ("ceph.mds-delete", "create"),
    ("ceph.mgr-delete", "create"),
    ("ceph.mon-delete", "create"),
    ("ceph.osd-create", "create"),
    ("ceph.osd-delete", "create"),
    ("ceph.pool", "delete"),
    ("ceph.stop", "create"),
    ("cluster.create", "create"),
    ("cluster.join", "create"),
    ("cluster.member-delete", "create"),
    ("container.config", "delete"),
    ("container.destroy", "create"),
    ("ha.disarm", "create"),
    ("node.migrateall", "create"),
    ("node.reboot", "create"),
    ("node.shutdown", "create"),
    ("node.stopall", "create"),
    ("node.suspendall", "create"),
    ("snapshot.container-rollback", "create"),
    ("snapshot.vm-rollback", "create"),
    ("storage.definition", "delete"),
    ("storage.directory-create", "create"),
    ("storage.directory-delete", "create"),
    ("storage.disk-init", "create"),
    ("storage.disk-wipe", "create"),
    ("storage.lvm-create", "create"),
    ("storage.lvm-delete", "create"),
    ("storage.lvmthin-create", "create"),
    ("storage.lvmthin-delete", "create"),
    ("storage.prune", "create"),
    ("storage.volume", "delete"),
    ("storage.zfs-create", "create"),
    ("storage.zfs-delete", "create"),
    ("vm.agent-exec", "create"),
    ("vm.bulk-migrate", "create"),
    ("vm.bulk-shutdown", "create"),
    ("vm.bulk-suspend", "create"),
    ("vm.config", "delete"),
    ("vm.destroy", "create"),
    ("vm.remote-migrate", "create"),
    ("replication.remove", "create"),
];

#[test]
fn what_nothing_makes_good_again_is_catastrophic() {
    for (id, word) in CATASTROPHIC {
        let operations = feature(id)["operations"].as_array().unwrap();
        let operation = operations.iter().find(|one| one["operation"] == word).unwrap();
        assert_eq!(operation["danger"], "catastrophic", "{id} {word}");
    }
}

#[test]
fn what_may_cut_the_path_says_so() {
    let likely =
        ["node.network", "node.network-apply", "firewall.rule", "firewall.options", "firewall.node-rule"];
    for id in likely.into_iter().chain(["sdn.apply", "node.reboot", "cluster.join", "node.certificate-set"]) {
        assert_eq!(feature(id)["binding"]["lockout"], true, "{id}");
    }
}
