//! Values as they are written: refused, or rewritten into the router's form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::{self, Prefix};
use crate::duration;
use crate::facts::{Field, Type};
use crate::interfaces;
use crate::refusal::Refusal;
use crate::store::{Link, Store, Target, Value, parse_id};

/// Checks a written text, and returns what is stored.
pub(crate) fn checked(field: &Field, text: &str, store: &Store) -> Result<Value, Refusal> {
    if field.kind == Type::Link {
        return links(field, text, store);
    }
    let (mark, rest) = match text.strip_prefix('!') {
        Some(rest) if field.negatable && field.kind != Type::Marks => ("!", rest),
        _ => ("", text),
    };
    let is_word = field.words.iter().any(|word| word == rest) || (rest.is_empty() && !is_strict(field.kind));
    let stored = if is_word { rest.to_owned() } else { plain(field, rest)? };
    Ok(Value::Text(format!("{mark}{stored}")))
}

/// Whether an empty text is a value to be refused.
fn is_strict(kind: Type) -> bool {
    matches!(kind, Type::Bool | Type::Enum)
}

fn plain(field: &Field, text: &str) -> Result<String, Refusal> {
    let name = &field.name;
    let invalid = || Refusal::invalid(name);
    match field.kind {
        Type::Text | Type::Link => Ok(text.to_owned()),
        Type::Flag => Ok(String::new()),
        Type::Bool => boolean(text).map(|on| on.to_string()).ok_or_else(|| Refusal::no_match(name)),
        Type::Int => integer(field, text),
        Type::Duration => span(field, text),
        Type::Enum if field.options.iter().any(|option| option == text) => Ok(text.to_owned()),
        Type::Enum if field.default.as_deref() == Some(text) => Ok(text.to_owned()),
        // Yes and no are written as booleans, too.
        Type::Enum => boolean(text)
            .map(|on| if on { "yes" } else { "no" })
            .filter(|word| field.options.iter().any(|option| option == word))
            .map(str::to_owned)
            .ok_or_else(|| Refusal::no_match(name)),
        Type::Words | Type::Marks => words(field, text),
        Type::List => list(field, text),
        Type::Mac => address::mac(text.split('/').next().unwrap_or_default())
            .map(|mac| match text.split_once('/').and_then(|(_, mask)| address::mac(mask)) {
                Some(mask) => format!("{mac}/{mask}"),
                None => mac,
            })
            .ok_or_else(invalid),
        Type::Ip => text.parse::<IpAddr>().map(|ip| ip.to_string()).map_err(|_| invalid()),
        Type::Ip4 => text.parse::<Ipv4Addr>().map(|ip| ip.to_string()).map_err(|_| invalid()),
        Type::Ip6 => text.parse::<Ipv6Addr>().map(|ip| ip.to_string()).map_err(|_| invalid()),
        Type::Prefix4 => prefix(text, true).ok_or_else(invalid),
        Type::Prefix6 => prefix(text, false).ok_or_else(invalid),
        Type::Range4 => address::show_range4(text).ok_or_else(invalid),
    }
}

/// What the console takes for a boolean.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

/// A number, decimal or with the prefix `0x`.
pub(crate) fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn integer(field: &Field, text: &str) -> Result<String, Refusal> {
    let value = number(text).ok_or_else(|| Refusal::invalid(&field.name))?;
    let (min, max) = (field.min.unwrap_or(i64::from(i32::MIN)), field.max.unwrap_or(i64::MAX));
    if value < min || value > max {
        return Err(Refusal::unclear(format!("value of {} out of range ({min}..{max})", field.name)));
    }
    Ok(if field.hex { format!("0x{value:X}") } else { value.to_string() })
}

fn span(field: &Field, text: &str) -> Result<String, Refusal> {
    let micros = duration::parse(text).ok_or_else(|| Refusal::invalid(&field.name))?;
    let bounds = field.range.as_ref().and_then(|range| range.split_once(".."));
    if let Some((min, max)) = bounds {
        let is_out = |bound: Option<u64>, over: bool| {
            bound.is_some_and(|bound| if over { micros > bound } else { micros < bound })
        };
        if is_out(duration::parse(min), false) || is_out(duration::parse(max), true) {
            return Err(Refusal::unclear(format!("value of {} out of range ({min}..{max})", field.name)));
        }
    }
    Ok(duration::show(micros))
}

