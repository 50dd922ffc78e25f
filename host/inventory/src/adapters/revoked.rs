//! Takes adapters out of service that a catalogue has revoked.
//!
//! None of this waits for the turn to change which packages serve, because an installation holds that turn while it compiles.
//! A package that is revoked does not begin to serve: that it may run is written in a transaction that asks what is revoked and
//! holds the gate. Between that transaction and the service, a revocation can be written that finds nothing in service yet, so
//! [`serve`] asks once more.

use heddle_kernel::app::App;
use heddle_marketplace::catalog::{Action, Revocation};
use heddle_packages::{NotLoaded, revocations, said_of};
use heddle_runtime::Adapter;

/// The adapters that serve and are revoked.
pub fn revoked_adapters<'a>(app: &App, revoked: &'a [Revocation]) -> Vec<(Adapter, &'a Revocation)> {
    let of = |adapter: Adapter| Some((said_of(&adapter, revoked)?, adapter));
    app.runtime.adapters().into_iter().filter_map(of).map(|(said, adapter)| (adapter, said)).collect()
}

/// Takes adapters out of service that a catalogue has revoked, and cuts the calls of those that it wants cut. Another package
/// of theirs serves once all are read again.
///
/// # Errors
/// The database gives no answer, or has a revocation that cannot be read.
pub async fn withdraw_revoked(app: &App) -> Result<(), NotLoaded> {
    let mut tx = app.db.read().await?;
    let revoked = revocations(&mut tx).await?;
    drop(tx);
    for (adapter, revocation) in revoked_adapters(app, &revoked) {
        if revocation.action == Action::Block {
            continue;
        }
        if revocation.action == Action::Kill {
            adapter.cut();
        }
        if !app.runtime.withdraw_package(&adapter) {
            continue;
        }
        tracing::error!(
            component = adapter.id(),
            version = adapter.version(),
            reason = revocation.reason,
            "adapter {} is out of service: it is revoked by the catalogue",
            adapter.id()
        );
    }
    Ok(())
}

/// Puts an adapter into service whose binding is written. What was revoked since then is taken out of service again; a
/// revocation that is written later finds the adapter in service.
pub(super) async fn serve(app: &App, adapter: &Adapter) {
    app.runtime.serve(adapter);
    if let Err(error) = withdraw_revoked(app).await {
        tracing::warn!(error = %error, "what is revoked cannot be read; it is read again before the next change of packages");
    }
}
