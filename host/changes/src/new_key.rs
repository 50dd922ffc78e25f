//! Changes under a new encryption key.
//!
//! A change's secrets are sealed with that key, and their references are derived from it: with a new key, a device's
//! secrets have other references. So the references are rewritten, and a plan that was made with the old ones is
//! dropped.

use std::collections::BTreeMap;

use heddle_core::change::{ApplyStep, ChangeSpec, ChangeStatus};
use heddle_core::secret::Secret;
use heddle_core::{ChangeId, Clock, Timestamp};
use heddle_kernel::app::App;
use heddle_kernel::feature::Rekey;
use heddle_kernel::http::error::Error;
use heddle_kernel::keys::Keys;
use heddle_runtime::{SecretBook, reference};
use heddle_store::changes::{self, ChangeRow, Rekeyed};
use heddle_store::{Scope, Tx};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{gates, plan};

/// Puts a change's secrets under the current key, and all that depends on it.
pub(super) async fn rekey(tx: &mut Tx, keys: &Keys, clock: &Clock, id: ChangeId) -> Result<Rekey, Error> {
    let Some(row) = changes::find(tx, &Scope::everything(), id).await? else { return Ok(Rekey::Moved) };
    let Some(old) = row.secret.as_ref().filter(|sealed| !keys.is_current(sealed)) else {
        return Ok(Rekey::Done);
    };
    if row.apply_step != ApplyStep::Idle {
        return Ok(Rekey::InUse(format!(
            "change {id} is being applied and was left: run this again when it has ended"
        )));
    }
    let Ok(book) = plan::open_secrets(keys, &row) else { return Ok(Rekey::Unopenable) };
    let (new, outcome) = under_current(keys, &row, book)?;
    let now: Timestamp = clock.now();
    if !changes::rekey(tx, id, old, &new, now).await? {
        return Ok(Rekey::Moved);
    }
    Ok(outcome)
}

fn under_current(keys: &Keys, row: &ChangeRow, book: SecretBook) -> Result<(Rekeyed, Rekey), Error> {
    let key = keys.reference_key(row.controller_id);
    let mut names = BTreeMap::new();
    let mut renamed = SecretBook::default();
    for (name, secret) in book.entries {
        let new = reference(&key, secret.expose());
        names.insert(name, new.clone());
        renamed.entries.insert(new, Secret::new(secret.expose()));
    }
    let is_unsettled = gates::must_be_verified(row);
    let is_planned = row.status == ChangeStatus::Pending && row.plan.is_some();
    let drops_plan = is_planned && !is_unsettled;
    let outcome = if is_unsettled {
        let id = row.id;
        Rekey::Noted(format!(
            "change {id}: its outcome is not known; look at the device, then verify or discard it"
        ))
    } else if drops_plan {
        Rekey::Counted("pending changes hold secrets and must be planned again")
    } else {
        Rekey::Done
    };
    let inverse: Option<Vec<ChangeSpec>> = row.plan_inverse.clone();
    let new = Rekeyed {
        secret: plan::seal_secrets(keys, row.id, &renamed),
        payload: renaming(&row.payload, &names)?,
        also: renaming(&row.also, &names)?,
        expressed_as: renaming(&row.expressed_as, &names)?,
        plan_inverse: if drops_plan { None } else { renaming(&inverse, &names)? },
        plan_error: drops_plan
            .then(|| json!({ "type": "keys_rotated", "message": "keys were rotated; plan it again" })),
    };
    Ok((new, outcome))
}

/// Returns the value with other references. They consist of letters and digits, so they can be replaced in its text.
fn renaming<T: Serialize + DeserializeOwned>(
    value: &T,
    names: &BTreeMap<String, String>,
) -> Result<T, Error> {
    let mut text = serde_json::to_string(value).map_err(Error::internal)?;
    for (old, new) in names {
        text = text.replace(old, new);
    }
    serde_json::from_str(&text).map_err(Error::internal)
}

/// Returns a change under the current key, for callers that continue with its secrets.
pub(super) async fn current(app: &App, row: ChangeRow) -> Result<ChangeRow, Error> {
    if row.secret.as_ref().is_none_or(|sealed| app.keys.is_current(sealed)) {
        return Ok(row);
    }
    let mut tx = app.db.write().await?;
    rekey(&mut tx, &app.keys, &app.clock, row.id).await?;
    let row = super::apply::get(&mut tx, row.id).await?;
    tx.commit().await?;
    Ok(row)
}

/// Refuses a plan of another key: its references would not match what is read now.
pub(super) fn plan_is_under_current_key(app: &App, row: &ChangeRow) -> Result<(), Error> {
    if row.secret.as_ref().is_none_or(|sealed| app.keys.is_current(sealed)) {
        return Ok(());
    }
    Err(Error::Conflict {
        kind: "not_planned",
        message: "the service's encryption key is another since the change was planned; plan it again first"
            .to_owned(),
    })
}
