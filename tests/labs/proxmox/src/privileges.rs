//! Who a caller is and what it may do: roles, the access list, and the permission rules of the schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;

use crate::answer::{Call, Failure, Object, Outcome, field, split_list};
use crate::cluster::Cluster;
use crate::facts;

/// A verified login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// With its realm, as in `root@pam`.
    pub(crate) user: String,
    /// The id of the API token, where one was used instead of a ticket.
    pub(crate) token: Option<String>,
}

impl Caller {
    pub(crate) fn user(name: &str) -> Self {
        Self { user: name.to_owned(), token: None }
    }

    /// As tasks and the access list name it.
    pub(crate) fn id(&self) -> String {
        self.token.as_ref().map_or_else(|| self.user.clone(), |token| format!("{}!{token}", self.user))
    }
}

/// One line of the access list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) path: String,
    /// `user`, `group` or `token`.
    pub(crate) kind: String,
    pub(crate) holder: String,
    pub(crate) role: String,
    pub(crate) propagates: bool,
}

/// Privileges that no rule of the schema names, but roles do.
const MORE_PRIVILEGES: [&str; 6] =
    ["Permissions.Modify", "Realm.Allocate", "SDN.Use", "VM.Backup", "VM.Replicate", "VM.Config.Cloudinit"];

/// Every privilege that the cluster knows.
pub(crate) fn all() -> &'static BTreeSet<String> {
    static ALL: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let mut names: BTreeSet<String> = MORE_PRIVILEGES.iter().map(|name| (*name).to_owned()).collect();
        let mut open: Vec<&Value> = facts::rules().iter().collect();
        while let Some(value) = open.pop() {
            match value {
                Value::Array(items) => open.extend(items),
                Value::String(text)
                    if text.contains('.') && text.starts_with(|c: char| c.is_ascii_uppercase()) =>
                {
                    names.insert(text.clone());
                }
                _ => {}
            }
        }
        names
    });
    &ALL
}

/// The roles that are built in.
pub(crate) fn built_in_roles() -> BTreeMap<String, BTreeSet<String>> {
    let all = all();
    let pick = |keep: &dyn Fn(&str) -> bool| all.iter().filter(|name| keep(name)).cloned().collect();
    let users =
        ["VM.Audit", "VM.Backup", "VM.Config.CDROM", "VM.Config.Cloudinit", "VM.Console", "VM.PowerMgmt"];
    let above_admin = ["Permissions.Modify", "Sys.Modify", "Sys.PowerMgmt", "Sys.Incoming", "Realm.Allocate"];
    let roles: [(&str, BTreeSet<String>); 8] = [
        ("Administrator", all.clone()),
        ("NoAccess", BTreeSet::new()),
        ("PVEAdmin", pick(&|name| !above_admin.contains(&name))),
        ("PVEAuditor", pick(&|name| name.ends_with(".Audit"))),
        ("PVEDatastoreAdmin", pick(&|name| name.starts_with("Datastore."))),
        ("PVESDNAdmin", pick(&|name| name.starts_with("SDN."))),
        ("PVEVMAdmin", pick(&|name| name.starts_with("VM."))),
        ("PVEVMUser", pick(&|name| users.contains(&name))),
    ];
    roles.into_iter().map(|(name, privileges)| (name.to_owned(), privileges)).collect()
}

/// Writes that only the root user with a ticket may call.
const ROOT_ONLY: [&str; 6] = [
    "/cluster/acme/account",
    "/cluster/config",
    "/nodes/{node}/execute",
    "/nodes/{node}/disks/wipedisk",
    "/nodes/{node}/ceph/osd",
    "/nodes/{node}/storage/{storage}/content/{volume}:POST",
];

