//! Which triggers want an event, written in the transaction that advances past it.

use std::collections::BTreeMap;

use heddle_core::OrgId;
use heddle_core::event::matches;
use heddle_core::plugin::PluginState;
use heddle_kernel::app::{App, SharedApp};
use heddle_kernel::events::consumer::{Consumer, Took};
use heddle_kernel::http::error::Error;
use heddle_store::plugins::triggers::{self, Wanted};
use heddle_store::plugins::{self, PluginUid, organizations};
use heddle_store::{StoredEvent, Tx};

use super::Occasions;
use crate::index::Index;

/// Follows the events for the triggers of plugins.
///
/// What is not wanted costs a look at the patterns in memory. An event finds the triggers of packages that are active when
/// it is followed, whether this process can load them or not.
#[derive(Debug, Default)]
pub(crate) struct Follower;

/// The triggers that want some of these events, each with the numbers of the first and the last of them. `on` are the plugins
/// that the organization uses, each with the number up to which events came before, or while it was not active.
fn wanting(
    app: &App,
    on: &[(PluginUid, i64)],
    events: &[StoredEvent],
) -> BTreeMap<(PluginUid, String), (i64, i64)> {
    let mut found = BTreeMap::new();
    if on.is_empty() {
        return found;
    }
    let all = Index::of(app).all();
    let active = all.values().filter(|known| known.row.state == PluginState::Active);
    for (uid, manifest) in active.filter_map(|known| Some((known.row.id, known.serving()?))) {
        let Some((_, after_seq)) = on.iter().find(|(plugin, _)| *plugin == uid) else { continue };
        for trigger in &manifest.triggers {
            for stored in events.iter().filter(|stored| stored.event.seq > *after_seq) {
                let name = stored.event.event_type.as_str();
                if trigger.events.iter().any(|pattern| matches(pattern, name)) {
                    let seq = stored.event.seq;
                    let span = found.entry((uid, trigger.id.clone())).or_insert((seq, seq));
                    span.1 = seq;
                }
            }
        }
    }
    found
}

impl Consumer for Follower {
    const NAME: &'static str = "plugins";

    /// While another process has changed a plugin and this one has not read it, it is not known what wants an event.
    async fn is_held_up(&self, app: &SharedApp, tx: &mut Tx, _: OrgId) -> Result<bool, Error> {
        Ok(plugins::stamp(tx).await? != Index::of(app).stamp())
    }

    async fn wants(
        &self,
        app: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> Result<bool, Error> {
        let on = organizations::listening_in(tx, org).await?;
        Ok(!wanting(app, &on, events).is_empty())
    }

    async fn take(
        &self,
        app: &SharedApp,
        tx: &mut Tx,
        org: OrgId,
        events: &[StoredEvent],
    ) -> Result<Took, Error> {
        let on = organizations::listening_in(tx, org).await?;
        let wanted: Vec<Wanted> = wanting(app, &on, events)
            .into_iter()
            .map(|((plugin, trigger), (first, last))| Wanted {
                plugin,
                trigger,
                after_seq: first - 1,
                seq: last,
            })
            .collect();
        triggers::want(tx, org, &wanted, app.clock.now()).await?;
        Ok(Took::All)
    }

    async fn called(&self, app: &SharedApp) {
        Index::of(app).caught_up.notified().await;
    }

    fn taken(&self, app: &SharedApp) {
        Occasions::of(app).wake.notify_one();
    }
}
