//! Requests of others to plugins: each hook has an address of its own in every organization that uses the plugin.
//!
//! The host verifies the proof that the manifest describes before the plugin is called. The plugin sees neither the proof nor
//! the secret. What is called is a run, with the rights of the user who set the plugin in the organization.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heddle_core::operation::{RunState, StepErrorCode};
use heddle_core::{OrgId, Timestamp};
use heddle_fabric::occasion::{self, Begun, Once};
use heddle_fabric::operation::StepError;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::At;
use heddle_kernel::http::rate_limit::{self, Limit, Rate};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::metrics::RateWindow;
use heddle_marketplace::plugin::{HookEncoding, HookScheme, HookSignature, SignedPart};
use heddle_runtime::{HookAnswer, HookRequest};
use heddle_store::plugins::values::Keeper;
use heddle_store::plugins::{PluginUid, organizations};
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

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

/// What proves a request, where it is valid; two different requests have different ones.
fn proved(
    signature: &HookSignature,
    secret: &[u8],
    (headers, body): (&HeaderMap, &[u8]),
    now: Timestamp,
) -> Option<String> {
    let text = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let value = values.next()?.to_str().ok()?;
        // Of two values, one could be what was signed and the other what is read.
        values.next().is_none().then_some(value)
    };
    let given = text(&signature.header)?.strip_prefix(signature.prefix.as_str())?;
    if signature.scheme == HookScheme::Token {
        let is_it: bool = Sha256::digest(given).ct_eq(&Sha256::digest(secret)).into();
        return is_it.then(String::new);
    }
    let given = match signature.encoding {
        HookEncoding::Hex => hex::decode(given).ok()?,
        HookEncoding::Base64 => STANDARD.decode(given).ok()?,
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    for part in signature.parts().ok()? {
        match part {
            SignedPart::Text(literal) => mac.update(literal.as_bytes()),
            SignedPart::Header(name) => mac.update(text(&name)?.as_bytes()),
            SignedPart::Body => mac.update(body),
        }
    }
    mac.verify_slice(&given).ok()?;
    if let Some(timestamp) = &signature.timestamp {
        let sent: i64 = text(&timestamp.header)?.parse().ok()?;
        let age = now.timestamp().checked_sub(sent)?;
        if age.unsigned_abs() > u64::from(timestamp.tolerance_s) {
            return None;
        }
    }
    Some(hex::encode(given))
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

    const SECRET: &[u8] = b"8f742231b10e8888abcd99yyyzzz85a5";

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

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_timestamp(secs, 0).unwrap()
    }

    /// The example of the vendor's own documentation.
    #[test]
    fn a_signature_with_a_time_is_verified() {
        let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let signed = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        let sent = |signed: &str, time: &str| {
            headers(&[("x-slack-signature", signed), ("x-slack-request-timestamp", time)])
        };
        let check = |headers: &HeaderMap, body: &[u8], now| {
            proved(&slack(), SECRET, (headers, body), at(now)).is_some()
        };
        let sound = sent(signed, "1531420618");
        assert!(check(&sound, body, 1_531_420_618) && check(&sound, body, 1_531_420_918));
        assert!(!check(&sound, body, 1_531_420_919), "too old");
        assert!(!check(&sound, body, 1_531_420_317), "from the future");
        assert!(!check(&sound, b"token=other", 1_531_420_618));
        assert!(!check(&sent(signed, "1531420619"), body, 1_531_420_618));
        assert!(!check(&sent(&signed.replace("a2", "a3"), "1531420618"), body, 1_531_420_618));
        assert!(!check(&sent(&signed[3..], "1531420618"), body, 1_531_420_618), "without the prefix");
        assert!(!check(&headers(&[("x-slack-signature", signed)]), body, 1_531_420_618));
        let mut twice = sound.clone();
        twice.append("x-slack-signature", signed.parse().unwrap());
        assert!(!check(&twice, body, 1_531_420_618));
        assert!(proved(&slack(), b"other", (&sound, body), at(1_531_420_618)).is_none());
    }

    #[test]
    fn the_body_alone_and_a_token_are_proofs() {
        let hub = signature(
            r#"{ "scheme": "hmac-sha256", "secret": "s", "header": "x-hub-signature-256", "prefix": "sha256=" }"#,
        );
        let signed = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let secret = b"It's a Secret to Everybody";
        let sound = headers(&[("x-hub-signature-256", signed)]);
        assert!(proved(&hub, secret, (&sound, b"Hello, World!"), at(0)).is_some());
        assert!(proved(&hub, secret, (&sound, b"Hello, World?"), at(0)).is_none());
        let token = signature(r#"{ "scheme": "token", "secret": "s", "header": "x-token" }"#);
        assert!(proved(&token, b"abc", (&headers(&[("x-token", "abc")]), b""), at(0)).is_some());
        for other in ["abd", "ab", ""] {
            assert!(
                proved(&token, b"abc", (&headers(&[("x-token", other)]), b""), at(0)).is_none(),
                "{other}"
            );
        }
        assert!(proved(&token, b"abc", (&HeaderMap::new(), b""), at(0)).is_none());
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
