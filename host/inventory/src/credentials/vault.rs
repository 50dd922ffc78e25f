//! Decrypts credentials for the egress engine, the one place that sends them.

use heddle_core::{ControllerId, CredentialId, OrgId};
use heddle_kernel::keys::Keys;
use heddle_runtime::{Credential, Vault, VaultError};
use heddle_store::Db;

use super::sealed::Fields;

pub(super) struct StoredVault {
    pub(super) db: Db,
    pub(super) keys: Keys,
}

#[async_trait::async_trait]
impl Vault for StoredVault {
    async fn credential(&self, org: OrgId, id: CredentialId) -> Result<Credential, VaultError> {
        let failed = |error: &dyn std::fmt::Display| VaultError(error.to_string());
        let mut tx = self.db.read().await.map_err(|e| failed(&e))?;
        let row = heddle_store::credentials::find_sealed(&mut tx, org, id).await.map_err(|e| failed(&e))?;
        let row = row.ok_or_else(|| VaultError("it was removed".to_owned()))?;
        let fields = Fields::open(&self.keys, id, &row.secret).map_err(|e| failed(&e))?;
        Ok(Credential { fields: fields.into_named() })
    }

    fn reference_key(&self, controller: ControllerId) -> [u8; 32] {
        *self.keys.reference_key(controller)
    }
}
