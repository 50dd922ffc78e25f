//! What `heddle doctor` asks about sets: whether any is in effect at some controllers and not at others.

use futures::FutureExt as _;
use heddle_kernel::feature::Diagnostic;
use heddle_kernel::findings::Findings;
use heddle_store::{Tx, sagas};

pub(crate) const DIAGNOSTICS: &[Diagnostic] = &[Diagnostic::Rows(|tx, findings| ask(tx, findings).boxed())];

async fn ask(tx: &mut Tx, findings: &mut Findings) -> heddle_store::Result<()> {
    let (sets, count) = sagas::stuck(tx).await?;
    if count == 0 {
        findings.ok("sets: none is stuck");
    } else {
        let names: Vec<String> = sets.iter().map(ToString::to_string).collect();
        findings.warn(
            format!(
                "sets: {count} are in effect at some controllers and not at others: {}",
                names.join(", ")
            ),
            "look at their parts, then verify, apply or revert them, or discard them with a reason",
        );
    }
    Ok(())
}
