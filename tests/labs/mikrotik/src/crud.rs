//! The commands that all lists have, by the facts: add, set, remove, enable, disable, move, unset, reset.

use crate::call::{Answered, Call, Done, id_of};
use crate::check::{self, checked};
use crate::device::Router;
use crate::facts::{Field, Kind, Type};
use crate::refusal::Refusal;
use crate::store::{Origin, Row, Value, Values, parse_id, shown_id};
use crate::{interfaces, removal, rules};

/// Parameters that name rows and not fields.
const NAMING: [&str; 4] = [".id", "numbers", "number", "copy-from"];

pub(crate) fn run(router: &mut Router, call: &Call) -> Answered {
    match call.command {
        "add" => add(router, call),
        "set" if call.menu.kind_in(router.release) == Kind::Object => set_object(router, call),
        "set" => set(router, call),
        "remove" => remove(router, call),
        "enable" => switch(router, call, "false"),
        "disable" => switch(router, call, "true"),
        "move" => shift(router, call),
        "unset" => unset(router, call),
        "reset" => reset(router, call),
        "reset-counters" if call.menu.kind_in(router.release) == Kind::Object => Ok(Done::nothing()),
        "reset-counters" => {
            for id in call.ids(router)? {
                router.resets.insert((call.path, id), router.unix);
            }
            Ok(Done::nothing())
        }
        "reset-counters-all" => {
            for id in crate::print::ids(router, call.path) {
                router.resets.insert((call.path, id), router.unix);
            }
            Ok(Done::nothing())
        }
        _ => Err(Refusal::unclear("no such command")),
    }
}

/// The fields of a write and their texts. Names are checked before values, as the console does.
fn written<'c>(router: &Router, call: &'c Call) -> Result<Vec<(&'static Field, &'c str)>, Refusal> {
    let mut out = Vec::new();
    for (name, text) in &call.args {
        if NAMING.contains(&name.as_str()) || (name == "place-before" && call.command == "add") {
            continue;
        }
        let bare = name.strip_prefix('!').unwrap_or(name);
        let field = call.menu.field(bare, router.release).filter(|field| !field.create);
        let field = field.ok_or_else(|| Refusal::unknown_parameter(name))?;
        // A mark before the name clears the field.
        out.push((field, if name.starts_with('!') { "" } else { text.as_str() }));
    }
    Ok(out)
}

/// Puts written texts into the values of a row.
fn apply(router: &Router, call: &Call, values: &mut Values) -> Result<(), Refusal> {
    for (field, text) in written(router, call)? {
        let is_cleared = text.is_empty() && field.kind != Type::Flag;
        let is_mark = call.args.contains_key(&format!("!{}", field.name));
        if is_mark || (is_cleared && clears(field)) {
            values.remove(&field.name);
            continue;
        }
        let value = match (field.name.as_str(), values.get("tcp-flags")) {
            ("tcp-flags", Some(Value::Text(old))) => Value::Text(merged_flags(field, old, text)?),
            _ => checked(field, text, &router.store)?,
        };
        values.insert(field.name.clone(), value);
    }
    Ok(())
}

/// Whether an empty text takes the value away.
fn clears(field: &Field) -> bool {
    (field.unset && field.default.is_none())
        || !matches!(
            field.kind,
            Type::Text | Type::List | Type::Words | Type::Marks | Type::Bool | Type::Enum
        )
}

/// A new value replaces only the half, plain or negated, of which it names a member.
fn merged_flags(field: &Field, old: &str, text: &str) -> Result<String, Refusal> {
    let Value::Text(new) = check::checked(field, text, &crate::store::Store::default())? else {
        return Err(Refusal::invalid(&field.name));
    };
    let half = |text: &str, negated: bool| -> Vec<String> {
        let words = text.split(',').filter(|word| *word != "!" && !word.is_empty());
        words.filter(|word| word.starts_with('!') == negated).map(str::to_owned).collect()
    };
    let chosen = |negated: bool| {
        let own = half(&new, negated);
        if own.is_empty() { half(old, negated) } else { own }
    };
    let whole = if new.starts_with("!,") { vec!["!".to_owned()] } else { Vec::new() };
    Ok([whole, chosen(false), chosen(true)].concat().join(","))
}

