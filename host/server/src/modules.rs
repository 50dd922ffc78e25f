//! What is installed, as everything but the features about it needs to know it.

use heddle_runtime::Adapter;

use crate::app::App;
use crate::http::error::Error;

/// A package that was not loaded.
#[derive(Debug, Clone)]
pub struct RefusedPackage {
    pub package: String,
    pub reason: String,
}

impl App {
    /// The adapter of a controller's vendor.
    pub fn adapter(&self, vendor: &str) -> Result<Adapter, Error> {
        self.runtime.adapter(vendor).ok_or_else(|| Error::BadRequest {
            kind: "unknown_vendor",
            message: format!(
                "vendor '{vendor}' has no installed adapter; installed are: {}",
                self.vendors().join(", ")
            ),
        })
    }

    /// There should be adapters, and there is none.
    pub(crate) fn modules_have_failed(&self) -> bool {
        !self.refused_adapters.is_empty() && self.runtime.adapters().is_empty()
    }

    /// Every refused package with its reason, in one sentence; `None` when all were loaded.
    pub(crate) fn refusals(&self) -> Option<String> {
        let refusals = self.refused_adapters.iter().map(|r| format!("{}: {}", r.package, r.reason));
        Some(refusals.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
    }

    pub fn vendors(&self) -> Vec<String> {
        self.runtime.adapters().iter().map(|adapter| adapter.id().to_owned()).collect()
    }
}
