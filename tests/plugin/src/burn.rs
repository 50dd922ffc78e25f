//! What uses up what the host lends.

use std::hint::black_box;

use heddle_sdk::plugin::Host;
use heddle_sdk::{Fault, Level};
use serde::Deserialize;
use serde_json::{Value, json};

/// More than the host takes in one call or as one result (8 MiB).
const TOO_MANY_BYTES: usize = 9 << 20;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum How {
    Spin,
    Memory,
    HugeOutput,
    Panic,
    LogFlood,
}

impl How {
    pub(crate) fn run(self, host: &dyn Host) -> Result<Value, Fault> {
        match self {
            Self::Spin => {
                let mut turns = 0_u64;
                loop {
                    turns = black_box(turns.wrapping_add(1));
                }
            }
            Self::Memory => {
                let mut held: Vec<Vec<u8>> = Vec::new();
                loop {
                    held.push(black_box(vec![1; 1 << 20]));
                }
            }
            Self::HugeOutput => Ok(json!({ "text": "x".repeat(TOO_MANY_BYTES) })),
            Self::Panic => panic!("told to panic at {}", host.now_ms()),
            Self::LogFlood => {
                for n in 0..10_000 {
                    host.log(Level::Warn, "flood", &[("plugin.line", &n.to_string())]);
                }
                Ok(json!({ "logged": 10_000 }))
            }
        }
    }
}
