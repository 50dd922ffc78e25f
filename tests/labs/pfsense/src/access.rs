//! Who calls: methods of authentication, privileges, and the lists of addresses and interfaces.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heddle_lab::{Context, Fault, Request};
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::device::Pfsense;
use crate::facts::{Facts, Route};
use crate::interfaces;
use crate::net;
use crate::reply::Refusal;
use crate::store::{Config, Object, is_true, text};

/// The address from which every client comes, and the one that it calls: the skeleton tells neither.
pub(crate) const CLIENT_ADDRESS: &str = "192.168.1.50";
const SERVER_ADDRESS: &str = "192.168.1.1";
/// Failed logins count for this long.
const FAILURES_COUNT: Duration = Duration::from_mins(30);
/// How long the packets of a client are dropped.
const BLOCKED: Duration = Duration::from_mins(2);

/// A stored password: never the text itself.
pub(crate) fn hash(password: &str) -> String {
    format!("$2y$10${}", hex::encode(Sha256::digest(password)))
}

/// The digest of an API key.
pub(crate) fn key_digest(algorithm: &str, key: &str) -> String {
    match algorithm {
        "sha384" => hex::encode(Sha384::digest(key)),
        "sha512" => hex::encode(Sha512::digest(key)),
        _ => hex::encode(Sha256::digest(key)),
    }
}

/// The name of the user, who may call the route.
pub(crate) fn authenticate(
    firewall: &mut Pfsense,
    path: &str,
    route: &Route,
    request: &Request,
    context: &mut Context,
) -> Result<String, Refusal> {
    let Some(user) = user_of(firewall, route, request) else {
        failed(firewall, context);
        return Err(Refusal::new(401, "AUTH_AUTHENTICATION_FAILED", "Authentication failed."));
    };
    let privilege = privilege(path, &request.method);
    let own = privileges(&firewall.stored, &user);
    let may = own.iter().any(|name| name == "page-all" || (!route.page_all && *name == privilege));
    if may {
        return Ok(user);
    }
    let text = "Authorization failed. You do not have sufficient privileges to access this resource.";
    Err(Refusal::forbidden("AUTH_AUTHORIZATION_FAILED", text))
}

/// Drops the packets of a client that failed too often.
fn failed(firewall: &mut Pfsense, context: &mut Context) {
    let now = firewall.now;
    let settings = firewall.stored.single("RESTAPISettings");
    let Some(max) = firewall.settings.login_failures_max.filter(|_| is_true(&settings, "login_protection"))
    else {
        return;
    };
    firewall.failures.push_back(now);
    firewall.failures.retain(|at| *at + FAILURES_COUNT > now);
    if firewall.failures.len() >= max {
        firewall.failures.clear();
        let blocked_ms = u64::try_from(BLOCKED.as_millis()).unwrap_or(u64::MAX);
        context.faults.add(Fault::hang().for_ms(blocked_ms), now);
    }
}

/// The first method that the request asks for decides, whether it lets the client in or not.
fn user_of(firewall: &Pfsense, route: &Route, request: &Request) -> Option<String> {
    let enabled = firewall.stored.setting("RESTAPISettings", "auth_methods").and_then(Value::as_array);
    let enabled: Vec<&str> = enabled.into_iter().flatten().filter_map(Value::as_str).collect();
    let methods = if route.auth_methods.is_empty() {
        enabled
    } else {
        route.auth_methods.iter().map(String::as_str).collect()
    };
    for method in methods {
        let found = match method {
            "BasicAuth" => request
                .basic_auth()
                .filter(|(name, password)| !name.is_empty() && !password.is_empty())
                .map(|(name, password)| by_password(&firewall.stored, &name, &password)),
            "KeyAuth" => {
                request.header("x-api-key").filter(|key| !key.is_empty()).map(|key| by_key(firewall, key))
            }
            "JWTAuth" => bearer(request).map(|token| by_token(firewall, token)),
            _ => None,
        };
        if let Some(user) = found {
            return user.filter(|user| is_enabled(&firewall.stored, user));
        }
    }
    None
}

