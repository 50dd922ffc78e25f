//! Backups: made, listed, fetched, brought back.

use heddle_lab::Answer;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::console::Console;
use crate::reply::Refusal;
use crate::row::{number, row, shown, text};
use crate::store::GLOBAL;
use crate::v1::{Call, Data, need};

/// The automatic backup that is there from the start.
const AUTOMATIC: &str = "autobackup_10.4.57_20251228_0130_1766885400000.unf";

/// Commands about backups.
pub(crate) fn command(own: &mut Console, call: &Call<'_>) -> Data {
    match text(&call.body, "cmd") {
        "list-backups" => {
            Ok(own.store.rows(GLOBAL, "backup").iter().map(|file| Value::Object(shown(file))).collect())
        }
        "backup" => {
            // One slot for each version: the file before is gone.
            let name = format!("{}.unf", own.settings.version());
            own.files.insert(name.clone(), own.store.clone());
            let days = number(&call.body, "days").unwrap_or_default();
            own.log(
                call.site,
                "SYSTEM",
                "BACKUP_CREATED",
                &format!("a backup of {days} days was made"),
                "LOW",
            );
            Ok(vec![json!({ "url": format!("/dl/backup/{name}") })])
        }
        // It answers at once, and never says where the file is.
        "async-backup" => Ok(Vec::new()),
        "export-site" => {
            let name = format!("export_{}_{}.unf", call.site, own.now / 1000);
            own.files.insert(name.clone(), own.store.clone());
            Ok(vec![json!({ "url": format!("/dl/backup/{name}") })])
        }
        "delete-backup" => {
            let name = need(call, "filename")?;
            let rows = own.store.rows_mut(GLOBAL, "backup");
            let place = rows.iter().position(|file| text(file, "filename") == name);
            rows.remove(place.ok_or_else(|| Refusal::new("BackupNotFound"))?);
            own.files.remove(name);
            Ok(Vec::new())
        }
        _ => Err(Refusal::new("UnknownCommand")),
    }
}

/// The automatic backup that a console has.
pub(crate) fn plant(own: &mut Console) {
    let file = json!({
        "filename": AUTOMATIC, "controller_name": "lab-console", "type": "primary",
        "version": own.settings.version(),
        "time": 1_766_885_400_000_u64, "datetime": "2025-12-28T01:30:00Z", "format": "bson", "days": 7,
        "size": 184_320,
    });
    own.store.add(GLOBAL, "backup", row(file));
    own.files.insert(AUTOMATIC.to_owned(), own.store.clone());
}

impl Console {
    /// The SHA-256 of the first backup file, in hex; a form that brings this file back names it.
    pub fn backup_sha256(&self) -> Option<String> {
        self.files.keys().next().map(|name| hex::encode(Sha256::digest(bytes_of(name))))
    }
}

/// The bytes of a file: they name the store that it holds.
fn bytes_of(name: &str) -> Vec<u8> {
    format!("UNF\0{name}\0").into_bytes()
}

/// A file as it is fetched.
pub(crate) fn download(own: &Console, name: &str) -> Answer {
    if !own.files.contains_key(name) {
        return Answer::status(404);
    }
    Answer::body(200, "application/octet-stream", bytes_of(name))
        .with_header("content-disposition", &format!("attachment; filename=\"{name}\""))
}

/// Brings a file back, and restarts.
pub(crate) fn restore(own: &mut Console, call: &Call<'_>) -> Data {
    let part = call.request.parts.iter().find(|part| part.name == "file");
    let part = part.ok_or_else(|| Refusal::new("InvalidBackup"))?;
    let is_meant = |name: &String| hex::encode(Sha256::digest(bytes_of(name))) == part.sha256;
    let store = own.files.iter().find(|(name, _)| is_meant(name)).map(|(_, store)| store.clone());
    own.store = store.ok_or_else(|| Refusal::new("InvalidBackup"))?;
    own.ask_restart();
    Ok(Vec::new())
}
