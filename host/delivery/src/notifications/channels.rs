//! Channels of an organization, managed by users who may change its settings.

use std::time::Instant;

use axum::Json as Answer;
use axum::response::Response;
use heddle_core::Role;
use heddle_core::notification::{ChannelKind, Severity};
use heddle_core::secret::Secret;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::declarations::{SETTINGS_READ, SETTINGS_WRITE};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::{self, Actions, By, Listed, Resource, Rows, StepObject, Verbs, actions, owner};
use heddle_store::channels::{self, Channel, ChannelId, ChannelUpdate, NewChannel};
use heddle_store::{Scope, Set, Tx};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::body::{NewBody, UpdateBody, View, no_settings};
use super::deliver::{self, deliver};
use super::message::Message;
use super::sealed::WebhookSecrets;

const NOT_FOUND: Error = Error::NotFound(Channels::NOUN);

list_query! {
    /// Part of the label.
    pub(crate) struct ListQuery of Channel {
        kind: Option<ChannelKind>,
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ChannelTest")]
struct Tested {
    is_delivered: bool,
    /// The answer, or the error.
    message: String,
    /// Status of the answer, when there was one, of kinds that are reached by HTTP.
    status: Option<u16>,
    duration_ms: u64,
}

/// Channels of an organization.
pub(crate) struct Channels;

impl Resource for Channels {
    type Row = Channel;
    const NOUN: &'static str = super::CHANNEL;
    const PATH: &'static str = "/notifications/channels";
    const ACTIONS: Actions = actions!("channel");
    type View = View;

    fn view(channel: Channel, _: &App) -> Result<View, Error> {
        View::of(channel)
    }

    fn detail(channel: &Channel) -> Value {
        json!({ "label": channel.label, "kind": channel.kind })
    }
}

impl Listed for Channels {
    type Query = ListQuery;

    async fn page(tx: &mut Tx, caller: &Caller, query: ListQuery, asked: Listing<Channel>) -> Rows<Channel> {
        Ok(channels::list(tx, &caller.scope(), query.kind, asked.search.as_deref(), asked.order).await?)
    }
}

/// Channels in steps, which name them and do not read them.
pub(super) const IN_STEPS: StepObject = StepObject::named::<Channels>("channel_id");

pub(super) fn routes() -> Routes {
    let write = Access::Permission(SETTINGS_WRITE);
    Verbs::<Channels>::of("channel_id", Access::Permission(SETTINGS_READ), write)
        .listed("Channels of notifications, without their secrets")
        .create::<NewBody, _, _>(create, "Add a channel")
        .get(resource::get::<Channels>, "One channel, without its secret")
        .update::<UpdateBody, _, _>(update, "Change a channel")
        .remove(resource::remove::<Channels>, "Remove a channel that no Connection, rule or schedule uses")
        .writing(Access::RoleWith(Role::OrgAdmin, SETTINGS_WRITE))
        .restore(resource::restore::<Channels>, "Bring a removed channel back")
        .routes()
        .post(
            "/notifications/channels/{channel_id}/test",
            write,
            test,
            doc("Send a test message, also when the channel is disabled; says what came of it")
                .answers::<Tested>(200),
        )
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let (organization, kind) = (body.organization_id, body.kind());
    let wanted = body.check()?;
    let id: ChannelId = app.clock.new_id();
    let mut tx = app.db.write().await?;
    let new = NewChannel {
        id,
        org_id: owner(&mut tx, caller, organization).await?,
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
        .map(|plain| seal(app, id, &plain)),
        now: app.clock.now(),
    };
    let channel = channels::insert(&mut tx, &new).await?;
    let detail = Channels::detail(&channel);
    resource::created::<Channels>(tx, &by, creation, channel, detail).await
}

async fn update(
    by: By,
    At(id): At<ChannelId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<View>, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let mut tx = app.db.write().await?;
    let current = resource::locked::<Channels>(&mut tx, &by, id, &if_match).await?;
    let wanted = body.check(current.kind, Some(&current))?;
    let secret = match current.kind {
        ChannelKind::Webhook => webhook_secrets(&mut tx, app, id, wanted.secret, wanted.url).await?,
        _ => wanted.secret,
    };
    let change = ChannelUpdate {
        label: wanted.label,
        is_enabled: wanted.is_enabled,
        settings: wanted.settings,
        secret: match secret {
            Set::Keep => Set::Keep,
            Set::Clear => Set::Clear,
            Set::To(plain) => Set::To(seal(app, id, &plain)),
        },
    };
    let scope = caller.organization_scope();
    let updated = channels::update(&mut tx, &scope, id, &change, app.clock.now()).await?;
    resource::updated::<Channels>(tx, &by, (current, updated), json!({ "changed": wanted.changed })).await
}

async fn test(by: By, At(id): At<ChannelId>) -> Result<Answer<Tested>, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let found = {
        let mut tx = app.db.read().await?;
        channels::find_sealed(&mut tx, &caller.organization_scope(), id).await?.ok_or(NOT_FOUND)?
    };
    let message = Message {
        subject: "Test of a notification channel".to_owned(),
        body: format!("{} has sent this to see whether the channel works.", caller.username),
        severity: Severity::Info,
        source: "channel.test",
    };
    let started = Instant::now();
    let outcome = deliver(app, &found, &message).await?;
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (is_delivered, message, status) = match outcome {
        Ok(delivered) => (true, "delivered".to_owned(), delivered.status),
        Err(undelivered) => (false, undelivered.to_string(), undelivered.status()),
    };
    let detail = json!({ "label": found.channel.label, "is_delivered": is_delivered });
    let mut tx = app.db.write().await?;
    by.record::<Channels>(&mut tx, &found.channel, "channel.tested", detail).await?;
    tx.commit().await?;
    Ok(Answer(Tested { is_delivered, message, status, duration_ms }))
}

/// Returns both secrets of a webhook after a change. Stored secrets that can no longer be opened are dropped.
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
