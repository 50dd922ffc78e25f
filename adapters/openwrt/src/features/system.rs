//! System settings. Restarting, upgrading and resetting are in `power`.

use heddle_sdk::Danger;

use super::{Edited, Naming, Notes, SectionFeature, Type, check::Check, field};

pub(crate) static SETTINGS: SectionFeature = SectionFeature {
    id: "openwrt.system.settings",
    area: "base",
    title: "System settings",
    kind: "system",
    config: "system",
    section: "system",
    key: &[],
    naming: Naming::Single,
    fields: &[
        field("hostname", Type::Text(Check::HostName), "name of the router"),
        field("description", Type::Text(Check::Title), "one line about it"),
        field("notes", Type::Text(Check::Line(1024)), "remarks"),
        field("zonename", Type::Text(Check::Line(64)), "time zone, 'Europe/Berlin'"),
        field("timezone", Type::Text(Check::Token), "time zone in POSIX form, 'CET-1CEST,M3.5.0,M10.5.0/3'"),
        field("log_size", Type::Number(16, 65_536), "log buffer in KiB"),
        field("log_ip", Type::Text(Check::Address), "log server"),
        field("log_port", Type::Number(1, 65_535), "port of the log server"),
        field("log_proto", Type::Word(&["udp", "tcp"]), "protocol of the log server"),
        field("conloglevel", Type::Number(1, 8), "least weight of console messages"),
        field("cronloglevel", Type::Number(0, 15), "least weight of cron messages"),
    ],
    required: &[],
    delete_danger: Danger::Normal,
    review: review_settings,
    order: None,
};

fn review_settings(edited: &Edited<'_>, notes: &mut Notes) {
    if edited.changes("zonename") != edited.changes("timezone") {
        notes.warn("'zonename' and 'timezone' belong together; only 'timezone' sets the clock");
    }
}
