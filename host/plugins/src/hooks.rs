//! Requests of others to plugins: each hook has an address of its own in every organization that uses the plugin.
//!
//! The host verifies the proof that the manifest describes before the plugin is called. The plugin sees neither the proof nor
//! the secret. What is called is a run, with the rights of the user who set the plugin in the organization.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use heddle_core::OrgId;
use heddle_core::operation::{RunState, StepErrorCode};
use heddle_fabric::occasion::{self, Begun, Once};
use heddle_fabric::operation::StepError;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::At;
use heddle_kernel::http::rate_limit::{self, Limit, Rate};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::metrics::RateWindow;
use heddle_marketplace::plugin::HookSignature;
use heddle_runtime::{HookAnswer, HookRequest, proved};
use heddle_store::plugins::values::Keeper;
use heddle_store::plugins::{PluginUid, organizations};

use crate::index::Index;
use crate::operations::Behalf;
use crate::organization::{HOOK_ORIGIN, context};
use crate::triggers::{Callee, Ready, What, is_final, ready};

/// Most bytes of a request.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Headers that are handed on, and bytes of all of them.
const HEADERS_MAX: usize = 64;
const HEADER_BYTES_MAX: usize = 16 << 10;
/// Requests to the hooks of a plugin in an organization. Those without a valid proof have a limit of their own, so that they
/// keep no others out.
const RATE: Rate = Rate::per_minute(120);
const UNPROVED_RATE: Rate = Rate::per_minute(30);
/// Headers that no plugin sees.
const HIDDEN: &[&str] = &["authorization", "cookie", "proxy-authorization", "x-csrf-token", "x-api-key"];

/// Why a proof is refused, in words that say nothing about the secret.
const UNPROVED: &str = "the request has no valid proof: see the hook's signature in the plugin's manifest";

pub(crate) fn routes() -> Routes {
    Routes::default().post(
        "/plugins/{plugin}/hooks/{hook}/{organization_id}",
        Access::Public,
        receive,
        doc("Call a plugin from outside: the request is signed as the plugin's manifest says")
            .named("call_plugin_hook")
            .takes("application/octet-stream", BODY_BYTES_MAX)
            .own_proof()
            .answers_text("application/octet-stream")
            .fails_with(401)
            .fails_with(404)
            .calls_adapter()
            .example("plugin", Some("acme-tickets"))
            .example("hook", Some("answers")),
    )
}

/// A hook of a plugin in an organization.
struct Addressed {
    keeper: Keeper,
    signature: HookSignature,
    secret: Vec<u8>,
}

