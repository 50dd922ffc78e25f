//! Whether a plugin can be called for an organization now.

use std::sync::Arc;

use chrono::TimeDelta;
use heddle_core::OrgId;
use heddle_core::plugin::PluginState;
use heddle_fabric::occasion::{self, Occasion};
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_runtime::{Plugin, PluginCall};
use heddle_store::Tx;
use heddle_store::plugins;
use heddle_store::plugins::organizations::{self, OrganizationRow};
use heddle_store::plugins::storage::StorageRow;
use heddle_store::plugins::values::Keeper;

use super::{id_in_chains, pause};
use crate::index::Index;
use crate::operations::{Behalf, misfit_of};
use crate::storage;

/// Whether a plugin can be called.
pub(crate) enum Ready {
    Yes(Box<Callee>),
    /// It is removed, or is not switched on in the organization.
    Off,
    /// Not now, and why.
    Later(String, TimeDelta),
    /// Not in this process, and why; perhaps in another one, or soon.
    Elsewhere(String),
}

/// What a plugin is to be called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Settings,
    Other,
}

/// A plugin that can be called for an organization.
pub(crate) struct Callee {
    pub(crate) keeper: Keeper,
    pub(crate) plugin: Plugin,
    pub(crate) set: OrganizationRow,
    /// The user whose rights calls have.
    pub(crate) author: Caller,
    /// What the plugin stored in the organization; `None` where it stores nothing.
    pub(crate) storage: Option<StorageRow>,
}

impl Callee {
    /// Which values its calls see.
    pub(crate) fn generation(&self) -> i64 {
        self.storage.as_ref().map_or(0, |storage| storage.generation)
    }

    /// Whether the stored values have the form of this version, and no migration is under way.
    pub(crate) fn stands_at(&self, version: &str) -> bool {
        let storage = self.storage.as_ref();
        storage.is_some_and(|storage| storage.version == version && storage.draft_generation.is_none())
    }

    /// Why a trigger or a hook with this id is called: by no event, and at no time that was set before.
    pub(crate) fn occasion(&self, id: &str, key: String) -> Occasion {
        let Keeper { org, plugin } = self.keeper;
        Occasion {
            org,
            id: id_in_chains(org, plugin),
            chain: Vec::new(),
            name: format!("plugin.{}.{id}", self.plugin.id()),
            event: None,
            due_at: None,
            key,
        }
    }

    /// A call with the settings of the organization.
    pub(crate) fn call(&self, behalf: Behalf, request_id: String) -> PluginCall {
        PluginCall {
            org_id: self.keeper.org,
            settings: self.set.settings.clone(),
            request_id,
            deadline: None,
            behalf: Arc::new(behalf),
        }
    }
}

pub(super) const SOON: TimeDelta = TimeDelta::seconds(15);
const LATER: TimeDelta = TimeDelta::minutes(1);
/// A person has to do something first, and then it is called at once.
const LONG: TimeDelta = TimeDelta::minutes(10);

/// Whether a plugin can be called for an organization. Settings are told before anything else calls it.
pub(crate) async fn ready(app: &SharedApp, tx: &mut Tx, keeper: Keeper, what: What) -> Result<Ready, Error> {
    let known = Index::of(app).by_uid(keeper.plugin);
    let row = match &known {
        Some(known) => plugins::find(tx, &known.row.plugin_id).await?,
        None => None,
    };
    let Some(row) = row else {
        return Ok(Ready::Elsewhere("this process does not know the plugin yet".to_owned()));
    };
    if row.state == PluginState::Removed {
        return Ok(Ready::Off);
    }
    let set = organizations::find(tx, keeper.org, keeper.plugin).await?;
    let Some(set) = set.filter(|set| set.is_enabled) else { return Ok(Ready::Off) };
    let (id, state) = (&row.plugin_id, row.state);
    if state != PluginState::Active {
        return Ok(Ready::Later(format!("'{id}' is {state}"), LATER));
    }
    // What another process has put into service may not be loaded here yet: an older package is not called in its place.
    let serving = app
        .runtime
        .plugin(id)
        .filter(|plugin| row.serving_sha256.as_deref() == Some(plugin.manifest_sha256()));
    let Some(plugin) = serving else {
        return Ok(Ready::Elsewhere(format!("'{id}' does not serve in this process")));
    };
    if let Some(misfit) = misfit_of(&plugin, &set.settings) {
        return Ok(Ready::Later(misfit, LONG));
    }
    if what == What::Other && set.configure_at.is_some() && set.problem.is_none() {
        return Ok(Ready::Later("its settings come first".to_owned(), pause(1)));
    }
    let storage = storage::of(tx, &plugin, keeper).await?;
    if what == What::Other
        && let Some(problem) = storage::unfit(&plugin, storage.as_ref())
    {
        return Ok(Ready::Later(problem, SOON));
    }
    let me = id_in_chains(keeper.org, keeper.plugin);
    match author(tx, keeper.org, &set, me, id).await? {
        Ok(author) => Ok(Ready::Yes(Box::new(Callee { keeper, plugin, set, author, storage }))),
        Err(problem) => Ok(Ready::Later(problem, LONG)),
    }
}

async fn author(
    tx: &mut Tx,
    org: OrgId,
    set: &OrganizationRow,
    id: heddle_core::ConnectionId,
    plugin: &str,
) -> Result<Result<Caller, String>, Error> {
    let mend = format!("PUT /plugins/{plugin}/organization by an administrator gives it new rights");
    let Some(author) = set.author_id else {
        return Ok(Err(format!("nobody's rights are known for it: {mend}")));
    };
    Ok(occasion::author(tx, (org, author), id).await?.map_err(|problem| format!("{problem}; {mend}")))
}
