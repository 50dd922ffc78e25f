//! Which packages serve, as the operator set it: the folder of packages, and the keys that are trusted.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use heddle_kernel::config::Config;
use heddle_marketplace::TrustedKey;

heddle_kernel::settings! {
    /// Which packages serve.
    pub struct AdapterSettings {
        /// Folder with one folder per adapter package.
        packages: Option<PathBuf> = "ADAPTER_PACKAGES", "";
        /// File with the publishers' keys that are trusted and the adapters that each may sign, as JSON.
        trusted_keys: Option<PathBuf> = "ADAPTER_TRUSTED_KEYS", "";
        /// Packages that may serve although a newer version did, as `id@version`, separated by commas.
        downgrades: Vec<String> = "ADAPTER_DOWNGRADES", "";
    }
}

/// The publishers' keys that are trusted now.
pub fn trusted_keys(config: &Config) -> anyhow::Result<Vec<TrustedKey>> {
    let Some(path) = &config.of::<AdapterSettings>().trusted_keys else { return Ok(Vec::new()) };
    let text = std::fs::read(path).with_context(|| format!("ADAPTER_TRUSTED_KEYS '{}'", path.display()))?;
    Ok(heddle_marketplace::parse_trusted_keys(&text)?)
}

/// The folders of packages, by name.
pub fn package_folders(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    let entries: Vec<_> = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    let mut folders: Vec<_> = entries.into_iter().filter(|path| is_package(path)).collect();
    folders.sort();
    Ok(folders)
}

/// Whether it is a folder whose name does not begin with a dot: folders with a dot are being written.
fn is_package(path: &Path) -> bool {
    path.is_dir() && path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'))
}
