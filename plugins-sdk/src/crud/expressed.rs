//! Changes in the words of the model, as changes of the vendor's own features.

use serde_json::{Map, Value};

use super::binding::{Acts, FeatureBinding, KindBinding, ModelBinding, OneOf, Source, Taken, Writes};
use super::field::{at, content, plain, put};
use super::given::given;
use super::modelled::page;
use super::objects::list_objects;
use super::{Vendor, taken};
use crate::{Change, Completeness, Fault, FaultExt, Host, Listing, ModelChange, ObjectRef, Operation, fault};

/// Objects of a page of [`every_object`].
const PAGE: u32 = 1_000;

/// A change in the words of the model, for a vendor's code.
#[derive(Debug)]
pub struct Asked<'a> {
    pub kind: &'a str,
    pub verb: &'a str,
    pub site: Option<&'a str>,
    /// What is asked for, without the key.
    pub fields: &'a Map<String, Value>,
    /// The vendor's row, with `$`, `&` and `^` as in [`Source`]; none of what is created.
    pub row: Option<&'a Value>,
}

/// A change of one of the vendor's features, before a vendor's code had its say.
#[derive(Debug, Clone, PartialEq)]
pub struct Expressed {
    pub feature: String,
    pub operation: Operation,
    pub payload: Map<String, Value>,
}

/// What each change in the words of the model is, by the bindings of the description.
pub fn express(
    vendor: &dyn Vendor,
    host: &dyn Host,
    changes: &[ModelChange],
) -> Result<Vec<Vec<Change>>, Fault> {
    changes.iter().map(|change| one(vendor, host, change)).collect()
}

fn one(vendor: &dyn Vendor, host: &dyn Host, change: &ModelChange) -> Result<Vec<Change>, Fault> {
    let binding = ModelBinding::of(host, &change.kind)?;
    let mut fields: Map<String, Value> =
        serde_json::from_str(&change.payload).map_err(|_| fault::invalid("the payload is not an object"))?;
    let key = fields.remove("key").as_ref().map(plain);
    let asking = Asking { vendor, host, change, binding: &binding };
    let (source, row) = match &key {
        None => (asking.source_of_new(&fields)?, None),
        Some(key) => {
            let (source, row) = asking.find(key)?;
            (source, Some(row))
        }
    };
    let mut expressed = match source.actions.get(&change.verb) {
        Some(acts) => vec![asking.act((source, acts), row.as_ref())?],
        None => vec![asking.write(source, &fields, row.as_ref())?],
    };
    let (kind, verb, site) = (change.kind.as_str(), change.verb.as_str(), change.site.as_deref());
    vendor.expressed(
        host,
        &Asked { kind, verb, site, fields: &fields, row: row.as_ref() },
        &mut expressed,
    )?;
    let own = |one: Expressed| Change {
        feature: one.feature,
        operation: one.operation,
        site: change.site.clone(),
        payload: Value::Object(one.payload).to_string(),
    };
    Ok(expressed.into_iter().map(own).collect())
}

/// Refuses a field of the model, named as in a pointer (`source/negated`): the reason follows its name in a sentence.
#[must_use]
pub fn refused(field: &str, reason: &str) -> Fault {
    let field = field.replace('.', "/");
    fault::invalid(format!("'{}' {reason}", field.replace('/', "."))).with_field(format!("/{field}"), reason)
}

/// All objects of a kind as they are shown, each with its reference.
pub fn every_object(
    vendor: &dyn Vendor,
    host: &dyn Host,
    kind: &str,
    site: Option<&str>,
) -> Result<Vec<(ObjectRef, Value)>, Fault> {
    let (mut out, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let listing = Listing { site, cursor: cursor.as_deref(), ..Listing::of(kind, PAGE) };
        let page = list_objects(vendor, host, &listing)?;
        let read = page
            .items
            .into_iter()
            .filter_map(|object| Some((object.reference, serde_json::from_str(&object.body).ok()?)));
        out.extend(read);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(out),
        }
    }
}

struct Asking<'a> {
    vendor: &'a dyn Vendor,
    host: &'a dyn Host,
    change: &'a ModelChange,
    binding: &'a ModelBinding,
}