/// Writes whose rule stands in the server's code and not in the schema: path prefix, object, privilege.
const CODED_RULES: [(&str, &str, &str); 14] = [
    ("/nodes/{node}/vzdump", "/vms/{vmid}", "VM.Backup"),
    ("/nodes/{node}/qemu", "/vms/{vmid}", "VM.Allocate"),
    ("/nodes/{node}/lxc", "/vms/{vmid}", "VM.Allocate"),
    ("/nodes/{node}/migrateall", "/", "VM.Migrate"),
    ("/nodes/{node}/startall", "/", "VM.PowerMgmt"),
    ("/nodes/{node}/stopall", "/", "VM.PowerMgmt"),
    ("/nodes/{node}/suspendall", "/", "VM.PowerMgmt"),
    ("/cluster/bulk-action/guest/migrate", "/", "VM.Migrate"),
    ("/cluster/bulk-action", "/", "VM.PowerMgmt"),
    ("/nodes/{node}/replication", "/", "VM.Replicate"),
    ("/cluster/replication", "/", "VM.Replicate"),
    ("/cluster/sdn", "/sdn/zones", "SDN.Allocate"),
    ("/nodes/{node}/storage/{storage}/content", "/storage/{storage}", "Datastore.AllocateSpace"),
    ("/nodes/{node}/storage/{storage}/prunebackups", "/storage/{storage}", "Datastore.AllocateSpace"),
];

impl Cluster {
    /// Refuses a call that the caller may not make.
    pub(crate) fn authorize(&self, call: &Call) -> Outcome<()> {
        if call.route.refuses_tokens() && call.caller.token.is_some() {
            let text = format!("URI '{}' not available with API token, need proper ticket.", call.path);
            return Err(Failure::new(403, text));
        }
        if call.caller == Caller::user("root@pam") {
            return Ok(());
        }
        if let Some(rule) = call.route.rule() {
            return self.evaluate(rule, call);
        }
        let (path, method) = (call.route.path.as_str(), call.route.method.as_str());
        if method == "GET" || path.starts_with("/access/") || path.ends_with("/tasks/{upid}") {
            return Ok(());
        }
        let names_it = |entry: &str| match entry.split_once(':') {
            Some((entry, only)) => path == entry && method == only,
            None => path.starts_with(entry),
        };
        if ROOT_ONLY.iter().any(|entry| names_it(entry)) {
            return Err(Failure::new(403, "Permission check failed (user != root@pam)"));
        }
        match CODED_RULES.iter().find(|(prefix, _, _)| path.starts_with(prefix)) {
            Some((_, object, privilege)) => self.require(call, &expand(object, call), &[privilege], false),
            None => Ok(()),
        }
    }

    fn evaluate(&self, rule: &Value, call: &Call) -> Outcome<()> {
        let parts = rule.as_array().map(Vec::as_slice).unwrap_or_default();
        let words = |place: usize| -> Vec<&str> {
            let list = parts.get(place).and_then(Value::as_array);
            list.map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
        };
        let text = |place: usize| parts.get(place).and_then(Value::as_str).unwrap_or_default();
        let denied = || Failure::new(403, "Permission check failed");
        match text(0) {
            "perm" => {
                if text(3) == "require_param" && !call.params.contains_key(text(4)) {
                    return Err(denied());
                }
                self.require(call, &expand(text(1), call), &words(2), text(3) == "any")
            }
            "perm-modify" => self.require(call, call.text("path"), &["Permissions.Modify"], false),
            "and" => parts[1..].iter().try_for_each(|part| self.evaluate(part, call)),
            "or" => {
                let mut last = denied();
                for part in &parts[1..] {
                    match self.evaluate(part, call) {
                        Ok(()) => return Ok(()),
                        Err(failure) => last = failure,
                    }
                }
                Err(last)
            }
            "userid-param" if text(1) == "self" => {
                if call.text("userid") == call.caller.user {
                    Ok(())
                } else {
                    Err(denied())
                }
            }
            "userid-param" => {
                let realm = call.text("userid").rsplit('@').next().unwrap_or_default();
                self.require(call, &format!("/access/realm/{realm}"), &[text(1)], false)
            }
            "userid-group" => self.require(call, "/access/groups", &words(1), true),
            _ => Err(denied()),
        }
    }

    fn require(&self, call: &Call, path: &str, names: &[&str], is_any: bool) -> Outcome<()> {
        let held = self.privileges(&call.caller, path);
        let mut checks = names.iter().map(|name| held.contains(*name));
        if if is_any { checks.any(|held| held) } else { checks.all(|held| held) } {
            return Ok(());
        }
        let names = names.join(if is_any { "|" } else { ", " });
        Err(Failure::new(403, format!("Permission check failed ({path}, {names})")))
    }

