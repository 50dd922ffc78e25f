//! Operations of the Fabric for plugins: only those of the manifest. The rights are the server's.

use heddle_core::bounds::{JsonRoom, json_bytes};
use heddle_core::fault::{Fault, FaultKind};
use serde_json::Value;

use crate::bindings::heddle::common::types;
use crate::bindings::plugin::heddle::plugin::fabric;
use crate::egress::declared::few;
use crate::limits::{OPERATION_ANSWER_BYTES_MAX, OPERATION_CALLS_MAX, OPERATION_PARAMS_BYTES_MAX};
use crate::state::State;

impl fabric::Host for State {
    async fn call(
        &mut self,
        operation: String,
        params: String,
    ) -> wasmtime::Result<Result<String, types::Fault>> {
        Ok(match self.call_operation(&operation, &params).await {
            Ok(answer) => {
                self.lower("fabric.answer", &answer);
                Ok(answer)
            }
            Err(fault) => Err(self.fault(fault)?),
        })
    }
}

impl State {
    async fn call_operation(&mut self, operation: &str, params: &str) -> Result<String, Fault> {
        self.waits();
        let plugin = self.reach.of_plugin()?;
        if plugin.plugin.spent.operations >= OPERATION_CALLS_MAX {
            let message = format!("a call may call {OPERATION_CALLS_MAX} operations");
            return Err(Fault::new(FaultKind::Generic, message).with_code("operation-budget"));
        }
        plugin.plugin.spent.operations += 1;
        let declared = plugin.facts.manifest.capabilities.called();
        if !declared.iter().any(|id| id == operation) {
            let message =
                format!("this operation is not declared; 'capabilities.fabric.call' has {}", few(declared));
            return Err(plugin.refuse("operation", message));
        }
        let params = parsed("the parameters", params, OPERATION_PARAMS_BYTES_MAX)?;
        let effect = plugin.plugin.effect;
        let answer = plugin.plugin.services.call_operation(&plugin.of(), effect, operation, params).await?;
        let bytes = json_bytes(&answer);
        plugin.account.give(bytes);
        if bytes > OPERATION_ANSWER_BYTES_MAX {
            let message = format!(
                "the answer of '{operation}' has {bytes} bytes; {OPERATION_ANSWER_BYTES_MAX} are the most"
            );
            return Err(Fault::new(FaultKind::Generic, message).with_code("response-too-large"));
        }
        Ok(answer.to_string())
    }
}

/// JSON that a plugin hands over, within the host's bounds.
pub(super) fn parsed(what: &str, text: &str, bytes_max: usize) -> Result<Value, Fault> {
    let too_large = |problem: String| Fault::new(FaultKind::Invalid, problem).with_code("request-too-large");
    if text.len() > bytes_max {
        return Err(too_large(format!("{what} have {} bytes; {bytes_max} are the most", text.len())));
    }
    // One of the databases cannot keep it.
    if text.contains("\\u0000") || text.contains('\0') {
        let message = format!("{what} have the character U+0000, which is not kept");
        return Err(Fault::new(FaultKind::Invalid, message).with_code("not-text"));
    }
    JsonRoom::default().take(text.as_bytes()).map_err(|too_much| too_large(format!("{what} {too_much}")))?;
    serde_json::from_str(text)
        .map_err(|_| Fault::new(FaultKind::Invalid, format!("{what} are not JSON")).with_code("not-json"))
}
