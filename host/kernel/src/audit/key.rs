//! The key of the audit log: made once, sealed with the encryption key, and kept in the database.
//!
//! It outlives every rotation of the keys of the configuration, and goes with a backup. Because it is opened at each
//! start, it also tells whether `ENCRYPTION_KEY` is the one that this database is sealed with.

use anyhow::{Context as _, bail};
use heddle_core::Clock;
use heddle_core::secret::random_bytes;
use heddle_store::audit::AuditKey;
use heddle_store::sealed::{self, Sealed, SealedColumn};
use heddle_store::{Db, Tx, service_secrets};

use crate::keys::{Keys, Unsealable};

/// Where it is kept.
pub(crate) const SERVICE_SECRET: SealedColumn = SealedColumn::of("service_secret");

const NAME: &str = "audit";
const KEY_BYTES: usize = 32;

/// Opens the key; makes it where there is none yet. `columns` are all those with sealed bytes.
///
/// # Errors
/// When the configured key is not the one that the database is sealed with: nothing may be sealed with it then.
pub async fn open(
    db: &Db,
    keys: &Keys,
    clock: &Clock,
    columns: impl Iterator<Item = SealedColumn>,
) -> anyhow::Result<AuditKey> {
    let found = service_secrets::find(&mut db.read().await?, NAME).await?;
    let key = match found {
        Some(key) => key,
        None => make(db, keys, clock, columns).await?,
    };
    of_sealed(keys, &key)
}

/// Returns the key, if there is one. Makes none.
pub async fn find(tx: &mut Tx, keys: &Keys) -> anyhow::Result<Option<AuditKey>> {
    service_secrets::find(tx, NAME).await?.map(|sealed| of_sealed(keys, &sealed)).transpose()
}

async fn make(
    db: &Db,
    keys: &Keys,
    clock: &Clock,
    columns: impl Iterator<Item = SealedColumn>,
) -> anyhow::Result<Sealed> {
    let mut tx = db.write().await?;
    // A database from before there was this key: what is sealed in it tells.
    refuse_foreign(&mut tx, keys, columns).await?;
    let id: uuid::Uuid = clock.new_id();
    let bytes = keys.seal(&context(id), random_bytes::<KEY_BYTES>().as_slice());
    service_secrets::insert(&mut tx, NAME, &Sealed { id, bytes }, clock.now()).await?;
    // Another process may have been first.
    let sealed =
        service_secrets::find(&mut tx, NAME).await?.context("the key of the audit log disappeared")?;
    tx.commit().await?;
    Ok(sealed)
}

fn of_sealed(keys: &Keys, sealed: &Sealed) -> anyhow::Result<AuditKey> {
    let plain = match keys.open_sealed(&context(sealed.id), &sealed.bytes) {
        Ok(plain) => plain,
        Err(Unsealable::UnknownKey(id)) => return Err(wrong_key(keys, &id)),
        Err(Unsealable::Altered) => {
            bail!("the key of the audit log was altered in the database: restore the last backup")
        }
    };
    let key: [u8; KEY_BYTES] = plain.as_slice().try_into().context("the key of the audit log is damaged")?;
    Ok(AuditKey::new(key))
}

fn context(id: uuid::Uuid) -> String {
    format!("{}:{id}", SERVICE_SECRET.table)
}

async fn refuse_foreign(
    tx: &mut Tx,
    keys: &Keys,
    columns: impl Iterator<Item = SealedColumn>,
) -> anyhow::Result<()> {
    let mut foreign = None;
    for column in columns {
        for share in sealed::shares(tx, column).await? {
            if keys.knows(&share.mark) {
                return Ok(());
            }
            foreign.get_or_insert_with(|| hex::encode(share.mark.get(1..).unwrap_or_default()));
        }
    }
    foreign.map_or(Ok(()), |id| Err(wrong_key(keys, &id)))
}

fn wrong_key(keys: &Keys, id: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "ENCRYPTION_KEY is not the key that this database is sealed with: it is the key {}, the database names the key \
         {id}; set ENCRYPTION_KEY to that key, or ENCRYPTION_KEY_PREVIOUS while keys are rotated",
        keys.key_id()
    )
}
