//! Editing one section of a table: the edits, and the change that brings the state back.

use heddle_sdk::{Change, Danger, Fault, FaultExt, Operation, PlanStep, fault};
use serde_json::{Map, Value, json};

use super::{Edited, Naming, Notes, SectionFeature, Type, naming, values};
use crate::features::order;
use crate::touch::Touch;
use crate::uci::{Config, Edit, Entry, Options, Section};
use crate::world::World;

/// What one change does to the model.
pub(crate) struct Done {
    pub(crate) calls: Vec<Value>,
    /// Takes the change back, in order.
    pub(crate) back: Vec<Edit>,
    pub(crate) step: PlanStep,
    pub(crate) danger: Danger,
    pub(crate) notes: Notes,
    pub(crate) inverse: Option<Vec<Change>>,
    pub(crate) touches: Vec<Touch>,
}

/// What people see of a section, the secrets as references.
fn shown(feature: &SectionFeature, section: &Section, name: &[String]) -> String {
    let mut body = naming::body(feature, section, name);
    for field in feature.fields.iter().filter(|field| matches!(field.takes, Type::Secret)) {
        if let Some(entry) = section.options.get(field.name) {
            body.insert(field.name.to_owned(), entry.to_json());
        }
    }
    Value::Object(body).to_string()
}

/// Collects the calls of edits and the edits that take them back.
#[derive(Default)]
struct Sent {
    calls: Vec<Value>,
    back: Vec<Edit>,
}

impl Sent {
    fn edit(&mut self, config: &mut Config, edit: Edit) {
        let (calls, undone) = config.apply(edit);
        self.calls.extend(calls);
        self.back.splice(0..0, undone);
    }
}

/// Applies one change to the model.
pub(crate) fn apply(
    feature: &'static SectionFeature,
    change: &Change,
    config: &mut Config,
    world: &World,
) -> Result<Done, Fault> {
    let payload: Value =
        serde_json::from_str(&change.payload).map_err(|_| fault::invalid("the payload is not JSON"))?;
    let key = naming::key_of(feature, &payload)?;
    let found = naming::find(feature, config, &key)?.cloned();
    let name = key.join(":");
    let config_before = config.clone();
    let mut sent = Sent::default();
    let mut touches = Vec::new();
    // A device that is there without a section gets one when something is set.
    let is_bare =
        change.operation == Operation::Update && found.is_none() && world.is_bare_device(feature, &key);
    let uid = match (change.operation, &found) {
        (Operation::Create, Some(_)) => {
            return Err(fault::invalid(format!("'{name}' exists; use operation update"))
                .with_code("exists")
                .with_field(
                    feature.key.first().map_or(String::new(), |field| format!("/{}", field.name)),
                    "exists",
                ));
        }
        (Operation::Update, None) if is_bare && !sets_anything(feature, &payload) => None,
        (Operation::Create, None) => Some(create(feature, &payload, &key, config, &mut sent)?),
        (Operation::Update, None) if is_bare => Some(create(feature, &payload, &key, config, &mut sent)?),
        (Operation::Update | Operation::Delete, None) => {
            return Err(fault::not_found(format!("there is no '{name}' of '{}'", feature.id)));
        }
        (Operation::Update, Some(section)) => {
            let options = update(feature, &payload, section, config, &mut sent)?;
            touches.push(Touch::Options(section.uid, options));
            Some(section.uid)
        }
        (Operation::Delete, Some(section)) => {
            sent.edit(config, Edit::Delete { uid: section.uid });
            touches.push(Touch::Whole(section.uid));
            None
        }
    };
    if let (None, Some(uid)) = (&found, uid) {
        touches.push(Touch::Whole(uid));
    }
    let after = uid.and_then(|uid| config.section(uid));
    let mut notes = Notes::default();
    (feature.review)(&Edited { before: found.as_ref(), after, config, world }, &mut notes);
    refuse_errors(&notes)?;
    let scene =
        Scene { feature, change, before: found.as_ref(), after, config_before: &config_before, config };
    let inverse = scene.inverse();
    scene.note_name(inverse.is_some(), &mut notes);
    let step = scene.step(&name);
    let danger = if change.operation == Operation::Delete { feature.delete_danger } else { Danger::Normal };
    Ok(Done { calls: sent.calls, back: sent.back, step, danger, notes, inverse, touches })
}

