//! Settings that features declare.

use std::collections::{BTreeMap, BTreeSet};

use heddle_kernel::config::{Config, ConfigErrors};
use heddle_server::FEATURES;

const GOOD: &str = "kD93nfQ0sLq81mZx7vTbW2yRc5uHa6Je4PgX";

fn read(pairs: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    let map = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Config::from_maps(&map, &BTreeMap::new(), &FEATURES.settings())
}

#[track_caller]
fn refused(pairs: &[(&str, &str)], words: &[&str]) {
    let message = read(pairs).expect_err("is refused").to_string();
    for word in words {
        assert!(message.contains(word), "'{message}' names '{word}'");
    }
}

#[test]
fn every_default_is_accepted_and_no_setting_is_declared_twice() {
    assert!(read(&[]).is_ok());
    let mut names = BTreeSet::new();
    for setting in Config::table(&FEATURES.settings()) {
        assert!(names.insert(setting.name), "{} is declared twice", setting.name);
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_by_its_name() {
    let wrong = [
        ("DB_POOL_SIZE", "0", "from 1 to 1000"),
        ("LOG_DB_MAX_OVERFLOW", "1001", "from 0 to 1000"),
        ("HTTP_HEADER_TIMEOUT_SECS", "301", "from 1 to 300"),
        ("HTTP_CONNECTIONS_PER_ADDRESS", "0", "from 1 to 1000000"),
        ("COMPONENT_INSTANCES", "10001", "from 1 to 10000"),
        ("RATE_LIMIT_RPM", "0", "from 1 to 4294967295"),
        ("SYNC_INTERVAL_SECS", "0", "from 1 to 86400"),
        ("SYNC_INTERVAL_SECS", "86401", "from 1 to 86400"),
        ("APPLY_HOLD_SECS", "601", "from 1 to 600"),
        ("CHANGE_TTL_HOURS", "0", "from 1 to 8760"),
        ("ACCESS_TOKEN_EXPIRE_MINUTES", "1441", "from 1 to 1440"),
        ("REFRESH_TOKEN_EXPIRE_DAYS", "0", "from 1 to 365"),
        ("PASSWORD_MIN_LENGTH", "7", "from 8 to 128"),
        ("PASSWORD_MIN_LENGTH", "129", "from 8 to 128"),
        ("PASSWORD_MIN_LENGTH", "-1", "a whole number"),
        ("PASSWORD_REQUIRE_DIGIT", "maybe", "true or false"),
        ("ALLOW_REGISTRATION", "maybe", "true or false"),
    ];
    for (name, value, accepted) in wrong {
        refused(&[(name, value)], &[name, value, accepted]);
    }
    for length in ["8", "128"] {
        read(&[("PASSWORD_MIN_LENGTH", length)]).expect("is accepted");
    }
}

#[test]
fn settings_are_checked_together_and_with_the_environment() {
    refused(&[("APPLY_SETTLE_MS", "10000"), ("APPLY_HOLD_SECS", "30")], &["APPLY_SETTLE_MS", "a third"]);
    read(&[("APPLY_SETTLE_MS", "9999"), ("APPLY_HOLD_SECS", "30")]).expect("is accepted");
    let production = [("ENVIRONMENT", "production"), ("SECRET_KEY", GOOD), ("ENCRYPTION_KEY", GOOD)];
    let signed = |secret| [production.as_slice(), &[("FABRIC_WEBHOOK_SIGNING_SECRET", secret)]].concat();
    refused(&signed("hunter2"), &["FABRIC_WEBHOOK_SIGNING_SECRET", "(hidden)"]);
    read(&signed(GOOD)).expect("is accepted");
    read(&[("FABRIC_WEBHOOK_SIGNING_SECRET", "hunter2")]).expect("development accepts it");
}

#[test]
fn what_features_declare_is_refused_together_with_the_rest() {
    let wrong = [("BIND_ADDR", "8080"), ("SYNC_INTERVAL_SECS", "0"), ("PASSWORD_MIN_LENGTH", "7")];
    refused(&wrong, &["BIND_ADDR", "SYNC_INTERVAL_SECS", "PASSWORD_MIN_LENGTH"]);
    let alone = read(&[("APPLY_HOLD_SECS", "0")]).expect_err("is refused");
    assert_eq!(alone.0.len(), 1, "a setting that was not given is not blamed: {alone}");
    let file = [("sync_intervall_secs".to_owned(), "60".to_owned())].into();
    let unknown = Config::from_maps(&BTreeMap::new(), &file, &FEATURES.settings()).expect_err("is refused");
    assert!(unknown.to_string().contains("sync_intervall_secs"), "{unknown}");
}
