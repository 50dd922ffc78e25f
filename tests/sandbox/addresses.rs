//! Where a controller may not be, whatever its URL looks like.
//!
//! The runtime's own tests judge the allowed ranges; here a controller has each
//! of these URLs and a call is made.

use heddle_core::Clock;
use serde_json::Value;

use super::{Lab, load, objects, package, shared_code, start_runtime};

const REFUSED: &[&str] = &[
    // This machine.
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "localhost",
    "LOCALHOST",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    // Metadata services.
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "169.254.43518",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[::169.254.169.254]",
    "100.100.100.200",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    // Link-local, unspecified, multicast, broadcast, reserved.
    "169.254.0.1",
    "[fe80::1]",
    "[febf::1]",
    "[fec0::1]",
    "0.0.0.0",
    "0",
    "0.1.2.3",
    "[::]",
    "224.0.0.1",
    "239.255.255.250",
    "[ff02::1]",
    "255.255.255.255",
    "240.0.0.1",
    "192.0.0.8",
    "[100::1]",
    // Translated and tunnelled.
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[2001:0:4136:e378:8000:63bf:5601:5601]",
    "[fe80::5efe:7f00:1]",
    "[2a00::5efe:127.0.0.1]",
];

/// Never refused by the guard; no machine has these addresses.
const ALLOWED: &[&str] = &["192.0.2.1", "198.51.100.7", "203.0.113.5", "[2001:db8::1]"];

/// What a calm guest learns when its controller is there.
async fn answer(lab: &Lab, host: &str) -> Value {
    // A controller of its own: refusals count for the breaker.
    let mut call = lab.call_to(lab.clock.new_id(), &format!("http://{host}:{}/", lab.device.port()));
    call.deadline = Some(std::time::Duration::from_secs(1));
    objects(&lab.adapter, &call, "calm").await.expect("a calm guest reports what it was told")
}

/// A lab whose runtime was given these networks.
async fn lab_with(extra_networks: &[&str]) -> Lab {
    let mut lab = Lab::start().await;
    lab.runtime = start_runtime(&shared_code(), extra_networks, &Clock::default());
    lab.adapter =
        load(&lab.runtime, &package::manifest(), &package::hostile()).await.expect("the guest is loaded");
    lab
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn this_machine_metadata_and_reserved_addresses_are_never_connected_to() {
    let lab = lab_with(&[]).await;
    for host in REFUSED {
        let answer = answer(&lab, host).await;
        assert_eq!(answer["code"], "address", "'{host}': {answer}");
        assert_eq!(answer["fault"], "denied", "'{host}': {answer}");
    }
    assert!(lab.device.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_addresses_are_tried() {
    let lab = lab_with(&[]).await;
    let answers = ALLOWED.iter().map(|host| answer(&lab, host));
    for (host, answer) in ALLOWED.iter().zip(futures::future::join_all(answers).await) {
        assert!(matches!(answer["fault"].as_str(), Some("connection" | "timeout")), "'{host}': {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extra_network_opens_itself_and_no_metadata_service() {
    let lab = lab_with(&["127.0.0.0/8", "169.254.0.0/16", "fd00::/8", "100.64.0.0/10"]).await;
    for host in ["127.0.0.1", "localhost.", "[::1]"] {
        let answer = answer(&lab, host).await;
        let is_open = host == "127.0.0.1";
        assert_eq!(answer["status"] == 200, is_open, "'{host}': {answer}");
    }
    for host in ["169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "100.100.100.200"] {
        let answer = answer(&lab, host).await;
        assert_eq!(answer["code"], "address", "'{host}': {answer}");
    }
}
