use heddle_core::Clock;
use heddle_core::oauth2::ClientType;

use super::*;

const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

heddle_core::permissions! { PERMISSIONS {
    DEVICE_READ = "device:read", Guest, "See devices";
    DEVICE_WRITE = "device:write", Operator, "Change devices";
    SITE_READ = "site:read", Guest, "See sites";
    SITE_WRITE = "site:write", OrgAdmin, "Change sites";
    USER_READ = "user:read", OrgAdmin, "See users";
} }

fn all() -> Permissions {
    Permissions::new(PERMISSIONS.iter().copied())
}

fn registered() -> RegisteredApp {
    let clock = Clock::default();
    let app = OauthApp {
        revision: 1,
        id: clock.new_id(),
        org_id: clock.new_id(),
        owner_id: clock.new_id(),
        name: "Reader".to_owned(),
        description: None,
        client_type: ClientType::Public,
        redirect_uris: vec!["https://a.example/cb".to_owned(), "https://a.example/cb?x=1".to_owned()],
        scopes: vec!["device:*".to_owned(), "site:read".to_owned()],
        created_at: clock.now(),
        updated_at: clock.now(),
        secret_rotated_at: None,
    };
    RegisteredApp { app, secret_hash: None, org_name: "Acme".to_owned() }
}

/// Reads a complete request with one parameter changed: `Some` replaces or adds, `None` leaves out.
fn with(name: &str, value: Option<&str>) -> Result<Asked, Fault> {
    let mut pairs: Vec<(String, String)> = [
        ("response_type", "code"),
        ("client_id", "x"),
        ("redirect_uri", "https://a.example/cb"),
        ("scope", "device:read site:read"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("state", "s t"),
    ]
    .into_iter()
    .filter(|(known, _)| *known != name)
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    pairs.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    judge(&Parameters(pairs), registered(), &all())
}

#[track_caller]
fn told(name: &str, value: Option<&str>, error: &str) {
    match with(name, value) {
        Err(Fault::Told(_, reply, refusal)) => {
            assert_eq!(refusal.error, error, "{name}={value:?}: {}", refusal.description);
            assert_eq!(reply.redirect_uri, "https://a.example/cb");
            // The bytes that RFC 6749 section 4.1.2.1 allows in a description.
            let fits = |byte: u8| matches!(byte, 0x20..=0x21 | 0x23..=0x5b | 0x5d..=0x7e);
            assert!(refusal.description.bytes().all(fits), "{}", refusal.description);
        }
        Err(Fault::Shown(message)) => panic!("{name}={value:?} is shown: {message}"),
        Ok(_) => panic!("{name}={value:?} is accepted"),
    }
}

#[test]
fn a_right_request_is_read_and_can_be_sent_again() {
    let Ok(asked) = with("none", None) else { panic!("it is right") };
    assert_eq!(joined(&asked.scopes), "device:read site:read");
    assert_eq!(asked.reply.state.as_deref(), Some("s t"));
    let Ok(again) = judge(&Parameters::parse(&asked.text), registered(), &all()) else {
        panic!("it is right")
    };
    assert_eq!((again.reply, again.code_challenge), (asked.reply.clone(), CHALLENGE.to_owned()));
    let Ok(all) = with("scope", None) else { panic!("it is right") };
    assert_eq!(joined(&all.scopes), "device:* site:read");
    let answer = asked.reply.with("https://h.example", &[("code", "c")]);
    assert_eq!(answer, "https://a.example/cb?code=c&state=s+t&iss=https%3A%2F%2Fh.example");
}

#[test]
fn another_address_than_a_registered_one_is_never_answered() {
    for uri in [
        "https://a.example/cb/",
        "https://a.example/CB",
        "https://A.example/cb",
        "https://a.example/cb?x=2",
        "https://a.example/cb?x=1&y=2",
        "https://a.example/%63b",
        "https://a.example:443/cb",
        "https://a.example:8443/cb",
        "https://a.example/cb#",
        "https://a.example/cb/../cb",
        "https://a.example.evil.example/cb",
        "http://a.example/cb",
        " https://a.example/cb",
        "",
    ] {
        assert!(matches!(with("redirect_uri", Some(uri)), Err(Fault::Shown(_))), "{uri}");
    }
    assert!(matches!(with("redirect_uri", None), Err(Fault::Shown(_))));
    assert!(with("redirect_uri", Some("https://a.example/cb?x=1")).is_ok());
}

#[test]
fn what_else_is_wrong_the_app_is_told() {
    told("response_type", None, "invalid_request");
    told("response_type", Some("token"), "unsupported_response_type");
    told("response_type", Some("code token"), "unsupported_response_type");
    told("code_challenge", None, "invalid_request");
    told("code_challenge", Some("short"), "invalid_request");
    told("code_challenge", Some(&CHALLENGE.replace('-', "+")), "invalid_request");
    told("code_challenge_method", None, "invalid_request");
    told("code_challenge_method", Some("plain"), "invalid_request");
    told("scope", Some("device:reed"), "invalid_scope");
    told("scope", Some("\"\\"), "invalid_scope");
    told("scope", Some("user:read"), "invalid_scope");
    told("scope", Some("site:*"), "invalid_scope");
    told("scope", Some("*"), "invalid_scope");
    told("scope", Some("  "), "invalid_scope");
    told("state", Some(&"x".repeat(2001)), "invalid_request");
    let pairs = |name: &str| {
        let Ok(asked) = with("none", None) else { panic!("it is right") };
        judge(&Parameters::parse(&format!("{}&{name}=1", asked.text)), registered(), &all())
    };
    for name in ["state", "scope", "response_type", "code_challenge", "code_challenge_method"] {
        assert!(
            matches!(pairs(name), Err(Fault::Told(_, _, Refusal { error: "invalid_request", .. }))),
            "{name}"
        );
    }
    assert!(matches!(pairs("redirect_uri"), Err(Fault::Shown(_))));
    assert!(pairs("something").is_ok(), "what is not known means nothing");
}

#[test]
fn nobody_hands_on_what_they_do_not_hold() {
    let asked = |words: &[&str]| -> Vec<KeyScope> {
        words.iter().map(|word| KeyScope::parse(word, &all()).unwrap()).collect()
    };
    assert_eq!(joined(&held(&asked(&["device:*", "user:read"]), Role::Viewer)), "device:read");
    assert_eq!(
        joined(&held(&asked(&["device:*", "user:read"]), Role::OrgAdmin)),
        "device:read device:write user:read"
    );
    assert_eq!(joined(&held(&asked(&["*", "*"]), Role::SuperAdmin)), "*");
    assert_eq!(joined(&held(&asked(&["*"]), Role::OrgAdmin)), "");
}
