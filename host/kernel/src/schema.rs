//! The JSON Schema of a type, for what is described outside of the API document.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the JSON Schema of a type as it is serialized, in one piece: no other fields than its own.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("additionalProperties".to_owned(), Value::Bool(false));
        // It can lie within another one.
        fields.remove("$schema");
    }
    schema
}
