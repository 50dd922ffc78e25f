//! What steps of the Fabric do with the VLANs of a site: the same as the routes, with the rights of the step's author.

use heddle_changes::Cause;
use heddle_core::{ControllerId, SiteId};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::schema::schema_of;
use heddle_kernel::task;
use heddle_store::changes::RunStep;
use serde_json::Value;

use crate::align::{self, Asked, Narrowed};
use crate::intent;
use crate::routes::{Comparison, with};
use crate::staging::Staging;

/// Where the VLANs of the controllers of a site differ, from its intent, from one of them, or from what most of them have.
///
/// # Errors
/// The author sees no such site, or no such controller there.
pub async fn compare(
    app: &App,
    author: &Caller,
    site: SiteId,
    controller: Option<ControllerId>,
) -> Result<Value, Error> {
    let compared = align::compared(app, author, site, (with(controller), &[])).await?;
    let told = task::block(move || serde_json::to_value(Comparison::of(site, &compared))).await;
    told.map_err(Error::internal)
}

/// JSON Schema of what [`compare`] returns.
pub fn compare_schema() -> Value {
    schema_of::<Comparison>()
}

/// Stages what brings the limbs of a site to its intent. Nothing is staged twice: what is pending stays as it is.
///
/// # Errors
/// The author may not write at the site; or its intent was not read.
pub async fn distribute(app: &App, author: &Caller, site: SiteId, step: &RunStep) -> Result<Value, Error> {
    let cause = Cause::Run(step);
    let asked = Asked { site, narrowed: Narrowed::default(), removes_extra: false, notes: None, cause };
    let staging = intent::distribute(app, author, &asked).await?;
    serde_json::to_value(staging).map_err(Error::internal)
}

/// JSON Schema of what [`distribute`] returns.
pub fn distribute_schema() -> Value {
    schema_of::<Staging>()
}
