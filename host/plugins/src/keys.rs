//! Keys of publishers that a `super_admin` trusts: what they signed can be sent to this service.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_core::Timestamp;
use heddle_kernel::app::SharedApp;
use heddle_kernel::checks::Checks;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::resource::By;
use heddle_marketplace::{TrustedKey, parse_trusted_keys};
use heddle_packages::Ground;
use heddle_store::publisher_keys::{self, PublisherKeyRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::transition::{Actor, note};

/// Hex digits of a key, and of its fingerprint.
const HEX_DIGITS: usize = 64;
/// Most patterns of ids of a key.
const IDS_MAX: usize = 64;
const PUBLISHER_CHARS_MAX: usize = 41;
/// Most characters of a pattern of ids: an id, and `*`.
const ID_CHARS_MAX: usize = 42;

/// A key that is to be trusted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TrustedKeyCreate")]
struct Body {
    /// As manifests name the publisher.
    #[schemars(length(min = 2, max = PUBLISHER_CHARS_MAX))]
    publisher: String,
    /// Ed25519 public key, hexadecimal.
    #[schemars(length(min = HEX_DIGITS, max = HEX_DIGITS))]
    public_key: String,
    /// SHA-256 of the 32 bytes of the key, hexadecimal, as the publisher told it on another way: it shows that the key is the
    /// publisher's.
    #[schemars(length(min = HEX_DIGITS, max = HEX_DIGITS))]
    fingerprint: String,
    /// Packages that the key may sign: exact ids, or beginnings that end with `*`. The publisher's name, and what begins with it
    /// and `-`, when absent.
    #[serde(default)]
    #[schemars(length(max = IDS_MAX), inner(length(min = 1, max = ID_CHARS_MAX)))]
    ids: Vec<String>,
}

/// A key of a publisher that is trusted.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TrustedKey", example = example())]
struct View {
    /// SHA-256 of the key, hexadecimal: its fingerprint, and its name in signatures.
    key_id: String,
    /// As manifests name it.
    publisher: String,
    /// Ed25519 public key, hexadecimal.
    public_key: String,
    /// Packages that it may sign: exact ids, or beginnings that end with `*`.
    ids: Vec<String>,
    /// It is in the file of the operator, and cannot be removed here.
    is_in_file: bool,
    /// When it was added; null for one of the file.
    added_at: Option<Timestamp>,
    /// Name of the user; null for one of the file.
    added_by: Option<String>,
}

/// Keys that are trusted.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TrustedKeyList")]
struct List {
    items: Vec<View>,
}

fn example() -> Value {
    json!({
        "key_id": "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925", "publisher": "acme",
        "public_key": "0000000000000000000000000000000000000000000000000000000000000000",
        "ids": ["acme", "acme-*"], "is_in_file": false, "added_at": "2026-01-05T08:00:00Z", "added_by": "ada",
    })
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .post(
            "/plugins/trusted-keys",
            Access::SuperAdmin,
            add,
            doc("Trust a publisher's key: packages that it signed can be installed from then on")
                .named("add_trusted_key")
                .body::<Body>()
                .answers::<View>(201)
                .fails_with(409),
        )
        .get(
            "/plugins/trusted-keys",
            Access::SuperAdmin,
            list,
            doc("Publishers' keys that are trusted, in the operator's file or over the API")
                .named("list_trusted_keys")
                .answers::<List>(200),
        )
        .delete(
            "/plugins/trusted-keys/{key_id}",
            Access::SuperAdmin,
            remove,
            doc("Trust a publisher's key no more; what it signed and is installed serves until the next start")
                .named("delete_trusted_key")
                .untagged()
                .empty(204)
                .example("key_id", Some("66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925")),
        )
}

async fn add(by: By, creation: Creation, Json(body): Json<Body>) -> Result<Response, Error> {
    let (app, key) = (&by.app, parsed(&body)?);
    if !body.fingerprint.eq_ignore_ascii_case(&key.key_id()) {
        return Err(Error::field(
            "fingerprint",
            "is not that of the key: compare both with what the publisher says",
        ));
    }
    let row = PublisherKeyRow {
        id: app.clock.new_id(),
        key_id: key.key_id(),
        publisher: key.publisher.clone(),
        public_key: hex::encode(key.key),
        ids: json!(key.ids),
        listed_for: String::new(),
        added_at: app.clock.now(),
        added_by: by.caller.username.clone(),
    };
    if Ground::of(app).await?.trusted.iter().any(|known| known.key_id() == row.key_id) {
        return Err(trusted_already());
    }
    let mut tx = app.db.write().await?;
    if !publisher_keys::put(&mut tx, &row).await? {
        return Err(trusted_already());
    }
    let detail = json!({ "key_id": row.key_id, "publisher": row.publisher, "ids": row.ids });
    note(&mut tx, Actor::Person(&by), ("trusted_key", row.id.0), "trusted_key.added", detail).await?;
    let view = View::added(&row, key.ids);
    creation.finish_lasting(tx, app, &format!("/plugins/trusted-keys/{}", row.key_id), &view).await
}

fn trusted_already() -> Error {
    Error::Conflict { kind: "key_trusted", message: "the key is trusted already".to_owned() }
}

/// The key as the package format reads it.
fn parsed(body: &Body) -> Result<TrustedKey, Error> {
    let mut checks = Checks::default();
    checks.chars("publisher", &body.publisher, PUBLISHER_CHARS_MAX);
    checks.chars("public_key", &body.public_key, HEX_DIGITS);
    checks.chars("fingerprint", &body.fingerprint, HEX_DIGITS);
    checks.require(body.ids.len() <= IDS_MAX, "ids", "must have at most 64 entries");
    for (position, id) in body.ids.iter().enumerate().take(IDS_MAX) {
        checks.chars(&format!("ids[{position}]"), id, ID_CHARS_MAX);
    }
    checks.done()?;
    let hex = body.public_key.to_ascii_lowercase();
    let mut entry = json!({ "publisher": body.publisher, "public_key": hex });
    if !body.ids.is_empty() {
        entry["ids"] = json!(body.ids);
    }
    let parsed = parse_trusted_keys(json!([entry]).to_string().as_bytes());
    let parsed = parsed.map_err(|error| Error::field("public_key", error.to_string()))?;
    parsed.into_iter().next().ok_or_else(|| Error::field("public_key", "is no key"))
}

async fn list(State(app): State<SharedApp>) -> Result<Answer<List>, Error> {
    let ground = Ground::of(&app).await?;
    let rows = publisher_keys::all(&mut app.db.single().await?).await?;
    let items = ground.trusted.into_iter().map(|key| {
        let row = rows.iter().find(|row| row.key_id == key.key_id() && row.listed_for.is_empty());
        match row {
            Some(row) => View::added(row, key.ids),
            None => View::in_file(key),
        }
    });
    Ok(Answer(List { items: items.collect() }))
}

/// The id of a key in a path.
#[derive(Debug, Deserialize)]
struct OnKey {
    key_id: String,
}

async fn remove(by: By, At(path): At<OnKey>) -> Result<StatusCode, Error> {
    let app = &by.app;
    let mut tx = app.db.write().await?;
    let rows = publisher_keys::all(&mut tx).await?;
    let row = rows.into_iter().find(|row| row.key_id == path.key_id && row.listed_for.is_empty());
    let Some(row) = row else {
        if Ground::of(app).await?.trusted.iter().any(|key| key.key_id() == path.key_id) {
            let message = "the key is in the file of ADAPTER_TRUSTED_KEYS: take it out there".to_owned();
            return Err(Error::Conflict { kind: "key_in_file", message });
        }
        return Err(Error::NotFound("trusted key"));
    };
    publisher_keys::remove(&mut tx, &row.key_id).await?;
    let detail = json!({ "key_id": row.key_id, "publisher": row.publisher, "ids": row.ids });
    note(&mut tx, Actor::Person(&by), ("trusted_key", row.id.0), "trusted_key.removed", detail).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

impl View {
    fn added(row: &PublisherKeyRow, ids: Vec<String>) -> Self {
        Self {
            key_id: row.key_id.clone(),
            publisher: row.publisher.clone(),
            public_key: row.public_key.clone(),
            ids,
            is_in_file: false,
            added_at: Some(row.added_at),
            added_by: Some(row.added_by.clone()),
        }
    }

    fn in_file(key: TrustedKey) -> Self {
        Self {
            key_id: key.key_id(),
            publisher: key.publisher,
            public_key: hex::encode(key.key),
            ids: key.ids,
            is_in_file: true,
            added_at: None,
            added_by: None,
        }
    }
}
