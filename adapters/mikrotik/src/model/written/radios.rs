//! Wireless networks and radios.

use heddle_sdk::crud::{self, Asked, Expressed, refused};
use heddle_sdk::{Fault, Host, ModelObject, Operation};
use serde_json::{Value, json};

use super::super::text;
use super::super::wireless::{band, band_of, channel, frequency, setting};
use super::{asked_text, own, rows, texts};
use crate::VENDOR;

/// Most characters of the name of an interface.
const NAME_CHARS_MAX: usize = 15;

/// A new network is an interface on that of a radio.
pub(super) fn ssid(host: &dyn Host, asked: &Asked<'_>, changes: &mut [Expressed]) -> Result<(), Fault> {
    let change = own(changes)?;
    // No authentication at all is an absent list.
    if change.payload.get("security_authentication-types") == Some(&json!([])) {
        change.payload.insert("security_authentication-types".to_owned(), Value::Null);
    }
    let wanted = asked.fields.get("bands").map(texts);
    if change.operation != Operation::Create {
        return match wanted {
            Some(bands) if asked.row.and_then(band_of).is_some_and(|own| bands == [own]) => Ok(()),
            Some(_) => {
                Err(refused("bands", "follow from the radio there; make a new one and delete this one"))
            }
            None => Ok(()),
        };
    }
    if change.payload.get("security_authentication-types") == Some(&Value::Null) {
        change.payload.remove("security_authentication-types");
    }
    let radio = radio_of(host, wanted.as_deref())?;
    let interfaces = rows(host, "capsman.wifi")?;
    let name = asked_text(asked, "name").unwrap_or_default();
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let free = (1..1_000).map(|count| {
        let behind = if count == 1 { String::new() } else { format!("-{count}") };
        let own: String = plain.chars().take(NAME_CHARS_MAX - behind.len()).collect();
        format!("{own}{behind}")
    });
    let is_free = |name: &String| !interfaces.iter().any(|row| text(row, "name") == Some(name.as_str()));
    let mut free = free.filter(is_free);
    change.payload.insert("name".to_owned(), json!(free.next()));
    change.payload.insert("master-interface".to_owned(), json!(radio));
    Ok(())
}

/// The interface of the one radio that has a band.
fn radio_of(host: &dyn Host, wanted: Option<&[String]>) -> Result<String, Fault> {
    let radios = crud::list_model(&VENDOR, host, "radio", None, None)?.items;
    let is_meant = |radio: &&ModelObject| {
        let fields: Value = serde_json::from_str(&radio.fields).unwrap_or_default();
        let own = fields["band"].as_str();
        wanted.is_none_or(|wanted| own.is_some_and(|own| wanted == [own]))
    };
    let meant: Vec<&ModelObject> = radios.iter().filter(is_meant).collect();
    match meant[..] {
        [radio] => Ok(radio.key.clone()),
        _ => Err(refused("bands", "is one there, of one radio: a network is made for each radio")),
    }
}

/// Channels are frequencies there.
pub(super) fn radio(asked: &Asked<'_>, changes: &mut [Expressed]) -> Result<(), Fault> {
    let change = own(changes)?;
    let row = asked.row.unwrap_or(&Value::Null);
    if let Some(number) = asked.fields.get("channel").and_then(Value::as_i64) {
        let now = setting(row, "channel", "frequency").and_then(|own| channel(own.parse().ok()?));
        let own = setting(row, "channel", "band").and_then(band).or(now.map(|(band, _)| band));
        let own =
            own.ok_or_else(|| refused("channel", "needs a radio with a band: set channel_band first"))?;
        let mhz = frequency(own, number).filter(|mhz| channel(*mhz) == Some((own, number)));
        let mhz = mhz.ok_or_else(|| refused("channel", &format!("is none of the {own} GHz band")))?;
        change.payload.insert("channel_frequency".to_owned(), json!(mhz.to_string()));
    }
    match asked.fields.get("channel_auto").and_then(Value::as_bool) {
        Some(true) if asked.fields.contains_key("channel") => {
            return Err(refused("channel_auto", "goes with no channel"));
        }
        Some(true) => drop(change.payload.insert("channel_frequency".to_owned(), Value::Null)),
        Some(false) if !asked.fields.contains_key("channel") => {
            return Err(refused("channel", "is needed: without it the router chooses"));
        }
        _ => {}
    }
    if let Some(width) = asked.fields.get("width_mhz").and_then(Value::as_i64) {
        let word = match width {
            20 => "20mhz",
            40 => "20/40mhz",
            80 => "20/40/80mhz",
            160 => "20/40/80/160mhz",
            _ => return Err(refused("width_mhz", "can be 20, 40, 80 or 160")),
        };
        change.payload.insert("channel_width".to_owned(), json!(word));
    }
    Ok(())
}
