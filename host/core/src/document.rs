//! JSON that is kept as text: what is shown far more often than it is looked into takes a tenth of the memory so.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// One JSON value, as text. Clones share the text.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Document(Arc<RawValue>);

impl Document {
    /// The value that the text stands for.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(self.as_str()).expect("the text is JSON")
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl From<Box<RawValue>> for Document {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.into())
    }
}

impl From<&Value> for Document {
    fn from(value: &Value) -> Self {
        to_raw_value(value).expect("a value is JSON").into()
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl JsonSchema for Document {
    fn inline_schema() -> bool {
        Value::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        Value::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Value::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_shown_as_the_value_that_it_keeps() {
        let value = json!({ "type": "object", "properties": { "a": { "enum": [1, 2.5, "x \" y"] } } });
        let document = Document::from(&value);
        assert_eq!(document.value(), value);
        assert_eq!(serde_json::to_value(&document).unwrap(), value);
        assert_eq!(json!([document]).to_string(), json!([value]).to_string());
        assert_eq!(document, RawValue::from_string(value.to_string()).unwrap().into());
        assert_ne!(document, Document::from(&json!({})));
    }
}
