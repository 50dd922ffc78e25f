//! Names that installed packages declare while the program runs.
//!
//! A declared name lives as long as the program, so that it is copied like any other. The same declaration is kept once,
//! however often its package is installed; only what a package says anew takes memory.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::Role;
use crate::event::{EventDeclaration, EventType, Payload, Priority};
use crate::permission::{Permission, PermissionDeclaration};

static PERMISSIONS: Mutex<Vec<&'static PermissionDeclaration>> = Mutex::new(Vec::new());
static EVENTS: Mutex<Vec<&'static EventDeclaration>> = Mutex::new(Vec::new());

/// The permission that a package declares.
pub fn permission(name: &str, role: Role, allows: &str) -> Permission {
    let mut known = PERMISSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |one: &&&PermissionDeclaration| (one.name, one.role, one.allows) == (name, role, allows);
    if let Some(declaration) = known.iter().find(same) {
        return Permission::declared(declaration);
    }
    let declaration: &'static PermissionDeclaration =
        Box::leak(Box::new(PermissionDeclaration { name: kept(name), role, allows: kept(allows) }));
    known.push(declaration);
    Permission::declared(declaration)
}

/// The type of events that a package declares, with the schema of its payloads.
pub fn event_type(name: &str, category: &'static str, priority: Priority, schema: &Value) -> EventType {
    let mut known = EVENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |one: &&&EventDeclaration| {
        (one.name, one.category, one.priority) == (name, category, priority)
            && matches!(&one.payload, Payload::Schema(kept) if kept == schema)
    };
    if let Some(declaration) = known.iter().find(same) {
        return EventType::declared(declaration);
    }
    let payload = Payload::Schema(schema.clone());
    let declaration: &'static EventDeclaration =
        Box::leak(Box::new(EventDeclaration { name: kept(name), category, priority, payload }));
    known.push(declaration);
    EventType::declared(declaration)
}

fn kept(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_declaration_is_kept_once_and_another_one_beside_it() {
        let name = "plugin.acme.manage";
        let first = permission(name, Role::OrgAdmin, "Manage");
        let again = permission(name, Role::OrgAdmin, "Manage");
        assert!(std::ptr::eq(first.as_str(), again.as_str()));
        let other = permission(name, Role::OrgAdmin, "Manage all");
        assert_eq!((other.as_str(), other.allows(), first.allows()), (name, "Manage all", "Manage"));

        let of = |schema: Value| event_type("plugin.acme.rang", "plugin", Priority::Normal, &schema);
        let first = of(json!({ "type": "object" }));
        assert!(std::ptr::eq(first.as_str(), of(json!({ "type": "object" })).as_str()));
        let other = of(json!({ "type": "object", "required": ["a"] }));
        assert_eq!(other.payload_schema()["required"], json!(["a"]));
        assert_eq!(first.payload_schema().get("required"), None);
    }
}
