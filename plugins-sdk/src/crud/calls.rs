//! The calls of a plan.

use serde_json::{Map, Value, json};

use super::binding::{
    Action, Activation, Cancel, FeatureBinding, Field, FieldType, KindBinding, NewId, Revision, Sends, Verb,
};
use super::field::{Content, encode, is_none, plain, put};
use super::holes::Holes;
use super::part::Draft;
use super::path::{filled, filled_with, with_query};
use super::{Encoding, Place, Purpose, Vendor};
use crate::{Fault, FileBody, FormPart, NativeCall, Stage, fault};

/// Media type of files of which nothing more is known.
const BYTES: &str = "application/octet-stream";

/// A call with what it is for.
pub(crate) struct Planned {
    pub(crate) call: NativeCall,
    pub(crate) purpose: Purpose,
    pub(crate) part: Option<usize>,
}

/// One request in the words of the binding.
struct Wire<'a> {
    method: Verb,
    path: String,
    root: Option<&'a str>,
    /// By place in the body.
    fields: Vec<(String, Value)>,
    with: Map<String, Value>,
}

/// Writes the calls of a plan, and notes what they leave open.
pub(crate) struct Writer<'a> {
    pub(crate) vendor: &'a dyn Vendor,
    pub(crate) holes: Holes,
}

/// One object with its bindings.
#[derive(Clone, Copy)]
pub(crate) struct Writing<'a> {
    /// Its place in the plan.
    pub(crate) at: usize,
    pub(crate) draft: &'a Draft,
    /// None where an action is about no object.
    pub(crate) kind: Option<&'a KindBinding>,
    pub(crate) feature: &'a FeatureBinding,
    pub(crate) template: Option<&'a Content>,
}

/// The name of the call that makes the change of an object.
fn call_of(at: usize) -> String {
    format!("w{at}")
}

