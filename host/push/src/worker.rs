//! Decides which channels this process holds, and opens and closes them.
//!
//! Each look compares what runs here with what the database says: a controller that is reached in another way, has another
//! release or other sites, or was removed, loses its channels and gets new ones.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use heddle_core::push::PushState;
use heddle_core::{ControllerId, OrgId, ProcessId};
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::error::Error;
use heddle_kernel::process::membership::Term;
use heddle_runtime::Adapter;
use heddle_store::push::hooks::{self, HeardAt};
use heddle_store::push::{self, Held, Push, PushSite};

use crate::backoff::Pace;
use crate::claims::{self, Claims};
use crate::declarations::PushSettings;
use crate::hook::Requests;
use crate::keeper::{Keeper, tell, tell_in};
use crate::plan;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long the sites of a controller that are known count.
const SITES_EVERY: Duration = Duration::from_secs(10);
/// What a controller says whose channels a person does not want.
const SWITCHED_OFF: &str = "switched off for this controller";
/// What a controller says where the service opens none.
const SERVICE_OFF: &str = "switched off in this service";

/// What the channels of a controller depend on. With another one they are opened anew.
#[derive(Debug, PartialEq)]
struct Ground {
    url: String,
    tls: serde_json::Value,
    settings: serde_json::Value,
    credential: (heddle_core::CredentialId, i64),
    firmware: Option<String>,
    /// The very package.
    adapter: String,
    sites: Vec<GroundSite>,
}

/// What channels depend on of a vendor's site.
#[derive(Debug, PartialEq)]
struct GroundSite {
    site_ref: String,
    is_ignored: bool,
    /// Only where messages have the names.
    name: Option<String>,
}

impl GroundSite {
    fn of(sites: &[PushSite], has_names: bool) -> Vec<Self> {
        let one = |site: &PushSite| Self {
            site_ref: site.site_ref.clone(),
            is_ignored: site.is_ignored,
            name: has_names.then(|| site.name.clone()),
        };
        sites.iter().map(one).collect()
    }
}

impl Ground {
    fn of(held: &Held, adapter: &Adapter, sites: &[PushSite]) -> Self {
        let target = &held.target;
        let has_names = plan::names_sites(&adapter.manifest().push);
        Self {
            url: target.url.clone(),
            tls: target.tls.clone(),
            settings: target.settings.clone(),
            credential: (target.credential_id, target.credential_version),
            firmware: target.firmware.clone(),
            adapter: adapter.manifest_sha256().to_owned(),
            sites: GroundSite::of(sites, has_names),
        }
    }
}

/// What this process holds.
#[derive(Default)]
struct Worker {
    owner: Option<ProcessId>,
    keepers: HashMap<ControllerId, (Ground, Keeper)>,
    paces: HashMap<ControllerId, Pace>,
    /// The vendor's sites, and when they were looked for.
    sites: HashMap<ControllerId, (Instant, Vec<PushSite>)>,
    claims: Claims,
    /// How often what is installed had changed when controllers without channels were looked for last.
    installed: Option<u64>,
}

