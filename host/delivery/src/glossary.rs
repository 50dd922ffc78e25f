//! How the API document speaks of messages and webhooks.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const WEBHOOKS: Glossary = Glossary {
    groups: &[(
        "webhooks",
        "Webhooks",
        "Subscriptions that send events to URLs at least once, with their deliveries and templates.",
    )],
    nouns: &[
        ("/webhooks", "webhook", "webhooks"),
        ("/webhooks/deliveries", "webhook_delivery", "webhook_deliveries"),
        ("/webhooks/templates", "webhook_template", "webhook_templates"),
    ],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
};

pub(crate) const NOTIFICATIONS: Glossary = Glossary {
    groups: &[(
        "notifications",
        "Notifications",
        "Messages for people, and the channels that carry them: mail, webhooks, Slack, Teams, ntfy.",
    )],
    nouns: &[
        ("/notifications", "notification", "notifications"),
        ("/notifications/channels", "channel", "channels"),
    ],
    ..Glossary::EMPTY
};