impl Writer<'_> {
    fn native(&self, stage: Stage, wire: Wire<'_>) -> NativeCall {
        let call = |path: String| {
            NativeCall::new(stage, wire.method.method(), path).in_session(self.vendor.session())
        };
        let call = match (self.vendor.encoding(), wire.method) {
            (Encoding::Form, method) => {
                let mut params: Vec<(String, String)> =
                    wire.with.iter().map(|(name, value)| (name.clone(), form_text(value))).collect();
                for (name, value) in &wire.fields {
                    match value {
                        Value::Array(items) => {
                            params.extend(items.iter().map(|item| (name.clone(), form_text(item))));
                        }
                        value => params.push((name.clone(), form_text(value))),
                    }
                }
                match method {
                    Verb::Delete | Verb::Get => call(with_query(&wire.path, &params)),
                    _ => call(wire.path.clone()).with_form(params),
                }
            }
            (_, Verb::Delete) if wire.fields.is_empty() && wire.with.is_empty() => call(wire.path.clone()),
            // A device that reads JSON wants some, even where it needs none.
            (encoding, _) => call(wire.path.clone()).with_json(&json_body(&wire, encoding)),
        };
        // Each call names the state that it leads to; only those of `apply` and `abort` are never sent twice in any case.
        if matches!(stage, Stage::Apply | Stage::Abort) { call } else { call.repeatable() }
    }

    /// The call of an action whose body has parts. Devices read the texts before they take a file.
    fn in_parts(&self, wire: Wire<'_>, files: Vec<FormPart>) -> NativeCall {
        let texts = wire.with.iter().chain(wire.fields.iter().map(|(name, value)| (name, value)));
        let texts = texts.map(|(name, value)| FormPart::text(name.clone(), form_text(value)));
        NativeCall::new(Stage::Apply, wire.method.method(), wire.path.clone())
            .in_session(self.vendor.session())
            .with_multipart(texts.chain(files).collect())
    }

    /// The write that turns what an object is into what it shall be.
    pub(crate) fn write(&mut self, stage: Stage, of: Writing<'_>) -> Result<Option<Planned>, Fault> {
        let Writing { at, draft, .. } = of;
        let Some(kind) = of.kind else { return Ok(None) };
        let (from, to) = match stage {
            Stage::Restore => (draft.after.as_ref(), draft.before.as_ref()),
            Stage::Apply | Stage::Confirm | Stage::Undo | Stage::Abort => {
                (draft.before.as_ref(), draft.after.as_ref())
            }
        };
        let written = match (from, to) {
            (None, None) => None,
            (None, Some(to)) => Some(self.create(stage, (of, kind), to)?),
            (Some(_), None) => Some(self.delete(stage, (of, kind))?),
            (Some(_), Some(to)) => self.update(stage, (of, kind), to)?,
        };
        Ok(written.map(|(call, purpose)| {
            let mut call =
                if stage == Stage::Apply { call.called(call_of(at)) } else { call.only_after(call_of(at)) };
            // A second one would add or take away another object of the list.
            call.repeatable &= !kind.volatile || purpose == Purpose::Update;
            Planned { call, purpose, part: Some(at) }
        }))
    }

    fn create(
        &mut self,
        stage: Stage,
        (of, kind): (Writing<'_>, &KindBinding),
        to: &Content,
    ) -> Result<(NativeCall, Purpose), Fault> {
        let draft = of.draft;
        let create = of.feature.create.as_ref().ok_or_else(|| lacking(kind, "created"))?;
        let values = to.iter().filter(|(name, value)| {
            if stage == Stage::Apply {
                let is_none = kind.fields.get(*name).is_some_and(|field| is_none(field, value));
                return draft.asked.contains(*name) && !(kind.sparse && is_none);
            }
            let default = of.template.and_then(|template| template.get(*name));
            // What is empty is only told where it would not be empty by itself.
            !value.is_null() || default.is_some_and(|default| !default.is_null())
        });
        let mut fields = encoded(kind, values);
        if let NewId::Field(name) = &create.id
            && !fields.iter().any(|(place, _)| place == kind.place(name))
            && let Some(value) = to.get(name)
        {
            fields.push((kind.place(name).to_owned(), value.clone()));
        }
        let path = filled(&create.path, &draft.place, &draft.id);
        let (root, with) = (create.root.as_deref(), filled_with(&create.with, &draft.place, &draft.id));
        let call = self.native(stage, Wire { method: create.method, path, root, fields, with });
        if stage == Stage::Apply {
            match &create.id {
                _ if kind.volatile => self.holes.found(of.at),
                NewId::Answer(pointer) => self.holes.answered(of.at, &call_of(of.at), pointer),
                NewId::Found => self.holes.found(of.at),
                NewId::Chosen | NewId::Field(_) => {}
            }
        }
        Ok((call, Purpose::Create))
    }

    fn delete(
        &mut self,
        stage: Stage,
        (of, kind): (Writing<'_>, &KindBinding),
    ) -> Result<(NativeCall, Purpose), Fault> {
        let draft = of.draft;
        let delete = of.feature.delete.as_ref().ok_or_else(|| lacking(kind, "deleted"))?;
        // What a restore takes away may never have come to be.
        let is_sure = stage == Stage::Apply;
        let fields = self.revision(delete.revision.as_ref(), kind, draft, is_sure);
        let path = filled(&delete.path, &draft.place, &draft.id);
        let call = self.native(
            stage,
            Wire {
                method: delete.method,
                path,
                root: None,
                fields,
                with: filled_with(&delete.with, &draft.place, &draft.id),
            },
        );
        Ok((call, Purpose::Delete))
    }

    fn update(
        &mut self,
        stage: Stage,
        (of, kind): (Writing<'_>, &KindBinding),
        to: &Content,
    ) -> Result<Option<(NativeCall, Purpose)>, Fault> {
        let draft = of.draft;
        let touched = draft.touched(kind);
        if touched.is_empty() {
            return Ok(None);
        }
        let update = of.feature.update.as_ref().ok_or_else(|| lacking(kind, "updated"))?;
        let is_sent = |name: &String, value: &Value, field: &Field| match field {
            field if field.create_only => false,
            field if field.unread => touched.contains_key(name) && !value.is_null(),
            // What the write took away does not come back by itself.
            _ if stage == Stage::Restore && draft.lost.contains_key(name) => true,
            field => update.sends == Sends::Whole || field.always || touched.contains_key(name),
        };
        let is_cleared = |value: &Value| update.clear.is_some() && value.is_null();
        let encoding = self.vendor.encoding();
        let is_left_out = |name: &String, value: &Value| {
            // A form cannot say that a value is none: where the vendor replaces the object, what is left out is emptied.
            let is_replaced =
                (update.sends == Sends::Whole && encoding == Encoding::Form) || !touched.contains_key(name);
            kind.sparse && value.is_null() && update.clear.is_none() && is_replaced
        };
        let known = to.iter().filter(|(name, value)| {
            kind.fields.get(*name).is_some_and(|field| is_sent(name, value, field))
                && !is_left_out(name, value)
        });
        let (cleared, kept): (Vec<_>, Vec<_>) = known.partition(|(_, value)| is_cleared(value));
        let is_emptied = |(name, value): &(&String, &Value)| {
            update.clear_mark.is_some() && kind.fields.get(*name).is_some_and(|field| is_none(field, value))
        };
        let (emptied, kept): (Vec<_>, Vec<_>) = kept.into_iter().partition(is_emptied);
        let mut fields = encoded(kind, kept.into_iter());
        let mark = update.clear_mark.as_deref().unwrap_or_default();
        fields.extend(emptied.iter().map(|(name, _)| (format!("{mark}{}", kind.place(name)), json!(""))));
        let cleared: Vec<&str> = cleared
            .into_iter()
            .filter(|(name, _)| touched.contains_key(*name))
            .map(|(name, _)| kind.place(name))
            .collect();
        if let (Some(param), false) = (&update.clear, cleared.is_empty()) {
            fields.push((param.clone(), json!(cleared.join(","))));
        }
        fields.extend(self.revision(update.revision.as_ref(), kind, draft, true));
        let path = filled(&update.path, &draft.place, &draft.id);
        let (root, with) = (update.root.as_deref(), filled_with(&update.with, &draft.place, &draft.id));
        let call = self.native(stage, Wire { method: update.method, path, root, fields, with });
        Ok(Some((call, Purpose::Update)))
    }

    fn revision(
        &mut self,
        revision: Option<&Revision>,
        kind: &KindBinding,
        draft: &Draft,
        is_sure: bool,
    ) -> Vec<(String, Value)> {
        let one = revision.and_then(|revision| {
            let value = self.holes.revision(kind, revision, (&draft.place, &draft.id), is_sure)?;
            Some((revision.param.clone(), Value::from(value)))
        });
        one.into_iter().collect()
    }

    /// The call of an action, or the one that takes it back.
    pub(crate) fn act(&mut self, stage: Stage, of: Writing<'_>) -> Option<Planned> {
        let (action, act) = (of.feature.action.as_ref()?, of.draft.act.as_ref()?);
        let call = if stage == Stage::Apply {
            let value = |(name, value): (&String, &Value)| {
                let field = action.fields.get(name)?;
                let is_sent = !value.is_null() && field.kind != FieldType::File;
                is_sent.then(|| (field.at.clone().unwrap_or_else(|| name.clone()), encode(field, value)))
            };
            let fields = act.asked.iter().filter_map(value).collect();
            let path = filled(&action.path, &act.place, &act.id);
            let (root, with) = (action.root.as_deref(), filled_with(&action.with, &act.place, &act.id));
            let wire = Wire { method: action.method, path, root, fields, with };
            let call = if action.multipart {
                self.in_parts(wire, files_of(action, &act.asked))
            } else {
                self.native(stage, wire)
            };
            call.called(call_of(of.at))
        } else {
            let back = action.back.as_ref()?;
            let path = filled(&back.path, &act.place, &act.id);
            let wire = Wire {
                method: back.method,
                path,
                root: None,
                fields: Vec::new(),
                with: filled_with(&back.with, &act.place, &act.id),
            };
            self.native(stage, wire).only_after(call_of(of.at))
        };
        Some(Planned { call, purpose: Purpose::Act, part: of.kind.map(|_| of.at) })
    }

    /// The call that ends the job which a call of the apply starts, where the binding has one.
    pub(crate) fn cancel(&mut self, of: Writing<'_>, purpose: Purpose) -> Option<Planned> {
        let Writing { at, draft, feature, .. } = of;
        let cancel: &Cancel = match purpose {
            Purpose::Create => feature.create.as_ref()?.cancel.as_ref(),
            Purpose::Update => feature.update.as_ref()?.cancel.as_ref(),
            Purpose::Delete => feature.delete.as_ref()?.cancel.as_ref(),
            Purpose::Act => feature.action.as_ref()?.cancel.as_ref(),
            Purpose::Activate | Purpose::Cancel => None,
        }?;
        let (place, id) = match &draft.act {
            Some(act) => (&act.place, &act.id),
            None => (&draft.place, &draft.id),
        };
        let mut place = place.clone();
        place.insert("job".to_owned(), self.holes.job(at, &call_of(at), &cancel.job));
        let wire = Wire {
            method: cancel.method,
            path: filled(&cancel.path, &place, id),
            root: None,
            fields: Vec::new(),
            with: filled_with(&cancel.with, &place, id),
        };
        let call = self.native(Stage::Abort, wire).only_after(call_of(at));
        Some(Planned { call, purpose: Purpose::Cancel, part: of.kind.map(|_| at) })
    }

    /// The calls that make active what was written, each once.
    pub(crate) fn activations(&self, stage: Stage, all: &[(Activation, Place)]) -> Vec<Planned> {
        let call = |(activation, place): &(Activation, Place)| {
            let path = filled(&activation.path, place, "");
            let wire = Wire {
                method: activation.method,
                path,
                root: None,
                fields: Vec::new(),
                with: filled_with(&activation.with, place, ""),
            };
            Planned { call: self.native(stage, wire), purpose: Purpose::Activate, part: None }
        };
        all.iter().map(call).collect()
    }
}

/// The files that an action sends, each behind its checksum where the device takes one.
fn files_of(action: &Action, asked: &Content) -> Vec<FormPart> {
    let mut parts = Vec::new();
    for (name, value) in asked {
        let Some(field) = action.fields.get(name).filter(|field| field.kind == FieldType::File) else {
            continue;
        };
        let Some(file) = FileBody::of(value, BYTES) else { continue };
        if let (Some(checksum), Some(digest)) = (&field.checksum, value.get("sha256").and_then(Value::as_str))
        {
            parts.push(FormPart::text(checksum.clone(), digest));
        }
        parts.push(FormPart::file(field.at.clone().unwrap_or_else(|| name.clone()), file));
    }
    parts
}

/// A value in a form; what is neither text nor number is written as JSON.
pub(super) fn form_text(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => value.to_string(),
        Value::String(text) => text.clone(),
        other => plain(other),
    }
}

/// Fields as the vendor takes them, by their place.
fn encoded<'a>(
    kind: &KindBinding,
    values: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Vec<(String, Value)> {
    values
        .filter_map(|(name, value)| {
            Some((kind.place(name).to_owned(), encode(kind.fields.get(name)?, value)))
        })
        .collect()
}

fn json_body(wire: &Wire<'_>, encoding: Encoding) -> Value {
    let mut fields = Map::new();
    for (place, value) in &wire.fields {
        match encoding {
            Encoding::FlatJson => drop(fields.insert(place.clone(), value.clone())),
            Encoding::Json | Encoding::Form => put(&mut fields, place, value.clone()),
        }
    }
    // Constants stand where the fields do.
    fields.extend(wire.with.clone());
    match wire.root {
        Some(root) => json!({ root: fields }),
        None => Value::Object(fields),
    }
}

fn lacking(kind: &KindBinding, done: &str) -> Fault {
    fault::unsupported(format!("a {} cannot be {done} through this adapter", kind.noun))
}
