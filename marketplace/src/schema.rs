//! JSON Schemas that a package brings: judged and compiled once, before anything is checked against them.
//!
//! What is accepted is the part of JSON Schema 2020-12 that needs nothing from outside and whose work is
//! bounded: references go to `#/$defs/NAME` only and never in a circle, patterns are matched in linear time
//! and have bounded repeats, and the schema is small, also after its references were followed.

use std::collections::{HashMap, HashSet};

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value};

use crate::json;

const BYTES_MAX: usize = 64 * 1024;
const DEPTH_MAX: usize = 16;
/// Subschemas when every reference is replaced by what it refers to.
const SUBSCHEMAS_MAX: u64 = 8_192;
/// Levels of subschemas when every reference is replaced.
const LEVELS_MAX: usize = 64;
const PATTERNS_MAX: usize = 128;
const PATTERN_BYTES_MAX: usize = 1_024;
const REPEATS_MAX: u64 = 4_096;
/// Bytes of one compiled pattern.
const PATTERN_MEMORY_MAX: usize = 4 << 20;
/// Bytes of all compiled patterns of a schema together, which have equal parts of it. The same pattern is compiled once.
const PATTERNS_MEMORY_MAX: usize = 32 << 20;
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
const DEFINITION: &str = "#/$defs/";

/// Keywords whose value is a schema.
const ONE: &[&str] = &[
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LIST: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
const NAMED: &[&str] = &["$defs", "dependentSchemas", "patternProperties", "properties"];
/// Keywords that change what a reference means, or belong to other drafts.
const REFUSED: &[&str] = &[
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$vocabulary",
    "additionalItems",
    "definitions",
    "dependencies",
    "id",
];

/// Why a schema was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("it must be an object")]
    NotObject,
    #[error("it has more than {BYTES_MAX} bytes")]
    TooLarge,
    #[error("it is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    #[error("'$schema' is '{0}'; '{DIALECT}' is accepted")]
    Dialect(String),
    #[error("keyword '{0}' is not accepted")]
    Keyword(String),
    #[error("reference '{0}' leaves the schema; only '{DEFINITION}NAME' is accepted")]
    Remote(String),
    #[error("reference '{0}' names no definition of the schema")]
    Undefined(String),
    #[error("reference '{0}' leads back to itself")]
    Circular(String),
    #[error("its references multiply: it has more than {SUBSCHEMAS_MAX} subschemas when they are followed")]
    Multiplied,
    #[error("its references nest deeper than {LEVELS_MAX} levels")]
    Nested,
    #[error("it has more than {PATTERNS_MAX} patterns")]
    Patterns,
    #[error("pattern '{0}…' has more than {PATTERN_BYTES_MAX} bytes")]
    PatternLength(String),
    #[error("pattern '{pattern}' repeats {times} times; {REPEATS_MAX} times are the most")]
    PatternRepeats { pattern: String, times: String },
    /// Not JSON Schema, or a pattern that cannot be matched in linear time.
    #[error("it cannot be used: {0}")]
    Unusable(String),
}

/// A schema that values are checked against.
#[derive(Debug, Clone)]
pub struct Schema {
    document: Value,
    validator: Validator,
}

impl Schema {
    /// Judges and compiles a schema of untrusted origin.
    pub fn parse(document: &Value) -> Result<Self, SchemaError> {
        Self::judge(document)?;
        Self::compile(document)
    }

    /// Judges a schema of untrusted origin as it is written, in time that grows with its size alone. Returns how many
    /// different patterns it has. Whether it can be compiled is not known.
    pub(crate) fn judge(document: &Value) -> Result<usize, SchemaError> {
        let fields = document.as_object().ok_or(SchemaError::NotObject)?;
        // The depth first: what follows recurses.
        if json::depth(document) > DEPTH_MAX {
            return Err(SchemaError::TooDeep);
        }
        if document.to_string().len() > BYTES_MAX {
            return Err(SchemaError::TooLarge);
        }
        match fields.get("$schema") {
            None => {}
            Some(Value::String(dialect)) if dialect == DIALECT => {}
            Some(other) => return Err(SchemaError::Dialect(other.as_str().unwrap_or_default().to_owned())),
        }
        let mut walk = Walk::default();
        walk.schema(document, true)?;
        Extents::of(fields)?;
        Ok(different_patterns(document))
    }

