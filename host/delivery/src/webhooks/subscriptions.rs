//! Subscriptions of an organization. Their secrets are sealed when they come in, and never shown again.

use axum::Json as Answer;
use axum::extract::State;
use axum::response::Response;
use heddle_core::event::{EventTypes, format_time};
use heddle_core::redact::{HIDDEN_QUERY, shown_url};
use heddle_core::secret::Secret;
use heddle_core::shape::Shape;
use heddle_core::template::references;
use heddle_core::{Declared, OrgId, SiteId, Timestamp, UserId};
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::Checks;
use heddle_kernel::declarations::{SETTINGS_READ, SETTINGS_WRITE};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One, Tag, Tagged};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::outgoing::{self, Undelivered};
use heddle_kernel::resource::{self, Actions, By, Listed, Resource, Rows, Verbs, actions, owner};
use heddle_kernel::{list_query, unreached};
use heddle_store::object::Object as _;
use heddle_store::webhooks::deliveries::DeliveryId;
use heddle_store::webhooks::templates::{Template, WebhookTemplateId};
use heddle_store::webhooks::{self, NewSubscription, Subscription, SubscriptionId, SubscriptionUpdate};
use heddle_store::{Scope, Set, Site, Tx, events};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use super::body::{NewBody, UpdateBody, check_events, check_headers, check_secret, check_url};
use super::message::Message;
use super::sealed::Secrets;
use super::templates::reference_fault;
use super::{Outbox, rights};

pub(super) const NOT_FOUND: Error = Error::NotFound(Subscriptions::NOUN);
const TEST_TYPE: &str = "webhook.test";

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Webhook")]
pub(crate) struct View {
    id: SubscriptionId,
    #[serde(skip)]
    revision: i64,
    organization_id: OrgId,
    name: String,
    /// The URL without its query, which may hold a secret: `?…` stands for it.
    url: String,
    events: Vec<String>,
    site_id: Option<SiteId>,
    template_id: Option<WebhookTemplateId>,
    /// Names of the headers that are sent with every delivery; their values are not shown.
    header_names: Vec<String>,
    is_enabled: bool,
    /// User with whose rights events are sent.
    author_id: UserId,
    /// Failed attempts since the last successful one.
    consecutive_failures: i64,
    last_delivered_at: Option<Timestamp>,
    last_failed_at: Option<Timestamp>,
    /// Why the last attempt failed; null when it succeeded.
    last_error: Option<String>,
    /// Why some or all of its events are not sent although it is enabled: its author no longer has the rights.
    problem: Option<String>,
    /// Events that were not queued because too many deliveries were waiting; null when there are none.
    unqueued: Option<Unqueued>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// Replaying these numbers queues them, as long as the events are kept.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WebhookUnqueued")]
struct Unqueued {
    count: i64,
    from_seq: i64,
    to_seq: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WebhookWithSecret")]
struct Revealed {
    #[serde(flatten)]
    webhook: View,
    /// It is shown this once: a replay under the same `Idempotency-Key` answers without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_secret: Option<String>,
}

heddle_store::revised!(View);

/// Webhook subscriptions.
pub(crate) struct Subscriptions;

impl Resource for Subscriptions {
    type Row = Subscription;
    const NOUN: &'static str = "webhook subscription";
    const PATH: &'static str = "/webhooks";
    const ACTIONS: Actions = actions!("webhook_subscription", "webhook");
    type View = View;

    fn view(subscription: Subscription, app: &App) -> Result<View, Error> {
        Ok(View::of(subscription, &app.declared()))
    }

    /// Without the URL's path: it can hold a secret by which a receiver knows its sender.
    fn detail(subscription: &Subscription) -> Value {
        let host = Url::parse(&subscription.url).ok().and_then(|url| url.host_str().map(str::to_owned));
        json!({ "name": subscription.name, "host": host, "events": subscription.events, "is_enabled": subscription.is_enabled })
    }
}

impl Tagged for Revealed {
    fn tag(&self) -> Result<Tag, Error> {
        self.webhook.tag()
    }
}

/// The outcome of a test event.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WebhookTest")]
struct Tested {
    delivery_id: DeliveryId,
    /// The receiver answered with 2xx.
    is_delivered: bool,
    status_code: Option<u16>,
    /// Beginning of the answer.
    body: Option<String>,
    truncated: bool,
    duration_ms: Option<i64>,
    /// Why the event was not delivered.
    error: Option<String>,
}

list_query! {
    /// Part of the name or the URL.
    pub(crate) struct ListQuery of Subscription {}
}

impl Listed for Subscriptions {
    type Query = ListQuery;

