//! Tells an organization what was left out of what should have called a plugin.

use heddle_core::notification::Severity;
use heddle_delivery::notifications::message::Message;
use heddle_delivery::notifications::notices;
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_store::Tx;

use crate::triggers::Callee;

/// Tells the administrators, once an hour for each trigger: the runs have the rest.
pub(crate) async fn tell(
    tx: &mut Tx,
    app: &App,
    callee: &Callee,
    trigger: &str,
    (what, reason): (&str, &str),
) -> Result<(), Error> {
    let (plugin, org) = (callee.plugin.id(), callee.keeper.org);
    let message = Message {
        severity: Severity::Warning,
        source: "plugins",
        subject: format!("Plugin '{plugin}' left out {what}"),
        body: format!("Trigger '{trigger}' failed, and is not called for that again: {reason}"),
    };
    let hour = app.clock.now().timestamp() / 3600;
    let origin = format!("left_out:{plugin}:{trigger}:{hour}");
    notices::tell_administrators(tx, app, org, &message, Some(origin)).await.map(drop)
}
