//! The model: kinds of object in words that all vendors share. Their schemas stand in `wit/model` and are part of the
//! interface.

mod payload;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::schema::{Schema, SchemaError};

/// A kind of the model.
#[derive(Debug)]
pub struct ModelKind {
    /// Such as `dhcp-pool`.
    pub id: &'static str,
    /// JSON Schema 2020-12 of the fields of an object.
    pub text: &'static str,
    parsed: OnceLock<Parsed>,
}

#[derive(Debug)]
struct Parsed {
    document: Value,
    measured: BTreeSet<String>,
    secrets: BTreeSet<String>,
    schema: Result<Schema, SchemaError>,
}

macro_rules! kinds {
    ($($id:literal)*) => {
        /// All kinds, in the order in which the model lists them.
        pub static KINDS: [ModelKind; [$($id),*].len()] = [$(ModelKind {
            id: $id,
            text: include_str!(concat!("../../wit/model/", $id, ".schema.json")),
            parsed: OnceLock::new(),
        }),*];
    };
}

kinds! {
    "system" "interface" "port" "vlan" "ssid" "radio" "client" "neighbour" "route" "gateway" "dhcp-pool"
    "dhcp-reservation" "dhcp-lease" "dns-record" "firewall-rule" "nat-rule" "address-group" "vpn-tunnel" "vpn-peer"
    "vpn-session" "radius-profile" "radius-user" "service" "certificate" "guest" "snapshot" "volume" "disk" "backup"
    "firmware" "camera" "extension" "trunk" "call"
}

/// The kind of this id.
pub fn find(id: &str) -> Option<&'static ModelKind> {
    KINDS.iter().find(|kind| kind.id == id)
}

impl ModelKind {
    fn parsed(&self) -> &Parsed {
        self.parsed.get_or_init(|| {
            // The text is part of the program, and a test reads all of them.
            let mut document: Value = serde_json::from_str(self.text).unwrap_or_default();
            if let Value::Object(fields) = &mut document {
                fields.remove("$id");
            }
            let marked = |word: &str| {
                let properties = document["properties"].as_object().into_iter().flatten();
                properties.filter(|(_, one)| one[word] == true).map(|(name, _)| name.clone()).collect()
            };
            Parsed {
                measured: marked("x-measured"),
                secrets: marked("writeOnly"),
                schema: Schema::parse(&document),
                document,
            }
        })
    }

    /// The schema as JSON, without its `$id`.
    pub fn document(&self) -> &Value {
        &self.parsed().document
    }

    /// What fields are checked against.
    ///
    /// # Errors
    /// The schema is none that a package may bring.
    pub fn schema(&self) -> Result<&Schema, &SchemaError> {
        self.parsed().schema.as_ref()
    }

    /// As people call one object, such as `DHCP pool`.
    pub fn title(&self) -> &str {
        self.document()["title"].as_str().unwrap_or(self.id)
    }

    /// Version of the kind; 0 where it may still change.
    pub fn version(&self) -> u64 {
        self.document()["x-version"].as_u64().unwrap_or_default()
    }

    /// What events of its objects begin with, such as `vpn`.
    pub fn event_prefix(&self) -> &str {
        self.document()["x-event"].as_str().unwrap_or("device")
    }

    /// What features that write its objects begin with, such as `network.vlan`; none where it is only read.
    pub fn feature(&self) -> Option<&str> {
        self.document()["x-feature"].as_str()
    }

    /// What can be asked of its objects: `create`, `update`, `delete` and others, such as `poe-cycle`.
    pub fn verbs(&self) -> impl Iterator<Item = &str> {
        self.document()["x-writes"].as_object().into_iter().flatten().map(|(verb, _)| verb.as_str())
    }

    /// The fields that a verb takes beside the key; a field of a field is dotted, as in `poe.enabled`.
    pub fn written_fields(&self, verb: &str) -> impl Iterator<Item = &str> {
        self.document()["x-writes"][verb]["fields"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// JSON Schema of the payload of a verb; none where the kind does not know it.
    pub fn payload_schema(&self, verb: &str) -> Option<Value> {
        payload::schema(self.document(), verb)
    }

    /// The fields that an object may have.
    pub fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.document()["properties"].as_object().into_iter().flatten()
    }

    /// What the schema says of a field.
    pub fn property(&self, field: &str) -> Option<&Value> {
        self.document()["properties"].get(field)
    }

    /// Whether a field moves without anything having been changed, such as a counter.
    pub fn is_measured(&self, field: &str) -> bool {
        self.parsed().measured.contains(field)
    }

    /// Whether a field is a secret: it is written, and never read.
    pub fn is_secret(&self, field: &str) -> bool {
        self.parsed().secrets.contains(field)
    }

    /// What is wrong with the fields of an object, with the place of the first problem; none where they fit.
    pub fn problem(&self, fields: &Map<String, Value>) -> Option<String> {
        let schema = match self.schema() {
            Ok(schema) => schema,
            Err(error) => return Some(error.to_string()),
        };
        if let Some(secret) = fields.keys().find(|field| self.is_secret(field)) {
            return Some(format!("'{secret}' is a secret, which is never read"));
        }
        let fields = Value::Object(fields.clone());
        let problem = schema.validator().iter_errors(&fields).next()?;
        Some(format!("{}: {problem}", problem.instance_path()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_schema_is_a_kind_and_can_be_used() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/model");
        let mut files: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let mut kinds: Vec<String> = KINDS.iter().map(|kind| format!("{}.schema.json", kind.id)).collect();
        kinds.sort();
        assert_eq!(files, kinds);
        for kind in &KINDS {
            kind.schema().unwrap_or_else(|error| panic!("{}: {error}", kind.id));
            assert!(kind.properties().count() > 1 && kind.document()["title"].is_string(), "{}", kind.id);
            assert_eq!(kind.document()["additionalProperties"], false, "{}", kind.id);
        }
    }

    #[test]
    fn what_is_written_has_a_feature_and_fields_that_exist() {
        let mut features = BTreeSet::new();
        for kind in &KINDS {
            assert_eq!(kind.feature().is_some(), kind.verbs().next().is_some(), "{}", kind.id);
            assert!(kind.feature().is_none_or(|feature| features.insert(feature)), "{}", kind.id);
            for verb in kind.verbs() {
                let schema = kind.payload_schema(verb).unwrap();
                Schema::compile(&schema).unwrap_or_else(|error| panic!("{} {verb}: {error}", kind.id));
                for field in kind.written_fields(verb) {
                    let pointer = format!("/properties/{}", field.replace('.', "/properties/"));
                    assert!(schema.pointer(&pointer).is_some(), "{} {verb} {field}", kind.id);
                }
            }
        }
    }

    #[test]
    fn fields_are_judged_by_their_schema() {
        let fields = |value: Value| value.as_object().unwrap().clone();
        let vlan = find("vlan").unwrap();
        assert_eq!(vlan.problem(&fields(json!({ "vlan_id": 20, "name": "guests" }))), None);
        for (wrong, said) in [
            (json!({ "vlan_id": 4096 }), "vlan_id"),
            (json!({ "vlan": 20 }), "vlan"),
            (json!({ "dhcp": "maybe" }), "dhcp"),
        ] {
            let problem = vlan.problem(&fields(wrong)).unwrap();
            assert!(problem.contains(said), "{problem}");
        }
        let ssid = find("ssid").unwrap();
        assert!(ssid.problem(&fields(json!({ "passphrase": "x" }))).unwrap().contains("secret"));
        assert!(find("interface").unwrap().is_measured("counters"));
    }
}
