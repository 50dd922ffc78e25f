//! What every adapter with a description owes to its users, checked for each of its features at a practice device.
//!
//! For each operation of a feature: its schema is one that a server accepts, a sample fits it, a plan sends nothing and
//! holds the rules of a server, the device stands as it should before and after the apply, what was written is read back, a
//! second plan has nothing to do, and the way back leads to where it began, or the plan says that there is none.
//!
//! An adapter brings a [`World`] and calls [`every_feature`]. The check knows no vendor.

mod actions;
mod case;
mod difference;
mod exception;
mod files;
mod objects;
mod package;
mod written;

use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

pub use case::schema;
pub use difference::holds;
pub use exception::{Exception, Rule};
pub use files::{Wanted, every_file};
pub use package::package;
pub use written::{ModelCase, every_model_write};

use super::{Package, Practice};
use case::Case;

/// What a check gives, or a sentence about what is wrong.
pub type Checked<T> = Result<T, String>;

/// An adapter with its package, a practice device and samples.
pub trait World: Sync {
    /// The practice device.
    type Device: Practice;

    /// The package's data.
    fn package(&self) -> &Package;

    /// A new device on which a feature can be tried.
    fn device(&self, feature: &Value) -> Self::Device;

    /// Payloads for a feature; what they need is made on the device.
    fn sample(&self, device: &Self::Device, feature: &Value) -> Checked<Sample>;

    /// Classes of features that cannot keep a rule, each with a reason.
    fn exceptions(&self) -> Vec<Exception> {
        Vec::new()
    }
}

/// Payloads for one feature. Those of operations that it does not have are not looked at.
#[derive(Debug, Default)]
pub struct Sample {
    /// Of a create, or of an action.
    pub create: Value,
    /// Gives a field another value than the created object, or the settings, have.
    pub update: Option<Value>,
    /// The same with another value yet: what another person writes meanwhile.
    pub other: Option<Value>,
    /// What names the object.
    pub delete: Value,
}

impl Sample {
    /// The payload of an action.
    #[must_use]
    pub fn action(payload: Value) -> Self {
        Self { create: payload, ..Self::default() }
    }

    /// The payload of a feature that only deletes.
    #[must_use]
    pub fn deletion(payload: Value) -> Self {
        Self { delete: payload, ..Self::default() }
    }
}

/// Checks every feature of the package, as many at once as there are processors.
///
/// # Panics
///
/// Where a feature does not keep a rule: the text names each of them, and what it does instead. Where an exception is
/// needed by no feature.
pub fn every_feature<W: World>(world: &W) {
    let features = world.package().features();
    assert!(!features.is_empty(), "the package describes no feature");
    let exceptions = world.exceptions();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(feature) = features.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Some(problem) = problem(world, feature, &exceptions) {
                failures
                    .lock()
                    .expect("no check panics with it")
                    .push(format!("{}: {problem}", feature["id"]));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut failures = failures.into_inner().expect("no check panics with it");
    failures.sort();
    failures.extend(exceptions.iter().filter_map(Exception::problem));
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), features.len(), failures.join("\n"));
}

/// What a feature does not keep; one that panics is one of many.
fn problem<W: World>(world: &W, feature: &Value, exceptions: &[Exception]) -> Option<String> {
    let checked = panic::catch_unwind(AssertUnwindSafe(|| Case::new(world, feature, exceptions).check()));
    checked.unwrap_or_else(|_| Err("it panics".to_owned())).err()
}
