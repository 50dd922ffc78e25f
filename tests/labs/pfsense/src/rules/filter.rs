//! Rules, aliases, schedules, translations, the shaper and virtual addresses.

use serde_json::{Value, json};

use super::{refusal, unless};
use crate::checks::is_alias;
use crate::device::Pfsense;
use crate::draft::Draft;
use crate::facts::Model;
use crate::interfaces;
use crate::net;
use crate::reply::Refusal;
use crate::store::{Config, Object, is_true, text};

/// Names that an alias cannot have.
const NO_ALIASES: [&str; 6] = ["tcp", "udp", "icmp", "port", "pass", "http"];

pub(crate) fn field(draft: &mut Draft, name: &str) -> Result<(), Refusal> {
    match (draft.model.name.as_str(), name) {
        ("FirewallRule", _) => rule(draft, name),
        ("FirewallAlias", "name") => {
            unless(!NO_ALIASES.contains(&draft.text("name")), "INVALID_FIREWALL_ALIAS_NAME")
        }
        ("FirewallAlias", "address") => addresses(draft),
        ("FirewallAlias", "detail") => details(draft),
        ("FirewallScheduleTimeRange", "hour") => hour(draft.text("hour")),
        ("VirtualIP", _) => virtual_ip(draft, name),
        ("TrafficShaper", "bandwidth") => {
            let is_share = draft.text("bandwidthtype") == "%";
            let is_over = is_share && draft.number("bandwidth").is_some_and(|share| share > 100);
            unless(!is_over, "TRAFFIC_SHAPER_BANDWIDTH_EXCEED_MAXIMUM_PERCENTAGE")
        }
        ("OutboundNATMapping", "poolopts") => {
            let is_alias = is_alias(draft.config(), draft.text("target"), false);
            let is_plain = draft.text("poolopts").starts_with("round-robin");
            unless(!is_alias || is_plain, "OUTBOUND_NAT_MAPPING_INVALID_POOLOPTS_WITH_ALIAS_TARGET")
        }
        _ => Ok(()),
    }
}

