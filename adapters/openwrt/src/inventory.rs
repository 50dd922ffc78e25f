//! Reading what is there: devices, and objects below the areas.

pub(crate) mod clients;
pub(crate) mod devices;
pub(crate) mod leases;
pub(crate) mod objects;

use heddle_sdk::{Fault, Host};
use serde_json::{Value, json};

use crate::rpc::{self, CallError, Read};

/// One batch of reads. What is absent, denied or fails is `null` and noted; the first
/// read must work.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The names of the reads.
    names: Vec<String>,
    answers: Vec<Result<Value, CallError>>,
    /// Calls that the device does not have, or that failed.
    pub(crate) absent: Vec<String>,
    /// Calls that the user may not make.
    pub(crate) denied: Vec<String>,
}

impl Survey {
    pub(crate) fn take(host: &dyn Host, reads: &[Read<'_>]) -> Result<Self, Fault> {
        let mut survey =
            Survey { names: Vec::new(), answers: Vec::new(), absent: Vec::new(), denied: Vec::new() };
        for (index, ((object, method, _), answer)) in reads.iter().zip(rpc::batch(host, reads)?).enumerate() {
            let what = format!("{object}.{method}");
            let answer = match answer {
                Ok(answer) => Ok(answer),
                Err(error @ CallError::Host(_)) => return Err(error.into_fault(&what)),
                Err(error) if index == 0 => return Err(error.into_fault(&what)),
                Err(error) => {
                    let list = if error.is_denied() { &mut survey.denied } else { &mut survey.absent };
                    if !list.contains(&what) {
                        list.push(what.clone());
                    }
                    Err(error)
                }
            };
            survey.names.push(what);
            survey.answers.push(answer);
        }
        Ok(survey)
    }

    pub(crate) fn answer(&self, index: usize) -> &Value {
        self.answers.get(index).and_then(|answer| answer.as_ref().ok()).unwrap_or(&Value::Null)
    }

    /// Whether the user may not make a read.
    pub(crate) fn is_denied(&self, index: usize) -> bool {
        self.answers[index].as_ref().is_err_and(CallError::is_denied)
    }

    /// Why a read failed that the device has and the user may make. What it would have told may be there.
    pub(crate) fn failure(&self, index: usize) -> Option<Fault> {
        let error = self.answers[index].as_ref().err()?;
        error.is_failure().then(|| error.clone().into_fault(&self.names[index]))
    }

    /// The answer of a read that was made, with why there is none.
    pub(crate) fn result(&self, index: usize) -> &Result<Value, CallError> {
        &self.answers[index]
    }
}

/// A read without arguments.
pub(crate) fn plain(object: &'static str, method: &'static str) -> Read<'static> {
    (object, method, json!({}))
}

/// Wireless interface names in the answer of `network.wireless.status`.
pub(crate) fn wireless_names(status: &Value) -> Vec<String> {
    let radios = status.as_object().into_iter().flat_map(serde_json::Map::values);
    radios
        .flat_map(|radio| radio.get("interfaces").and_then(Value::as_array).into_iter().flatten())
        .filter_map(|interface| interface.get("ifname").and_then(Value::as_str))
        .map(str::to_owned)
        .collect()
}

/// A MAC address as everything here compares it.
pub(crate) fn lower_mac(text: &str) -> String {
    text.to_ascii_lowercase()
}
