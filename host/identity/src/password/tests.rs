use std::collections::BTreeMap;

use heddle_kernel::config::SettingsOf;

use super::*;

const GOOD: &str = "Correct-Horse-7";

fn config(pairs: &[(&str, &str)]) -> Config {
    let map = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::from_maps(&map, &BTreeMap::new(), &[SettingsOf::the::<SignInSettings>()]).unwrap()
}

fn kinds(config: &Config, password: &str, names: &[&str]) -> Vec<String> {
    let found = faults(config, "password", &Secret::new(password), names);
    found.into_iter().map(|detail| detail.kind).collect()
}

#[track_caller]
fn check(password: &str, expected: &[&str]) {
    assert_eq!(kinds(&config(&[]), password, &["ada", "lovelace@example.org"]), expected, "{password}");
}

#[test]
fn every_rule_that_fails_is_named() {
    check(GOOD, &[]);
    check("Überlänge-ß-42", &[]);
    check("short", &["too_short", "missing_uppercase", "missing_digit", "missing_special"]);
    let all = ["too_short", "missing_uppercase", "missing_lowercase", "missing_digit", "missing_special"];
    check("", &all);
    check("alllowercase-1", &["missing_uppercase"]);
    check("ALLUPPERCASE-1", &["missing_lowercase"]);
    check("NoDigitsInHere!", &["missing_digit"]);
    check("NoSpecialChar123", &["missing_special"]);
    check(&format!("Aa1-{}", "x".repeat(1021)), &["too_long"]);
}

#[test]
fn each_rule_can_be_set() {
    let lax = config(&[
        ("PASSWORD_MIN_LENGTH", "8"),
        ("PASSWORD_REQUIRE_UPPERCASE", "false"),
        ("PASSWORD_REQUIRE_LOWERCASE", "false"),
        ("PASSWORD_REQUIRE_DIGIT", "false"),
        ("PASSWORD_REQUIRE_SPECIAL", "false"),
    ]);
    assert_eq!(kinds(&lax, "        ", &[]), [""; 0]);
    assert_eq!(kinds(&lax, "seven77", &[]), ["too_short"]);
    let long = config(&[("PASSWORD_MIN_LENGTH", "20")]);
    assert_eq!(kinds(&long, GOOD, &[]), ["too_short"]);
    let found = faults(&long, "new_password", &Secret::new(GOOD), &[]);
    assert_eq!(found[0].message, "password needs at least 20 characters");
    assert_eq!(found[0].field, "new_password");
    for (name, password, kind) in [
        ("PASSWORD_REQUIRE_UPPERCASE", "alllowercase-1", "missing_uppercase"),
        ("PASSWORD_REQUIRE_LOWERCASE", "ALLUPPERCASE-1", "missing_lowercase"),
        ("PASSWORD_REQUIRE_DIGIT", "NoDigitsInHere!", "missing_digit"),
        ("PASSWORD_REQUIRE_SPECIAL", "NoSpecialChar123", "missing_special"),
    ] {
        assert_eq!(kinds(&config(&[]), password, &[]), [kind]);
        assert_eq!(kinds(&config(&[(name, "false")]), password, &[]), [""; 0]);
    }
}

#[test]
fn a_password_does_not_hold_its_owners_name() {
    for password in ["Ada-Lovelace-1", "xXaDaX-123456", "1815-LOVELACE-x", "Heddle-adam-77"] {
        check(password, &["contains_name"]);
    }
    let named = |names: &[&str]| kinds(&config(&[]), GOOD, names);
    assert_eq!(named(&["correct-horse-7"]), ["contains_name"]);
    assert_eq!(named(&["x", "horse@example.org"]), ["contains_name"]);
    assert_eq!(named(&["x", "mail@horse.example"]), [""; 0], "only what is before the '@'");
    assert_eq!(named(&["co", "or@example.org", ""]), [""; 0], "two letters are in many words");
    assert_eq!(kinds(&config(&[]), "Jörgen-und-7-Zwerge", &["JÖRG"]), ["contains_name"]);
}
