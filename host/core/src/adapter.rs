//! What an adapter says of itself and of devices, as the host keeps it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Document;
use crate::change::{Danger, Operation};
use crate::release::ReleaseSpan;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Area {
    pub id: String,
    pub title: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectKind {
    pub id: String,
    pub area: String,
    pub title: String,
    /// Whether each of the vendor's sites has objects of its own; else they are the controller's.
    pub is_of_site: bool,
    /// The releases that have it, as the package says; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releases: Option<ReleaseSpan>,
    /// It is a file, which is fetched and not listed; absent where it has objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<KindFile>,
}

/// What is known beforehand of a file that a device answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KindFile {
    /// What it is called where neither the device nor a person says a name.
    pub name: String,
    /// Its media type, where it is always the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FeatureOperation {
    pub operation: Operation,
    pub danger: Danger,
    /// JSON Schema 2020-12 of the payload.
    pub payload_schema: Document,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u32>,
    pub invertible: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Feature {
    pub id: String,
    pub area: String,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether it writes at one of the vendor's sites; else at the controller.
    pub is_of_site: bool,
    pub natural_key: Vec<String>,
    pub operations: Vec<FeatureOperation>,
    /// The releases that have it, as the package says; all of them when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub releases: Option<ReleaseSpan>,
    /// Its payloads are in the words of the model, and the adapter expresses them in other features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<OfModel>,
}

/// What a feature in the words of the model is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OfModel {
    /// Such as `vlan`.
    pub kind: String,
    /// Such as `poe-cycle`; none where the operation itself says what is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

impl OfModel {
    /// The verb of the kind that an operation of the feature is.
    pub fn verb(&self, operation: Operation) -> &str {
        self.action.as_deref().unwrap_or(operation.as_str())
    }
}

impl Feature {
    pub fn operation(&self, operation: Operation) -> Option<&FeatureOperation> {
        self.operations.iter().find(|o| o.operation == operation)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Description {
    pub vendor: String,
    pub title: String,
    pub areas: Vec<Area>,
    pub kinds: Vec<ObjectKind>,
    pub features: Vec<Feature>,
    pub model: Vec<Filled>,
}

impl Description {
    pub fn feature(&self, id: &str) -> Option<&Feature> {
        self.features.iter().find(|feature| feature.id == id)
    }

    /// A verb of a kind of the model, where the adapter can express it.
    pub fn written(&self, kind: &str, verb: &str) -> Option<&Written> {
        let filled = self.model.iter().find(|filled| filled.kind == kind)?;
        filled.writes.iter().find(|written| written.verb == verb)
    }
}

/// A kind of the model that an adapter fills.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Filled {
    /// Such as `vlan`.
    pub kind: String,
    /// Fields of the kind that it can fill.
    pub fields: Vec<String>,
    /// Whether each site of a controller has objects of its own; else they are the controller's.
    pub is_of_site: bool,
    /// What can be asked of its objects.
    pub writes: Vec<Written>,
    /// The releases that have it, as the package says; all of them when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub releases: Option<ReleaseSpan>,
}

/// A verb of a kind of the model that an adapter can express.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Written {
    /// Such as `create` or `poe-cycle`.
    pub verb: String,
    /// The feature and the operation that are staged for it.
    pub feature: String,
    pub operation: Operation,
    /// Those of the fields of the verb that the vendor has something for.
    pub fields: Vec<String>,
    /// The vendor's features and their operations that it may become: nothing else is taken from the adapter.
    #[serde(skip)]
    #[schemars(skip)]
    pub uses: Vec<(String, Operation)>,
}

/// A change in the words of the model, for an adapter to express.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChange {
    pub kind: String,
    pub verb: String,
    /// The vendor's id of the site.
    pub site: Option<String>,
    pub payload: Value,
}