fn add(router: &mut Router, call: &Call) -> Answered {
    if let Some(name) = call.args.keys().find(|name| *name == ".id" || *name == "numbers") {
        return Err(Refusal::unknown_parameter(name));
    }
    let mut values = match call.args.get("copy-from") {
        Some(text) => {
            let id = id_of(router, call.path, text)?;
            let row = router.store.find(call.path, id).ok_or(Refusal::NoSuchItem)?;
            row.values.clone()
        }
        None => Values::new(),
    };
    if call.has("place-before") && call.menu.field("place-before", router.release).is_none() {
        return Err(Refusal::unknown_parameter("place-before"));
    }
    written(router, call)?;
    let needed = call.menu.fields(router.release).filter(|field| field.required && !field.create);
    let missing: Vec<&str> = needed
        .map(|field| field.name.as_str())
        .filter(|name| !call.has(name) && !values.contains_key(*name))
        .collect();
    if let Some(name) = missing.iter().find(|name| rules::is_needed(call, name)) {
        return Err(Refusal::missing(name));
    }
    apply(router, call, &mut values)?;
    let mut row = Row { id: 0, origin: Origin::Own, values };
    rules::complete(router, call, &mut row, None)?;
    unique(router, call, &row)?;
    let before = match call.args.get("place-before") {
        None => None,
        Some(text) => Some(id_of(router, call.path, text)?),
    };
    let id = router.store.next_id(call.path, row.origin);
    row.id = id;
    router.store.put(call.path, row);
    if let Some(before) = before {
        router.store.place(call.path, &[id], Some(before));
    }
    router.resets.insert((call.path, id), router.unix);
    rules::stored(router, call, id);
    Ok(Done::value(shown_id(id)))
}

/// Refuses a second row with the same key. Rows that are disabled do not count.
fn unique(router: &Router, call: &Call, row: &Row) -> Result<(), Refusal> {
    if interfaces::is_type(call.path) {
        let taken =
            interfaces::named(&router.store, row.text("name")).is_some_and(|(_, other)| other.id != row.id);
        return if taken { Err(Refusal::failure("already have interface with such name")) } else { Ok(()) };
    }
    if call.menu.unique.is_empty() || row.is_disabled() || rules::has_own_key(call.path) {
        return Ok(());
    }
    let key =
        |row: &Row| call.menu.unique.iter().map(|field| router.store.value(row, field)).collect::<Vec<_>>();
    let own = key(row);
    let mut others =
        router.store.rows(call.path).iter().filter(|other| other.id != row.id && !other.is_disabled());
    if others.any(|other| key(other) == own) {
        return Err(Refusal::failure(rules::taken(call.path)));
    }
    Ok(())
}

fn set(router: &mut Router, call: &Call) -> Answered {
    written(router, call)?;
    let ids = call.ids(router)?;
    for id in ids {
        set_one(router, call, id)?;
    }
    Ok(Done::nothing())
}

/// The place where a row is stored, which for interfaces is the menu of their type.
fn home(router: &Router, call: &Call, id: u64) -> Option<&'static str> {
    if call.path == "interface" {
        return interfaces::find(&router.store, id).map(|(menu, _)| menu);
    }
    router.store.find(call.path, id).map(|_| call.path)
}

fn set_one(router: &mut Router, call: &Call, id: u64) -> Result<(), Refusal> {
    let home = home(router, call, id).ok_or_else(|| Refusal::failure("can not change dynamic"))?;
    let old = router.store.find(home, id).ok_or(Refusal::NoSuchItem)?.clone();
    removal::may_change(home, &old)?;
    let mut row = Row::clone(&old);
    apply(router, call, &mut row.values)?;
    rules::complete(router, call, &mut row, Some(&old))?;
    unique(router, call, &row)?;
    router.store.put(home, row);
    rules::stored(router, call, id);
    Ok(())
}

