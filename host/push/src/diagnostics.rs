//! What `heddle doctor` asks about channels: how many controllers have some, and which of them are read at their interval only.

use futures::FutureExt as _;
use heddle_kernel::feature::Diagnostic;
use heddle_kernel::findings::Findings;
use heddle_store::{Tx, attention};

pub(crate) const DIAGNOSTICS: &[Diagnostic] = &[Diagnostic::Rows(|tx, findings| ask(tx, findings).boxed())];

async fn ask(tx: &mut Tx, findings: &mut Findings) -> heddle_store::Result<()> {
    let (controllers, polling) = attention::polling_controllers(tx).await?;
    let live = attention::pushing_controllers(tx).await? - polling;
    if polling == 0 {
        findings
            .ok(format!("push: {live} controllers tell what changes, none of those that could is silent"));
        return Ok(());
    }
    let reason = |reason: Option<String>| reason.unwrap_or_default();
    let names: Vec<String> = controllers
        .into_iter()
        .map(|c| format!("'{}' ({}): {}", c.name, c.id, reason(c.push_reason)))
        .collect();
    findings.warn(
        format!(
            "push: {live} controllers tell what changes, {polling} that could are read at their interval only: {}",
            names.join(", ")
        ),
        "the reasons say what is missing; `push_enabled` of a controller switches its channels off",
    );
    Ok(())
}
