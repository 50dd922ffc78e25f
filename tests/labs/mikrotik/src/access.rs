//! Users and what the policies of their groups let them do.

use std::collections::BTreeSet;
use std::net::IpAddr;

use heddle_lab::Request;

use crate::address::Prefix;
use crate::call::Call;
use crate::device::Router;
use crate::refusal::Refusal;
use crate::store::Row;

/// Every policy, in the order in which groups show them.
pub(crate) const POLICIES: [&str; 17] = [
    "local",
    "telnet",
    "ssh",
    "ftp",
    "reboot",
    "read",
    "write",
    "policy",
    "test",
    "winbox",
    "password",
    "web",
    "sniff",
    "sensitive",
    "api",
    "romon",
    "rest-api",
];
/// Tools that need the policy for tests.
const TESTS: [&str; 17] = [
    "ping",
    "traceroute",
    "torch",
    "bandwidth-test",
    "speed-test",
    "flood-ping",
    "ping-speed",
    "ip-scan",
    "mac-scan",
    "profile",
    "fetch",
    "wol",
    "discover",
    "quick",
    "send",
    "cable-test",
    "snmp-walk",
];

/// The user of a request or the owner of a script.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(crate) name: String,
    policies: BTreeSet<String>,
}

impl Who {
    /// The router itself, for edits by hand.
    pub(crate) fn everything(name: &str) -> Self {
        Self { name: name.to_owned(), policies: POLICIES.map(str::to_owned).into() }
    }

    /// As another user, with no more than the given policies.
    pub(crate) fn limited(name: &str, policies: &str) -> Self {
        Self { name: name.to_owned(), policies: policies.split(',').map(str::to_owned).collect() }
    }

    pub(crate) fn may(&self, policy: &str) -> bool {
        self.policies.contains(policy)
    }
}

/// Why a request gets no user.
pub(crate) enum Denied {
    /// Wrong name, password or address, or a group without the right to use REST.
    Unauthorized,
    /// A group that may use REST and not the API below it.
    NotAllowed,
}

/// The user of a request.
pub(crate) fn of_request(router: &mut Router, request: &Request) -> Result<Who, Denied> {
    let (name, password) = request.basic_auth().ok_or(Denied::Unauthorized)?;
    let found = router.store.having("user", "name", &name).cloned();
    let user = found.filter(|user| {
        !user.is_disabled() && user.text("password") == password && is_near(user.text("address"), client())
    });
    let Some(user) = user else {
        router.note_with("system,error,critical", &format!("login failure for user {name} via rest-api"), "");
        return Err(Denied::Unauthorized);
    };
    let who = who_of(router, &user);
    if !who.may("rest-api") {
        return Err(Denied::Unauthorized);
    }
    if !who.may("api") {
        return Err(Denied::NotAllowed);
    }
    let unix = router.unix;
    if !router.logins.contains_key(&name) {
        let extra = format!("app=rest-api duser={name} outcome=success");
        router.note_with(
            "system,info,account",
            &format!("user {name} logged in from {} via rest-api", client()),
            &extra,
        );
        router.note("system,info,account", &format!("user {name} logged in via api"));
    }
    router.logins.entry(name).or_insert(unix);
    Ok(who)
}

/// The user of a row, with the policies of the group.
pub(crate) fn who_of(router: &Router, user: &Row) -> Who {
    let group = user.links("group").next().and_then(|(_, id)| router.store.find("user/group", id));
    let policies = group.map_or("", |group| group.text("policy"));
    let policies = policies.split(',').filter(|policy| !policy.starts_with('!')).map(str::to_owned).collect();
    Who { name: user.text("name").to_owned(), policies }
}

/// A user by name.
pub(crate) fn named(router: &Router, name: &str) -> Option<Who> {
    router.store.having("user", "name", name).map(|user| who_of(router, user))
}

/// Where requests come from.
pub(crate) fn client() -> IpAddr {
    IpAddr::from([192, 168, 88, 10])
}

/// Whether an address is in a comma list of prefixes; an empty list holds every address.
pub(crate) fn is_near(list: &str, address: IpAddr) -> bool {
    list.is_empty() || list.split(',').filter_map(Prefix::parse).any(|prefix| prefix.contains(address))
}

/// Checks the policies that a command needs.
pub(crate) fn check(call: &Call) -> Result<(), Refusal> {
    let needed: &[&str] = match (call.path, call.command) {
        ("system", "reboot" | "shutdown") => &["reboot"],
        ("system", "reset-configuration") | ("system/backup", "load") => &["reboot", "write", "policy"],
        ("system/package/update", "install" | "download")
        | ("system/package", "apply-changes" | "downgrade") => &["reboot", "write"],
        ("user" | "user/group" | "user/ssh-keys" | "user/aaa", command) if !is_reading(command) => {
            &["policy", "write"]
        }
        ("file", "read") => &["ftp", "test"],
        ("file", command) if !is_reading(command) => &["ftp", "write"],
        ("", "export") => &["read"],
        ("", "password") => &["password"],
        (_, command) if TESTS.contains(&command) => &["test"],
        (_, command) if is_reading(command) || command.starts_with("monitor") => &["read"],
        _ => &["write"],
    };
    if needed.iter().all(|policy| call.who.may(policy)) { Ok(()) } else { Err(Refusal::NotPermitted) }
}

fn is_reading(command: &str) -> bool {
    matches!(command, "print" | "get" | "listen" | "find" | "getall")
}

/// The policies of a group as it shows them: every one, those that are not given with a mark.
pub(crate) fn policies(given: &str, before: Option<&str>) -> Result<String, Refusal> {
    let sent: Vec<&str> = given.split(',').map(str::trim).filter(|policy| !policy.is_empty()).collect();
    if sent.iter().any(|policy| !POLICIES.contains(&policy.trim_start_matches('!'))) {
        return Err(Refusal::no_match("policy"));
    }
    let had = |policy: &str| before.is_some_and(|before| before.split(',').any(|own| own == policy));
    let mut given = Vec::new();
    let mut lacking = Vec::new();
    for policy in POLICIES {
        let is_taken = sent.iter().any(|sent| sent.strip_prefix('!') == Some(policy));
        if sent.contains(&policy) || (had(policy) && !is_taken) {
            given.push(policy.to_owned());
        } else {
            lacking.push(format!("!{policy}"));
        }
    }
    given.extend(lacking);
    Ok(given.join(","))
}
