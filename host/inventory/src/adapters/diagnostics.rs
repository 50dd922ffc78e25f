//! What `heddle doctor` asks about packages: whether there are any, and whether each is verified.

use futures::FutureExt as _;
use heddle_kernel::config::Config;
use heddle_kernel::feature::Diagnostic;
use heddle_kernel::findings::Findings;
use heddle_marketplace::Verified;
use heddle_packages::settings::{self, AdapterSettings};
use heddle_store::{Tx, installed_packages};

pub(super) const DIAGNOSTICS: &[Diagnostic] =
    &[Diagnostic::Settings(ask), Diagnostic::Rows(|tx, findings| installed(tx, findings).boxed())];

/// Says which packages every process takes from the database.
async fn installed(tx: &mut Tx, findings: &mut Findings) -> heddle_store::Result<()> {
    for one in installed_packages::all(tx).await? {
        let why = if one.is_pinned { " and stays until a newer one comes" } else { "" };
        findings
            .ok(format!("adapters: {} {} is installed in the database{why}", one.adapter_id, one.version));
    }
    Ok(())
}

fn ask(config: &Config, findings: &mut Findings) {
    let Some(folder) = &config.of::<AdapterSettings>().packages else {
        findings.warn(
            "adapters: ADAPTER_PACKAGES is not set, so only controllers of installed packages can be managed",
            "set it to the folder of the adapters' packages, or install packages over the API",
        );
        return;
    };
    if let Err(error) = std::fs::read_dir(folder) {
        let what = format!("adapters: ADAPTER_PACKAGES '{}' cannot be read: {error}", folder.display());
        findings.fail(what, "give the path of the folder of the adapters' packages");
        return;
    }
    let trusted = match settings::trusted_keys(config) {
        Ok(trusted) => trusted,
        Err(error) => {
            findings.fail(format!("adapters: {error:#}"), "give the path of a file of publishers' keys");
            return;
        }
    };
    // That it can be read was seen above.
    let folders = settings::package_folders(folder).unwrap_or_default();
    if folders.is_empty() {
        findings.warn("adapters: there is no package", "put the adapters' packages into ADAPTER_PACKAGES");
    }
    for path in folders {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match Verified::open_dir(&path, &trusted) {
            Ok(package) => {
                let manifest = package.manifest();
                findings.ok(format!("adapters: {} {} is verified", manifest.id, manifest.version));
            }
            Err(error) => findings.fail(
                format!("adapters: package '{name}' is refused: {error}"),
                "install it again from its publisher, or trust the publisher's key in ADAPTER_TRUSTED_KEYS",
            ),
        }
    }
}