fn sets_anything(feature: &SectionFeature, payload: &Value) -> bool {
    feature.fields.iter().any(|field| payload.get(field.name).is_some_and(|value| !value.is_null()))
}

fn refuse_errors(notes: &Notes) -> Result<(), Fault> {
    let Some((_, first)) = notes.errors.first() else { return Ok(()) };
    let fault = fault::invalid(first.clone());
    Err(notes
        .errors
        .iter()
        .fold(fault, |fault, (pointer, message)| fault.with_field(pointer.clone(), message.clone())))
}

fn create(
    feature: &SectionFeature,
    payload: &Value,
    key: &[String],
    config: &mut Config,
    sent: &mut Sent,
) -> Result<usize, Fault> {
    if feature.naming == Naming::Single {
        return Err(fault::invalid(format!("'{}' cannot be created", feature.id)));
    }
    let mut options = Options::new();
    for (field, text) in feature.key.iter().zip(key) {
        values::check_key(field, text)?;
        if feature.naming != Naming::Key {
            let entry = if matches!(field.takes, Type::List(_)) {
                Entry::List(vec![text.clone()])
            } else {
                Entry::Text(text.clone())
            };
            options.insert(field.name.to_owned(), entry);
        }
    }
    for field in feature.fields {
        let Some(entry) =
            payload.get(field.name).map(|value| values::to_entry(field, value, None)).transpose()?.flatten()
        else {
            continue;
        };
        options.insert(field.name.to_owned(), entry);
    }
    if let Some(missing) = feature.required.iter().find(|name| !options.contains_key(**name)) {
        return Err(fault::invalid(format!("'{missing}' is missing"))
            .with_field(format!("/{missing}"), "is required"));
    }
    let name = naming::section_name(feature, config, key);
    if config.by_id(&name).is_some() {
        return Err(fault::invalid(format!("another section is called '{name}'; choose another name"))
            .with_code("exists"));
    }
    let uid = config.fresh_uid();
    sent.edit(config, Edit::Add { uid, kind: feature.section.to_owned(), name: Some(name), options });
    Ok(uid)
}

/// Edits the section; gives the options that the payload is about.
fn update(
    feature: &SectionFeature,
    payload: &Value,
    section: &Section,
    config: &mut Config,
    sent: &mut Sent,
) -> Result<Vec<String>, Fault> {
    refuse_read_only(feature, payload, section, config)?;
    let (mut written, mut removed, mut about) = (Options::new(), Vec::new(), Vec::new());
    if let Some(new) = payload.get("new_name").and_then(Value::as_str).filter(|_| feature.is_renamed_freely())
    {
        let field = &feature.key[0];
        values::check_key(field, new).map_err(|fault| fault.with_field("/new_name", field.doc))?;
        let others = config.of_kind(feature.section).filter(|other| other.uid != section.uid);
        if others.filter_map(|other| naming::natural(feature, other)).any(|key| key == [new]) {
            return Err(fault::invalid(format!("'{new}' exists")).with_field("/new_name", "exists"));
        }
        about.push(field.name.to_owned());
        written.insert(field.name.to_owned(), Entry::Text(new.to_owned()));
    }
    for field in feature.fields {
        let Some(value) = payload.get(field.name) else { continue };
        about.push(field.name.to_owned());
        match values::to_entry(field, value, section.options.get(field.name))? {
            Some(entry) => drop(written.insert(field.name.to_owned(), entry)),
            None => removed.push(field.name.to_owned()),
        }
    }
    sent.edit(config, Edit::Set { uid: section.uid, options: written });
    if !removed.is_empty() {
        sent.edit(config, Edit::Unset { uid: section.uid, options: removed });
    }
    Ok(about)
}

/// A body that was read may be sent back whole; what it says of read-only fields must still be so.
fn refuse_read_only(
    feature: &SectionFeature,
    payload: &Value,
    section: &Section,
    config: &Config,
) -> Result<(), Fault> {
    let place = config.of_kind(feature.section).position(|other| other.uid == section.uid);
    if let Some(given) = payload.get("position")
        && *given != json!(place)
    {
        let way = feature
            .order
            .map_or_else(|| "cannot be changed".to_owned(), |id| format!("is changed by '{id}'"));
        return Err(fault::invalid(format!("'position' {way}")).with_field("/position", way));
    }
    if let Some(given) = payload.get("options") {
        let name = naming::name_of(feature, config, section.uid);
        if *given != Value::Object(naming::other_options(feature, section, &name)) {
            let why = "these options have no field here; change them at the device";
            return Err(fault::invalid(why).with_field("/options", why));
        }
    }
    Ok(())
}

