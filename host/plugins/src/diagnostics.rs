//! What `heddle doctor` asks about plugins: how each stands.

use futures::FutureExt as _;
use heddle_core::plugin::PluginState;
use heddle_kernel::feature::Diagnostic;
use heddle_kernel::findings::Findings;
use heddle_store::{Tx, plugins};

pub(crate) const DIAGNOSTICS: &[Diagnostic] = &[Diagnostic::Rows(|tx, findings| ask(tx, findings).boxed())];

async fn ask(tx: &mut Tx, findings: &mut Findings) -> heddle_store::Result<()> {
    for row in plugins::all(tx).await? {
        let why = row.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let told = format!("plugins: {} is {}{why}", row.plugin_id, row.state);
        match row.state {
            PluginState::Removed => {}
            PluginState::Quarantined | PluginState::Rejected => {
                findings.warn(told, format!("look at GET /plugins/{}", row.plugin_id));
            }
            _ => findings.ok(told),
        }
    }
    Ok(())
}
