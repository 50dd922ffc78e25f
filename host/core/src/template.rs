//! Templates: `{{trigger.a.b}}` (the payload), `{{event.seq}}` (the envelope) and `{{steps.0.output.x}}` stand for what
//! came before. They mean the same in steps and in payloads of webhooks. A step also has `{{item.x}}` and `{{index}}` where
//! it is done for each item of a list, and `{{error.message}}` where it runs because another one failed.
//!
//! Paths only. Nothing is computed, and what was put in is never looked at again, so a value from outside can
//! neither name another one nor change what a step does.

use serde_json::{Map, Value};

use crate::work;

/// Most bytes of a result, as JSON.
pub const RESULT_BYTES_MAX: usize = 256 * 1024;
/// How deep parameters may be nested.
pub const DEPTH_MAX: usize = 32;
/// Segments of one path.
const SEGMENTS_MAX: usize = 32;

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error(
        "'{0}' has '{{{{' without '}}}}': a reference is '{{{{trigger.field}}}}', '{{{{event.field}}}}' or \
         '{{{{steps.0.output.field}}}}'"
    )]
    Unclosed(String),
    #[error(
        "'{0}' is not a reference: give '{{{{trigger.field}}}}', '{{{{event.field}}}}' or \
         '{{{{steps.0.output.field}}}}'"
    )]
    Malformed(String),
    #[error("'{path}' has no value: there is no '{missing}'")]
    Missing { path: String, missing: String },
    #[error("parameters are nested deeper than {DEPTH_MAX}")]
    TooDeep,
    #[error("parameters are larger than {RESULT_BYTES_MAX} bytes once references are filled in")]
    TooLarge,
}

/// Where a reference begins.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Root {
    /// The payload.
    Trigger,
    /// The envelope.
    Event,
    /// The output of a step; they count from 0.
    Step(usize),
    /// What only the step itself has: `item` and `index` of a step that is done for each item, `error` behind a failure.
    Own,
}

/// First segments of [`Root::Own`].
const OWN: [&str; 3] = ["item", "index", "error"];

/// One `{{…}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    path: String,
    root: Root,
    segments: Vec<String>,
}

impl Reference {
    fn parse(text: &str) -> Result<Self, TemplateError> {
        let malformed = || TemplateError::Malformed(shown(text));
        let path = text.trim();
        let mut segments: Vec<String> = path.split('.').map(str::to_owned).collect();
        if segments.len() > SEGMENTS_MAX || !segments.iter().all(|segment| is_segment(segment)) {
            return Err(malformed());
        }
        let root = match segments[0].as_str() {
            "trigger" => {
                segments.remove(0);
                Root::Trigger
            }
            "event" => {
                segments.remove(0);
                Root::Event
            }
            "steps" if segments.get(2).is_some_and(|word| word == "output") => {
                let step = index(&segments[1]).ok_or_else(malformed)?;
                segments.drain(..3);
                Root::Step(step)
            }
            word if OWN.contains(&word) => Root::Own,
            _ => return Err(malformed()),
        };
        Ok(Self { path: path.to_owned(), root, segments })
    }

    /// The step whose output it reads, where it reads one.
    pub fn step(&self) -> Option<usize> {
        match self.root {
            Root::Trigger | Root::Event | Root::Own => None,
            Root::Step(step) => Some(step),
        }
    }

    /// What it names in the payload, where it reads that.
    pub fn in_trigger(&self) -> Option<&[String]> {
        (self.root == Root::Trigger).then_some(&self.segments)
    }

    /// `item`, `index` or `error`, where it reads what only its step has.
    pub fn own(&self) -> Option<&str> {
        (self.root == Root::Own).then(|| self.segments[0].as_str())
    }

    /// What it names in the envelope, where it reads that.
    pub fn in_event(&self) -> Option<&[String]> {
        (self.root == Root::Event).then_some(&self.segments)
    }

    /// What it names in the output of a step, where it reads one.
    pub fn in_output(&self) -> Option<(usize, &[String])> {
        self.step().map(|step| (step, self.segments.as_slice()))
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    fn find<'a>(&self, values: &Values<'a>) -> Result<&'a Value, TemplateError> {
        let missing =
            |missing: &str| TemplateError::Missing { path: self.path.clone(), missing: missing.to_owned() };
        let mut found = match self.root {
            Root::Trigger => values.trigger,
            Root::Event => values.event.ok_or_else(|| missing("event"))?,
            Root::Own => values.own.ok_or_else(|| missing(&self.segments[0]))?,
            Root::Step(step) => values
                .outputs
                .get(step)
                .and_then(Option::as_ref)
                .ok_or_else(|| missing(&format!("steps.{step}.output")))?,
        };
        for segment in &self.segments {
            found = child(found, segment).ok_or_else(|| missing(segment))?;
        }
        Ok(found)
    }
}

/// What a path's segment names in a value: a field, or an item by its place.
pub(crate) fn child<'a>(value: &'a Value, segment: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => fields.get(segment),
        Value::Array(items) => items.get(index(segment)?),
        _ => None,
    }
}

