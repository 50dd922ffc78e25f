//! Requests of controllers to the service: each hook of a controller has an address of its own.
//!
//! The runtime judges the proof that the manifest describes, with a secret that the controller has alone, and says what the
//! request asks to be read again. That is written before the answer: a sender that gets none asks again, and nothing is lost.
//! Any process takes the request, whichever one holds the controller.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use heddle_core::secret::Secret;
use heddle_core::{ControllerId, Timestamp};
use heddle_inventory::sync::Bell;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::client::Client;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::At;
use heddle_kernel::http::rate_limit::{self, Limit, Rate};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::metrics::RateWindow;
use heddle_marketplace::push::Channel;
use heddle_runtime::{Adapter, HOOK_BODY_BYTES_MAX, Told, ToldSite, Unheard};
use heddle_store::Tx;
use heddle_store::push;
use heddle_store::push::hooks::{self, Hooked};
use heddle_store::push::wanted::{self, Want};

use crate::declarations::PushSettings;
use crate::measures::Measures;
use crate::secret::context;
use crate::told::Paces;

/// Requests of a controller, of which each is read by its rules. What comes beyond them is read together, later.
const RATE: Rate = Rate::per_minute(120);
/// Requests of a client without a valid proof. They are counted by themselves, so that they keep no others out.
const UNPROVED_RATE: Rate = Rate::per_minute(30);
/// How often a request is judged: the secret can be sealed with another key meanwhile.
const JUDGED_MAX: usize = 2;

/// Why a request is refused: the same for a controller that there is not, and nothing about the secret.
const UNPROVED: &str = "the request does not prove that it is of this controller: see POST \
                        /controllers/{controller_id}/push/secret";

pub(crate) fn routes() -> Routes {
    Routes::default().post(
        "/controllers/{controller_id}/push/{channel}",
        Access::Public,
        receive,
        doc("Have read again what a controller says has changed: the controller sends it, with its secret")
            .named("receive_controller_push")
            .takes("application/octet-stream", HOOK_BODY_BYTES_MAX)
            .own_proof()
            .empty(204)
            .fails_with(401)
            .example("channel", Some("webhook")),
    )
}

/// What a request with a good proof asks for.
struct Proved {
    hooked: Hooked,
    adapter: Adapter,
    /// The secret that proved it, sealed.
    secret: Vec<u8>,
    told: Vec<Told>,
}

async fn receive(
    State(app): State<SharedApp>,
    Extension(client): Extension<Client>,
    At((id, channel)): At<(ControllerId, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<StatusCode, Error> {
    let mut is_let = None;
    for _ in 0..JUDGED_MAX {
        let Some(proved) = judge(&app, (id, &channel), (&headers, &body)).await? else { break };
        let is_let = match is_let {
            Some(known) => known,
            None => *is_let.insert(is_let_through(&app, id, &proved).await),
        };
        if write(&app, (id, &channel), &proved, is_let).await? {
            return Ok(StatusCode::NO_CONTENT);
        }
    }
    let limit = Limit { key: format!("push_unproved:{}", client.network()), rate: UNPROVED_RATE };
    rate_limit::take_one(&app, limit, RateWindow::Ingest).await?;
    Err(Error::Unauthenticated(UNPROVED))
}

/// Judges a request; `None` where it proves nothing, for whatever reason.
async fn judge(
    app: &SharedApp,
    (id, channel): (ControllerId, &str),
    (headers, body): (&HeaderMap, &[u8]),
) -> Result<Option<Proved>, Error> {
    let found = hooks::find(&mut app.db.single().await?, id).await?;
    let Some(hooked) = found else { return Ok(None) };
    let Some(sealed) = hooked.push_secret.clone() else { return Ok(None) };
    let Some(adapter) = app.runtime.adapter(&hooked.target.vendor) else { return Ok(None) };
    let opened = app.keys.open_sealed(&context(id), &sealed).map_err(Error::internal)?;
    let secret = Secret::new(String::from_utf8(opened.to_vec()).map_err(Error::internal)?);
    match adapter.heard(hooked.target.org_id, channel, &secret, (headers, body)).await {
        Ok(told) => Ok(Some(Proved { hooked, adapter, secret: sealed, told })),
        Err(Unheard::Undeclared | Unheard::Unproved) => Ok(None),
        Err(Unheard::TooLarge) => {
            Err(Error::TooLarge(format!("a request to a hook has at most {HOOK_BODY_BYTES_MAX} bytes")))
        }
    }
}

/// Whether a request is within the rate of its controller.
async fn is_let_through(app: &SharedApp, id: ControllerId, proved: &Proved) -> bool {
    let limit = Limit { key: format!("push:{id}"), rate: RATE };
    let is_let = rate_limit::take_one(app, limit, RateWindow::Ingest).await.is_ok();
    let outcome = match is_let {
        false => "dropped",
        true if proved.told.is_empty() => "ignored",
        true => "read",
    };
    Measures::of(app).request(&proved.hooked.target.vendor, outcome);
    is_let
}

/// Writes what is to be read again, and that the controller was heard. Returns false where the secret that proved it is another
/// one by now.
///
/// A sender that is refused might give up for good: what is switched off is taken, and means nothing.
async fn write(
    app: &SharedApp,
    of: (ControllerId, &str),
    proved: &Proved,
    is_let: bool,
) -> Result<bool, Error> {
    if !proved.hooked.push_enabled || !app.config.of::<PushSettings>().enabled {
        return Ok(true);
    }
    let now = app.clock.now();
    let missed = if is_let { None } else { missed(app, of, proved, now) };
    if !is_let && missed.is_none() {
        return Ok(true);
    }
    let mut tx = app.db.write().await?;
    if !hooks::note(&mut tx, of.0, of.1, &proved.secret, now).await? {
        return Ok(false);
    }
    let wants = match missed {
        Some(wants) => wants,
        None => told(app, &mut tx, of, proved, now).await?,
    };
    wanted::want(&mut tx, of.0, &wants).await?;
    tx.commit().await?;
    if !is_let {
        Paces::of(app).asked(of, now);
    }
    if !wants.is_empty() {
        Bell::of(app).ring();
    }
    Ok(true)
}

/// What a request asks for by the rules of its hook.
async fn told(
    app: &SharedApp,
    tx: &mut Tx,
    of: (ControllerId, &str),
    proved: &Proved,
    now: Timestamp,
) -> Result<Vec<Want>, Error> {
    let is_of_site = proved.told.iter().any(|told| told.site != ToldSite::All);
    let sites = if is_of_site { push::sites(tx, of.0).await? } else { Vec::new() };
    let settle_ms = proved.adapter.manifest().push.get(of.1).map(Channel::settle_ms);
    let settle = chrono::TimeDelta::milliseconds(settle_ms.unwrap_or_default().into());
    Ok(Paces::of(app).wants(of, (&proved.told, &sites), settle, now))
}

/// What requests beyond the rate ask for together; `None` where one of them has written it.
fn missed(app: &SharedApp, of: (ControllerId, &str), proved: &Proved, now: Timestamp) -> Option<Vec<Want>> {
    let channel = proved.adapter.manifest().push.get(of.1)?;
    Paces::of(app).missed(of, channel.reads(), now)
}