    async fn page(
        tx: &mut Tx,
        caller: &Caller,
        _: ListQuery,
        asked: Listing<Subscription>,
    ) -> Rows<Subscription> {
        Ok(webhooks::list(tx, &caller.scope(), asked.search.as_deref(), asked.order).await?)
    }
}

pub(super) fn routes() -> Routes {
    let one = "/webhooks/{subscription_id}";
    let write = Access::Permission(SETTINGS_WRITE);
    Verbs::<Subscriptions>::of("subscription_id", Access::Permission(SETTINGS_READ), write)
        .listed("Webhook subscriptions")
        .create_as::<NewBody, Revealed, _, _>(
            create,
            "Subscribe a URL to events; the signing secret is in this answer only",
        )
        .get(resource::get::<Subscriptions>, "One webhook subscription")
        .update::<UpdateBody, _, _>(update, "Change a webhook subscription")
        .remove(
            resource::remove::<Subscriptions>,
            "Remove a webhook subscription; what was on its way is given up",
        )
        .routes()
        .post(
            &format!("{one}/rotate-secret"),
            write,
            rotate,
            doc("Make a new signing secret, which is in this answer only")
                .named("rotate_webhook_secret")
                .answers::<Revealed>(200)
                .as_seen()
                .tagged(),
        )
        .post(
            &format!("{one}/test"),
            write,
            test,
            doc("Send a test event now; says what became of it").answers::<Tested>(200),
        )
}

impl View {
    fn of(row: Subscription, declared: &Declared) -> Self {
        let unqueued = match (row.unqueued_from, row.unqueued_to) {
            (Some(from_seq), Some(to_seq)) => Some(Unqueued { count: row.unqueued, from_seq, to_seq }),
            _ => None,
        };
        Self {
            problem: rights::problem(declared, &row.events, &row.author),
            unqueued,
            id: row.id,
            revision: row.revision,
            organization_id: row.org_id,
            name: row.name,
            // An older version stored the full URL in the row.
            url: shown_url(&row.url),
            events: row.events,
            site_id: row.site_id,
            template_id: row.template_id,
            header_names: row.header_names,
            is_enabled: row.is_enabled,
            author_id: row.author_id,
            consecutive_failures: row.consecutive_failures,
            last_delivered_at: row.last_delivered_at,
            last_failed_at: row.last_failed_at,
            last_error: row.last_error,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    let url = check_url(&mut checks, &body.url);
    let events = check_events(&mut checks, &app.declared(), caller, &body.events);
    let headers = check_headers(&mut checks, body.headers);
    let signing = check_secret(&mut checks, body.signing_secret);
    checks.done()?;
    let shown = shown_url(&url);
    let secrets = Secrets { signing, headers, url: Some(Secret::new(url)) };
    let id: SubscriptionId = app.clock.new_id();
    let mut tx = app.db.write().await?;
    let org_id = owner(&mut tx, caller, body.organization_id).await?;
    check_related(&mut tx, app, org_id, body.site_id, body.template_id, &events).await?;
    if webhooks::count(&mut tx, org_id).await? >= webhooks::SUBSCRIPTIONS_MAX {
        let most = webhooks::SUBSCRIPTIONS_MAX;
        return Err(Error::conflict(format!(
            "an organization has at most {most} webhook subscriptions: remove one"
        )));
    }
    let new = NewSubscription {
        id,
        org_id,
        name,
        url: shown,
        events,
        site_id: body.site_id,
        template_id: body.template_id,
        header_names: secrets.header_names(),
        secret: secrets.seal(&app.keys, id),
        is_enabled: body.is_enabled.unwrap_or(true),
        after_seq: events::last_seq(&mut tx, org_id).await?,
        author_id: caller.user_id,
        now: app.clock.now(),
    };
    let made = webhooks::insert(&mut tx, &new).await?;
    let detail = Subscriptions::detail(&made);
    let signing_secret = Some(secrets.signing.expose().to_owned());
    let reveal = |webhook| Revealed { webhook, signing_secret };
    resource::created_as::<Subscriptions, _>(tx, &by, creation, made, detail, reveal).await
}

/// Checks that the objects that a subscription names belong to its organization, and that its template fits its events.
async fn check_related(
    tx: &mut Tx,
    app: &App,
    org: OrgId,
    site: Option<SiteId>,
    template: Option<WebhookTemplateId>,
    events: &[String],
) -> Result<(), Error> {
    let scope = Scope::organization(org);
    let mut checks = Checks::default();
    if let Some(site) = site {
        checks.require(Site::find(tx, &scope, site).await?.is_some(), "site_id", "site not found");
    }
    if let Some(template) = template {
        let found = Template::lock(tx, &scope, template).await?;
        checks.require(found.is_some(), "template_id", "webhook template not found");
        let wrong = found.and_then(|template| unfit(&app.declared().events, &template, events));
        checks.require(wrong.is_none(), "template_id", &wrong.unwrap_or_default());
    }
    checks.done()
}

/// Why a template can be filled for none of the events. One from before `trigger` was the payload is not judged.
fn unfit(all: &EventTypes, template: &Template, events: &[String]) -> Option<String> {
    let references = references(template.payload()).ok()?;
    let any = Shape::of_any_event(all);
    if references.iter().any(|one| reference_fault(&any, one).is_some()) {
        return None;
    }
    let shape = Shape::of_patterns(all, events);
    let wrong = references.iter().find_map(|one| reference_fault(&shape, one))?;
    Some(format!("webhook template '{}' does not fit: {wrong}", template.name))
}

async fn update(
    by: By,
    At(id): At<SubscriptionId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<View>, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    // A client that sends back the shown URL keeps its hidden query.
    let (shown, given): (Option<String>, Option<String>) = body.url.map_or((None, None), |url| {
        if url.ends_with(HIDDEN_QUERY) { (Some(url), None) } else { (None, Some(url)) }
    });
    let url = given.as_deref().map(|url| check_url(&mut checks, url));
    let events =
        body.events.as_deref().map(|patterns| check_events(&mut checks, &app.declared(), caller, patterns));
    let headers = body.headers.map(|headers| check_headers(&mut checks, headers));
    checks.done()?;
    let scope = caller.organization_scope();
    let mut tx = app.db.write().await?;
    let current = resource::locked::<Subscriptions>(&mut tx, &by, id, &if_match).await?;
    if shown.is_some_and(|shown| shown != shown_url(&current.url)) {
        return Err(Error::field(
            "url",
            "must be given as a whole: the query of the old one is not kept with another",
        ));
    }
    let (site, template) = (body.site_id.flatten(), body.template_id.flatten());
    let sent = events.as_ref().unwrap_or(&current.events);
    check_related(&mut tx, app, current.org_id, site, template, sent).await?;
    // A caller who changes the destination, the events or the site, or switches it on, must be allowed to receive them.
    let is_switched_on = body.is_enabled == Some(true) && !current.is_enabled;
    let aims = events.is_some() || url.is_some() || body.site_id.is_some() || is_switched_on;
    if aims {
        require_events(&app.declared(), caller, events.as_deref().unwrap_or(&current.events))?;
    }
    if headers.is_none() {
        require_same_receiver(&current, url.as_deref())?;
    }
    let after_seq =
        if is_switched_on { Some(events::last_seq(&mut tx, current.org_id).await?) } else { None };
    let secrets = if headers.is_some() || url.is_some() {
        let mut secrets = secrets(&mut tx, app, id).await?;
        secrets.url = url.as_ref().map(Secret::new).or(secrets.url);
        secrets.headers = headers.unwrap_or(secrets.headers);
        Some(secrets)
    } else {
        None
    };
    let change = SubscriptionUpdate {
        name,
        url: url.as_deref().map(shown_url),
        author_id: aims.then_some(caller.user_id),
        events,
        site_id: Set::from(body.site_id),
        template_id: Set::from(body.template_id),
        header_names: secrets.as_ref().map(Secrets::header_names),
        secret: secrets.map(|secrets| secrets.seal(&app.keys, id)),
        is_enabled: body.is_enabled,
        after_seq,
    };
    let updated = webhooks::update(&mut tx, &scope, id, &change, app.clock.now()).await?;
    let detail = updated.as_ref().map(Subscriptions::detail).unwrap_or_default();
    let answer = resource::updated::<Subscriptions>(tx, &by, (current, updated), detail).await?;
    Outbox::of(app).wake();
    Ok(answer)
}

/// The caller could subscribe to all of these.
pub(super) fn require_events(declared: &Declared, caller: &Caller, patterns: &[String]) -> Result<(), Error> {
    let why_not =
        patterns.iter().find_map(|pattern| Some((pattern, rights::why_not(declared, caller, pattern)?)));
    match why_not {
        None => Ok(()),
        Some((pattern, why)) => Err(Error::Refused {
            kind: "events_not_permitted",
            message: format!("it would send you events of '{pattern}': {why}"),
        }),
    }
}

/// Headers hold credentials of one receiver, so they must be given again for another receiver.
fn require_same_receiver(current: &Subscription, url: Option<&str>) -> Result<(), Error> {
    let Some(url) = url else { return Ok(()) };
    let origin = |text: &str| Url::parse(text).map(|url| url.origin()).ok();
    if current.header_names.is_empty() || origin(url) == origin(&current.url) {
        return Ok(());
    }
    Err(Error::field(
        "headers",
        "must be given again with a url of another host: their values were for the old one",
    ))
}

async fn secrets(tx: &mut Tx, app: &App, id: SubscriptionId) -> Result<Secrets, Error> {
    let sealed = webhooks::find_sealed(tx, id).await?.ok_or(NOT_FOUND)?;
    Secrets::open(&app.keys, id, &sealed).map_err(|_| {
        Error::conflict("the subscription's secrets cannot be opened: rotate its signing secret first")
    })
}

async fn rotate(by: By, At(id): At<SubscriptionId>, if_match: IfMatch) -> Result<One<Revealed>, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    let scope = caller.organization_scope();
    let mut tx = app.db.write().await?;
    resource::locked::<Subscriptions>(&mut tx, &by, id, &if_match).await?;
    let signing: Secret = heddle_core::secret::random_secret();
    let sealed = webhooks::find_sealed(&mut tx, id).await?.ok_or(NOT_FOUND)?;
    // Headers and URL that can no longer be read must be given again.
    let (headers, url) =
        Secrets::open(&app.keys, id, &sealed).map(|known| (known.headers, known.url)).unwrap_or_default();
    let secrets = Secrets { signing: signing.clone(), headers, url };
    let change = SubscriptionUpdate {
        header_names: Some(secrets.header_names()),
        secret: Some(secrets.seal(&app.keys, id)),
        ..SubscriptionUpdate::default()
    };
    let updated = webhooks::update(&mut tx, &scope, id, &change, app.clock.now()).await?.ok_or(NOT_FOUND)?;
    by.record::<Subscriptions>(&mut tx, &updated, "webhook.rotated", Subscriptions::detail(&updated)).await?;
    tx.commit().await?;
    Ok(One(Revealed {
        webhook: View::of(updated, &app.declared()),
        signing_secret: Some(signing.expose().to_owned()),
    }))
}

async fn test(
    State(app): State<SharedApp>,
    caller: Caller,
    At(id): At<SubscriptionId>,
) -> Result<Answer<Tested>, Error> {
    caller.require_all_sites()?;
    let scope = caller.organization_scope();
    let mut tx = app.db.read().await?;
    let found = Subscription::find(&mut tx, &scope, id).await?.ok_or(NOT_FOUND)?;
    let sealed = webhooks::find_sealed(&mut tx, id).await?.ok_or(NOT_FOUND)?;
    let template = match found.template_id {
        Some(template) => Template::find(&mut tx, &Scope::organization(found.org_id), template).await?,
        None => None,
    };
    // No database connection is held while the receiver's answer is awaited.
    drop(tx);
    let template = template.map(|template| json!({ "payload": template.payload() }));
    let event = test_event(&app, &found);
    let delivery = app.clock.new_id();
    let message = Message {
        delivery,
        subscription: id,
        url: &found.url,
        sealed: &sealed,
        template: template.as_ref(),
        event_type: TEST_TYPE,
        event: &event,
    };
    let sent = match message.request(&app.keys) {
        Ok(request) => outgoing::send(&app, request).await,
        Err(why) => Err(Undelivered::Failed(why.to_string())),
    };
    let sent = match sent {
        Err(Undelivered::Blocked(why) | Undelivered::Unreached(why)) if !unreached::may_know(&caller) => {
            tracing::info!(webhook.id = %id, "test did not reach its destination: {why}");
            Err(Undelivered::Failed(unreached::NEUTRAL.to_owned()))
        }
        sent => sent,
    };
    Ok(Answer(tested(delivery, sent)))
}

fn test_event(app: &App, subscription: &Subscription) -> Value {
    json!({
        "id": app.clock.new_id::<uuid::Uuid>(),
        "seq": 0,
        "event_type": TEST_TYPE,
        "category": "webhook",
        "priority": "low",
        "organization_id": subscription.org_id,
        "occurred_at": format_time(app.clock.now()),
        "causation_id": null,
        "schema_version": 1,
        "payload": { "subscription_id": subscription.id, "name": subscription.name },
    })
}

fn tested(delivery_id: DeliveryId, sent: Result<outgoing::Answered, Undelivered>) -> Tested {
    let failed = |why: String| Tested {
        delivery_id,
        is_delivered: false,
        status_code: None,
        body: None,
        truncated: false,
        duration_ms: None,
        error: Some(why),
    };
    match sent {
        Ok(answered) => Tested {
            delivery_id,
            is_delivered: answered.is_success(),
            status_code: Some(answered.status),
            body: Some(answered.text.clone()),
            truncated: answered.is_truncated,
            duration_ms: Some(answered.duration_ms()),
            error: (!answered.is_success())
                .then(|| format!("the receiver answered with status {}", answered.status)),
        },
        Err(Undelivered::Blocked(why)) => failed(format!("the destination is refused: {why}")),
        Err(Undelivered::Unreached(why) | Undelivered::Failed(why)) => failed(why),
    }
}
