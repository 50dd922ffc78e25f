//! What `heddle doctor` asks about changes: whether any ended in a state that is not known.

use futures::FutureExt as _;
use heddle_kernel::feature::Diagnostic;
use heddle_kernel::findings::Findings;
use heddle_store::{Tx, attention};

pub(super) const DIAGNOSTICS: &[Diagnostic] = &[Diagnostic::Rows(|tx, findings| ask(tx, findings).boxed())];

async fn ask(tx: &mut Tx, findings: &mut Findings) -> heddle_store::Result<()> {
    let (changes, count) = attention::unsettled_changes(tx).await?;
    if count == 0 {
        findings.ok("changes: every outcome is known");
    } else {
        let names: Vec<String> = changes.iter().map(|c| format!("{} ({})", c.id, c.outcome_state)).collect();
        findings.warn(
            format!("changes: {count} ended in a state that nobody knows: {}", names.join(", ")),
            "look at their devices, then verify or discard them",
        );
    }
    Ok(())
}
