//! Files that people upload and that the calls of a change send, as adapters and plans speak of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Begins the reference that stands for the bytes of a file: it is followed by their SHA-256 in hex.
pub const FILE_REFERENCE: &str = "hdl-file:";

/// A file as it stands in a payload, in the place of the id that a person gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenFile {
    /// What a planned call names to send it.
    pub reference: String,
    pub name: String,
    pub size_bytes: u64,
    pub sha256: String,
}

impl GivenFile {
    /// A file of these bytes.
    pub fn new(name: &str, size_bytes: u64, sha256: &str) -> Self {
        Self {
            reference: format!("{FILE_REFERENCE}{sha256}"),
            name: name.to_owned(),
            size_bytes,
            sha256: sha256.to_owned(),
        }
    }

    /// Every file that stands in a payload.
    pub fn all_in(payload: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        collect(payload, &mut found);
        found
    }
}

fn collect(value: &Value, found: &mut Vec<GivenFile>) {
    match value {
        Value::Object(fields) => {
            let is_file = fields
                .get("reference")
                .and_then(Value::as_str)
                .is_some_and(|text| text.starts_with(FILE_REFERENCE));
            match GivenFile::deserialize(value) {
                Ok(file) if is_file => found.push(file),
                _ => fields.values().for_each(|field| collect(field, found)),
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

/// The digest in a reference; `None` where the text is no reference.
pub fn digest_of(reference: &str) -> Option<&str> {
    let digest = reference.strip_prefix(FILE_REFERENCE)?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (digest.len() == 64 && digest.bytes().all(is_hex)).then_some(digest)
}

/// A file that a call sends: uploaded before, and streamed when the call is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SentFile {
    /// SHA-256 of the bytes, in hex.
    pub sha256: String,
    /// File name that the device is told where the body has parts.
    pub name: String,
    /// Media type that the device is told.
    pub content_type: String,
    /// Number of bytes.
    pub size_bytes: u64,
}

/// One part of a `multipart/form-data` body: a text or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SentPart {
    /// Name of the field of the form.
    pub name: String,
    /// Its text; secrets are references that display as `***`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its file, where it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<SentFile>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_found_anywhere_in_a_payload() {
        let digest = "a".repeat(64);
        let file = GivenFile::new("x.iso", 7, &digest);
        let payload =
            json!({ "deep": [{ "file": file }], "text": file.reference, "other": { "reference": "x" } });
        assert_eq!(GivenFile::all_in(&payload), std::slice::from_ref(&file));
        assert_eq!(digest_of(&file.reference), Some(digest.as_str()));
    }

    #[test]
    fn only_a_whole_digest_is_a_reference() {
        let upper = format!("{FILE_REFERENCE}{}", "A".repeat(64));
        for text in ["hdl-file:", "hdl-file:ab", "hdl-secret:00", &upper] {
            assert_eq!(digest_of(text), None, "{text}");
        }
    }
}
