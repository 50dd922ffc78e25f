//! Names of operations, made of verb and noun, and the groups into which the document sorts them.
//!
//! A client generator makes a method of each operation and a class of each group, so both use words of the field. They
//! follow from the path: a new resource only needs its collection's name in [`NOUNS`].

use axum::http::Method;

use crate::http::routes::Route;

/// Collections, with the names of one object and of several.
const NOUNS: &[(&str, &str, &str)] = &[
    ("/actions", "action", "actions"),
    ("/adapters", "adapter", "adapters"),
    ("/api-keys", "api_key", "api_keys"),
    ("/audit", "audit_entry", "audit_entries"),
    ("/auth/sessions", "session", "sessions"),
    ("/auth/sso/providers", "identity_provider", "identity_providers"),
    ("/automation/rules", "automation_rule", "automation_rules"),
    ("/automation/schedules", "schedule", "schedules"),
    ("/controllers", "controller", "controllers"),
    ("/credentials", "credential", "credentials"),
    ("/devices", "device", "devices"),
    ("/events", "event", "events"),
    ("/fabric/connections", "connection", "connections"),
    ("/fabric/logs", "fabric_log_line", "fabric_log_lines"),
    ("/fabric/runs", "run", "runs"),
    ("/gateway-vpn/changes", "change", "changes"),
    ("/gateway-vpn/changes/sets", "change_set", "change_sets"),
    ("/logs", "log_line", "log_lines"),
    ("/notifications", "notification", "notifications"),
    ("/notifications/channels", "channel", "channels"),
    ("/oauth2/apps", "app", "apps"),
    ("/oauth2/grants", "app_grant", "app_grants"),
    ("/organizations", "organization", "organizations"),
    ("/organizations/{organization_id}/site-access", "site_access", "site_access"),
    ("/roles", "role", "roles"),
    ("/sites", "site", "sites"),
    ("/users", "user", "users"),
    ("/users/{user_id}/identities", "user_identity", "user_identities"),
    ("/webhooks", "webhook", "webhooks"),
    ("/webhooks/deliveries", "webhook_delivery", "webhook_deliveries"),
    ("/webhooks/templates", "webhook_template", "webhook_templates"),
];

/// Operations whose names do not follow from their paths.
const NAMED: &[(&str, &str, &str)] = &[
    ("POST", "/actions", "run_action"),
    ("GET", "/audit/head", "get_audit_head"),
    ("GET", "/audit/validate", "validate_audit_log"),
    ("POST", "/auth/login", "log_in"),
    ("POST", "/auth/login/mfa", "log_in_with_second_factor"),
    ("POST", "/auth/logout", "log_out"),
    ("POST", "/auth/logout-all", "log_out_everywhere"),
    ("GET", "/auth/me", "get_own_profile"),
    ("GET", "/auth/mfa", "get_second_factor"),
    ("POST", "/auth/mfa/backup-codes", "replace_backup_codes"),
    ("POST", "/auth/mfa/disable", "disable_second_factor"),
    ("POST", "/auth/mfa/enable", "enable_second_factor"),
    ("POST", "/auth/mfa/setup", "set_up_second_factor"),
    ("POST", "/auth/password/change", "change_password"),
    ("POST", "/auth/password/reset", "reset_password"),
    ("POST", "/auth/password/reset-request", "request_password_reset"),
    ("POST", "/auth/refresh", "refresh_tokens"),
    ("POST", "/auth/register", "register_organization"),
    ("POST", "/auth/sso/ldap/authenticate", "log_in_with_ldap"),
    ("POST", "/auth/sso/oidc/authorize", "begin_oidc_login"),
    ("POST", "/auth/sso/oidc/callback", "finish_oidc_login"),
    ("GET", "/auth/sso/providers/public", "list_login_providers"),
    ("GET", "/auth/sso/saml/callback", "get_saml_callback"),
    ("POST", "/auth/sso/saml/callback", "post_saml_callback"),
    ("GET", "/auth/sso/saml/login", "begin_saml_login"),
    ("POST", "/auth/token", "create_token"),
    ("POST", "/devices/bulk", "change_devices"),
    ("GET", "/events/types", "list_event_types"),
    ("GET", "/fabric/catalog", "get_fabric_catalog"),
    ("GET", "/fabric/connections/suggest", "suggest_connections"),
    ("POST", "/fabric/ingest", "ingest_event"),
    ("GET", "/fabric/signing-secret", "get_signing_secret"),
    ("POST", "/fabric/signing-secret/rotate", "rotate_signing_secret"),
    ("GET", "/gateway-vpn/changes/by-gateway/{gateway_id}", "list_changes_of_gateway"),
    ("GET", "/health", "get_health"),
    ("GET", "/health/db", "get_database_health"),
    ("GET", "/health/detail", "get_health_detail"),
    ("GET", "/health/live", "get_liveness"),
    ("GET", "/health/ready", "get_readiness"),
    ("POST", "/notifications/read-all", "mark_all_notifications_read"),
    ("GET", "/notifications/unread", "count_unread_notifications"),
    ("POST", "/notifications/{notice_id}/read", "mark_notification_read"),
    ("POST", "/oauth2/apps/{app_id}/secret", "rotate_app_secret"),
    ("GET", "/oauth2/authorize", "show_app_consent"),
    ("POST", "/oauth2/authorize", "decide_app_consent"),
    ("POST", "/oauth2/introspect", "introspect_app_token"),
    ("POST", "/oauth2/login", "log_in_for_app"),
    ("POST", "/oauth2/login/mfa", "log_in_for_app_with_second_factor"),
    ("POST", "/oauth2/revoke", "revoke_app_token"),
    ("POST", "/oauth2/token", "create_app_token"),
    ("GET", "/organizations/{organization_id}/site-access", "list_site_access"),
    ("POST", "/organizations/{organization_id}/site-access", "grant_site_access"),
    ("POST", "/organizations/{organization_id}/site-access/bulk", "grant_site_access_in_bulk"),
    ("GET", "/organizations/{organization_id}/site-access/{user_id}/{site_id}", "get_site_access"),
    ("DELETE", "/organizations/{organization_id}/site-access/{user_id}/{site_id}", "revoke_site_access"),
    ("POST", "/setup/complete", "complete_setup"),
    ("GET", "/setup/status", "get_setup_status"),
    ("POST", "/users/{user_id}/mfa/reset", "reset_second_factor"),
    ("POST", "/webhooks/{subscription_id}/rotate-secret", "rotate_webhook_secret"),
    ("GET", "/ws/stats", "get_stream_statistics"),
];

