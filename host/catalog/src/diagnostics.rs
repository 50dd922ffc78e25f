//! What `heddle doctor` asks about the catalogue: whether its settings can be used.

use heddle_kernel::config::Config;
use heddle_kernel::feature::Diagnostic;
use heddle_kernel::findings::Findings;

use crate::settings::CatalogSettings;
use crate::trust::Trust;

pub(crate) const DIAGNOSTICS: &[Diagnostic] = &[Diagnostic::Settings(ask)];

fn ask(config: &Config, findings: &mut Findings) {
    let settings = config.of::<CatalogSettings>();
    match (Trust::of(config), &settings.url) {
        (Err(error), _) => {
            findings.fail(format!("marketplace: {error}"), "give the path of the file of the first root");
        }
        (Ok(None), None) => {}
        (Ok(None), Some(_)) => findings.warn(
            "marketplace: MARKETPLACE_URL is set, and nothing says whose signature the catalogue needs",
            "set MARKETPLACE_ROOT or MARKETPLACE_PUBLISHER_PUBLIC_KEY",
        ),
        (Ok(Some(_)), None) => findings.warn(
            "marketplace: MARKETPLACE_URL is not set, so there is no catalogue",
            "set it to the address or the folder of the catalogue",
        ),
        (Ok(Some(Trust::Unsigned)), Some(_)) => findings.warn(
            "marketplace: the catalogue is taken without a signature",
            "set MARKETPLACE_ROOT or MARKETPLACE_PUBLISHER_PUBLIC_KEY; then MARKETPLACE_ALLOW_UNSIGNED has no effect",
        ),
        (Ok(Some(Trust::Root(_) | Trust::Key(_))), Some(_)) => {
            findings.ok("marketplace: the catalogue has an address, and keys that it is believed for");
        }
    }
}
