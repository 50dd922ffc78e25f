//! The catalogue as the database has it, parsed once for each version of it.

use std::sync::{Arc, Mutex as Short, OnceLock, PoisonError};

use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_kernel::task;
use heddle_marketplace::catalog::{Catalog, State};
use heddle_store::catalogs::{self, CatalogRow};
use serde::Deserialize as _;
use tokio::sync::{Mutex, MutexGuard, Semaphore};

use crate::retries::Retries;
use crate::trust::Trust;

/// Packages that are fetched at once, each in memory until it is installed.
const FETCHES_MAX: usize = 2;

/// What this process holds of catalogues.
#[derive(Debug)]
pub(crate) struct Shelves {
    /// The catalogue that was read last, by its SHA-256.
    read: Short<Option<(String, Arc<Catalog>)>>,
    /// What the catalogue is believed for, as it was read first: another file in its place counts from the next start on.
    trust: OnceLock<Option<Trust>>,
    /// Whose turn it is to update the catalogue: one update follows another.
    turn: Mutex<()>,
    /// Whose turn it is to read a catalogue from the database: others wait for what it finds.
    cold: Mutex<()>,
    /// Turns to fetch a package.
    pub(crate) fetches: Semaphore,
    /// Versions that could not be installed by themselves, and are tried again.
    pub(crate) retries: Retries,
}

impl Default for Shelves {
    fn default() -> Self {
        Self {
            read: Short::default(),
            trust: OnceLock::new(),
            turn: Mutex::default(),
            cold: Mutex::default(),
            fetches: Semaphore::new(FETCHES_MAX),
            retries: Retries::default(),
        }
    }
}

/// A catalogue, and what is believed of it.
pub(crate) struct Shelf {
    pub(crate) row: CatalogRow,
    pub(crate) state: State,
    /// Absent until an update ended well.
    pub(crate) catalog: Option<Arc<Catalog>>,
}

impl Shelves {
    /// Those of this process.
    pub(crate) fn of(app: &App) -> &Self {
        app.part()
    }

    /// What the catalogue is believed for; `None` where the settings say nothing.
    ///
    /// # Errors
    /// The file of the first root cannot be read. It is tried again with the next call.
    pub(crate) fn trust(app: &App) -> Result<Option<&Trust>, Error> {
        let held = &Self::of(app).trust;
        if held.get().is_none() {
            let _ = held.set(Trust::of(&app.config)?);
        }
        Ok(held.get().and_then(Option::as_ref))
    }

    /// Waits for the turn to update the catalogue.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    fn held(&self, sha256: &str) -> Option<Arc<Catalog>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.as_ref().filter(|(of, _)| of == sha256).map(|(_, catalog)| Arc::clone(catalog))
    }

    /// Holds a catalogue that was just read.
    pub(crate) fn hold(&self, sha256: &str, catalog: Arc<Catalog>) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some((sha256.to_owned(), catalog));
    }
}

/// What the database says of the catalogue that the settings name; `None` where they name none, or it was never updated.
pub(crate) async fn shelf(app: &App) -> Result<Option<Shelf>, Error> {
    let Some(trust) = Shelves::trust(app)? else { return Ok(None) };
    let Some(shelf) = known(app, trust).await? else { return Ok(None) };
    if shelf.catalog.is_some() || shelf.state.catalog_sha256().is_none() {
        return Ok(Some(shelf));
    }
    let shelves = Shelves::of(app);
    let _cold = shelves.cold.lock().await;
    let mut tx = app.db.read().await?;
    // In one snapshot: the bytes are those that the state names.
    let Some(row) = catalogs::find(&mut tx, &trust.name()).await? else { return Ok(None) };
    let state = state_of(&row)?;
    let Some(sha256) = state.catalog_sha256().map(str::to_owned) else {
        return Ok(Some(Shelf { row, state, catalog: None }));
    };
    if let Some(catalog) = shelves.held(&sha256) {
        return Ok(Some(Shelf { row, state, catalog: Some(catalog) }));
    }
    let bytes = catalogs::bytes(&mut tx, row.id).await?;
    drop(tx);
    let (state, opened) = task::block(move || {
        let opened = state.open_catalog(&bytes);
        (state, opened)
    })
    .await;
    let catalog = Arc::new(opened.map_err(|refusal| {
        Error::Unavailable(format!("the catalogue in the database is damaged: {refusal}; restore a backup"))
    })?);
    shelves.hold(&sha256, Arc::clone(&catalog));
    Ok(Some(Shelf { row, state, catalog: Some(catalog) }))
}

/// The same, with the catalogue where this process has read it.
async fn known(app: &App, trust: &Trust) -> Result<Option<Shelf>, Error> {
    let Some(row) = catalogs::find(&mut app.db.single().await?, &trust.name()).await? else {
        return Ok(None);
    };
    let state = state_of(&row)?;
    let catalog = state.catalog_sha256().and_then(|sha256| Shelves::of(app).held(sha256));
    Ok(Some(Shelf { row, state, catalog }))
}

/// What is believed of a catalogue.
pub(crate) fn state_of(row: &CatalogRow) -> Result<State, Error> {
    State::deserialize(&row.state).map_err(Error::internal)
}
