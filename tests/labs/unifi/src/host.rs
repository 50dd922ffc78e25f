//! The console itself, beside the Network application: its accounts, firmware and restart.

use heddle_lab::{Answer, Request};
use serde_json::json;

use crate::console::Console;
use crate::reply::console;

/// Answers a call of the console, which has no prefix.
pub(crate) fn answer(own: &mut Console, request: &Request) -> Answer {
    let (who, headers) = match own.access.admit(&own.settings, request, own.now) {
        Ok(admitted) => admitted,
        Err(refused) => return refused,
    };
    // Keys belong to the applications.
    if who.has_key {
        return console(401, "Unauthorized");
    }
    let mut answer = match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/api/users/self") => Answer::json(
            200,
            &json!({
                "username": who.name, "full_name": who.name, "status": "ACTIVE",
                "isSuperAdmin": who.may_write,
            }),
        ),
        ("GET", "/api/system") => Answer::json(
            200,
            &json!({
                "hardware": { "shortname": "UDMPRO", "name": "UniFi Dream Machine Pro" },
                "name": "lab-console",
                "isCloudConnected": false, "hasInternet": true, "deviceState": "setup",
            }),
        ),
        ("GET", "/api/firmware/update") => Answer::json(
            200,
            &json!({
                "current": "4.3.6", "latest": "4.3.9", "updateAvailable": true, "channel": "release",
            }),
        ),
        ("POST", _) if !who.may_write => console(403, "Forbidden"),
        ("POST", "/api/firmware/update") => {
            own.ask_restart();
            Answer::json(200, &json!({ "status": "started" }))
        }
        ("POST", "/api/system/reboot") => {
            own.ask_restart();
            Answer::json(200, &json!({}))
        }
        _ => console(404, "Not Found"),
    };
    answer.headers.extend(headers);
    answer
}
