//! Credentials of controllers: sealed when they come in, and never given out again.

mod address;
pub(crate) mod fields;
mod probe;
mod sealed;
mod vault;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use heddle_core::secret::Secret;
use heddle_core::tls::TlsPolicy;
use heddle_core::{CredentialId, OrgId, Role};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::declarations::{SETTINGS_READ, SETTINGS_WRITE};
use heddle_kernel::feature::{Feature, Sealing};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::keys::Keys;
use heddle_kernel::list_query;
use heddle_kernel::resource::{self, Actions, By, Listed, Resource, Rows, Verbs, actions, owner};
use heddle_kernel::tls::check_tls;
use heddle_marketplace::credentials::{API_KEY, OWN_FIELDS, PASSWORD, USERNAME};
use heddle_runtime::Vault;
use heddle_store::credentials::{self, Credential, CredentialUpdate, NewCredential};
use heddle_store::sealed::SealedColumn;
use heddle_store::{Db, Set, Tx};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::address::{HOST_CHARS_MAX, PORT_MAX, parse_host, parse_port};
use self::fields::{SECRET_BYTES_MAX, check_own, require_uses, say_fields, sealed_secret, take_others};
use self::sealed::Fields;
use self::vault::StoredVault;
use crate::controllers::probe::Tested;

const SEALED: &[Sealing] =
    &[Sealing::of(SealedColumn { key_id: Some("key_id"), ..SealedColumn::of("credential") })];

/// Credentials of controllers.
pub struct Credentials;

impl Feature for Credentials {
    fn name(&self) -> &'static str {
        "credentials"
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::CREDENTIALS
    }

    fn sealed(&self) -> &'static [Sealing] {
        SEALED
    }

    fn vault(&self, db: &Db, keys: &Keys) -> Option<Arc<dyn Vault>> {
        Some(Arc::new(StoredVault { db: db.clone(), keys: keys.clone() }))
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        routes()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewCredential")]
struct NewBody {
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    /// At most 16384 bytes.
    #[schemars(length(max = SECRET_BYTES_MAX))]
    username: Option<String>,
    /// At most 16384 bytes.
    #[schemars(extend("maxLength" = SECRET_BYTES_MAX))]
    password: Option<Secret>,
    /// At most 16384 bytes.
    #[schemars(extend("maxLength" = SECRET_BYTES_MAX))]
    api_key: Option<Secret>,
    /// Other fields that the adapter takes, such as `client-secret`: up to 16, each value of 1 to 8192 bytes. Only the names
    /// are shown again.
    #[serde(default)]
    #[schemars(transform = say_fields)]
    fields: BTreeMap<String, Secret>,
    /// The host that a test of the credential uses: a name or an address. Controllers keep their own address.
    #[schemars(length(min = 1, max = HOST_CHARS_MAX))]
    host: Option<String>,
    /// With `host`; 443 when absent.
    #[schemars(range(min = 1, max = PORT_MAX))]
    port: Option<i64>,
    /// How the certificate there is judged; `verify` when absent.
    tls: Option<TlsPolicy>,
    /// Another organization than the own one; for `super_admin`.
    organization_id: Option<OrgId>,
}

/// What to change; absent keeps, `null` clears.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CredentialUpdate")]
struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    /// At most 16384 bytes.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(max = SECRET_BYTES_MAX), extend("x-nullable" = true))]
    username: Option<Option<String>>,
    /// At most 16384 bytes.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(extend("x-nullable" = true, "maxLength" = SECRET_BYTES_MAX))]
    password: Option<Option<Secret>>,
    /// At most 16384 bytes.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(extend("x-nullable" = true, "maxLength" = SECRET_BYTES_MAX))]
    api_key: Option<Option<Secret>>,
    /// All other fields; they replace the stored ones.
    #[serde(default, deserialize_with = "given")]
    #[schemars(transform = say_fields)]
    fields: Option<BTreeMap<String, Secret>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(min = 1, max = HOST_CHARS_MAX), extend("x-nullable" = true))]
    host: Option<Option<String>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(range(min = 1, max = PORT_MAX), extend("x-nullable" = true))]
    port: Option<Option<i64>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(extend("x-nullable" = true))]
    tls: Option<Option<TlsPolicy>>,
}

