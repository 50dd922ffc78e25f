use serde_json::json;

use super::*;

#[track_caller]
fn faults<T>(settings: Value, check: impl FnOnce(T, &mut Checks) -> T) -> Vec<String>
where
    T: serde::de::DeserializeOwned,
{
    let mut checks = Checks::default();
    check(serde_json::from_value(settings).unwrap(), &mut checks);
    match checks.done() {
        Ok(()) => Vec::new(),
        Err(Error::Validation(details)) => details.into_iter().map(|detail| detail.field).collect(),
        Err(other) => panic!("{other}"),
    }
}

#[track_caller]
fn check_oidc(change: Value, wrong: &[&str]) {
    let mut settings = json!({
        "issuer": "https://id.example/realm/", "client_id": "c", "redirect_uris": ["https://ui.example/back?x=1"],
    });
    settings.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    assert_eq!(faults(settings.clone(), Oidc::check), wrong, "{settings}");
}

#[test]
fn an_openid_provider_is_named_exactly_and_over_tls() {
    check_oidc(json!({}), &[]);
    for issuer in ["http://127.0.0.1:4000", "http://localhost/x", "https://id.example"] {
        check_oidc(json!({ "issuer": issuer }), &[]);
    }
    for issuer in [
        "",
        "id.example",
        "http://id.example",
        "https://id.example/?a=b",
        "https://id.example/#x",
        "https://u:p@id.example",
        "ldap://id.example",
    ] {
        check_oidc(json!({ "issuer": issuer }), &["oidc.issuer"]);
    }
    check_oidc(json!({ "client_id": "", "scopes": ["a b"] }), &["oidc.client_id", "oidc.scopes[0]"]);
    check_oidc(json!({ "scopes": ["a", "x".repeat(2049)] }), &["oidc.scopes[1]"]);
    check_oidc(json!({ "redirect_uris": [] }), &["oidc.redirect_uris"]);
    for uri in ["/back", "http://ui.example/back", "https://ui.example/#a"] {
        check_oidc(json!({ "redirect_uris": [uri] }), &["oidc.redirect_uris[0]"]);
    }
    check_oidc(json!({ "tls": { "mode": "insecure" } }), &["oidc.tls"]);
    check_oidc(json!({ "tls": { "mode": "pin", "fingerprint": "ab".repeat(32) } }), &[]);
    check_oidc(json!({ "tls": { "mode": "pin" } }), &["oidc.tls.fingerprint"]);
}

#[track_caller]
fn check_ldap(change: Value, wrong: &[&str]) {
    let mut settings =
        json!({ "url": "ldaps://dir.example", "base_dn": "dc=example", "user_filter": "(uid={login})" });
    settings.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    assert_eq!(faults(settings.clone(), Ldap::check), wrong, "{settings}");
}

#[test]
fn passwords_go_in_the_clear_only_where_it_is_said() {
    check_ldap(json!({}), &[]);
    check_ldap(json!({ "url": "ldap://dir.example", "start_tls": true }), &[]);
    check_ldap(json!({ "url": "ldap://dir.example", "insecure": true }), &[]);
    check_ldap(json!({ "url": "ldap://dir.example" }), &["ldap.url"]);
    check_ldap(
        json!({ "url": "ldap://dir.example", "start_tls": true, "insecure": true }),
        &["ldap.insecure"],
    );
    check_ldap(json!({ "start_tls": true }), &["ldap.start_tls"]);
    check_ldap(json!({ "insecure": true }), &["ldap.start_tls"]);
    for url in [
        "",
        "dir.example",
        "https://dir.example",
        "ldaps://dir.example/dc=x",
        "ldaps://u@dir.example",
        "ldaps://",
    ] {
        check_ldap(json!({ "url": url }), &["ldap.url"]);
    }
    check_ldap(json!({ "tls": { "mode": "insecure" } }), &["ldap.tls"]);
}

#[test]
fn filters_name_the_person() {
    for filter in ["", "(uid=x)", "(uid={login}", "uid={login})("] {
        check_ldap(json!({ "user_filter": filter }), &["ldap.user_filter"]);
    }
    check_ldap(json!({ "user_filter": "(&(objectClass=person)(|(uid={login})(mail={login})))" }), &[]);
    check_ldap(json!({ "group_filter": "(member={dn})" }), &[]);
    check_ldap(json!({ "group_filter": "(cn=*)" }), &["ldap.group_filter"]);
    check_ldap(json!({ "attributes": { "email": "a b" } }), &["ldap.attributes.email"]);
    check_ldap(json!({ "base_dn": "" }), &["ldap.base_dn"]);
}

#[test]
fn a_directory_has_a_host_and_a_port() {
    let place = |is_ldaps, host: &str, port| Some(Place { is_ldaps, host: host.to_owned(), port });
    assert_eq!(Place::parse("ldap://dir.example"), place(false, "dir.example", 389));
    assert_eq!(Place::parse("ldaps://dir.example/"), place(true, "dir.example", 636));
    assert_eq!(Place::parse("ldaps://127.0.0.1:4636"), place(true, "127.0.0.1", 4636));
    assert_eq!(Place::parse("ldap://[2001:db8::1]:1389"), place(false, "2001:db8::1", 1389));
}

#[test]
fn a_secret_that_would_go_elsewhere_is_told() {
    let oidc: Oidc =
        serde_json::from_value(json!({ "issuer": "https://a", "client_id": "c", "redirect_uris": [] }))
            .unwrap();
    assert!(!Oidc { scopes: Vec::new(), ..oidc.clone() }.sends_elsewhere(&oidc));
    assert!(Oidc { issuer: "https://b".to_owned(), ..oidc.clone() }.sends_elsewhere(&oidc));
    let ldap: Ldap = serde_json::from_value(
        json!({ "url": "ldap://a", "start_tls": true, "base_dn": "x", "user_filter": "" }),
    )
    .unwrap();
    assert!(!Ldap { base_dn: "y".to_owned(), ..ldap.clone() }.sends_elsewhere(&ldap));
    for other in
        [Ldap { url: "ldap://b".to_owned(), ..ldap.clone() }, Ldap { start_tls: false, ..ldap.clone() }]
    {
        assert!(other.sends_elsewhere(&ldap));
    }
}