/// A set of words in the router's order, negated ones last.
fn words(field: &Field, text: &str) -> Result<String, Refusal> {
    let sent: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let is_marked = field.kind == Type::Marks;
    let known = |word: &&str| {
        let bare = if is_marked { word.trim_start_matches('!') } else { word };
        bare.is_empty() || field.options.is_empty() || field.options.iter().any(|option| option == bare)
    };
    if let Some(wrong) = sent.iter().find(|word| !known(word)) {
        // A mark at a single word, where the field takes none, is not read as a word at all.
        let is_mark = wrong.starts_with('!');
        return Err(if is_mark { Refusal::invalid(&field.name) } else { Refusal::no_match(&field.name) });
    }
    if field.options.is_empty() {
        return Ok(sent.join(","));
    }
    let chosen = |mark: &str| {
        let word = |option: &String| format!("{mark}{option}");
        let all = field.options.iter().map(word).filter(|word| sent.contains(&word.as_str()));
        all.collect::<Vec<_>>()
    };
    let whole = if is_marked && sent.first() == Some(&"!") { vec!["!".to_owned()] } else { Vec::new() };
    let mut out = [whole, chosen("")].concat();
    if is_marked {
        out.extend(chosen("!"));
    }
    Ok(out.join(","))
}

/// Items keep the order in which they were sent.
fn list(field: &Field, text: &str) -> Result<String, Refusal> {
    let item = field.item.as_deref().unwrap_or_default();
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let checked = parts.map(|part| {
        let is_word = field.words.iter().any(|word| word == part);
        let good = match item {
            _ if is_word => Some(part.to_owned()),
            "range" | "integer" => address::numbers(part).map(|_| part.to_owned()),
            "ip-address" => part.parse::<IpAddr>().ok().map(|ip| ip.to_string()),
            "ipv6-address" => part.parse::<Ipv6Addr>().ok().map(|ip| ip.to_string()),
            "mac-address" => address::mac(part),
            "ip-range" => address::show_range4(part).map(|_| part.to_owned()),
            _ => Some(part.to_owned()),
        };
        good.ok_or_else(|| Refusal::invalid(&field.name))
    });
    Ok(checked.collect::<Result<Vec<_>, _>>()?.join(","))
}

/// A prefix without its host bits.
fn prefix(text: &str, is_v4: bool) -> Option<String> {
    let prefix = Prefix::parse(text).filter(|prefix| prefix.address.is_ipv4() == is_v4)?;
    Some(if prefix.is_host() && is_v4 { prefix.address.to_string() } else { prefix.show_network() })
}

/// Rows that a field names, by name or id.
fn links(field: &Field, text: &str, store: &Store) -> Result<Value, Refusal> {
    let menu = field.link.as_deref().unwrap_or_default();
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let links = parts.map(|part| {
        let (negated, name) = match part.strip_prefix('!') {
            Some(rest) if field.negatable => (true, rest),
            _ => (false, part),
        };
        let to = target(field, menu, name, store).ok_or_else(|| Refusal::no_match(&field.name))?;
        Ok(Link { negated, to })
    });
    Ok(Value::Links(links.collect::<Result<_, Refusal>>()?))
}

fn target(field: &Field, menu: &str, name: &str, store: &Store) -> Option<Target> {
    let (menu, facts) = crate::facts::Facts::get().menu(menu)?;
    let found = match (menu, parse_id(name)) {
        ("interface", Some(id)) => interfaces::find(store, id).map(|(_, row)| row.id),
        ("interface", None) => interfaces::named(store, name).map(|(_, row)| row.id),
        (_, Some(id)) => store.find(menu, id).map(|row| row.id),
        (_, None) => store.having(menu, "name", name).map(|row| row.id),
    };
    if let Some(id) = found {
        return Some(Target::Row(menu, id));
    }
    let is_word = field.words.iter().chain(&field.options).any(|word| word == name)
        || field.default.as_deref() == Some(name)
        || WORDS.iter().any(|(link, words)| *link == menu && words.contains(&name));
    // Lists of interfaces may stand where an interface does, where the vendor allows both.
    let is_list = menu == "interface"
        && field.name == "interface"
        && store.having("interface/list", "name", name).is_some();
    let is_free = !facts.has_names();
    (is_word || is_list || is_free).then(|| Target::Word(name.to_owned()))
}

/// Words that stand for no row or for all, by the menu of the rows.
const WORDS: [(&str, &[&str]); 11] = [
    ("interface", &["all", "none", "any", "dynamic", "static", "lo"]),
    ("ip/vrf", &["main", "none", "all"]),
    ("routing/table", &["main"]),
    ("certificate", &["none", "any", "*0", "auto"]),
    ("ip/pool", &["none", "static-only"]),
    ("ipv6/pool", &["none", "static-only"]),
    ("ip/dhcp-server", &["all"]),
    ("ipv6/dhcp-server", &["all"]),
    ("ip/hotspot", &["all"]),
    ("queue/simple", &["none"]),
    ("ip/ipsec/policy/group", &["none"]),
];
