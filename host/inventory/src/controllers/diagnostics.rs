//! What `heddle doctor` asks about controllers: whether any has been offline for long.

use chrono::TimeDelta;
use futures::FutureExt as _;
use heddle_core::Clock;
use heddle_kernel::feature::Diagnostic;
use heddle_kernel::findings::Findings;
use heddle_store::{Tx, attention};

const SILENT_HOURS: i64 = 24;

pub(super) const DIAGNOSTICS: &[Diagnostic] = &[Diagnostic::Rows(|tx, findings| ask(tx, findings).boxed())];

async fn ask(tx: &mut Tx, findings: &mut Findings) -> heddle_store::Result<()> {
    let before = Clock::default().now() - TimeDelta::hours(SILENT_HOURS);
    let (controllers, count) = attention::silent_controllers(tx, before).await?;
    if count == 0 {
        findings.ok(format!("controllers: none is offline for more than {SILENT_HOURS} hours"));
    } else {
        let names: Vec<String> = controllers.iter().map(|c| format!("'{}' ({})", c.name, c.id)).collect();
        findings.warn(
            format!(
                "controllers: {count} are offline for more than {SILENT_HOURS} hours: {}",
                names.join(", ")
            ),
            "check their addresses and credentials, or remove them",
        );
    }
    Ok(())
}