    /// Compiles a schema that the host itself wrote, or that was judged.
    pub fn compile(document: &Value) -> Result<Self, SchemaError> {
        Self::compile_within(document, PATTERN_MEMORY_MAX)
    }

    /// Compiles a schema of which no pattern takes more than so many bytes.
    pub(crate) fn compile_within(document: &Value, pattern_bytes: usize) -> Result<Self, SchemaError> {
        let part = PATTERNS_MEMORY_MAX / different_patterns(document).max(1);
        let bytes = pattern_bytes.min(part).min(PATTERN_MEMORY_MAX);
        let patterns = PatternOptions::regex().size_limit(bytes).dfa_size_limit(bytes);
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(patterns)
            .offline()
            .build(document)
            .map_err(|error| SchemaError::Unusable(error.to_string().chars().take(500).collect()))?;
        Ok(Self { document: document.clone(), validator })
    }

    /// The schema as it was written.
    #[must_use]
    pub fn document(&self) -> &Value {
        &self.document
    }

    #[must_use]
    pub fn validator(&self) -> &Validator {
        &self.validator
    }
}

/// Looks at every subschema as it is written.
#[derive(Default)]
struct Walk {
    patterns: usize,
}

impl Walk {
    fn schema(&mut self, schema: &Value, is_root: bool) -> Result<(), SchemaError> {
        let fields = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(fields) => fields,
            other => return Err(SchemaError::Unusable(format!("{other} stands where a schema belongs"))),
        };
        for (keyword, value) in fields {
            let is_refused = REFUSED.contains(&keyword.as_str()) || (keyword == "$schema" && !is_root);
            if is_refused {
                return Err(SchemaError::Keyword(keyword.clone()));
            }
            if keyword == "$ref"
                && let Value::String(target) = value
                && !target.starts_with(DEFINITION)
            {
                return Err(SchemaError::Remote(target.chars().take(200).collect()));
            }
        }
        patterns(fields).try_for_each(|pattern| self.pattern(pattern))?;
        children(fields).try_for_each(|(_, child)| self.schema(child, false))
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), SchemaError> {
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return Err(SchemaError::Patterns);
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(SchemaError::PatternLength(pattern.chars().take(80).collect()));
        }
        match repeats(pattern).find(|times| !times.parse::<u64>().is_ok_and(|n| n <= REPEATS_MAX)) {
            None => Ok(()),
            Some(times) => Err(SchemaError::PatternRepeats {
                pattern: pattern.chars().take(200).collect(),
                times: times.chars().take(20).collect(),
            }),
        }
    }
}

/// The patterns of a schema, without those of its subschemas.
fn patterns(fields: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let one = fields.get("pattern").and_then(Value::as_str);
    let named = fields.get("patternProperties").and_then(Value::as_object);
    one.into_iter().chain(named.into_iter().flat_map(|named| named.keys().map(String::as_str)))
}

fn different_patterns(document: &Value) -> usize {
    fn collect<'a>(schema: &'a Value, found: &mut HashSet<&'a str>) {
        let Some(fields) = schema.as_object() else { return };
        found.extend(patterns(fields));
        children(fields).for_each(|(_, child)| collect(child, found));
    }
    let mut found = HashSet::new();
    collect(document, &mut found);
    found.len()
}