/// Groups by the first part of their paths, with their subjects.
const GROUPS: &[(&str, &str, &str)] = &[
    ("access_control", "Access control", "Doors. Not available on this server: every operation answers 501."),
    ("actions", "Actions", "Carry out one operation of the catalogue now, with the caller's own rights."),
    ("adapters", "Adapters", "The vendors' components that serve, and the packages that they are of."),
    (
        "api-keys",
        "API keys",
        "Keys for scripts that run for months. Their scopes are a ceiling below the user's role.",
    ),
    (
        "audit",
        "Audit log",
        "Who did what, when and from where, as a chain of hashes that shows what was altered.",
    ),
    ("auth", "Authentication", "Sign-in, sessions, passwords, second factors and single sign-on."),
    ("automation", "Automation", "Rules that an event starts, and schedules that the clock starts."),
    (
        "controllers",
        "Controllers",
        "The systems of vendors that devices are managed through: how they are reached, tested and read.",
    ),
    ("credentials", "Credentials", "Logins at controllers. They are stored encrypted and never shown again."),
    (
        "devices",
        "Devices",
        "What controllers report: routers, switches, access points and the clients of the network.",
    ),
    ("events", "Events", "Every change of state, numbered without gaps within its organization."),
    (
        "fabric",
        "Fabric",
        "Connections that lead from an event to operations, their runs, and the catalogue of both.",
    ),
    (
        "gateway-vpn",
        "Changes",
        "Staged changes of all vendors: review the plan, apply, confirm, revert or discard it.",
    ),
    (
        "health",
        "Health",
        "Whether the service lives, is ready for traffic, and which of its parts are degraded.",
    ),
    ("logs", "Service log", "The service's own log lines, for super administrators."),
    (
        "notifications",
        "Notifications",
        "Messages for people, and the channels that carry them: mail, webhooks, Slack, Teams, ntfy.",
    ),
    ("oauth2", "Apps", "Apps that users let act for them: registration, consent and tokens (RFC 6749)."),
    (
        "organizations",
        "Organizations",
        "Tenants: their settings, quotas, dashboards, and who may see which site.",
    ),
    ("roles", "Roles", "Named lists of permissions, for the scopes of API keys."),
    ("setup", "Setup", "The first organization and its administrator. Inert after it was done once."),
    ("sites", "Sites", "Places of an organization, which divide its devices and the access of its users."),
    ("users", "Users", "People, their roles, and their identities at identity providers."),
    (
        "webhooks",
        "Webhooks",
        "Subscriptions that send events to URLs at least once, with their deliveries and templates.",
    ),
    ("ws", "Event stream", "The WebSocket `/api/v1/ws` tells events at once; here is what it carries."),
];