async fn receive(
    State(app): State<SharedApp>,
    At((plugin, hook, org)): At<(String, String, OrgId)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Error> {
    let found = find(&app, &plugin, &hook, org).await?;
    let limit = |kind: &str, rate| Limit { key: format!("{kind}:{plugin}:{hook}:{org}"), rate };
    let Some(addressed) = found else { return Err(Error::NotFound("hook")) };
    let proof = proved(&addressed.signature, &addressed.secret, (&headers, &body), app.clock.now());
    let Some(proof) = proof else {
        rate_limit::take_one(&app, limit("hook_unproved", UNPROVED_RATE), RateWindow::Ingest).await?;
        return Err(Error::Unauthenticated(UNPROVED));
    };
    rate_limit::take_one(&app, limit("hook", RATE), RateWindow::Ingest).await?;
    let mut tx = app.db.read().await?;
    let ready = ready(&app, &mut tx, addressed.keeper, What::Other).await?;
    drop(tx);
    let callee = match ready {
        Ready::Yes(callee) => callee,
        Ready::Off => return Err(Error::NotFound("hook")),
        // Why is nothing for strangers: GET /plugins/{plugin}/triggers tells it.
        Ready::Later(..) | Ready::Elsewhere(_) => {
            return Err(Error::Unavailable("the hook is not served now; try again".to_owned()));
        }
    };
    let query = query.unwrap_or_default();
    let request = HookRequest {
        headers: shown(&headers, &addressed.signature)?,
        query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        body: body.to_vec(),
        hook,
    };
    let Keeper { org, plugin: uid } = addressed.keeper;
    // A request with a signed time is served once.
    let is_once = addressed.signature.timestamp.is_some();
    let once = is_once.then(|| format!("hook:{org}:{uid}:{}:{proof}", request.hook));
    // A sender that does not wait for the answer does not undo what was begun.
    let inner = app.clone();
    let task = app.tasks.spawn("plugins.hook", async move { call(&inner, &callee, request, once).await });
    Ok(response(task.await.map_err(Error::internal)??))
}

/// The hook, where the plugin has it and the organization uses the plugin and has set the secret.
async fn find(app: &SharedApp, plugin: &str, hook: &str, org: OrgId) -> Result<Option<Addressed>, Error> {
    let Some(known) = Index::of(app).find(plugin) else { return Ok(None) };
    let signature =
        known.serving().and_then(|manifest| manifest.hook(hook)).map(|hook| hook.signature.clone());
    let Some(signature) = signature else { return Ok(None) };
    let uid: PluginUid = known.row.id;
    let rows = organizations::secrets_in_use(&mut app.db.single().await?, org, plugin).await?;
    let row = rows.into_iter().find(|row| row.name == signature.secret && row.origin == HOOK_ORIGIN);
    let Some(row) = row else { return Ok(None) };
    let secret = app.keys.open_sealed(&context(&row), &row.secret).map_err(Error::internal)?;
    Ok(Some(Addressed { keeper: Keeper { org, plugin: uid }, signature, secret: secret.to_vec() }))
}

/// The headers that the plugin sees.
fn shown(headers: &HeaderMap, signature: &HookSignature) -> Result<Vec<(String, String)>, Error> {
    let is_shown = |name: &str| !HIDDEN.contains(&name) && !name.eq_ignore_ascii_case(&signature.header);
    let texts = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let shown: Vec<(String, String)> = texts
        .filter(|(name, _)| is_shown(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let bytes: usize = shown.iter().map(|(name, value)| name.len() + value.len()).sum();
    if shown.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
        return Err(Error::TooLarge(format!(
            "a request to a hook has at most {HEADERS_MAX} headers of {HEADER_BYTES_MAX} bytes together"
        )));
    }
    Ok(shown)
}

/// Calls the plugin, and writes how that ended. `once` names a request that is served once: its run has this key, for longer
/// than any tolerance. Where the call was not made, failed in a way that may pass, or its end could not be written, the same
/// request may come again; after a crash it may, too, once the run is known as interrupted.
async fn call(
    app: &SharedApp,
    callee: &Callee,
    request: HookRequest,
    once: Option<String>,
) -> Result<HookAnswer, Error> {
    let occasion = callee.occasion(&request.hook, app.clock.new_id::<uuid::Uuid>().to_string());
    let author = callee.author.clone();
    let begun = match &once {
        None => Box::new(occasion::begin(app, author, occasion).await?),
        Some(key) => match occasion::begin_once(app, author, occasion, key).await? {
            Once::Begun(begun) => begun,
            Once::Before(state) => return Err(came_before(state)),
        },
    };
    let mut asked = callee.call(Behalf::of(&begun.step(app), callee.generation()), begun.request_id());
    asked.deadline = Some(DEADLINE);
    let Some(answered) = begun.during(callee.plugin.receive(&asked, request)).await else {
        let_again(app, &begun).await;
        return Err(Error::Unavailable("the process has lost its place; try again".to_owned()));
    };
    let may_pass = answered.as_ref().is_err_and(|error| !is_final(error));
    let answered = answered.map_err(Error::from);
    let result = match &answered {
        Ok(_) => Ok(()),
        Err(error) => Err(StepError::new(StepErrorCode::AdapterError, error.to_string())),
    };
    let ended = end(app, &begun, &result, may_pass).await;
    if !matches!(ended, Ok(true)) {
        let_again(app, &begun).await;
    }
    ended?;
    answered
}

/// Why a request is refused that came before.
fn came_before(state: RunState) -> Error {
    if state == RunState::Running {
        return Error::Unavailable("this very request is being served; try again".to_owned());
    }
    Error::Conflict {
        kind: "hook_replayed",
        message: "this very request came before; sign another one".to_owned(),
    }
}

/// Writes how a call ended; false where its run is no longer of this process.
async fn end(
    app: &SharedApp,
    begun: &Begun,
    result: &Result<(), StepError>,
    may_pass: bool,
) -> Result<bool, Error> {
    let mut tx = app.db.write().await?;
    if !begun.end(&mut tx, app, result).await? {
        return Ok(false);
    }
    if may_pass {
        begun.let_again(&mut tx).await?;
    }
    tx.commit().await?;
    Ok(true)
}

/// Has the same request taken again. Where the database gives no answer, it is taken once the run is known as interrupted.
async fn let_again(app: &SharedApp, begun: &Begun) {
    let freed = async {
        let mut tx = app.db.write().await?;
        begun.let_again(&mut tx).await?;
        tx.commit().await?;
        Ok::<(), Error>(())
    };
    if let Err(error) = freed.await {
        tracing::warn!(error = %error, "a request to a hook that was not served is not taken again yet");
    }
}

/// Senders wait for the answer.
const DEADLINE: Duration = Duration::from_secs(10);

fn response(answer: HookAnswer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    if let Some(media) = answer.content_type {
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media));
    }
    // Whatever a plugin answers is no page of this service.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(json: &str) -> HookSignature {
        serde_json::from_str(json).unwrap()
    }

    fn slack() -> HookSignature {
        signature(
            r#"{ "scheme": "hmac-sha256", "secret": "s", "header": "X-Slack-Signature", "prefix": "v0=",
                "signed": "v0:{header.X-Slack-Request-Timestamp}:{body}",
                "timestamp": { "header": "X-Slack-Request-Timestamp", "tolerance-s": 300 } }"#,
        )
    }

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_plugin_sees_no_proof_and_no_login() {
        let given = headers(&[
            ("x-slack-signature", "v0=1"),
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("content-type", "text/plain"),
        ]);
        let found = shown(&given, &slack()).unwrap();
        assert_eq!(found, [("content-type".to_owned(), "text/plain".to_owned())]);
        let many: HeaderMap =
            (0..65).map(|n| (format!("x-{n}").parse().unwrap(), "a".parse().unwrap())).collect();
        assert!(shown(&many, &slack()).is_err());
    }
}