/// The numbers of all counted repeats. One inside of a character class counts too, which does no harm.
fn repeats(pattern: &str) -> impl Iterator<Item = &str> {
    let inner = pattern.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(inner, _)| inner));
    let counted = inner.filter(|inner| {
        inner.starts_with(|c: char| c.is_ascii_digit() || c == ',')
            && inner.bytes().all(|b| b.is_ascii_digit() || b == b',')
    });
    counted.flat_map(|inner| inner.split(',')).filter(|number| !number.is_empty())
}

/// The subschemas directly below, each with the keyword that it stands at.
pub(crate) fn children(fields: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    fields.iter().flat_map(|(keyword, value)| {
        let keyword = keyword.as_str();
        let below: Box<dyn Iterator<Item = &Value>> = match value {
            _ if ONE.contains(&keyword) => Box::new(std::iter::once(value)),
            Value::Array(items) if LIST.contains(&keyword) => Box::new(items.iter()),
            Value::Object(named) if NAMED.contains(&keyword) => Box::new(named.values()),
            _ => Box::new(std::iter::empty()),
        };
        below.map(move |schema| (keyword, schema))
    })
}

/// How large a schema is when its references are followed.
#[derive(Clone, Copy)]
struct Extent {
    subschemas: u64,
    levels: usize,
}

/// Extents of the definitions, each computed once. `None` while it is being computed.
struct Extents<'a> {
    definitions: Option<&'a Map<String, Value>>,
    known: HashMap<&'a str, Option<Extent>>,
}

impl<'a> Extents<'a> {
    /// Refuses circles, and references that multiply.
    fn of(root: &'a Map<String, Value>) -> Result<(), SchemaError> {
        let definitions = root.get("$defs").and_then(Value::as_object);
        let mut extents = Self { definitions, known: HashMap::new() };
        extents.fields(root, 0).map(drop)
    }

    fn schema(&mut self, schema: &'a Value, level: usize) -> Result<Extent, SchemaError> {
        match schema {
            Value::Object(fields) => self.fields(fields, level),
            _ => Ok(Extent { subschemas: 1, levels: 1 }),
        }
    }

    fn fields(&mut self, fields: &'a Map<String, Value>, level: usize) -> Result<Extent, SchemaError> {
        if level > LEVELS_MAX {
            return Err(SchemaError::Nested);
        }
        let mut whole = Extent { subschemas: 1, levels: 1 };
        for (_, child) in children(fields) {
            let child = self.schema(child, level + 1)?;
            whole = whole.with(child)?;
        }
        match fields.get("$ref") {
            Some(Value::String(target)) => whole.with(self.definition(target, level + 1)?),
            _ => Ok(whole),
        }
    }

    fn definition(&mut self, target: &'a str, level: usize) -> Result<Extent, SchemaError> {
        let undefined = || SchemaError::Undefined(target.chars().take(200).collect());
        let name = target.strip_prefix(DEFINITION).ok_or_else(undefined)?;
        // The validator decodes '%' and '~': only names that mean themselves are judged as it reads them.
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return Err(undefined());
        }
        match self.known.get(name) {
            Some(Some(extent)) => return Ok(*extent),
            Some(None) => return Err(SchemaError::Circular(target.to_owned())),
            None => {}
        }
        let (name, schema) =
            self.definitions.and_then(|all| all.get_key_value(name)).ok_or_else(undefined)?;
        self.known.insert(name, None);
        let extent = self.schema(schema, level)?;
        self.known.insert(name, Some(extent));
        Ok(extent)
    }
}

impl Extent {
    fn with(self, child: Self) -> Result<Self, SchemaError> {
        let subschemas = self.subschemas.saturating_add(child.subschemas);
        let levels = self.levels.max(child.levels + 1);
        if subschemas > SUBSCHEMAS_MAX {
            return Err(SchemaError::Multiplied);
        }
        if levels > LEVELS_MAX {
            return Err(SchemaError::Nested);
        }
        Ok(Self { subschemas, levels })
    }
}

#[cfg(test)]
mod tests;
