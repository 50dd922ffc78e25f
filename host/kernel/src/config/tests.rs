use super::*;

fn read(pairs: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    let map = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::from_maps(&map, &BTreeMap::new(), &[])
}

#[track_caller]
fn refused(pairs: &[(&str, &str)], words: &[&str]) {
    let message = read(pairs).expect_err("is refused").to_string();
    for word in words {
        assert!(message.contains(word), "'{message}' names '{word}'");
    }
}

#[test]
fn defaults_are_accepted() {
    let config = read(&[]).unwrap();
    assert_eq!(config.bind_addr.to_string(), "127.0.0.1:8080");
    assert!(config.adapter_read_only);
}

#[test]
fn a_wrong_value_names_the_variable_the_value_and_what_is_accepted() {
    refused(&[("ENVIRONMENT", "prod")], &["ENVIRONMENT", "prod", "production"]);
    refused(&[("BIND_ADDR", "8080")], &["BIND_ADDR", "8080", "127.0.0.1:8080"]);
    refused(&[("ADAPTER_READ_ONLY", "maybe")], &["ADAPTER_READ_ONLY", "maybe", "true or false"]);
    refused(&[("EGRESS_EXTRA_NETWORKS", "10.0.0")], &["EGRESS_EXTRA_NETWORKS", "10.1.0.0/16", "10.1.2.3"]);
    refused(&[("LOG_FORMAT", "xml")], &["LOG_FORMAT", "xml", "json"]);
}

