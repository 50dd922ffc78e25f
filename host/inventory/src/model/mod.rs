//! Objects in the words of the model, as the last readings of their controllers found them.
//!
//! Nothing here reaches a device. The room `host/readings` reads objects.

pub mod declarations;
mod kinds;
mod objects;
mod readings;

use heddle_core::page::Page;
use heddle_kernel::app::App;
use heddle_kernel::app::SharedApp;
use heddle_kernel::caller::Caller;
use heddle_kernel::config::SettingsOf;
use heddle_kernel::feature::{Feature, Names};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::glossary::Glossary;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_store::model_objects::{ModelObject, ModelObjectId};

use crate::controllers::declarations::CONTROLLER_READ;
use crate::devices::declarations::DEVICE_READ;

/// One object, if the caller may see it.
///
/// # Errors
/// There is no such kind or object, or the caller may not see it.
pub async fn object(app: &App, caller: &Caller, kind: &str, id: ModelObjectId) -> Result<ModelObject, Error> {
    objects::found(app, caller, kind, id).await
}

pub use kinds::kind_of;

/// What controllers have in the words that all vendors share.
pub struct Inventory;

heddle_kernel::settings! {
    /// How often objects are read.
    pub struct InventorySettings {
        /// Seconds between two readings of a controller's objects; with 0 each reading of its devices reads them.
        interval_secs: u32 = "INVENTORY_INTERVAL_SECS", "300", from 0 to 86400;
    }
}

impl Feature for Inventory {
    fn name(&self) -> &'static str {
        "inventory"
    }

    fn declares(&self) -> &'static Names {
        const {
            &Names {
                events: declarations::EVENTS,
                settings: &[SettingsOf::the::<InventorySettings>()],
                ..Names::NONE
            }
        }
    }

    fn glossary(&self) -> &'static Glossary {
        &crate::glossary::INVENTORY
    }

    fn routes(&self, _: &SharedApp) -> Routes {
        let read = Access::Permission(DEVICE_READ);
        Routes::default()
            .get(
                "/inventory",
                read,
                kinds::list,
                doc("Kinds of objects that all vendors share, and how many objects of each there are")
                    .named("list_model_kinds")
                    .answers::<kinds::Kinds>(200),
            )
            .get(
                "/inventory/{model_kind}",
                read,
                objects::list,
                doc("Objects of a kind, of all controllers")
                    .named("list_model_objects")
                    .query::<objects::ListQuery>()
                    .answers::<Page<ModelObject>>(200)
                    .example("model_kind", Some("vlan")),
            )
            .get(
                "/inventory/{model_kind}/schema",
                read,
                kinds::schema,
                doc("JSON Schema of the fields of a kind")
                    .named("get_model_schema")
                    .answers::<kinds::KindSchema>(200)
                    .example("model_kind", Some("vlan")),
            )
            .get(
                "/inventory/{model_kind}/{model_object_id}",
                read,
                objects::get,
                doc("One object")
                    .named("get_model_object")
                    .answers::<ModelObject>(200)
                    .example("model_kind", Some("vlan")),
            )
            .get(
                "/controllers/{controller_id}/inventory",
                Access::Permission(CONTROLLER_READ),
                readings::list,
                doc("How the last readings of a controller's objects went, by kind")
                    .named("list_model_readings")
                    .query::<readings::ListQuery>()
                    .answers::<Page<readings::Reading>>(200),
            )
    }
}
