//! What the machine tells of itself: load, versions, logs, and the outcome of long jobs.

use serde_json::{Value, json};

use crate::device::Pfsense;
use crate::release::Release;
use crate::store::{Object, text};

pub(crate) fn system(firewall: &Pfsense) -> Value {
    let secs = firewall.uptime().as_secs();
    let uptime = format!(
        "{} Days {:02} Hours {:02} Minutes {:02} Seconds",
        secs / 86_400,
        secs / 3600 % 24,
        secs / 60 % 60,
        secs % 60
    );
    json!({ "platform": "Netgate pfSense lab", "serial": "LAB0000001", "netgate_id": "0a1b2c3d4e5f60718293",
        "uptime": uptime, "bios_vendor": "lab", "bios_version": "1.0", "bios_date": "01/01/2026", "kernel_pti": true,
        "mds_mitigation": "inactive", "temp_c": 41.5, "temp_f": 106.7, "cpu_model": "Simulated CPU @ 2.00GHz",
        "cpu_load_avg": [0.11, 0.15, 0.12], "cpu_count": 4, "cpu_usage": 2.75, "mem_usage": 17.5, "mbuf_usage": 3.5,
        "swap_usage": 0.5, "disk_usage": 4.5 })
}

pub(crate) fn version(firewall: &Pfsense) -> Value {
    let base = firewall.version.split('-').next().unwrap_or_default();
    json!({ "version": firewall.version, "base": base, "patch": "0", "buildtime": "Fri Sep 05 16:06:00 UTC 2025" })
}

pub(crate) fn api_version(firewall: &Pfsense) -> Value {
    let own = firewall.told_package.clone().unwrap_or_else(|| firewall.release.version());
    json!({ "current_version": own, "latest_version": "v2.10.0", "latest_version_release_date": "2026-08-07T00:00:00Z",
        "update_available": firewall.release != Release::V2_10,
        "available_versions": ["v2.10.0", "v2.9.0", "v2.8.4", "v2.7.1"] })
}

/// Lines of a log, the newest last.
pub(crate) fn log(firewall: &Pfsense, model: &str) -> Vec<Value> {
    let (program, texts): (&str, &[&str]) = match model {
        "AuthLog" => ("php-fpm[401]", &["/index.php: Successful login for user 'admin' from: 192.168.1.50"]),
        "DHCPLog" => (
            "dhcpd[512]",
            &["DHCPREQUEST for 192.168.1.101 from 02:00:00:00:02:65 via igb1", "DHCPACK on 192.168.1.101"],
        ),
        "FirewallLog" => (
            "filterlog[233]",
            &[
                "4,,,1000000103,igb0,match,block,in,4,0x0,,64,0,0,none,6,tcp,40,203.0.113.9,198.51.100.20,44321,22,0,S",
            ],
        ),
        "OpenVPNLog" => ("openvpn[771]", &["laptop/203.0.113.77:51020 MULTI: primary virtual IP: 10.8.0.2"]),
        "RESTAPILog" => (
            "RESTAPI[402]",
            &["Client from 192.168.1.50 is attempting to authenticate using Local database."],
        ),
        _ => ("kernel", &["igb1: link state changed to UP"]),
    };
    let secs = i64::try_from(firewall.time.as_secs()).unwrap_or_default();
    let mut out = Vec::new();
    for back in (0..5).rev() {
        let at = chrono::DateTime::from_timestamp(secs - 60 * (back + 1), 0).unwrap_or_default();
        let at = at.format("%b %e %H:%M:%S");
        out.extend(texts.iter().map(|line| json!({ "text": format!("{at} pfsense {program}: {line}") })));
    }
    out
}

pub(crate) fn acme(firewall: &Pfsense, model: &str) -> Vec<Value> {
    let (list, prefix) = match model {
        "ACMEAccountKeyRegister" => ("ACMEAccountKey", "register"),
        "ACMECertificateIssue" => ("ACMECertificate", "issue"),
        _ => ("ACMECertificate", "renew"),
    };
    let row = |own: &Object| {
        let name = text(own, "name");
        let at = firewall.live.acme.get(&format!("{prefix} {name}"));
        if prefix == "register" {
            return json!({ "name": name, "status": if at.is_some() { "registered" } else { "unknown" } });
        }
        let status = if at.is_some() { "completed" } else { "unknown" };
        json!({ "certificate": name, "result_log": "", "last_updated": at, "status": status })
    };
    firewall.stored.list(list).iter().map(row).collect()
}
