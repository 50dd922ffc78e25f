//! The package: manifest and description are sound together, and let the adapter read and nothing else.

use heddle_sdk::testing::conformance;
use heddle_sdk::{Method, Request};
use serde_json::{Value, json};

use super::device::package;

fn manifest() -> Value {
    serde_json::from_str(include_str!("../../manifest.json")).unwrap()
}

#[test]
fn package_is_sound() {
    conformance::package(include_str!("../../manifest.json"), include_str!("../../description.json"));
    assert!(package().features().len() > 150, "{}", package().features().len());
}

#[test]
fn command_tells_a_read_from_a_write_on_the_same_path() {
    let is_read = |path: &str, command: &str| {
        package().is_read(&Request::new(Method::Post, path).with_json(&json!({ "cmd": command })))
    };
    for prefix in ["", "/proxy/network"] {
        let path = |manager: &str| format!("{prefix}/api/s/default/cmd/{manager}");
        assert!(is_read(&path("backup"), "list-backups"));
        assert!(is_read(&path("sitemgr"), "get-admins"));
        assert!(is_read(&path("devmgr"), "speedtest-status"));
        for (manager, command) in [
            ("backup", "backup"),
            ("backup", "delete-backup"),
            ("sitemgr", "delete-site"),
            ("sitemgr", "delete-device"),
            ("devmgr", "restart"),
            ("devmgr", "upgrade"),
            ("stamgr", "block-sta"),
        ] {
            assert!(!is_read(&path(manager), command), "{manager} {command}");
        }
    }
}

#[test]
fn rotated_token_is_taken_from_any_answer() {
    let account = &manifest()["auth"]["account"];
    let from = |at: usize| account["refresh"][at]["from"]["header"].clone();
    assert_eq!([from(0), from(1)], [json!("X-Updated-CSRF-Token"), json!("X-CSRF-Token")]);
    // A login without its token is none, whatever its status says.
    assert!(account["login"][0]["expect"]["header"]["x-csrf-token"].is_object());
    assert_eq!(account["login"][0]["expect"]["empty"], false);
}

#[test]
fn session_that_is_over_is_told_in_two_ways() {
    for session in ["account", "self-hosted"] {
        let expired = &manifest()["auth"][session]["expired"];
        assert_eq!(expired[0]["status"], json!([401]), "{session}");
        assert_eq!(expired[1]["json"]["/meta/msg"], json!(["api.err.LoginRequired"]), "{session}");
    }
}

#[test]
fn logins_keep_a_distance() {
    for session in ["account", "self-hosted"] {
        assert!(manifest()["auth"][session]["login-gap-ms"].as_u64().unwrap() >= 5_000, "{session}");
    }
    assert!(manifest()["auth"]["api-key"].get("login").is_none(), "a key needs no login");
}

#[test]
fn keys_of_devices_are_secrets() {
    let manifest = manifest();
    let secrets: Vec<&str> =
        manifest["secret-fields"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for name in ["x_authkey", "x_inform_authkey", "x_vwirekey", "x_passphrase", "x_ssh_password", "x_secret"]
    {
        assert!(secrets.contains(&name), "{name}");
    }
    // A number can be a secret, too.
    assert!(secrets.contains(&"lte_sim_pin"));
    assert_eq!(package().kind("devices.config")["fields"]["lte_sim_pin"], "secret");
    let mobile = package().feature("unifi.devices.mobile").unwrap();
    let pin = &mobile["operations"][0]["payload-schema"]["properties"]["lte_sim_pin"];
    assert_eq!(*pin, json!({ "type": "string", "writeOnly": true }));
    // Codes of options and countries have the same name as those of vouchers, which are not shown instead.
    assert!(!secrets.contains(&"code"));
    for kind in ["hotspot.voucher", "hotspot.voucher-legacy"] {
        let fields = package().kind(kind)["fields"].as_object().unwrap();
        assert!(!fields.is_empty() && !fields.contains_key("code"), "{kind}");
    }
}
