//! Records each new adapter package in the audit log, once.

use heddle_core::Clock;
use heddle_store::audit::{self, AuditKey, NewAudit};
use heddle_store::{Tx, packages};
use serde_json::json;

/// Writes packages that are not in the audit log yet into that of the organization of the first `super_admin`. Before
/// the setup there is none; then the setup does it.
pub async fn audit_new(tx: &mut Tx, clock: &Clock, audit_key: &AuditKey) -> heddle_store::Result<()> {
    let Some(org_id) = packages::platform_organization(tx).await? else { return Ok(()) };
    for package in packages::take_unaudited(tx, clock.now()).await? {
        let entry = NewAudit {
            org_id,
            actor_id: None,
            actor_name: "heddle".to_owned(),
            action: "adapter.installed".to_owned(),
            target_type: "adapter_package".to_owned(),
            target_id: None,
            detail: json!({
                "adapter": package.adapter_id,
                "version": package.version,
                "publisher": package.publisher,
                "signed_by": package.key_id,
                "manifest_sha256": package.manifest_sha256,
                "component_sha256": package.component_sha256,
                "first_served_at": package.first_served_at,
                "rules": package.rules,
            }),
            request_id: None,
            ip: None,
        };
        audit::append(tx, &entry, clock, audit_key).await?;
    }
    Ok(())
}
