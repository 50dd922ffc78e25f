//! Vouchers of the guest portal, and what they give.

use serde_json::{Value, json};

use crate::console::Console;
use crate::reply::Refusal;
use crate::row::{number, put, text, uuid};
use crate::v1::{Call, Data, need};

/// What a voucher gives.
pub(crate) struct Voucher<'a> {
    pub(crate) name: &'a str,
    pub(crate) minutes: i64,
    /// Guests that may use it; none is no limit.
    pub(crate) guests: Option<i64>,
    pub(crate) megabytes: Option<i64>,
    pub(crate) down: Option<i64>,
    pub(crate) up: Option<i64>,
}

/// Makes vouchers, and returns their ids.
pub(crate) fn make_vouchers(own: &mut Console, site: &str, count: i64, voucher: &Voucher<'_>) -> Vec<String> {
    let made = own.now / 1000;
    let one = |own: &mut Console| {
        let number = own.store.rows(site, "voucher").len();
        let digits: String = uuid("voucher", &format!("{site} {number} {made}"))
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        let code = format!("{digits}0000000000")[..10].to_owned();
        let row = json!({
            "code": code, "create_time": made, "duration": voucher.minutes, "note": voucher.name,
            "for_hotspot": true,
            "quota": voucher.guests.unwrap_or(0), "used": 0, "status": "VALID_MULTI",
            "admin_name": own.settings.admin.0,
            "qos_overwrite": voucher.down.is_some() || voucher.up.is_some(), "qos_rate_max_up": voucher.up,
            "qos_rate_max_down": voucher.down, "qos_usage_quota": voucher.megabytes, "status_expires": 0,
        });
        own.store.add(site, "voucher", crate::row::row(row))
    };
    (0..count).map(|_| one(own)).collect()
}

/// Commands about vouchers and guests.
pub(crate) fn command(own: &mut Console, call: &Call<'_>, command: &str) -> Data {
    match command {
        "create-voucher" => {
            let unit = number(&call.body, "expire_unit").unwrap_or(1);
            let minutes =
                number(&call.body, "expire").or_else(|| Some(number(&call.body, "expire_number")? * unit));
            let quota = number(&call.body, "quota").unwrap_or(0);
            let voucher = Voucher {
                name: text(&call.body, "note"),
                minutes: minutes
                    .filter(|minutes| *minutes > 0)
                    .ok_or_else(|| Refusal::invalid("expire", "[1-9][0-9]*"))?,
                guests: (quota > 0).then_some(quota),
                megabytes: number(&call.body, "bytes"),
                down: number(&call.body, "down"),
                up: number(&call.body, "up"),
            };
            let count = number(&call.body, "n").unwrap_or(1);
            if !(1..=10_000).contains(&count) {
                return Err(Refusal::invalid("n", "[1-9][0-9]{0,3}"));
            }
            make_vouchers(own, call.site, count, &voucher);
            Ok(vec![json!({ "create_time": own.now / 1000 })])
        }
        "delete-voucher" => {
            let id = need(call, "_id")?;
            own.store.remove(call.site, "voucher", id).ok_or_else(Refusal::no_id)?;
            Ok(Vec::new())
        }
        "extend" => {
            let guest =
                own.store.find_mut(call.site, "guest", need(call, "_id")?).ok_or_else(Refusal::no_id)?;
            let end = number(guest, "end").unwrap_or_default() + 86_400;
            put(guest, "end", end);
            Ok(vec![Value::Object(crate::row::shown(guest))])
        }
        _ => Err(Refusal::new("UnknownCommand")),
    }
}
