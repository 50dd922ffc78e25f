//! What people write on devices. Readings never touch it, and nothing here touches what they read.

use heddle_core::device::DeviceState;
use heddle_core::{DeviceId, Timestamp};
use sqlx::QueryBuilder;
use sqlx::types::Json;

use super::{Device, ROWS_PER_STATEMENT, set_by_id};
use crate::db::Tx;
use crate::error::Result;
use crate::object;
use crate::select::{Bind, Scope};

/// The columns of `device` that people write. [`set_labels`] writes all of them, changed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    pub display_name: Option<String>,
    pub notes: Option<String>,
    pub tags: Vec<String>,
    pub state: DeviceState,
}

impl Device {
    /// Returns a copy of what people wrote on the device, to change it or to compare it with a later state.
    pub fn labels(&self) -> Labels {
        Labels {
            display_name: self.display_name.clone(),
            notes: self.notes.clone(),
            tags: self.tags.clone(),
            state: self.state,
        }
    }
}

/// Whether the list of tags holds one, given as [`tag_in_list`] writes it.
///
/// The databases space a list's elements differently, so the space is taken out and the first
/// bracket becomes a comma. Within a text of JSON a quote never follows a comma or a space.
pub(super) const HAS_TAG: &str = r#"REPLACE(',' || SUBSTR(REPLACE(CAST(device.tags AS TEXT), '", "', '","'), 2), ?, '')
    <> ',' || SUBSTR(REPLACE(CAST(device.tags AS TEXT), '", "', '","'), 2)"#;

pub(super) fn tag_in_list(tag: &str) -> String {
    format!(",{}", serde_json::Value::from(tag))
}

/// Those of these devices that are in the scope and not removed, by id, each as it is until
/// the transaction ends.
pub async fn lock_all(tx: &mut Tx, scope: &Scope, ids: &[DeviceId]) -> Result<Vec<Device>> {
    object::live::<Device>(scope)
        .and_in("device.id", ids.iter().map(|id| Bind::Id(id.0)))
        .all_locked(tx, "device.id", i64::try_from(ids.len()).unwrap_or(i64::MAX), ("device", true))
        .await
}

/// Writes each device's labels, all in one statement as long as they are not thousands.
pub async fn set_labels(tx: &mut Tx, rows: &[(DeviceId, Labels)], now: Timestamp) -> Result<()> {
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        on!(tx, conn => {
            let mut update =
                QueryBuilder::new("WITH written (id, display_name, notes, tags, state, at) AS (");
            update.push_values(rows, |mut row, (id, labels)| {
                row.push_bind(*id)
                    .push_bind(labels.display_name.as_ref())
                    .push_bind(labels.notes.as_ref())
                    .push_bind(Json(&labels.tags))
                    .push_bind(labels.state)
                    .push_bind(now);
            });
            update.push(
                ") UPDATE device SET display_name = written.display_name, notes = written.notes,
                    tags = written.tags, state = written.state, revision = revision + 1, updated_at = written.at
                FROM written WHERE device.id = written.id",
            );
            update.build().execute(conn).await.map(|_| ())
        })?;
    }
    Ok(())
}

/// Hides these devices. Their controller's next reading brings back what it still reports.
pub async fn remove_all(tx: &mut Tx, ids: &[DeviceId], now: Timestamp) -> Result<()> {
    let ids: Vec<Bind> = ids.iter().map(|id| Bind::Id(id.0)).collect();
    for ids in ids.chunks(ROWS_PER_STATEMENT * 10) {
        let values = vec![Bind::Time(now)];
        set_by_id(
            tx,
            "UPDATE device SET deleted_at = $1, revision = revision + 1, updated_at = $1 WHERE id IN (",
            values,
            ids,
        )
        .await?;
    }
    Ok(())
}
