//! Documents in YAML 1.2: a part of it that every value of JSON has one form in. Pure.
//!
//! Anchors, aliases, tags, merge keys, several documents and keys that are no scalars are refused: nothing that is small
//! becomes large, and a value means what it looks like.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

use super::bounds::{Meter, Problem, below, key_is_short};

/// Spaces of one level.
const INDENT: usize = 2;

/// A map or a list that is not complete yet.
enum Open {
    Map { fields: Map<String, Value>, key: Option<String> },
    List(Vec<Value>),
}

/// Reads one document.
pub(crate) fn read(text: &str) -> Result<Value, Problem> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| Problem::at("", format!("is no YAML: {error}"), "yaml_invalid"))?;
        reader.take(event).map_err(|problem| Problem {
            message: format!("{} (line {})", problem.message, span.start.line()),
            ..problem
        })?;
    }
    reader.whole.ok_or_else(|| Problem::at("", "the document is empty", "yaml_invalid"))
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    meter: Meter,
    whole: Option<Value>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) -> Result<(), Problem> {
        match event {
            Event::Alias(_) => Err(self.refused("aliases are not taken; write the value out")),
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(anchor, _)
            | Event::MappingStart(anchor, _)
                if anchor != 0 =>
            {
                Err(self.refused("anchors are not taken; write the value out"))
            }
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => Err(self.refused("tags are not taken")),
            Event::Scalar(text, style, _, None) => self.scalar(&text, style),
            Event::SequenceStart(..) => self.begin(Open::List(Vec::new())),
            Event::MappingStart(..) => self.begin(Open::Map { fields: Map::new(), key: None }),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::DocumentStart(_) if self.whole.is_some() => {
                Err(self.refused("there is more than one document"))
            }
            Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::StreamStart
            | Event::StreamEnd
            | Event::Nothing => Ok(()),
        }
    }

    /// The place of the value that comes next.
    fn path(&self) -> String {
        self.open.iter().fold(String::new(), |path, open| match open {
            Open::Map { key: Some(key), .. } => below(&path, key),
            Open::Map { key: None, .. } => path,
            Open::List(items) => below(&path, &items.len().to_string()),
        })
    }

    fn refused(&self, message: &str) -> Problem {
        Problem::at(self.path(), message, "yaml_refused")
    }

    fn is_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { key: None, .. }))
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle) -> Result<(), Problem> {
        if !self.is_key() {
            let path = self.path();
            self.meter.count(self.open.len() + 1, &path)?;
            let value = if style == ScalarStyle::Plain { resolved(text, &path)? } else { text.into() };
            return self.add(value);
        }
        if text == "<<" && style == ScalarStyle::Plain {
            return Err(self.refused("merge keys are not taken; write the fields out"));
        }
        if text.contains('\0') {
            return Err(self.refused("the character U+0000 is not accepted"));
        }
        let here = self.path();
        key_is_short(text).map_err(|message| Problem::at(here.as_str(), message, "too_large"))?;
        let Some(Open::Map { fields, key }) = self.open.last_mut() else { return Ok(()) };
        if fields.contains_key(text) {
            return Err(Problem::at(below(&here, text), format!("'{text}' is there twice"), "duplicate_key"));
        }
        *key = Some(text.to_owned());
        Ok(())
    }

    fn begin(&mut self, open: Open) -> Result<(), Problem> {
        if self.is_key() {
            return Err(self.refused("a key is a text"));
        }
        let path = self.path();
        self.meter.count(self.open.len() + 1, &path)?;
        self.open.push(open);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Problem> {
        let value = match self.open.pop() {
            Some(Open::Map { fields, .. }) => Value::Object(fields),
            Some(Open::List(items)) => Value::Array(items),
            None => return Err(self.refused("nothing ends here")),
        };
        self.add(value)
    }

    fn add(&mut self, value: Value) -> Result<(), Problem> {
        if value.as_str().is_some_and(|text| text.contains('\0')) {
            return Err(self.refused("the character U+0000 is not accepted"));
        }
        match self.open.last_mut() {
            Some(Open::Map { fields, key }) => {
                if let Some(key) = key.take() {
                    fields.insert(key, value);
                }
            }
            Some(Open::List(items)) => items.push(value),
            None => self.whole = Some(value),
        }
        Ok(())
    }
}