list_query! {
    /// Part of the name or the user name.
    pub struct ListQuery of Credential {}
}

impl Resource for Credentials {
    type Row = Credential;
    const NOUN: &'static str = "credential";
    const PATH: &'static str = "/credentials";
    const ACTIONS: Actions = actions!("credential");
    type View = Credential;

    fn view(credential: Credential, _: &App) -> Result<Credential, Error> {
        Ok(credential)
    }

    fn detail(credential: &Credential) -> Value {
        json!({ "name": credential.name })
    }

    async fn may_remove(credential: &Credential, tx: &mut Tx, _: &By) -> Result<(), Error> {
        match credentials::used_by(tx, credential.id).await? {
            0 => Ok(()),
            users => Err(Error::conflict(format!(
                "credential is used by controllers ({users}): give them another first"
            ))),
        }
    }
}

impl Listed for Credentials {
    type Query = ListQuery;

    async fn page(
        tx: &mut Tx,
        caller: &Caller,
        _: ListQuery,
        asked: Listing<Credential>,
    ) -> Rows<Credential> {
        Ok(credentials::list(tx, &caller.scope(), asked.search.as_deref(), asked.order).await?)
    }
}

fn routes() -> Routes {
    let write = Access::Permission(SETTINGS_WRITE);
    Verbs::<Credentials>::of("credential_id", Access::Permission(SETTINGS_READ), write)
        .listed("Credentials, without their secrets")
        .create::<NewBody, _, _>(create, "Store a credential")
        .get(resource::get::<Credentials>, "One credential, without its secrets")
        .update::<UpdateBody, _, _>(update, "Change a credential")
        .remove(resource::remove::<Credentials>, "Remove a credential that no controller uses")
        .writing(Access::RoleWith(Role::OrgAdmin, SETTINGS_WRITE))
        .restore(resource::restore::<Credentials>, "Bring a removed credential back")
        .routes()
        .post(
            "/credentials/{credential_id}/test",
            write,
            probe::test,
            doc("Try a credential: at a controller, or at an address of an adapter's that is no controller yet; \
                 nothing is stored")
            .body::<probe::TestBody>()
            .answers::<Tested>(200),
        )
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    let mut fields = Fields::default();
    fields.set(USERNAME.name, body.username.map(Secret::new));
    fields.set(PASSWORD.name, body.password);
    fields.set(API_KEY.name, body.api_key);
    take_others(&mut fields, body.fields, &mut checks);
    check_own(&fields, &mut checks);
    let host = body.host.map(|host| checks.keep("host", parse_host(&host)));
    let port = body.port.map(|port| checks.keep("port", parse_port(port)));
    checks.require(port.is_none() || host.is_some(), "port", "needs a host");
    let tls = body.tls.map(|tls| check_tls(tls, &mut checks));
    checks.done()?;
    let id: CredentialId = app.clock.new_id();
    let sealed = sealed_secret(app, id, &fields);
    let mut tx = app.db.write().await?;
    let org_id = owner(&mut tx, caller, body.organization_id).await?;
    let new = NewCredential { id, org_id, name, host, port, tls, sealed, now: app.clock.now() };
    let credential = credentials::insert(&mut tx, &new).await?;
    let detail = json!({ "name": credential.name, "host": credential.host });
    resource::created::<Credentials>(tx, &by, creation, credential, detail).await
}