#[test]
fn every_setting_that_is_wrong_is_named_at_once() {
    let file: BTreeMap<String, String> =
        [("bind_adr", "x"), ("log_formt", "json")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let wrong = [
        ("ENVIRONMENT", "production"),
        ("BIND_ADDR", "8080"),
        ("RATE_LIMIT_RPM", "0"),
        ("RATE_LIMIT_BURST", "0"),
        ("DATABASE_URL", "mysql://h"),
        ("CACHE_URL", "memcached://h"),
        ("SMTP_URL", "smtps://mail.example.org"),
        ("CORS_ORIGINS", "*"),
    ];
    let environment = wrong.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let errors = Config::from_maps(&environment, &file, &[]).unwrap_err();
    let text = errors.to_string();
    assert_eq!(text.lines().count(), errors.0.len());
    let missing = ["bind_adr", "log_formt", "SMTP_FROM", "PUBLIC_URL", "SECRET_KEY", "ENCRYPTION_KEY"];
    for name in wrong[1..].iter().map(|(name, _)| *name).filter(|name| *name != "SMTP_URL").chain(missing) {
        assert!(text.lines().any(|line| line.contains(name)), "{name}: {text}");
    }
}

#[test]
fn a_plain_address_is_a_network_of_one() {
    let config = read(&[("TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8,::1")]).unwrap();
    let networks: Vec<String> = config.trusted_proxies.iter().map(ToString::to_string).collect();
    assert_eq!(networks, ["127.0.0.1/32", "10.0.0.0/8", "::1/128"]);
}

#[test]
fn production_refuses_missing_short_and_known_keys() {
    let good = "kD93nfQ0sLq81mZx7vTbW2yRc5uHa6Je4PgX";
    refused(&[("ENVIRONMENT", "production")], &["SECRET_KEY", "production", "32"]);
    refused(&[("ENVIRONMENT", "staging"), ("SECRET_KEY", good)], &["ENCRYPTION_KEY"]);
    refused(&[("SECRET_KEY", "short")], &["SECRET_KEY", "32"]);
    refused(&[("SECRET_KEY", "changeme-changeme-changeme-changeme-42")], &["SECRET_KEY"]);
    refused(&[("ENCRYPTION_KEY", &"a".repeat(64))], &["ENCRYPTION_KEY"]);
    read(&[("ENVIRONMENT", "production"), ("SECRET_KEY", good), ("ENCRYPTION_KEY", good)]).unwrap();
}

#[test]
fn production_refuses_to_open_loopback_for_controllers() {
    let good = "kD93nfQ0sLq81mZx7vTbW2yRc5uHa6Je4PgX";
    let base = [("ENVIRONMENT", "production"), ("SECRET_KEY", good), ("ENCRYPTION_KEY", good)];
    let with = |network| [base.as_slice(), &[("EGRESS_EXTRA_NETWORKS", network)]].concat();
    refused(&with("127.0.0.0/8"), &["EGRESS_EXTRA_NETWORKS"]);
    read(&with("198.18.0.0/15")).unwrap();
}

#[test]
fn a_listed_host_is_no_url() {
    refused(
        &[("FABRIC_WEBHOOK_ALLOWED_HOSTS", "a.example,https://b.example")],
        &["https://b.example", "no scheme"],
    );
}

#[test]
fn the_file_is_below_the_environment_and_its_typos_are_refused() {
    let file: BTreeMap<String, String> = [("bind_addr", "127.0.0.1:1"), ("log_format", "json")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    let environment = [("BIND_ADDR".to_owned(), "127.0.0.1:2".to_owned())].into();
    let config = Config::from_maps(&environment, &file, &[]).unwrap();
    assert_eq!(config.bind_addr.port(), 2);
    assert_eq!(config.log_format, "json");
    let typo = [("bind_adr".to_owned(), "x".to_owned())].into();
    assert_eq!(
        Config::from_maps(&BTreeMap::new(), &typo, &[]).unwrap_err(),
        ConfigError::Unknown("bind_adr".to_owned()).into()
    );
}

#[test]
fn a_database_password_is_not_shown() {
    let url = "postgres://heddle:hunter2@db.example/heddle";
    let config = read(&[("DATABASE_URL", url)]).unwrap();
    assert_eq!(config.database(), url);
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn flags_of_single_vendors_are_accepted_and_named_as_without_effect() {
    let config =
        read(&[("OMADA_READ_ONLY", "true"), ("ADAPTER_READ_ONLY", "false"), ("RATE_LIMIT_AUTH", "50")]);
    let config = config.unwrap();
    assert!(!config.adapter_read_only);
    assert_eq!(config.without_effect, ["OMADA_READ_ONLY", "RATE_LIMIT_AUTH"]);
}

#[test]
fn a_limit_of_nothing_and_a_weak_token_are_refused() {
    refused(&[("RATE_LIMIT_RPM", "0")], &["RATE_LIMIT_RPM", "from 1"]);
    refused(&[("RATE_LIMIT_BURST", "-1")], &["RATE_LIMIT_BURST", "-1"]);
    let good = "kD93nfQ0sLq81mZx7vTbW2yRc5uHa6Je4PgX";
    let base = [("ENVIRONMENT", "production"), ("SECRET_KEY", good), ("ENCRYPTION_KEY", good)];
    refused(
        &[base.as_slice(), &[("METRICS_AUTH_TOKEN", "changeme")]].concat(),
        &["METRICS_AUTH_TOKEN", "16"],
    );
}

#[test]
fn an_origin_is_what_a_browser_sends() {
    let accepted = read(&[("CORS_ORIGINS", "https://app.example.org, http://localhost:3000")]).unwrap();
    assert_eq!(accepted.cors_origins, ["https://app.example.org", "http://localhost:3000"]);
    for origin in [
        "*",
        "null",
        "app.example.org",
        "https://",
        "https://app.example.org/",
        "https://app.example.org/app",
        "https://app.example.org:443",
        "https://App.example.org",
        "https://*.example.org",
        "https://user@app.example.org",
        "ftp://app.example.org",
        "https://a.example b.example",
    ] {
        let both = format!("https://good.example.org,{origin}");
        refused(&[("CORS_ORIGINS", &both)], &["CORS_ORIGINS", origin, "https://app.example.org"]);
    }
}