fn bearer(request: &Request) -> Option<&str> {
    let (scheme, token) = request.header("authorization")?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn by_password(config: &Config, name: &str, password: &str) -> Option<String> {
    let user = config.having("User", "name", name)?;
    (text(user, "password") == hash(password)).then(|| name.to_owned())
}

fn by_key(firewall: &Pfsense, key: &str) -> Option<String> {
    let own = |entry: &&Object| text(entry, "hash") == key_digest(text(entry, "hash_algo"), key);
    firewall.stored.list("RESTAPIKey").iter().find(own).map(|entry| text(entry, "username").to_owned())
}

fn is_enabled(config: &Config, name: &str) -> bool {
    config.having("User", "name", name).is_some_and(|user| !is_true(user, "disabled"))
}

fn signature(firewall: &Pfsense, signed: &str) -> String {
    let key = firewall.live.server_key.as_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(signed.as_bytes());
    URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
}

/// A token of a user, which ends by itself.
pub(crate) fn issue_token(firewall: &Pfsense, user: &str) -> String {
    let lasts = firewall.stored.setting("RESTAPISettings", "jwt_exp").and_then(Value::as_u64).unwrap_or(3600);
    let host = firewall.stored.setting("SystemHostname", "hostname").cloned().unwrap_or(Value::Null);
    let now = firewall.time.as_secs();
    let head = json!({ "typ": "JWT", "alg": "HS256" });
    let claims = json!({ "iss": host, "aud": host, "exp": now + lasts, "nbf": now, "data": user });
    let [head, claims] = [head, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let signed = format!("{head}.{claims}");
    format!("{signed}.{}", signature(firewall, &signed))
}

fn by_token(firewall: &Pfsense, token: &str) -> Option<String> {
    let (signed, own) = token.rsplit_once('.')?;
    if own != signature(firewall, signed) {
        return None;
    }
    let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.')?.1).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let now = firewall.time.as_secs();
    let is_valid = claims["exp"].as_u64()? > now && claims["nbf"].as_u64()? <= now;
    claims["data"].as_str().filter(|_| is_valid).map(str::to_owned)
}

/// The privilege of a route and a method.
pub(crate) fn privilege(path: &str, method: &str) -> String {
    format!("api-v2{path}-{method}").replace(['/', '_'], "-").to_lowercase()
}

/// Whether a privilege exists.
pub(crate) fn is_privilege(name: &str) -> bool {
    let is_page = name.starts_with("page-") || name.starts_with("user-");
    let mut routes = Facts::get().routes.iter().filter(|(_, route)| !route.page_all);
    is_page || routes.any(|(path, route)| route.methods.iter().any(|method| privilege(path, method) == name))
}

/// The privileges of a user and of the groups that it is in.
pub(crate) fn privileges(config: &Config, name: &str) -> Vec<String> {
    let names = |object: &Object| -> Vec<String> {
        let items = object.get("priv").and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let Some(user) = config.having("User", "name", name) else { return Vec::new() };
    let uid = user.get("uid").cloned().unwrap_or(Value::Null);
    let is_in = |group: &&Object| {
        group.get("member").and_then(Value::as_array).is_some_and(|members| members.contains(&uid))
    };
    let groups = config.list("UserGroup").iter().filter(is_in).flat_map(names);
    names(user).into_iter().chain(groups).collect()
}

/// Refuses calls on interfaces that must not answer.
pub(crate) fn check_interface(firewall: &Pfsense, route: &Route) -> Result<(), Refusal> {
    let config = &firewall.stored;
    let allowed = config.setting("RESTAPISettings", "allowed_interfaces").and_then(Value::as_array);
    let allowed: Vec<&str> = allowed.into_iter().flatten().filter_map(Value::as_str).collect();
    let answers = |id: &&str| {
        interfaces::of_id(config, id)
            .and_then(interfaces::address4)
            .is_some_and(|(address, _)| address == SERVER_ADDRESS)
    };
    if allowed.is_empty() || route.ignore_interfaces || allowed.iter().any(answers) {
        return Ok(());
    }
    let text = "The requested action is not allowed by admin policy";
    Err(Refusal::forbidden("ENDPOINT_INTERFACE_NOT_ALLOWED", text))
}

/// Refuses clients that the access list denies or does not name. The first entry that fits decides.
pub(crate) fn check_list(firewall: &Pfsense, user: &str) -> Result<(), Refusal> {
    let fits = |entry: &&Object| {
        let users = entry.get("users").and_then(Value::as_array);
        let is_user = users.is_none_or(|users| users.is_empty() || users.contains(&json!(user)));
        is_user && net::contains(text(entry, "network"), CLIENT_ADDRESS)
    };
    let entry = firewall.stored.list("RESTAPIAccessListEntry").iter().find(fits);
    if entry.is_some_and(|entry| text(entry, "type") != "deny") {
        return Ok(());
    }
    let text = "The requested action is not allowed by admin policy";
    Err(Refusal::forbidden("ENDPOINT_CLIENT_NOT_ALLOWED_BY_ACL", text))
}