impl<'a> Asking<'a> {
    /// The source that a new object becomes one of.
    fn source_of_new(&self, fields: &Map<String, Value>) -> Result<&'a Source, Fault> {
        let whole = Value::Object(fields.clone());
        let fits = |writes: &Writes| {
            writes
                .when
                .iter()
                .all(|(place, wanted)| is_one_of(wanted, &at(&whole, place).map(plain).unwrap_or_default()))
        };
        let creates = || {
            self.binding.sources.iter().filter_map(|source| {
                let writes = source.writes.as_ref().filter(|writes| writes.verbs.contains(&self.change.verb));
                writes.map(|writes| (source, writes))
            })
        };
        if let Some((source, _)) = creates().find(|(_, writes)| fits(writes)) {
            return Ok(source);
        }
        let wanted = creates().flat_map(|(_, writes)| writes.when.iter());
        let mut places: Vec<(&String, Vec<String>)> = Vec::new();
        for (place, words) in wanted {
            let words = words.all().iter().map(plain);
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, known)) => known.extend(words),
                None => places.push((place, words.collect())),
            }
        }
        let fault = fault::invalid(format!("no {} like this can be made there", self.change.kind));
        Err(places.into_iter().fold(fault, |fault, (place, words)| {
            fault.with_field(pointer(place), format!("can be {}", words.join(", ")))
        }))
    }

    /// The object that a key names: its source, and what it was made of.
    fn find(&self, key: &str) -> Result<(&'a Source, Value), Fault> {
        let site = self.change.site.as_deref();
        let (mut cursor, mut is_complete) = (None, true);
        loop {
            let kind = (self.change.kind.as_str(), self.binding);
            let page = page(self.vendor, self.host, kind, site, cursor.as_deref())?;
            if let Some((_, row)) = page.items.into_iter().find(|(object, _)| object.key == key) {
                return Ok((&self.binding.sources[page.source], row));
            }
            is_complete &= matches!(page.complete, Completeness::Complete);
            cursor = match page.next {
                Some(next) => Some(next),
                None if is_complete => {
                    let message = format!("there is no {} with the key '{key}'", self.change.kind);
                    return Err(fault::not_found(message).with_field("/key", "names no object"));
                }
                None => {
                    let message = format!("no {} that could be read has the key '{key}'", self.change.kind);
                    return Err(fault::not_ready(message));
                }
            };
        }
    }

    /// The verb, written to the feature of a source.
    fn write(
        &self,
        source: &Source,
        fields: &Map<String, Value>,
        row: Option<&Value>,
    ) -> Result<Expressed, Fault> {
        let verb = self.change.verb.as_str();
        let writes = source.writes.as_ref().filter(|writes| writes.verbs.iter().any(|one| one == verb));
        let (writes, operation) = writes.zip(operation_of(verb)).ok_or_else(|| self.not_there())?;
        let mut payload = match row {
            None => writes.with.clone(),
            Some(row) => self.names(source, (&writes.feature, &writes.names), row)?,
        };
        let key: Vec<String> = payload.keys().cloned().collect();
        for (field, value) in flat(fields, writes) {
            if let Some(wanted) = writes.when.get(&field) {
                // It says which source is meant.
                can_be(wanted, &field, value)?;
                continue;
            }
            if writes.by_code.contains(&field) {
                continue;
            }
            let how = writes.fields.get(&field).ok_or_else(|| no_field(writes, &field))?;
            let (to, value) = given(how, value).map_err(|reason| refused(&field, &reason))?;
            if row.is_some() && key.iter().any(|name| name == to) {
                if payload.get(to).map(plain) == Some(plain(&value)) {
                    continue;
                }
                return Err(refused(&field, "names the object there; make a new one and delete this one"));
            }
            put(&mut payload, to, value);
        }
        Ok(Expressed { feature: writes.feature.clone(), operation, payload })
    }

    /// The verb, as an action of the vendor's.
    fn act(&self, (source, acts): (&Source, &Acts), row: Option<&Value>) -> Result<Expressed, Fault> {
        let row = row.ok_or_else(|| self.not_there())?;
        let operation = acts.operation.as_deref().map_or(Some(Operation::Create), operation_of);
        let operation = operation.ok_or_else(|| self.not_there())?;
        let mut payload = self.names(source, (&acts.feature, &acts.names), row)?;
        payload.extend(acts.with.clone());
        Ok(Expressed { feature: acts.feature.clone(), operation, payload })
    }

    /// The natural key that names a row in the payload of a feature.
    fn names<'n>(
        &self,
        source: &Source,
        (feature, names): (&str, impl IntoIterator<Item = (&'n String, &'n Taken)>),
        row: &Value,
    ) -> Result<Map<String, Value>, Fault> {
        let said = taken::fields(row, names);
        if !said.is_empty() {
            return Ok(said);
        }
        let feature = FeatureBinding::of(self.host, feature)?;
        let Some(kind) = feature.kind.filter(|kind| *kind == source.from) else { return Ok(Map::new()) };
        let own = KindBinding::of(self.host, &kind)?;
        // The row of the list has the natural key in its own form.
        let listed = row.get("^").unwrap_or(row);
        let known = content(&own, listed);
        let parents = own.within.iter().flat_map(|within| &within.key);
        let of_parents = parents
            .filter_map(|name| Some((name.clone(), row.get("$").and_then(|place| place.get(name))?.clone())));
        let of_own = own.key.iter().filter_map(|name| {
            let value = known.get(name).or_else(|| at(listed, own.place(name)))?;
            Some((name.clone(), value.clone()))
        });
        let is_known = |(_, value): &(String, Value)| !value.is_null();
        let mut names: Map<String, Value> = of_parents.chain(of_own).filter(is_known).collect();
        let id = own.list.as_ref().and_then(|list| at(listed, list.id.as_deref()?));
        if let (true, true, Some(first), Some(id)) = (own.key_or_id, names.is_empty(), own.key.first(), id) {
            names.insert(first.clone(), id.clone());
        }
        Ok(names)
    }

    fn not_there(&self) -> Fault {
        let ModelChange { kind, verb, .. } = self.change;
        fault::unsupported(format!(
            "this {kind} has no '{verb}' there: the vendor makes it itself, or only shows it"
        ))
    }
}

