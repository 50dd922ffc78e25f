//! What the router was asked, in order, and how often it wrote.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

/// One ubus call that was executed, whatever became of its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call {
    /// Position from 1 since the router started; forgetting calls does not restart it.
    pub number: u64,
    pub object: String,
    pub method: String,
    /// The arguments without the session; a login's password is blanked.
    pub args: Value,
    /// Whether the method changes anything: staging counts.
    pub is_write: bool,
    /// The ubus status of the answer.
    pub status: u8,
}

impl Call {
    /// `object.method`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.object, self.method)
    }
}

/// How often the files were written, and by which way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Times each configuration was written, by apply or commit.
    pub commits: BTreeMap<String, u64>,
    /// Applies that wrote something.
    pub applies: u64,
    /// Confirmations that ended a pending apply.
    pub confirms: u64,
    /// Rollbacks, asked for or by timer.
    pub rollbacks: u64,
    /// Restarts of the whole router, whatever the cause.
    pub reboots: u64,
}

#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) calls: Vec<Call>,
    pub(crate) counters: Counters,
    recorded: u64,
}

impl Recorder {
    pub(crate) fn record(
        &mut self,
        object: &str,
        method: &str,
        args: &Map<String, Value>,
        is_write: bool,
        status: u8,
    ) {
        self.recorded += 1;
        let mut args = args.clone();
        if let Some(password) = args.get_mut("password") {
            *password = json!("***");
        }
        self.calls.push(Call {
            number: self.recorded,
            object: object.to_owned(),
            method: method.to_owned(),
            args: Value::Object(args),
            is_write,
            status,
        });
    }
}
