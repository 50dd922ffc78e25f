//! Steps that notify a receiver at once.

pub(super) mod log;
pub(super) mod notify;
pub(super) mod webhook;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use heddle_core::Permission;
use heddle_core::change::Danger;
use heddle_core::operation::{OperationKind, OperationTier};
use serde_json::Value;

use crate::operation::{Declaration, ParamsSchema};

/// Declares an operation of this folder, by its id, its title and its description.
fn sink(
    (id, title, description): (&str, &str, &str),
    permission: Permission,
    params_schema: &Value,
    output_schema: Value,
) -> Declaration {
    Declaration {
        id: id.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        tier: OperationTier::Native,
        kind: OperationKind::Sink,
        danger: Danger::Normal,
        owner: "fabric".to_owned(),
        permission: Some(permission),
        params_schema: ParamsSchema::from(params_schema),
        output_schema: Arc::new(output_schema),
        of_adapter: false,
        is_switched: false,
    }
}