fn index(segment: &str) -> Option<usize> {
    let is_plain =
        segment == "0" || (!segment.starts_with('0') && segment.bytes().all(|b| b.is_ascii_digit()));
    if is_plain { segment.parse().ok() } else { None }
}

fn is_segment(segment: &str) -> bool {
    !segment.is_empty()
        && !segment.chars().any(|c| c.is_control() || c.is_whitespace() || matches!(c, '{' | '}'))
}

/// Enough of a text to find it by.
fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

/// What references can name.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// The payload of what started the steps.
    pub trigger: &'a Value,
    /// The event that it came with, as clients see it; `None` where no event started the steps.
    pub event: Option<&'a Value>,
    /// Of the steps so far; `None` for one that failed.
    pub outputs: &'a [Option<Value>],
    /// An object with what only this step has: `item` and `index`, `error`.
    pub own: Option<&'a Value>,
}

/// A text, taken apart.
enum Piece<'a> {
    Text(&'a str),
    Reference(Reference),
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, TemplateError> {
    let mut found = Vec::new();
    // Each part is looked through once: what is behind a reference begins where it ended.
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(OPEN) {
        work::count(before.len() + OPEN.len());
        let (inside, after) = behind.split_once(CLOSE).ok_or_else(|| TemplateError::Unclosed(shown(text)))?;
        work::count(inside.len() + CLOSE.len());
        if !before.is_empty() {
            found.push(Piece::Text(before));
        }
        found.push(Piece::Reference(Reference::parse(inside)?));
        rest = after;
    }
    if !rest.is_empty() {
        found.push(Piece::Text(rest));
    }
    Ok(found)
}

/// Whether the text holds a reference, or what should be one.
pub fn is_template(text: &str) -> bool {
    text.contains(OPEN)
}

/// Every reference in these parameters.
pub fn references(params: &Value) -> Result<Vec<Reference>, TemplateError> {
    let mut found = Vec::new();
    collect(params, 0, &mut found)?;
    Ok(found)
}

fn collect(value: &Value, depth: usize, found: &mut Vec<Reference>) -> Result<(), TemplateError> {
    if depth > DEPTH_MAX {
        return Err(TemplateError::TooDeep);
    }
    match value {
        Value::String(text) => {
            for piece in pieces(text)? {
                if let Piece::Reference(reference) = piece {
                    found.push(reference);
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, depth + 1, found)),
        Value::Object(fields) => fields.values().try_for_each(|field| collect(field, depth + 1, found)),
        _ => Ok(()),
    }
}

/// The parameters with every reference filled in.
///
/// A text that is one reference and nothing else becomes the value itself, of whatever type. Inside a text, scalars
/// are written as they are and the rest as JSON. Names of fields are never templates.
///
/// # Errors
/// What a reference names is not there, or the result is too deep or too large.
pub fn fill(params: &Value, values: &Values<'_>) -> Result<Value, TemplateError> {
    let mut room = RESULT_BYTES_MAX;
    fill_value(params, values, 0, &mut room)
}

fn fill_value(
    value: &Value,
    values: &Values<'_>,
    depth: usize,
    room: &mut usize,
) -> Result<Value, TemplateError> {
    if depth > DEPTH_MAX {
        return Err(TemplateError::TooDeep);
    }
    match value {
        Value::String(text) if is_template(text) => fill_text(text, values, room),
        Value::Array(items) => {
            take(room, 2)?;
            let filled: Result<Vec<Value>, _> =
                items.iter().map(|item| fill_value(item, values, depth + 1, room)).collect();
            filled.map(Value::Array)
        }
        Value::Object(fields) => {
            take(room, 2)?;
            let mut filled = Map::new();
            for (name, field) in fields {
                take(room, name.len() + 4)?;
                filled.insert(name.clone(), fill_value(field, values, depth + 1, room)?);
            }
            Ok(Value::Object(filled))
        }
        scalar => {
            take(room, weight(scalar))?;
            Ok(scalar.clone())
        }
    }
}

fn fill_text(text: &str, values: &Values<'_>, room: &mut usize) -> Result<Value, TemplateError> {
    let pieces = pieces(text)?;
    if let [Piece::Reference(reference)] = pieces.as_slice() {
        let value = reference.find(values)?;
        take(room, weight(value))?;
        return Ok(value.clone());
    }
    let mut written = String::new();
    for piece in pieces {
        let before = written.len();
        match piece {
            Piece::Text(text) => written.push_str(text),
            Piece::Reference(reference) => match reference.find(values)? {
                Value::String(text) => written.push_str(text),
                other => written.push_str(&other.to_string()),
            },
        }
        take(room, written.len() - before)?;
    }
    Ok(Value::String(written))
}

fn take(room: &mut usize, bytes: usize) -> Result<(), TemplateError> {
    *room = room.checked_sub(bytes).ok_or(TemplateError::TooLarge)?;
    Ok(())
}

/// About as many bytes as the value has as JSON.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| weight(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(name, field)| name.len() + 4 + weight(field)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests;
