//! The practice device of each vendor, in the words that the scenario needs.

use heddle_lab::{Controller, FaultKind};
use heddle_lab_omada::{Omada, Release as Generation, Seed};
use heddle_lab_openwrt::Router;
use heddle_lab_opnsense::{Firewall, Release, Settings};
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

    /// From now on it tells this version.
    fn tell(&self, version: &str);

    /// The name of a call of a plan, as the record has it. `{{…}}` stands for what the host fills in.
    fn name_of(&self, call: &Value) -> String {
        let text = |name: &str| call[name].as_str().expect("a call has a method and a path");
        format!("{} {}", text("method"), text("path"))
    }

    /// The names of what the device carried out.
    fn executed(&self) -> Vec<String>;

    /// Forgets the record.
    fn forget(&self);
}

pub(super) async fn start(vendor: &str) -> Box<dyn Practice> {
    start_with(vendor, releases(vendor).last().expect("a practice device has a release")).await
}

/// The releases that the practice device of a vendor can be; the usual one is the last.
pub(super) fn releases(vendor: &str) -> &'static [&'static str] {
    match vendor {
        "openwrt" => &["24.10"],
        "opnsense" => &["26.1", "26.7"],
        "proxmox" => &["8.4", "9.0", "9.1"],
        "omada" => &["5.15", "6.0", "6.2"],
        other => panic!("'{other}' has no practice device"),
    }
}

pub(super) async fn start_with(vendor: &str, release: &str) -> Box<dyn Practice> {
    match vendor {
        "openwrt" => Box::new(OpenWrt(crate::staging::start_router().await)),
        "opnsense" => opnsense(firewall(release)).await,
        "proxmox" => Box::new(OnSkeleton {
            device: heddle_lab::Lab::builder(Proxmox::new(cluster(release))).start().await,
            tell: Proxmox::tell_version,
            credential: json!({ "api_key": ROOT_TOKEN.trim_start_matches("PVEAPIToken=") }),
            settings: json!({ "login": "token" }),
            places: &["/sdn", "/firewalls", "/guests"],
            moving: &[],
        }),
        "omada" => omada(controller(release)).await,
        other => panic!("'{other}' has no practice device"),
    }
}

pub(super) async fn opnsense(settings: Settings) -> Box<dyn Practice> {
    Box::new(OnSkeleton {
        device: heddle_lab::Lab::builder(Firewall::new(settings)).start().await,
        tell: Firewall::tell_version,
        credential: json!({ "username": "admin-key", "password": "admin-secret" }),
        settings: json!({}),
        places: &["/stored", "/running"],
        moving: &[],
    })
}

pub(super) async fn omada(seed: Seed) -> Box<dyn Practice> {
    Box::new(OnSkeleton {
        device: heddle_lab::Lab::builder(Omada::new(seed)).start().await,
        tell: |omada, version| omada.told_version = Some(version.to_owned()),
        credential: json!({ "username": "lab-client", "password": "lab-secret" }),
        settings: json!({ "site": "Main" }),
        places: &[""],
        // Devices are provisioned after each change, and the controller keeps a log.
        moving: &["detailStatus", "insights.audit-log"],
    })
}

fn firewall(release: &str) -> Settings {
    let release = if release == "26.1" { Release::V26_1 } else { Release::V26_7 };
    Settings { release, ..Settings::default() }
}

/// With quick tasks.
fn cluster(release: &str) -> Setup {
    let (major, minor) = release.split_once('.').expect("a release has two numbers");
    let number = |text: &str| text.parse().expect("a release has numbers");
    let release = (number(major), number(minor));
    Setup { release, task_time: std::time::Duration::from_millis(200), ..Setup::default() }
}

fn controller(release: &str) -> Seed {
    let release = match release {
        "5.15" => Generation::V515,
        "6.0" => Generation::V60,
        _ => Generation::V62,
    };
    Seed { release, ..Seed::default() }
}

/// A cluster whose tasks run for minutes, unless they are ended.
pub(super) async fn slow_cluster() -> Box<dyn Practice> {
    let setup = Setup { task_time: std::time::Duration::from_mins(5), ..Setup::default() };
    Box::new(OnSkeleton {
        device: heddle_lab::Lab::builder(Proxmox::new(setup)).start().await,
        credential: json!({ "api_key": ROOT_TOKEN.trim_start_matches("PVEAPIToken=") }),
        settings: json!({ "login": "token" }),
        places: &["/guests"],
        moving: &[],
        tell: Proxmox::tell_version,
    })
}

pub(super) fn quick_tasks() -> Setup {
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
    fn tell(&self, version: &str) {
        self.0.tell_release(version);
    }
    fn name_of(&self, call: &Value) -> String {
        let text =
            |at: usize| call["body"]["params"][at].as_str().expect("a call has an object and a method");
        written(text(1), text(2), &call["body"]["params"][3])
    }
    fn executed(&self) -> Vec<String> {
        let writes = self.0.calls().into_iter().filter(|call| call.is_write && call.status == 0);
        writes.map(|call| written(&call.object, &call.method, &call.args)).collect()
    }
    fn forget(&self) {
        self.0.forget_calls();
    }
}

/// A write by its method and by what names its section.
fn written(object: &str, method: &str, args: &Value) -> String {
    let place =
        ["config", "section", "type", "name", "option"].map(|name| args[name].as_str().unwrap_or("-"));
    format!("{object}.{method} {}", place.join(" "))
}

/// A device on the shared skeleton.
struct OnSkeleton<C: Controller> {
    device: heddle_lab::Lab<C>,
    tell: fn(&mut C, &str),
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
    fn tell(&self, version: &str) {
        (self.tell)(self.device.lock().parts().0, version);
    }
    fn executed(&self) -> Vec<String> {
        let record = self.device.record().into_iter().filter(|exchange| exchange.is_executed);
        let name = |one: heddle_lab::Exchange| match one.query.as_str() {
            "" => one.name(),
            query => format!("{}?{query}", one.name()),
        };
        record.map(name).collect()
    }
    fn forget(&self) {
        self.device.forget_record();
    }
}