fn set_object(router: &mut Router, call: &Call) -> Answered {
    let old = router.store.object(call.path).cloned();
    let empty = Row { id: 0, origin: Origin::BuiltIn, values: Values::new() };
    let mut row = old.as_deref().cloned().unwrap_or(empty);
    apply(router, call, &mut row.values)?;
    rules::complete(router, call, &mut row, old.as_deref())?;
    router.store.put(call.path, row);
    Ok(Done::nothing())
}

fn remove(router: &mut Router, call: &Call) -> Answered {
    for id in call.ids(router)? {
        removal::remove(router, call, id)?;
    }
    Ok(Done::nothing())
}

fn switch(router: &mut Router, call: &Call, disabled: &str) -> Answered {
    for id in call.ids(router)? {
        let Some(home) = home(router, call, id) else {
            // Rows of views, such as packages, have switches of their own.
            return Err(Refusal::failure("can not change dynamic"));
        };
        let old = router.store.find(home, id).ok_or(Refusal::NoSuchItem)?.clone();
        removal::may_change(home, &old)?;
        let mut row = Row::clone(&old);
        row.values.insert("disabled".to_owned(), disabled.into());
        rules::complete(router, call, &mut row, Some(&old))?;
        unique(router, call, &row)?;
        router.store.put(home, row);
        rules::stored(router, call, id);
    }
    Ok(Done::nothing())
}

/// Puts rows right before another one. Without a destination, or with one that does not exist, they go to the end.
fn shift(router: &mut Router, call: &Call) -> Answered {
    let ids = call.ids(router)?;
    if let Some(name) =
        call.args.keys().find(|name| !NAMING.contains(&name.as_str()) && *name != "destination")
    {
        return Err(Refusal::unknown_parameter(name));
    }
    let rows = router.store.rows(call.path);
    let destination = call.args.get("destination").and_then(|text| match parse_id(text) {
        Some(id) => router.store.find(call.path, id).map(|row| row.id),
        None => text.parse::<usize>().ok().and_then(|place| rows.get(place)).map(|row| row.id),
    });
    router.store.place(call.path, &ids, destination);
    Ok(Done::nothing())
}

fn unset(router: &mut Router, call: &Call) -> Answered {
    let ids = call.ids(router)?;
    let name = call.need("value-name")?.to_owned();
    let field = call.menu.field(&name, router.release).filter(|field| field.unset && !field.required);
    if field.is_none() {
        return Err(Refusal::no_match("value-name"));
    }
    for id in ids {
        let old = router.store.find(call.path, id).ok_or(Refusal::NoSuchItem)?.clone();
        removal::may_change(call.path, &old)?;
        let mut row = Row::clone(&old);
        row.values.remove(&name);
        rules::complete(router, call, &mut row, Some(&old))?;
        router.store.put(call.path, row);
    }
    Ok(Done::nothing())
}

/// Gives the named fields their defaults back.
fn reset(router: &mut Router, call: &Call) -> Answered {
    let names: Vec<&String> = call.args.keys().filter(|name| !NAMING.contains(&name.as_str())).collect();
    if let Some(unknown) = names.iter().find(|name| call.menu.field(name, router.release).is_none()) {
        return Err(Refusal::unknown_parameter(unknown));
    }
    let ids = if call.menu.kind_in(router.release) == Kind::Object { vec![0] } else { call.ids(router)? };
    for id in ids {
        let Some(home) = home(router, call, id) else { continue };
        let old = router.store.find(home, id).ok_or(Refusal::NoSuchItem)?.clone();
        let mut row = Row::clone(&old);
        for name in &names {
            let is_required = call.menu.field(name, router.release).is_some_and(|field| field.required);
            if !is_required && **name != "name" {
                row.values.remove(*name);
            }
        }
        rules::complete(router, call, &mut row, Some(&old))?;
        router.store.put(home, row);
    }
    Ok(Done::nothing())
}
