//! What `heddle doctor` asks about packages: whether there are any, and whether each is verified.

use heddle_kernel::config::Config;
use heddle_kernel::feature::Diagnostic;
use heddle_kernel::findings::Findings;
use heddle_marketplace::Verified;

use super::AdapterSettings;

pub(super) const DIAGNOSTICS: &[Diagnostic] = &[Diagnostic::Settings(ask)];

fn ask(config: &Config, findings: &mut Findings) {
    let Some(folder) = &config.of::<AdapterSettings>().packages else {
        findings.warn(
            "adapters: ADAPTER_PACKAGES is not set, so no controller can be managed",
            "set it to the folder of the adapters' packages",
        );
        return;
    };
    if let Err(error) = std::fs::read_dir(folder) {
        let what = format!("adapters: ADAPTER_PACKAGES '{}' cannot be read: {error}", folder.display());
        findings.fail(what, "give the path of the folder of the adapters' packages");
        return;
    }
    let trusted = match super::trusted_keys(config) {
        Ok(trusted) => trusted,
        Err(error) => {
            findings.fail(format!("adapters: {error:#}"), "give the path of a file of publishers' keys");
            return;
        }
    };
    // That it can be read was seen above.
    let folders = super::package_folders(folder).unwrap_or_default();
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
