//! WLAN groups, the many writes of one SSID, and radios.

use serde_json::{Value, json};

use super::Peer;

fn ssid(name: &str) -> Value {
    json!({
        "name": name, "deviceType": 1, "band": 3, "guestNetEnable": false, "security": 3, "broadcast": true,
        "vlanEnable": false, "mloEnable": false, "pmfMode": 3, "enable11r": false, "hidePwd": false,
        "pskSetting": {"securityKey": "long-enough", "versionPsk": 2, "encryptionPsk": 3,
        "gikRekeyPskEnable": false},
    })
}

async fn group(peer: &Peer) -> String {
    let groups = peer.get("v1 site wireless-network/wlans").await;
    format!("v1 site wireless-network/wlans/{}/ssids", groups[0]["wlanId"].as_str().unwrap())
}

#[tokio::test]
async fn an_ssid_is_one_create_and_several_changes() {
    let peer = Peer::new().await;
    let ssids = group(&peer).await;
    let id = peer.ok("POST", &ssids, ssid("Lab")).await["ssidId"].as_str().unwrap().to_owned();
    let own = format!("{ssids}/{id}");
    let rates = json!({"rate2gCtrlEnable": true, "rate5gCtrlEnable": false, "lowerDensity2g": 6});
    peer.ok("PATCH", &format!("{own}/update-rate-control"), rates).await;
    let limit = json!({
        "clientRateLimit": {"customSetting": {"downLimitEnable": true, "downLimit": 20, "downLimitType": 1,
        "upLimitEnable": false}},
        "ssidRateLimit": {"customSetting": {"downLimitEnable": false, "upLimitEnable": false}},
    });
    peer.ok("PATCH", &format!("{own}/update-rate-limit"), limit).await;
    let mut basic = ssid("Lab two");
    basic["broadcast"] = json!(false);
    peer.ok("PATCH", &format!("{own}/update-basic-config"), basic).await;
    let read = peer.get(&own).await;
    assert_eq!((&read["name"], &read["broadcast"]), (&json!("Lab two"), &json!(false)));
    assert_eq!(read["rateControl"]["rate2gCtrlEnable"], true);
    assert_eq!(read["clientRateLimit"]["customSetting"]["downLimit"], 20);
    assert_eq!(read["multiCast"]["multiCastEnable"], true);
}

#[tokio::test]
async fn a_personal_ssid_needs_a_key_and_a_band_carries_eight() {
    let peer = Peer::new().await;
    let ssids = group(&peer).await;
    let mut open = ssid("No key");
    open.as_object_mut().unwrap().remove("pskSetting");
    assert_eq!(peer.code("POST", &ssids, open).await, -1001);
    for number in 0..6 {
        peer.ok("POST", &ssids, ssid(&format!("Extra {number}"))).await;
    }
    assert_ne!(peer.code("POST", &ssids, ssid("Too many")).await, 0);
    assert_eq!(peer.rows(&ssids).await.len(), 8);
}

#[tokio::test]
async fn the_default_group_stays_and_a_deleted_group_takes_its_ssids() {
    let peer = Peer::new().await;
    let groups = "v1 site wireless-network/wlans";
    let default = peer.get(groups).await[0]["wlanId"].as_str().unwrap().to_owned();
    assert_ne!(peer.code("DELETE", &format!("{groups}/{default}"), Value::Null).await, 0);
    peer.ok("POST", groups, json!({"name": "Events", "clone": true, "clonedWlanId": default})).await;
    let new = peer.get(groups).await[1]["wlanId"].as_str().unwrap().to_owned();
    assert_eq!(peer.rows(&format!("{groups}/{new}/ssids")).await.len(), 2);
    peer.ok("DELETE", &format!("{groups}/{new}"), Value::Null).await;
    assert_eq!(peer.get(groups).await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_radio_is_set_by_frequency_and_read_by_channel() {
    let peer = Peer::new().await;
    let ap = peer.named("v1 site devices", "type", "ap").await.unwrap()["mac"].as_str().unwrap().to_owned();
    let config = format!("v1 site aps/{ap}/radio-config");
    let mut radio = peer.get(&config).await["radioSetting2g"].clone();
    radio["freq"] = json!(2462);
    peer.ok("PATCH", &config, json!({"radioSetting2g": radio})).await;
    assert_eq!(peer.get(&config).await["radioSetting2g"]["freq"], 2462);
    assert_eq!(peer.get(&format!("v1 site aps/{ap}/radios")).await["wp2g"]["actualChannel"], "11");
}