fn no_field(writes: &Writes, field: &str) -> Fault {
    let reason = writes.cannot.get(field).map_or("has no counterpart there", String::as_str);
    let known = writes.fields.keys().chain(&writes.by_code);
    let known: Vec<&str> = known.map(String::as_str).collect();
    let message = format!("'{field}' {reason}; it takes: {}", known.join(", "));
    fault::invalid(message).with_field(pointer(field), reason)
}

/// The fields by their names; a field of a field where the binding names it so, as in `poe.enabled`.
fn flat<'f>(fields: &'f Map<String, Value>, writes: &Writes) -> Vec<(String, &'f Value)> {
    let mut out = Vec::new();
    for (name, value) in fields {
        let prefix = format!("{name}.");
        let mut known = writes.fields.keys().chain(&writes.by_code).chain(writes.when.keys());
        let is_split = known.any(|known| known.starts_with(&prefix));
        match value {
            Value::Object(parts) if is_split => {
                out.extend(parts.iter().map(|(part, value)| (format!("{prefix}{part}"), value)));
            }
            value => out.push((name.clone(), value)),
        }
    }
    out
}

/// Whether a text is one of these words, or begins with one that ends with `*`.
fn is_one_of(wanted: &OneOf, found: &str) -> bool {
    let mut words = wanted.all().iter().map(plain);
    words.any(|word| word.strip_suffix('*').map_or(word == found, |beginning| found.starts_with(beginning)))
}

fn can_be(wanted: &OneOf, field: &str, value: &Value) -> Result<(), Fault> {
    let words: Vec<String> = wanted.all().iter().map(plain).collect();
    if is_one_of(wanted, &plain(value)) {
        return Ok(());
    }
    Err(refused(field, &format!("cannot be '{}' there; it can be {}", plain(value), words.join(", "))))
}

fn pointer(field: &str) -> String {
    format!("/{}", field.replace('.', "/"))
}

fn operation_of(verb: &str) -> Option<Operation> {
    match verb {
        "create" => Some(Operation::Create),
        "update" => Some(Operation::Update),
        "delete" => Some(Operation::Delete),
        _ => None,
    }
}
