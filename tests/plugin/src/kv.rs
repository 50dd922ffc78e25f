//! Uses of the storage.

use heddle_sdk::Fault;
use heddle_sdk::plugin::{Change, Expected, Host, NewValue, Op};
use serde::Deserialize;
use serde_json::{Value, json};

/// What to do with the storage.
#[derive(Debug, Deserialize)]
#[serde(tag = "use", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub(crate) enum Asked {
    Get {
        key: String,
    },
    /// Stores a text, or so many zero bytes.
    Set {
        key: String,
        text: Option<String>,
        bytes: Option<usize>,
        ttl_s: Option<u32>,
    },
    Delete {
        key: String,
    },
    /// Sets each key to the text where the stored version is this one; 0 stands for none.
    Transact {
        keys: Vec<String>,
        version: u64,
        text: String,
    },
    List {
        prefix: String,
        cursor: Option<String>,
        limit: u32,
    },
    GetOften {
        times: u32,
    },
}

impl Asked {
    pub(crate) fn run(self, host: &dyn Host) -> Result<Value, Fault> {
        match self {
            Self::Get { key } => Ok(match host.kv_get(&key)? {
                None => json!({}),
                Some(found) => {
                    json!({ "text": String::from_utf8_lossy(&found.value), "version": found.version })
                }
            }),
            Self::Set { key, text, bytes, ttl_s } => {
                let value = text.map_or_else(|| vec![0; bytes.unwrap_or_default()], String::into_bytes);
                host.kv_set(&key, &value, ttl_s)?;
                Ok(json!({}))
            }
            Self::Delete { key } => host.kv_delete(&key).map(|()| json!({})),
            Self::Transact { keys, version, text } => {
                let expected = if version == 0 { Expected::Absent } else { Expected::Version(version) };
                let op = |key: &String| {
                    let new = NewValue { value: text.clone().into_bytes(), ttl_s: None };
                    Op { key: key.clone(), expected, change: Change::Set(new) }
                };
                let ops: Vec<Op> = keys.iter().map(op).collect();
                Ok(json!({ "done": host.kv_transact(&ops)? }))
            }
            Self::List { prefix, cursor, limit } => {
                let page = host.kv_list(&prefix, cursor.as_deref(), limit)?;
                let keys: Vec<&str> = page.items.iter().map(|item| item.key.as_str()).collect();
                Ok(json!({ "keys": keys, "next": page.next }))
            }
            Self::GetOften { times } => {
                for _ in 0..times {
                    host.kv_get("any")?;
                }
                Ok(json!({}))
            }
        }
    }
}