    /// Whether lists show the caller an object.
    pub(crate) fn may(&self, caller: &Caller, path: &str, privilege: &str) -> bool {
        caller.user == "root@pam" && !self.is_separated(caller)
            || self.privileges(caller, path).contains(privilege)
    }

    /// Whether the caller is a token that has only what is granted to itself.
    fn is_separated(&self, caller: &Caller) -> bool {
        let Some(name) = &caller.token else { return false };
        let token = self.access.tokens.get(&(caller.user.clone(), name.clone()));
        token.is_none_or(|token| token.info.get("privsep") != Some(&Value::from(0)))
    }

    /// The privileges of a caller on a path. A token with privilege separation has at most those of its user.
    pub(crate) fn privileges(&self, caller: &Caller, path: &str) -> BTreeSet<String> {
        let of_user = if caller.user == "root@pam" {
            all().clone()
        } else {
            let groups =
                self.access.users.get(&caller.user).map(|user| field(user, "groups")).unwrap_or_default();
            let groups: Vec<&str> = split_list(groups).collect();
            self.granted(path, "user", &caller.user, &groups)
        };
        if !self.is_separated(caller) {
            return of_user;
        }
        let own = self.granted(path, "token", &caller.id(), &[]);
        own.intersection(&of_user).cloned().collect()
    }

    /// What the access list grants a holder on a path, including what comes from the pool of a guest.
    fn granted(&self, path: &str, kind: &str, holder: &str, groups: &[&str]) -> BTreeSet<String> {
        let mut roles = self.roles_at(path, kind, holder, groups);
        let vmid = path.strip_prefix("/vms/").and_then(|vmid| vmid.parse().ok());
        if let Some(pool) = vmid.and_then(|vmid| self.pool_of(vmid)) {
            roles.extend(self.roles_at(&format!("/pool/{pool}"), kind, holder, groups));
        }
        roles.iter().filter_map(|role| self.access.roles.get(role)).flatten().cloned().collect()
    }

    /// The roles on a path: a deeper entry replaces what a higher one passed down, a user's those of its groups.
    fn roles_at(&self, path: &str, kind: &str, holder: &str, groups: &[&str]) -> Vec<String> {
        let mut prefixes = vec!["/".to_owned()];
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            let last = prefixes.last().map(|last| last.trim_end_matches('/').to_owned()).unwrap_or_default();
            prefixes.push(format!("{last}/{segment}"));
        }
        let mut roles = Vec::new();
        for prefix in &prefixes {
            let here = |grant: &&Grant| grant.path == *prefix && (grant.propagates || *prefix == path);
            let of = |kind: &str, names: &[&str]| -> Vec<String> {
                let grants = self.access.acl.iter().filter(here);
                let grants =
                    grants.filter(|grant| grant.kind == kind && names.contains(&grant.holder.as_str()));
                grants.map(|grant| grant.role.clone()).collect()
            };
            let mut own = of(kind, &[holder]);
            if own.is_empty() {
                own = of("group", groups);
            }
            if !own.is_empty() {
                roles = own;
            }
        }
        roles
    }

    /// The answer of `/access/permissions`: path, then privilege.
    pub(crate) fn permissions(&self, caller: &Caller, only: Option<&str>) -> Value {
        let defaults = ["/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms"];
        let mut paths: BTreeSet<String> = defaults.iter().map(|path| (*path).to_owned()).collect();
        paths.extend(self.access.acl.iter().map(|grant| grant.path.clone()));
        if let Some(only) = only {
            paths = BTreeSet::from([only.to_owned()]);
        }
        let mut out = Object::new();
        for path in paths {
            let names = self.privileges(caller, &path);
            if !names.is_empty() {
                out.insert(path, names.into_iter().map(|name| (name, Value::from(1))).collect());
            }
        }
        Value::Object(out)
    }
}

/// Replaces the variables of an object's path by the call's parameters.
fn expand(template: &str, call: &Call) -> String {
    let segments = template.split('/').map(|segment| {
        match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => call.params.get(name).map(crate::answer::text_of).unwrap_or_default(),
            None => segment.to_owned(),
        }
    });
    segments.collect::<Vec<_>>().join("/")
}