/// Looks until the service stops; then all channels are closed, and other processes may open them.
pub(crate) async fn run(app: SharedApp) {
    let stop = app.tasks.stopping();
    let mut worker = Worker::default();
    loop {
        if let Err(error) = worker.look(&app).await {
            tracing::warn!(error = %error, "channels of controllers were not looked at; tried again later");
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
    worker.keepers.clear();
    if let Some(owner) = worker.owner
        && let Err(error) = release_all(&app, &[owner]).await
    {
        // The process leaves, and with it they are free.
        tracing::debug!(error = %error, "channels of controllers were not given up");
    }
}

async fn release_all(app: &SharedApp, processes: &[ProcessId]) -> Result<(), Error> {
    let mut tx = app.db.write().await?;
    for process in processes {
        push::release_all(&mut tx, *process, app.clock.now()).await?;
    }
    Ok(tx.commit().await?)
}

impl Worker {
    async fn look(&mut self, app: &SharedApp) -> Result<(), Error> {
        let Ok(term) = app.membership.term() else {
            self.keepers.clear();
            return Ok(());
        };
        if self.owner != Some(term.id) {
            self.keepers.clear();
            self.owner = Some(term.id);
        }
        let is_on = app.config.of::<PushSettings>().enabled;
        self.forget(app).await?;
        let mut tx = app.db.read().await?;
        let gone = push::abandoned(&mut tx, term.id).await?;
        let held = push::held(&mut tx, term.id).await?;
        let heard = hooks::heard(&mut tx, term.id).await?;
        drop(tx);
        if !gone.is_empty() {
            release_all(app, &gone).await?;
        }
        self.keep_only(&held.iter().map(|held| held.target.id).collect());
        let mut requests: HashMap<ControllerId, Requests> = HashMap::new();
        for HeardAt { controller_id, channel, heard_at } in heard {
            requests.entry(controller_id).or_default().heard.insert(channel, heard_at);
        }
        let mut counts: HashMap<OrgId, usize> = HashMap::new();
        for held in held {
            *counts.entry(held.target.org_id).or_default() += 1;
            let id = held.target.id;
            let heard = requests.remove(&id).unwrap_or_default();
            let requests = Requests { has_secret: held.has_push_secret, ..heard };
            if let Err(error) = self.keep(app, &term, (held, requests), is_on).await {
                tracing::warn!(
                    controller.id = %id, error = %error,
                    "channels of controller {id} were not looked at; tried again later"
                );
            }
        }
        self.claims.take(app, (term.id, &counts), is_on).await
    }

    /// Closes the channels of controllers that are no longer held by this process.
    fn keep_only(&mut self, held: &HashSet<ControllerId>) {
        self.keepers.retain(|id, _| held.contains(id));
        self.paces.retain(|id, _| held.contains(id));
        self.sites.retain(|id, _| held.contains(id));
    }

    /// The vendor's sites of a controller.
    async fn sites(&mut self, app: &SharedApp, id: ControllerId) -> Result<Vec<PushSite>, Error> {
        if let Some((at, known)) = self.sites.get(&id)
            && at.elapsed() < SITES_EVERY
        {
            return Ok(known.clone());
        }
        let found = push::sites(&mut app.db.single().await?, id).await?;
        self.sites.insert(id, (Instant::now(), found.clone()));
        Ok(found)
    }

    /// Whenever what is installed has changed: clears the state of controllers whose vendor has no package with channels here.
    /// Another process that has such a package writes the state again.
    async fn forget(&mut self, app: &SharedApp) -> Result<(), Error> {
        let installed = *app.runtime.installed().borrow();
        if self.installed != Some(installed) {
            let mut tx = app.db.write().await?;
            push::forget(&mut tx, &claims::vendors(app)).await?;
            tx.commit().await?;
            self.installed = Some(installed);
        }
        Ok(())
    }

    /// Has the channels of a controller run as the database says.
    async fn keep(
        &mut self,
        app: &SharedApp,
        term: &Term,
        (held, requests): (Held, Requests),
        is_on: bool,
    ) -> Result<(), Error> {
        let id = held.target.id;
        let lacks = self.keepers.get(&id).and_then(|(_, keeper)| keeper.lacks_place().cloned());
        if let Some((whose, reason)) = lacks {
            self.claims.had_no_place(whose, held.target.org_id);
            return self.give_up(app, term.id, &held, polling(app, reason)).await;
        }
        let adapter = app.runtime.adapter(&held.target.vendor);
        let adapter = adapter.filter(|adapter| !adapter.manifest().push.is_empty());
        let Some(adapter) = adapter else {
            return self.give_up(app, term.id, &held, Push::default()).await;
        };
        let reason = match (is_on, held.push_enabled) {
            (true, true) => None,
            (true, false) => Some(SWITCHED_OFF),
            (false, _) => Some(SERVICE_OFF),
        };
        let (channels, firmware) = (&adapter.manifest().push, held.target.firmware.as_deref());
        let has_sites = plan::needs_sites(channels, firmware);
        let sites = if has_sites { self.sites(app, id).await? } else { Vec::new() };
        let planned = plan::plan(channels, firmware, &sites);
        if let (Some(reason), Some(_)) = (reason, &planned) {
            return self.give_up(app, term.id, &held, polling(app, reason.to_owned())).await;
        }
        let Some(planned) = planned else {
            // It stays this process's: with another release it may have channels.
            self.keepers.remove(&id);
            return stand(app, term.id, &held, Push::default()).await;
        };
        let ground = Ground::of(&held, &adapter, &sites);
        let kept = self.keepers.get(&id).filter(|(known, keeper)| *known == ground && !keeper.has_ended());
        if let Some((_, keeper)) = kept {
            keeper.look(&requests);
            return Ok(());
        }
        // The old ones are closed first: they count among those that may be open.
        if let Some((_, keeper)) = self.keepers.remove(&id) {
            keeper.close().await;
        }
        let pause = self.paces.entry(id).or_default().begins(Instant::now());
        let (of, opened, started) = ((adapter, held.target), (planned, sites), (term.clone(), pause));
        let keeper = Keeper::start(app, of, opened, started, (held.push, &requests));
        self.keepers.insert(id, (ground, keeper));
        Ok(())
    }

    /// Closes the channels of a controller, and says how it stands from now on.
    async fn give_up(
        &mut self,
        app: &SharedApp,
        owner: ProcessId,
        held: &Held,
        push: Push,
    ) -> Result<(), Error> {
        let id = held.target.id;
        let kept = self.keepers.remove(&id);
        let may_say_otherwise = kept.is_some();
        if let Some((_, keeper)) = kept {
            keeper.close().await;
        }
        let mut tx = app.db.write().await?;
        if may_say_otherwise || !says(held, &push) {
            tell_in(&mut tx, app, (id, owner), &push).await?;
        }
        push::release(&mut tx, id, owner).await?;
        Ok(tx.commit().await?)
    }
}

fn polling(app: &SharedApp, reason: String) -> Push {
    Push { state: Some(PushState::Polling), since: Some(app.clock.now()), reason: Some(reason) }
}

/// Whether the database says so already.
fn says(held: &Held, push: &Push) -> bool {
    (held.push.state, &held.push.reason) == (push.state, &push.reason)
}

/// Writes how a controller stands, unless the database says so already.
async fn stand(app: &SharedApp, owner: ProcessId, held: &Held, push: Push) -> Result<(), Error> {
    if says(held, &push) {
        return Ok(());
    }
    tell(app, held.target.id, owner, &push).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_begin_anew_when_a_site_is_ignored_or_is_read_again() {
        let site = |is_ignored| PushSite { site_ref: "1".to_owned(), name: "Head".to_owned(), is_ignored };
        let of = |site: PushSite, has_names| GroundSite::of(&[site], has_names);
        assert_ne!(of(site(true), false), of(site(false), false));
        let renamed = PushSite { name: "Home".to_owned(), ..site(false) };
        assert_eq!(of(site(false), false), of(renamed.clone(), false), "no message has the name");
        assert_ne!(of(site(false), true), of(renamed, true));
    }
}