/// One change with what was before and after it.
struct Scene<'a> {
    feature: &'static SectionFeature,
    change: &'a Change,
    before: Option<&'a Section>,
    after: Option<&'a Section>,
    config_before: &'a Config,
    config: &'a Config,
}

impl Scene<'_> {
    fn step(&self, name: &str) -> PlanStep {
        let verb = match self.change.operation {
            Operation::Create => "create",
            Operation::Update => "update",
            Operation::Delete => "delete",
        };
        let title = self.feature.title.to_lowercase();
        let summary =
            if name.is_empty() { format!("{verb} {title}") } else { format!("{verb} {title} '{name}'") };
        let show = |config: &Config, section: &Section| {
            shown(self.feature, section, &naming::name_of(self.feature, config, section.uid))
        };
        PlanStep {
            summary,
            before: self.before.map(|section| show(self.config_before, section)),
            after: self.after.map(|section| show(self.config, section)),
        }
    }

    fn with(&self, operation: Operation, payload: Map<String, Value>) -> Change {
        Change {
            feature: self.feature.id.to_owned(),
            operation,
            site: self.change.site.clone(),
            payload: Value::Object(payload).to_string(),
        }
    }

    /// The changes that bring the section back, when payloads can say them.
    fn inverse(&self) -> Option<Vec<Change>> {
        match (self.before, self.after) {
            (None, None) => Some(Vec::new()),
            (None, Some(after)) => {
                let name = naming::name_of(self.feature, self.config, after.uid);
                Some(vec![self.with(Operation::Delete, naming::key_payload(self.feature, &name))])
            }
            (Some(before), Some(after)) => self.update_back(before, after),
            (Some(before), None) => self.create_back(before),
        }
    }

    fn update_back(&self, before: &Section, after: &Section) -> Option<Vec<Change>> {
        let name = naming::name_of(self.feature, self.config, after.uid);
        let mut payload = naming::key_payload(self.feature, &name);
        let key_fields = payload.len();
        for field in self.feature.fields {
            match (before.options.get(field.name), after.options.get(field.name)) {
                (old, new) if old == new => {}
                (Some(old), _) => {
                    drop(payload.insert(field.name.to_owned(), values::to_payload(field, old)?));
                }
                (None, _) => drop(payload.insert(field.name.to_owned(), Value::Null)),
            }
        }
        let (old, new) = (naming::natural(self.feature, before), naming::natural(self.feature, after));
        if old != new {
            payload.insert("new_name".to_owned(), json!(old?.first()?));
        }
        Some(if payload.len() == key_fields {
            Vec::new()
        } else {
            vec![self.with(Operation::Update, payload)]
        })
    }

    /// None when a payload cannot say all that the section says: options without a field, or no name of its own.
    fn create_back(&self, before: &Section) -> Option<Vec<Change>> {
        let name = naming::name_of(self.feature, self.config_before, before.uid);
        let key = naming::natural(self.feature, before)?;
        if name != key || !naming::other_options(self.feature, before, &name).is_empty() {
            return None;
        }
        if self.feature.key.iter().zip(&key).any(|(field, text)| values::check_key(field, text).is_err()) {
            return None;
        }
        let mut payload = naming::key_payload(self.feature, &key);
        for field in self.feature.fields {
            if let Some(entry) = before.options.get(field.name) {
                payload.insert(field.name.to_owned(), values::to_payload(field, entry)?);
            }
        }
        if self.feature.required.iter().any(|name| !payload.contains_key(*name)) {
            return None;
        }
        let mut changes = vec![self.with(Operation::Create, payload)];
        if let Some(id) = self.feature.order {
            changes.extend(order::move_back(id, self.config_before, before.uid, self.change));
        }
        Some(changes)
    }

    /// A section that comes back is not unnamed again.
    fn note_name(&self, is_invertible: bool, notes: &mut Notes) {
        let gone = self.before.filter(|before| before.is_anonymous && self.after.is_none());
        if let Some(key) = gone.filter(|_| is_invertible).and_then(|gone| naming::natural(self.feature, gone))
        {
            let name = naming::section_name(self.feature, self.config, &key);
            notes.warn(format!(
                "a revert brings it back as section '{name}'; the device has it without a name now"
            ));
        }
    }
}