/// Returns the name of an operation: `list_sites`, `create_site`, `apply_change`.
pub(super) fn id(route: &Route) -> String {
    let method = route.method.as_str();
    let named = NAMED.iter().find(|(of, path, _)| *of == method && *path == route.path);
    if let Some((_, _, name)) = named {
        return (*name).to_owned();
    }
    if let Some(name) = gateway(&route.method, &route.path) {
        return name;
    }
    let collection = NOUNS
        .iter()
        .filter(|(path, ..)| {
            route.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
        .max_by_key(|(path, ..)| path.len());
    match collection {
        Some((path, one, many)) => within(&route.method, &route.path[path.len()..], one, many),
        None => format!("{}_{}", verb(&route.method), words(route.path.split('/'))),
    }
}

/// An operation at a collection, at one of its objects, or at something of either.
fn within(method: &Method, rest: &str, one: &str, many: &str) -> String {
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let is_param = |part: &str| part.starts_with('{');
    let named: Vec<&str> = parts.iter().copied().filter(|part| !is_param(part)).collect();
    match (named.as_slice(), parts.first().is_some_and(|part| is_param(part))) {
        ([], false) if method == Method::GET => format!("list_{many}"),
        ([], false) => format!("{}_{one}", verb(method)),
        ([], true) => format!("{}_{one}", verb(method)),
        ([act], true) if method == Method::POST => format!("{}_{one}", act.replace('-', "_")),
        ([act], false) if method == Method::POST => format!("{}_{many}", act.replace('-', "_")),
        (of, _) if method == Method::GET => {
            let is_list = parts.last().is_some_and(|last| !is_param(last) && last.ends_with('s'));
            format!("{}_{one}_{}", if is_list { "list" } else { "get" }, words(of.iter().copied()))
        }
        (of, _) => format!("{}_{one}_{}", verb(method), words(of.iter().copied())),
    }
}

/// Live reads and staged changes of one area: `list_openwrt_dhcp_objects`, `stage_firewall_change`.
fn gateway(method: &Method, path: &str) -> Option<String> {
    let mut parts = path.trim_start_matches('/').split('/');
    let area = parts.next()?.strip_prefix("gateway-").filter(|area| *area != "vpn")?.replace('-', "_");
    let rest: Vec<&str> =
        parts.filter(|part| !["{controller_id}", "sites", "{site_id}"].contains(part)).collect();
    let name = match (method.as_str(), rest.as_slice()) {
        ("GET", []) => format!("describe_{area}_area"),
        ("GET", ["changes"]) => format!("list_{area}_changes"),
        ("POST", ["changes", "{feature}"]) => format!("stage_{area}_change"),
        ("GET", ["{resource}"]) => format!("list_{area}_objects"),
        ("GET", ["{resource}", "{key}"]) => format!("get_{area}_object"),
        (_, rest) => format!("{}_{area}_{}", verb(method), words(rest.iter().copied())),
    };
    Some(name)
}

fn verb(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "create",
        "PATCH" => "update",
        "PUT" => "set",
        "DELETE" => "delete",
        _ => "get",
    }
}

fn words<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = parts
        .filter(|part| !part.is_empty() && !part.starts_with('{'))
        .map(|part| part.replace(['-', '.'], "_"))
        .collect();
    words.join("_")
}

/// Returns the group of a route.
pub(super) fn group(path: &str) -> String {
    let first = path.split('/').nth(1).unwrap_or_default();
    match GROUPS.iter().find(|(known, ..)| *known == first) {
        Some((_, name, _)) => (*name).to_owned(),
        None => match first.strip_prefix("gateway-") {
            Some(area) => format!("Gateway: {}", area.replace('-', " ")),
            None => first.to_owned(),
        },
    }
}

/// Returns the description of a group.
pub(super) fn about_group(path: &str) -> String {
    let first = path.split('/').nth(1).unwrap_or_default();
    match GROUPS.iter().find(|(known, ..)| *known == first) {
        Some((_, _, about)) => (*about).to_owned(),
        None => match first.strip_prefix("gateway-") {
            Some(area) => format!(
                "Objects of the area '{}', read live from the device, and changes of them that are staged for review.",
                area.replace('-', " ")
            ),
            None => format!("Routes below /{first}."),
        },
    }
}