/// What a plain scalar is, by the core schema.
fn resolved(text: &str, path: &str) -> Result<Value, Problem> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text) {
            Some(Ok(number)) => Value::Number(number),
            Some(Err(())) => {
                let message = format!("'{text}' is no number that can be kept; quote it where it is a text");
                return Err(Problem::at(path, message, "value_error"));
            }
            None => text.into(),
        },
    })
}

/// The number that a text is; an error where it is one that JSON does not have.
fn number(text: &str) -> Option<Result<Number, ()>> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let Some(hex) = digits.strip_prefix("0x").filter(|_| digits.len() == text.len()) {
        let is_hex = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        return is_hex.then(|| u64::from_str_radix(hex, 16).map(Number::from).map_err(|_| ()));
    }
    if let Some(octal) = digits.strip_prefix("0o").filter(|_| digits.len() == text.len()) {
        let is_octal = !octal.is_empty() && octal.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        return is_octal.then(|| u64::from_str_radix(octal, 8).map(Number::from).map_err(|_| ()));
    }
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = text.strip_prefix('+').unwrap_or(text);
        let whole = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
        return Some(whole.map_err(|_| ()));
    }
    if [".inf", ".Inf", ".INF"].contains(&digits) || [".nan", ".NaN", ".NAN"].contains(&text) {
        return Some(Err(()));
    }
    let is_float = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits.bytes().filter(|byte| *byte == b'.').count() <= 1
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let float = text.strip_prefix('+').unwrap_or(text).parse::<f64>().ok().filter(|_| is_float)?;
    Some(Number::from_f64(float).ok_or(()))
}

/// Writes a value in block style, with maps in their order.
pub(crate) fn write(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => write_map(fields, 0, &mut out),
        Value::Array(items) if !items.is_empty() => write_list(items, 0, &mut out),
        scalar => {
            out.push_str(&scalar_text(scalar));
            out.push('\n');
        }
    }
    out
}

fn write_map(fields: &Map<String, Value>, indent: usize, out: &mut String) {
    for (name, value) in fields {
        out.push_str(&" ".repeat(indent));
        out.push_str(&text(name));
        out.push(':');
        write_below(value, indent + INDENT, out);
    }
}

fn write_list(items: &[Value], indent: usize, out: &mut String) {
    for item in items {
        out.push_str(&" ".repeat(indent));
        out.push('-');
        match item {
            // The first field stands on the line of the dash.
            Value::Object(fields) if !fields.is_empty() => {
                let mut block = String::new();
                write_map(fields, indent + INDENT, &mut block);
                out.push(' ');
                out.push_str(&block[indent + INDENT..]);
            }
            other => write_below(other, indent + INDENT, out),
        }
    }
}

fn write_below(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            write_map(fields, indent, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write_list(items, indent, out);
        }
        scalar => {
            out.push(' ');
            out.push_str(&scalar_text(scalar));
            out.push('\n');
        }
    }
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(one) => text(one),
        // JSON writes the others, and empty maps and lists, as YAML does.
        other => other.to_string(),
    }
}

/// A text, quoted where it could be taken for something else.
fn text(text: &str) -> String {
    let is_plain_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte);
    // Older readers take these for truth values.
    let is_old_word = ["y", "n", "yes", "no", "on", "off"].iter().any(|word| word.eq_ignore_ascii_case(text));
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !is_old_word
        && text.bytes().all(is_plain_byte)
        && resolved(text, "").is_ok_and(|value| value.is_string());
    if is_plain { text.to_owned() } else { quoted(text) }
}

/// A text in double quotes, with escapes that JSON and YAML share.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // What YAML does not print, and what some readers take for the end of a line.
            '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