async fn update(
    by: By,
    At(id): At<CredentialId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<Credential>, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let scope = caller.organization_scope();
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    let changed = changed_fields(&body);
    let host = set(body.host, |host| checks.keep("host", parse_host(&host)));
    let port = set(body.port, |port| checks.keep("port", parse_port(port)));
    let tls = set(body.tls, |tls| check_tls(tls, &mut checks));
    let mut tx = app.db.write().await?;
    let current = resource::locked::<Credentials>(&mut tx, &by, id, &if_match).await?;
    let stored = credentials::find_sealed(&mut tx, current.org_id, id).await?;
    let stored = stored.ok_or(Error::NotFound("credential"))?;
    let own = [
        (USERNAME, body.username.map(|name| name.map(Secret::new))),
        (PASSWORD, body.password),
        (API_KEY, body.api_key),
    ];
    let seals_again = body.fields.is_some() || own.iter().any(|(_, value)| value.is_some());
    let fields = if seals_again {
        let mut fields = Fields::open(&app.keys, id, &stored.secret).map_err(Error::internal)?;
        for (field, value) in own {
            let Some(value) = value else { continue };
            fields.set(field.name, value);
        }
        if let Some(others) = body.fields {
            take_others(&mut fields, others, &mut checks);
        }
        check_own(&fields, &mut checks);
        Some(fields)
    } else {
        None
    };
    let has_host = matches!(host, Set::To(_)) || (host == Set::Keep && current.host.is_some());
    let has_port = matches!(port, Set::To(_)) || (port == Set::Keep && current.port.is_some());
    checks.require(has_host || !has_port, "port", "needs a host");
    checks.done()?;
    if let Some(fields) = &fields {
        require_uses(&mut tx, app, &current, fields).await?;
    }
    let sealed = fields.map(|fields| sealed_secret(app, id, &fields));
    let change = CredentialUpdate { name, host, port, tls, sealed };
    let updated = credentials::update(&mut tx, &scope, id, &change, app.clock.now()).await?;
    let version = updated.as_ref().map(|credential| credential.version);
    resource::updated::<Credentials>(
        tx,
        &by,
        (current, updated),
        json!({ "changed": changed, "version": version }),
    )
    .await
}

/// What a field of a body does to the stored one.
fn set<T, U>(field: Option<Option<T>>, parse: impl FnOnce(T) -> U) -> Set<U> {
    match field {
        None => Set::Keep,
        Some(None) => Set::Clear,
        Some(Some(value)) => Set::To(parse(value)),
    }
}

/// Names of what a body changes, for the audit log.
fn changed_fields(body: &UpdateBody) -> Vec<String> {
    let own = [body.username.is_some(), body.password.is_some(), body.api_key.is_some()];
    let own = OWN_FIELDS.iter().zip(own).map(|(field, is_changed)| (field.key, is_changed));
    let others = body.fields.iter().flatten().map(|(name, _)| format!("fields.{name}"));
    let beside = [
        ("name", body.name.is_some()),
        ("fields", body.fields.is_some()),
        ("host", body.host.is_some()),
        ("port", body.port.is_some()),
        ("tls", body.tls.is_some()),
    ];
    let named = beside.into_iter().chain(own);
    let changed = named.filter(|(_, is_changed)| *is_changed).map(|(name, _)| name.to_owned());
    changed.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use schemars::schema_for;

    use super::*;

    /// Each field with a place of its own is in the requests, is sealed, and is shown to be there.
    #[test]
    fn every_field_of_its_own_is_in_requests_and_answers() {
        let keys = Keys::from_texts("one", "two");
        let id = heddle_core::Clock::default().new_id();
        let shown = schema_for!(Credential).to_value();
        for own in OWN_FIELDS {
            for body in [schema_for!(NewBody), schema_for!(UpdateBody)] {
                assert!(body.to_value()["properties"].get(own.key).is_some(), "{own:?}");
            }
            let mut fields = Fields::default();
            fields.set(own.name, Some(Secret::new("a value")));
            let opened = Fields::open(&keys, id, &fields.seal(&keys, id)).unwrap();
            assert!(opened.has(own) && opened.others().next().is_none(), "{own:?}");
            let flag = format!("has_{}", own.key);
            let properties = &shown["properties"];
            assert!(properties.get(own.key).or_else(|| properties.get(flag)).is_some(), "{own:?}");
        }
    }
}
