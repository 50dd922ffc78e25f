//! Webhooks: what the controller sends by itself, to the addresses that its settings name.

use std::collections::BTreeSet;

use heddle_lab::Outgoing;
use serde_json::{Value, json};

use crate::call::Call;
use crate::controller::Omada;
use crate::store::GLOBAL;

/// Times that a message is sent again by a retry policy other than 0.
const RETRIES: u32 = 5;
const WEBHOOKS: &str = "system.webhook";

impl Omada {
    /// Sends a line of the log of a site to the webhooks that the log settings of the site and of the controller name, unless
    /// they leave lines of this kind out.
    pub(crate) fn tell(&mut self, site: &str, key: &str, text: &str) {
        let settings = [(site, "insights.notification"), (GLOBAL, "insights.notification-global")];
        let named: BTreeSet<String> = settings
            .iter()
            .filter_map(|(scope, name)| self.store.document(scope, name))
            .filter(|settings| settings["webhookConfig"]["webhookEnable"] == true && !mutes(settings, key))
            .filter_map(|settings| settings["webhookConfig"]["webhookId"].as_str().map(str::to_owned))
            .collect();
        for id in named {
            if let Some(webhook) = self.store.find(GLOBAL, WEBHOOKS, "webhookId", &id).cloned() {
                self.send(&webhook, site, text);
            }
        }
    }

    /// A test message to the addresses of the call, with the stored secret where the call has none.
    pub(crate) fn test_webhook(&mut self, call: &Call) -> Value {
        let mut webhook = call.body.clone();
        let stored = self.store.find(GLOBAL, WEBHOOKS, "webhookId", call.parameter("webhookId"));
        if webhook["shardedSecret"].is_null()
            && let Some(stored) = stored
        {
            webhook["shardedSecret"] = stored["shardedSecret"].clone();
        }
        self.send(&webhook, GLOBAL, "This is a test message.");
        Value::Null
    }

    fn send(&mut self, webhook: &Value, site: &str, text: &str) {
        let name = self.store.find(GLOBAL, "system.site", "siteId", site).map(|site| site["name"].clone());
        let mut message = json!({
            "Site": name.unwrap_or(json!("Global")), "Controller": "Omada Controller",
            "description": "This is a webhook message from Omada Controller", "text": [text],
            "timestamp": self.now, "shardSecret": webhook["shardedSecret"],
        });
        if webhook["template"] == 1 {
            message = json!({ "text": text });
        }
        let retries = if webhook["retryPolicy"].as_u64().unwrap_or_default() > 0 { RETRIES } else { 0 };
        for url in webhook["urlList"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.outbox.push(Outgoing {
                url: url.to_owned(),
                content_type: "application/json".to_owned(),
                body: message.to_string().into_bytes(),
                retries,
            });
        }
    }
}

/// Whether the settings leave this kind of line out; one that they do not list is sent.
fn mutes(settings: &Value, key: &str) -> bool {
    let lists = ["logNotifications", "alertNotifications", "eventNotifications"];
    let mut listed = lists.iter().filter_map(|name| settings[name].as_array()).flatten();
    listed.any(|one| one["key"] == key && one["webhook"] == false)
}