stored_words! {
    pub enum Availability {
        Yes = "yes",
        No = "no",
        Unknown = "unknown",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capability {
    pub id: String,
    pub available: Availability,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What answered a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceProfile {
    pub product: String,
    pub version: String,
    pub fingerprint: String,
    pub capabilities: Vec<Capability>,
    pub facts: Vec<(String, String)>,
}

stored_words! {
    pub enum DeviceStatus {
        Online = "online",
        Offline = "offline",
        Unknown = "unknown",
    }
}

/// A device as an adapter saw it just now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeenDevice {
    pub identity: String,
    pub name: String,
    pub kind: String,
    pub status: DeviceStatus,
    pub model: Option<String>,
    pub serial: Option<String>,
    pub firmware: Option<String>,
    pub mac: Option<String>,
    pub addresses: Vec<String>,
    pub site: Option<String>,
    /// What it is; a difference is a change of the device.
    pub attributes: Value,
    /// Counters and gauges; they move without the device changing.
    pub measurements: Value,
}

stored_words! {
    /// Whether a list is all there is.
    pub enum Completeness {
        Complete = "complete",
        Partial = "partial",
        RightsLimited = "rights_limited",
        Unknown = "unknown",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct DevicePage {
    pub items: Vec<SeenDevice>,
    pub next: Option<String>,
    pub complete: Completeness,
}

/// A part of a controller with devices and objects of its own, as the vendor knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VendorSite {
    /// Stays the same through renames.
    pub id: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SitePage {
    pub items: Vec<VendorSite>,
    pub next: Option<String>,
}

stored_words! {
    /// Who made an object.
    pub enum Origin {
        /// A person, or Heddle.
        Own = "own",
        /// The vendor: it is built in.
        Vendor = "vendor",
        /// The device, out of other objects.
        Derived = "derived",
        Unknown = "unknown",
    }
}

/// An object in the words of the model, read just now.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelObject {
    pub key: String,
    pub label: String,
    pub origin: Origin,
    /// Identity of the device that it belongs to.
    pub device: Option<String>,
    pub native: Option<ObjectRef>,
    /// As the schema of its kind says, once that is checked.
    pub fields: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelPage {
    pub items: Vec<ModelObject>,
    pub next: Option<String>,
    pub complete: Completeness,
}

stored_words! {
    pub enum Stability {
        Durable = "durable",
        UntilRecreate = "until_recreate",
        UntilWrite = "until_write",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Locator {
    pub surface: String,
    pub value: String,
    pub stability: Stability,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectRef {
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    pub key: String,
    pub locators: Vec<Locator>,
}

/// An object read live.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Object {
    pub reference: ObjectRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    pub body: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ObjectPage {
    pub items: Vec<Object>,
    pub next: Option<String>,
    pub total: Option<u64>,
    pub complete: Completeness,
}

/// A job that runs on at the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub token: Vec<u8>,
    pub poll_after_ms: u32,
    pub unreachable_for_ms: Option<u32>,
    pub give_up_after_ms: u32,
    pub progress_percent: Option<u8>,
    pub message: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    pub created: Vec<ObjectRef>,
    pub warnings: Vec<String>,
    pub needs: Vec<String>,
    /// Values of the plan's holes that the adapter found: name and value.
    #[serde(default)]
    pub found: Vec<(String, Value)>,
    /// What came of each change, where a call or a job wrote several.
    #[serde(default)]
    pub items: Vec<ItemResult>,
}

/// What came of one change of a plan, where a call or a job carries out several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemResult {
    /// Which change of the plan, counted from 0.
    pub index: u32,
    /// Why it was not done; `None` where it was done.
    pub failed: Option<crate::fault::Fault>,
}

/// How a call, or a job at the device, came along.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    Done(Completion),
    Pending(Task),
    /// The job at the device ended badly; the fault's effect says whether it changed something.
    Failed(crate::fault::Fault),
}

/// Whether a stage of a plan can be sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Readiness {
    /// From this call of the stage on, counted from 0, with values of the plan's holes that the adapter found.
    Send { from: u32, found: Vec<(String, Value)> },
    /// There is nothing to send.
    Nothing(Completion),
}

/// Where a device stands, seen from what a plan touches.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    Before,
    After,
    /// As planned, but for values that the device writes in its own way.
    Adjusted(Value),
    Stored(Vec<String>),
    /// Others changed what the plan had written.
    MovedOn(Value),
    Other(Value),
    /// Nothing of the plan can be read: the answers to its calls are all that is known.
    Unseen,
}

impl Standing {
    /// The API's word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Standing::Before => "before",
            Standing::After => "after",
            Standing::Adjusted(_) => "adjusted",
            Standing::Stored(_) => "stored",
            Standing::MovedOn(_) => "moved_on",
            Standing::Other(_) => "other",
            Standing::Unseen => "unseen",
        }
    }
}

/// What a comparison of a device with a plan found.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Of all changes of the plan together.
    pub standing: Standing,
    /// Of each change in the order of the plan; empty where the adapter cannot tell them apart.
    pub items: Vec<Standing>,
    /// What others changed on the device since the plan was made, a sentence each.
    pub foreign: Vec<String>,
}
