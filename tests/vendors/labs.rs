//! The practice device of each vendor, in the words that the scenario needs.

use heddle_lab::{Controller, FaultKind};
use heddle_lab_omada::{Omada, Seed};
use heddle_lab_openwrt::Router;
use heddle_lab_opnsense::{Firewall, Settings};
use heddle_lab_proxmox::{Proxmox, ROOT_TOKEN, Setup};
use serde_json::{Value, json};

/// What the scenario does with a practice device.
#[async_trait::async_trait]
pub(super) trait Practice: Send + Sync {
    fn url(&self) -> String;

    /// The fields of a credential that may do everything.
    fn credential(&self) -> Value;

    /// The controller's settings.
    fn settings(&self) -> Value {
        json!({})
    }

    /// All that an administrator could have changed.
    fn configuration(&self) -> Value;

    /// Cuts the path to the device; it lives on.
    fn cut(&self);

    /// Ends the cut.
    fn mend(&self);

    /// Method and path of each request that the device carried out, where it keeps a record.
    fn executed(&self) -> Option<Vec<String>> {
        None
    }

    /// Forgets the record.
    fn forget(&self) {}
}

pub(super) async fn start(vendor: &str) -> Box<dyn Practice> {
    match vendor {
        "openwrt" => Box::new(OpenWrt(crate::staging::start_router().await)),
        "opnsense" => Box::new(OnSkeleton {
            device: heddle_lab::Lab::builder(Firewall::new(Settings::default())).start().await,
            credential: json!({ "username": "admin-key", "password": "admin-secret" }),
            settings: json!({}),
            places: &["/stored", "/running"],
            moving: &[],
        }),
        "proxmox" => Box::new(OnSkeleton {
            device: heddle_lab::Lab::builder(Proxmox::new(quick_tasks())).start().await,
            credential: json!({ "api_key": ROOT_TOKEN.trim_start_matches("PVEAPIToken=") }),
            settings: json!({ "login": "token" }),
            places: &["/sdn", "/firewalls"],
            moving: &[],
        }),
        "omada" => Box::new(OnSkeleton {
            device: heddle_lab::Lab::builder(Omada::new(Seed::default())).start().await,
            credential: json!({ "username": "lab-client", "password": "lab-secret" }),
            settings: json!({ "site": "Main" }),
            places: &[""],
            // Devices are provisioned after each change, and the controller keeps a log.
            moving: &["detailStatus", "insights.audit-log"],
        }),
        other => panic!("'{other}' has no practice device"),
    }
}

fn quick_tasks() -> Setup {
    Setup { task_time: std::time::Duration::from_millis(200), ..Setup::default() }
}

struct OpenWrt(Router);

impl Practice for OpenWrt {
    fn url(&self) -> String {
        self.0.url()
    }
    fn credential(&self) -> Value {
        json!({ "username": "root", "password": crate::staging::ROUTER_PASSWORD })
    }
    fn configuration(&self) -> Value {
        json!(self.0.fingerprint())
    }
    fn cut(&self) {
        self.0.fault(heddle_lab_openwrt::Fault::Cut { for_ms: None });
    }
    fn mend(&self) {
        self.0.clear_faults();
    }
}

/// A device on the shared skeleton.
struct OnSkeleton<C: Controller> {
    device: heddle_lab::Lab<C>,
    credential: Value,
    settings: Value,
    /// Places of the state that an administrator can change.
    places: &'static [&'static str],
    /// Names of what moves by itself there.
    moving: &'static [&'static str],
}

/// The same without what moves by itself.
fn without(value: &Value, moving: &[&str]) -> Value {
    match value {
        Value::Object(fields) => {
            let still = fields.iter().filter(|(name, _)| !moving.contains(&name.as_str()));
            still.map(|(name, value)| (name.clone(), without(value, moving))).collect()
        }
        Value::Array(items) => items.iter().map(|item| without(item, moving)).collect(),
        other => other.clone(),
    }
}

impl<C: Controller> Practice for OnSkeleton<C> {
    fn url(&self) -> String {
        self.device.url()
    }
    fn credential(&self) -> Value {
        self.credential.clone()
    }
    fn settings(&self) -> Value {
        self.settings.clone()
    }
    fn configuration(&self) -> Value {
        let state = self.device.state();
        let at = |place: &&str| without(state.pointer(place).expect("the state has this place"), self.moving);
        self.places.iter().map(at).collect()
    }
    fn cut(&self) {
        self.device.fault(heddle_lab::Fault::from(FaultKind::Cut));
    }
    fn mend(&self) {
        self.device.clear_faults();
    }
    fn executed(&self) -> Option<Vec<String>> {
        let record = self.device.record().into_iter().filter(|exchange| exchange.is_executed);
        let name = |one: heddle_lab::Exchange| match one.query.as_str() {
            "" => one.name(),
            query => format!("{}?{query}", one.name()),
        };
        Some(record.map(name).collect())
    }
    fn forget(&self) {
        self.device.forget_record();
    }
}
