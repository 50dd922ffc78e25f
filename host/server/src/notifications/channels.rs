//! Channels of an organization, as those who may change its settings manage them.

use std::time::Instant;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use heddle_core::notification::{ChannelKind, Severity};
use heddle_core::page::Page;
use heddle_core::secret::Secret;
use heddle_core::{ChannelId, Permission, Role};
use heddle_store::channels::{self, Channel, ChannelUpdate, NewChannel};
use heddle_store::{InOrder, Object as _, Scope, Set, Sort, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body::{NewBody, UpdateBody, View, no_settings};
use super::deliver::{self, deliver};
use super::message::Message;
use super::sealed::WebhookSecrets;
use crate::app::{App, SharedApp};
use crate::audit::trail::{self, Deed};
use crate::caller::Caller;
use crate::checks::search;
use crate::http::access::Access;
use crate::http::conditional::{IfMatch, One};
use crate::http::creation::Creation;
use crate::http::error::Error;
use crate::http::extract::{At, Json, Origin, PER_PAGE_MAX, Params, page_request};
use crate::http::routes::{Routes, doc};
use crate::tenancy::{organization_scope, owner};

const NOT_FOUND: Error = Error::NotFound("channel");

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[schemars(range(min = 1))]
    page: Option<u32>,
    #[schemars(range(min = 1, max = 200))]
    per_page: Option<u32>,
    kind: Option<ChannelKind>,
    /// Part of the label.
    search: Option<String>,
    /// What the list is sorted by, `-` before the word for the other direction.
    sort: Option<Sort<Channel>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ChannelTest")]
struct Tested {
    is_delivered: bool,
    /// What was answered, or what went wrong.
    message: String,
    /// Of kinds that are reached by HTTP, when there was an answer.
    status: Option<u16>,
    duration_ms: u64,
}

pub(super) fn routes() -> Routes {
    let (all, one) = ("/notifications/channels", "/notifications/channels/{channel_id}");
    let read = Access::Permission(Permission::SettingsRead);
    let write = Access::Permission(Permission::SettingsWrite);
    Routes::default()
        .get(
            all,
            read,
            list,
            doc("Channels of notifications, without their secrets")
                .query::<ListQuery>()
                .answers::<Page<View>>(200),
        )
        .post(all, write, create, doc("Add a channel").body::<NewBody>().answers::<View>(201))
        .get(one, read, get, doc("One channel, without its secret").answers::<View>(200))
        .patch(one, write, update, doc("Change a channel").body::<UpdateBody>().answers::<View>(200))
        .delete(
            one,
            write,
            remove,
            doc("Remove a channel that no Connection, rule or schedule uses").empty(204),
        )
        .post(
            &format!("{one}/restore"),
            Access::RoleWith(Role::OrgAdmin, Permission::SettingsWrite),
            restore,
            doc("Bring a removed channel back").answers::<View>(200),
        )
        .post(
            &format!("{one}/test"),
            write,
            test,
            doc("Send a test message, also when the channel is disabled; says what came of it")
                .answers::<Tested>(200),
        )
}

async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Answer<Page<View>>, Error> {
    let page = page_request(query.page, query.per_page, PER_PAGE_MAX)?;
    let search = search(query.search)?;
    let mut tx = app.db.read().await?;
    let scope = organization_scope(&caller);
    let (items, total) =
        channels::list(&mut tx, &scope, query.kind, search.as_deref(), InOrder::by(page, query.sort)).await?;
    let items: Result<Vec<View>, Error> = items.into_iter().map(View::of).collect();
    Ok(Answer(page.of(items?, total)))
}

async fn get(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<ChannelId>,
) -> Result<One<View>, Error> {
    let mut tx = app.db.single().await?;
    let found = Channel::find(&mut tx, &organization_scope(&caller), id).await?.ok_or(NOT_FOUND)?;
    Ok(One(View::of(found)?))
}

async fn create(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    creation: Creation,
    Json(body): Json<NewBody>,
) -> Result<Response, Error> {
    caller.require_all_sites()?;
    let (organization, kind) = (body.organization_id, body.kind());
    let wanted = body.check()?;
    let id: ChannelId = app.clock.new_id();
    let mut tx = app.db.write().await?;
    let new = NewChannel {
        id,
        org_id: owner(&mut tx, &caller, organization).await?,
        kind,
        label: wanted.label.unwrap_or_default(),
        is_enabled: wanted.is_enabled.unwrap_or(true),
        settings: wanted.settings.unwrap_or_else(no_settings),
        secret: match kind {
            ChannelKind::Webhook => WebhookSecrets::default().with(wanted.secret, wanted.url).plain(),
            _ => match wanted.secret {
                Set::To(plain) => Some(plain),
                Set::Keep | Set::Clear => None,
            },
        }
        .map(|plain| seal(&app, id, &plain)),
        now: app.clock.now(),
    };
    let channel = channels::insert(&mut tx, &new).await?;
    record(&mut tx, &app, &caller, &origin, &channel, "channel.created").await?;
    creation.finish(tx, &app, &format!("/notifications/channels/{id}"), &View::of(channel)?).await
}

async fn update(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChannelId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<View>, Error> {
    caller.require_all_sites()?;
    let scope = organization_scope(&caller);
    let mut tx = app.db.write().await?;
    let current = Channel::lock(&mut tx, &scope, id).await?.ok_or(NOT_FOUND)?;
    if_match.check(&View::of(current.clone())?)?;
    let wanted = body.check(current.kind, Some(&current))?;
    let secret = match current.kind {
        ChannelKind::Webhook => webhook_secrets(&mut tx, &app, id, wanted.secret, wanted.url).await?,
        _ => wanted.secret,
    };
    let change = ChannelUpdate {
        label: wanted.label,
        is_enabled: wanted.is_enabled,
        settings: wanted.settings,
        secret: match secret {
            Set::Keep => Set::Keep,
            Set::Clear => Set::Clear,
            Set::To(plain) => Set::To(seal(&app, id, &plain)),
        },
    };
    let updated = channels::update(&mut tx, &scope, id, &change, app.clock.now()).await?;
    let channel = updated.ok_or(NOT_FOUND)?;
    let detail = json!({ "changed": wanted.changed });
    let detail = trail::with_difference(detail, &View::of(current)?, &View::of(channel.clone())?);
    trail::record(&mut tx, &app, &origin, deed(&caller, &channel, "channel.updated", detail)).await?;
    tx.commit().await?;
    Ok(One(View::of(channel)?))
}

async fn remove(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChannelId>,
    if_match: IfMatch,
) -> Result<StatusCode, Error> {
    caller.require_all_sites()?;
    let scope = organization_scope(&caller);
    let mut tx = app.db.write().await?;
    let channel = Channel::lock(&mut tx, &scope, id).await?.ok_or(NOT_FOUND)?;
    if_match.check(&View::of(channel.clone())?)?;
    app.require_unused(&mut tx, super::CHANNEL, channel.org_id, id.0).await?;
    Channel::remove(&mut tx, &scope, id, app.clock.now()).await?;
    record(&mut tx, &app, &caller, &origin, &channel, "channel.removed").await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn restore(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChannelId>,
) -> Result<One<View>, Error> {
    caller.require_all_sites()?;
    let mut tx = app.db.write().await?;
    let restored = Channel::restore(&mut tx, &organization_scope(&caller), id, app.clock.now()).await?;
    let channel = restored.ok_or(NOT_FOUND)?;
    record(&mut tx, &app, &caller, &origin, &channel, "channel.restored").await?;
    tx.commit().await?;
    Ok(One(View::of(channel)?))
}

async fn test(
    State(app): State<SharedApp>,
    caller: Caller,
    origin: Origin,
    At(id): At<ChannelId>,
) -> Result<Answer<Tested>, Error> {
    caller.require_all_sites()?;
    let found = {
        let mut tx = app.db.read().await?;
        channels::find_sealed(&mut tx, &organization_scope(&caller), id).await?.ok_or(NOT_FOUND)?
    };
    let message = Message {
        subject: "Test of a notification channel".to_owned(),
        body: format!("{} has sent this to see whether the channel works.", caller.username),
        severity: Severity::Info,
        source: "channel.test",
    };
    let started = Instant::now();
    let outcome = deliver(&app, &found, &message).await?;
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (is_delivered, message, status) = match outcome {
        Ok(delivered) => (true, "delivered".to_owned(), delivered.status),
        Err(undelivered) => (false, undelivered.to_string(), undelivered.status()),
    };
    let detail = json!({ "label": found.channel.label, "is_delivered": is_delivered });
    let mut tx = app.db.write().await?;
    trail::record(&mut tx, &app, &origin, deed(&caller, &found.channel, "channel.tested", detail)).await?;
    tx.commit().await?;
    Ok(Answer(Tested { is_delivered, message, status, duration_ms }))
}

/// Both secrets of a webhook as they are after a change. Those that cannot be opened any more begin anew.
async fn webhook_secrets(
    tx: &mut Tx,
    app: &App,
    id: ChannelId,
    signing: Set<Secret>,
    url: Set<Secret>,
) -> Result<Set<Secret>, Error> {
    if matches!((&signing, &url), (Set::Keep, Set::Keep)) {
        return Ok(Set::Keep);
    }
    let found = channels::find_sealed(tx, &Scope::everything(), id).await?.ok_or(NOT_FOUND)?;
    let known = deliver::secret(app, &found).ok().flatten();
    let known = known.as_ref().map(WebhookSecrets::read).unwrap_or_default();
    Ok(known.with(signing, url).plain().map_or(Set::Clear, Set::To))
}

fn seal(app: &App, id: ChannelId, secret: &Secret) -> Vec<u8> {
    app.keys.seal(&deliver::context(id), secret.expose().as_bytes())
}

async fn record(
    tx: &mut Tx,
    app: &SharedApp,
    caller: &Caller,
    origin: &Origin,
    channel: &Channel,
    action: &'static str,
) -> Result<(), Error> {
    let detail = json!({ "label": channel.label, "kind": channel.kind });
    trail::record(tx, app, origin, deed(caller, channel, action, detail)).await
}

fn deed<'a>(caller: &'a Caller, channel: &Channel, action: &'static str, detail: Value) -> Deed<'a> {
    let target = ("channel", channel.id.0);
    Deed { org: channel.org_id, actor: caller.actor(), action, target, detail }
}