fn rule(draft: &mut Draft, name: &str) -> Result<(), Refusal> {
    let texts = |name: &str| -> Vec<String> {
        let items = draft.value(name).as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    match name {
        "interface" => {
            let is_one = texts("interface").len() <= 1 || draft.is_true("floating");
            unless(is_one, "FIREWALL_RULE_MULTIPLE_INTERFACE_WITHOUT_FLOATING")
        }
        "statetype" if draft.text("statetype") == "synproxy state" => {
            unless(
                draft.text("protocol") == "tcp",
                "FIREWALL_RULE_SYNPROXY_STATE_TYPE_WITH_NON_TCP_PROTOCOL",
            )?;
            unless(draft.value("gateway").is_null(), "FIREWALL_RULE_SYNPROXY_STATE_TYPE_WITH_GATEWAY")
        }
        "tcp_flags_set" => {
            let all = texts("tcp_flags_out_of");
            let is_part = texts("tcp_flags_set").iter().all(|flag| all.contains(flag));
            unless(is_part, "FIREWALL_RULE_TCP_FLAGS_SET_NOT_IN_TCP_FLAGS_OUT_OF")
        }
        "dnpipe" if limiter(draft.config(), draft.text("dnpipe")).is_none() => {
            Err(refusal(404, "FIREWALL_RULE_DNPIPE_NOT_FOUND"))
        }
        "pdnpipe" => {
            let (own, other) = (draft.text("pdnpipe"), draft.text("dnpipe"));
            unless(!other.is_empty(), "FIREWALL_RULE_PDNPIPE_SET_WITHOUT_DNPIPE")?;
            unless(own != other, "FIREWALL_RULE_PDNPIPE_CANNOT_MATCH_DNPIPE")?;
            match (limiter(draft.config(), own), limiter(draft.config(), other)) {
                (None, _) => Err(refusal(404, "FIREWALL_RULE_PDNPIPE_NOT_FOUND")),
                (own, other) if own != other => {
                    Err(refusal(409, "FIREWALL_RULE_PDNPIPE_DOES_NOT_MATCH_DNPIPE_LIMITER_TYPE"))
                }
                _ => Ok(()),
            }
        }
        "ackqueue" => {
            unless(!draft.text("defaultqueue").is_empty(), "FIREWALL_RULE_ACKQUEUE_WITHOUT_DEFAULTQUEUE")?;
            let differs = draft.text("ackqueue") != draft.text("defaultqueue");
            unless(differs, "FIREWALL_RULE_ACKQUEUE_MATCHES_DEFAULTQUEUE")
        }
        "updated_by" => {
            draft.set("updated_by", json!(draft.client));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Whether a name is a limiter (`true`) or one of the queues of a limiter.
fn limiter(config: &Config, name: &str) -> Option<bool> {
    if config.having("TrafficShaperLimiter", "name", name).is_some() {
        return Some(true);
    }
    let queues = config
        .list("TrafficShaperLimiter")
        .iter()
        .flat_map(|own| Config::children(own, "TrafficShaperLimiterQueue"));
    { queues }.any(|queue| text(&queue, "name") == name).then_some(false)
}

fn addresses(draft: &Draft) -> Result<(), Refusal> {
    let config = draft.config();
    let items = draft.value("address").as_array().into_iter().flatten();
    for item in items.filter_map(Value::as_str) {
        let (is_right, id) = match draft.text("type") {
            "port" => (
                net::is_port(item) || net::is_port_range(item) || is_alias(config, item, true),
                "INVALID_PORT_ALIAS_ADDRESS",
            ),
            "host" => (
                net::is_ip(item) || net::is_fqdn(item) || is_alias(config, item, false),
                "INVALID_HOST_ALIAS_ADDRESS",
            ),
            _ => (
                net::is_subnet(item) || net::is_fqdn(item) || is_alias(config, item, false),
                "INVALID_NETWORK_ALIAS_ADDRESS",
            ),
        };
        unless(is_right, id)?;
    }
    Ok(())
}

/// Fills up missing details with a text that tells the time, as soon as there is one.
fn details(draft: &mut Draft) -> Result<(), Refusal> {
    let addresses = draft.value("address").as_array().map_or(0, Vec::len);
    let Some(mut details) = draft.value("detail").as_array().cloned() else { return Ok(()) };
    unless(details.len() <= addresses, "TOO_MANY_ALIAS_DETAILS")?;
    if details.is_empty() {
        return Ok(());
    }
    let at = i64::try_from(draft.firewall.time.as_secs()).unwrap_or_default();
    let at = chrono::DateTime::from_timestamp(at, 0).unwrap_or_default().to_rfc2822();
    details.resize(addresses, json!(format!("Entry added {at}")));
    draft.set("detail", json!(details));
    Ok(())
}

fn hour(range: &str) -> Result<(), Refusal> {
    let minutes = |time: &str| -> Option<(u32, u32)> {
        let (hour, minute) = time.split_once(':')?;
        let (hour, minute) = (hour.parse().ok()?, minute.parse().ok()?);
        (hour < 24 && minute < 60).then_some((hour, minute))
    };
    let (from, to) = range.split_once('-').unwrap_or((range, ""));
    let (Some(from), Some(to)) = (minutes(from), minutes(to)) else {
        return Err(refusal(400, "FIREWALL_SCHEDULE_TIME_RANGE_HOUR_MUST_BE_24_HOUR_TIME_RANGE"));
    };
    let is_quarter = |minute: u32| [0, 15, 30, 45, 59].contains(&minute);
    unless(is_quarter(from.1) && is_quarter(to.1), "FIREWALL_SCHEDULE_TIME_RANGE_HOUR_WITH_INVALID_MINUTES")?;
    unless(from <= to, "FIREWALL_SCHEDULE_TIME_RANGE_HOUR_START_TIME_GREATER_THAN_END_TIME")
}

/// Months and days belong together.
pub(crate) fn time_range(draft: &mut Draft) -> Result<(), Refusal> {
    let numbers = |name: &str| -> Option<Vec<i64>> {
        Some(draft.value(name).as_array()?.iter().filter_map(Value::as_i64).collect())
    };
    let (Some(months), Some(days)) = (numbers("month"), numbers("day")) else { return Ok(()) };
    unless(months.len() == days.len(), "FIREWALL_SCHEDULE_TIME_RANGE_MISMATCHED_MONTH_AND_DAY_VALUES")?;
    let is_in = |(month, day): (&i64, &i64)| {
        let last = match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (1..=last).contains(day)
    };
    unless(months.iter().zip(&days).all(is_in), "FIREWALL_SCHEDULE_TIME_RANGE_DAY_VALUE_IS_NOT_IN_MONTH")
}

fn virtual_ip(draft: &Draft, name: &str) -> Result<(), Refusal> {
    match name {
        "type" => {
            let is_single = ["ipalias", "carp"].contains(&draft.text("mode"));
            unless(
                !is_single || draft.text("type") != "network",
                "VIRTUALIP_MODE_DOES_NOT_SUPPORT_NETWORK_TYPE",
            )
        }
        "subnet" => {
            let taken = draft.config().list(interfaces::INTERFACES).iter().any(|own| {
                text(own, "ipaddr") == draft.text("subnet") || text(own, "ipaddrv6") == draft.text("subnet")
            });
            unless(!taken, "UNIQUE_FROM_FOREIGN_MODEL_VALIDATOR_FAILED")
        }
        "subnet_bits" => {
            let is_over =
                net::is_ipv4(draft.text("subnet")) && draft.number(name).is_some_and(|bits| bits > 32);
            unless(!is_over, "VIRTUALIP_IPV4_SUBNET_BITS_EXCEEDED")
        }
        "vhid" => {
            let same = draft.siblings.iter().any(|row| {
                row.id != draft.id
                    && ["interface", "vhid"]
                        .iter()
                        .all(|field| row.values.get(*field) == draft.values.get(*field))
                    && text(&row.values, "mode") == "carp"
            });
            if same { Err(refusal(409, "VIRTUALIP_VHID_ALREADY_IN_USE")) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

pub(crate) fn show(firewall: &Pfsense, model: &Model, object: &Object, out: &mut Object) {
    match model.name.as_str() {
        "TrafficShaper" => drop(out.insert("name".to_owned(), json!(text(object, "interface")))),
        // The household's schedules are of all days: one is active while it has a time.
        "FirewallSchedule" => {
            let has_time = !Config::children(object, "FirewallScheduleTimeRange").is_empty();
            out.insert("active".to_owned(), json!(has_time));
        }
        "FirewallStatesSize" => {
            out.insert("currentstates".to_owned(), json!(firewall.live.states.len()));
            out.insert("defaultmaximumstates".to_owned(), json!(201_000));
        }
        _ => {
            let is_carp = text(object, "mode") == "carp";
            let status = if firewall.live.carp_is_on { "master" } else { "disabled" };
            out.insert("carp_status".to_owned(), if is_carp { json!(status) } else { Value::Null });
        }
    }
    if model.name == "VirtualIP" && is_true(object, "disabled") {
        out.insert("carp_status".to_owned(), json!("disabled"));
    }
}
