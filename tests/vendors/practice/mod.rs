//! What the tests of all vendors need of each of them. A vendor is a file here, with its `mod` line and its line in
//! `with_vendors`. What only the tests of one vendor need of its practice device stands in its file, too.

mod mikrotik;
pub(super) mod omada;
mod openwrt;
pub(super) mod opnsense;
mod pfsense;
pub(super) mod proxmox;
mod skeleton;
mod unifi;

use serde_json::{Value, json};

/// Passes all vendors to another macro, behind what that one is given: a line for each, with its module and its type.
macro_rules! with_vendors {
    ($to:ident $($given:ident)?) => {
        $to! {
            $($given)?
            openwrt: OpenWrt,
            opnsense: OpnSense,
            proxmox: Proxmox,
            omada: Omada,
            mikrotik: Mikrotik,
            pfsense: PfSense,
            unifi: UniFi,
        }
    };
}

macro_rules! listed {
    ($($module:ident: $vendor:ident,)*) => {
        vec![$(&$module::$vendor),*]
    };
}

macro_rules! tested {
    ($body:ident $($module:ident: $vendor:ident,)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $module() {
            $body(crate::vendors::practice::of(stringify!($module))).await;
        }
    )*};
}

/// Makes a test for each vendor, with its name, of an async function that takes the vendor.
macro_rules! test_each_vendor {
    ($body:ident) => {
        with_vendors! { tested $body }
    };
}

/// A vendor, as the tests of all vendors know it.
#[async_trait::async_trait]
pub(super) trait Vendor: Sync {
    /// The id of its adapter.
    fn id(&self) -> &'static str;

    /// The releases that its practice device can be. The last one is the usual one.
    fn releases(&self) -> &'static [&'static str];

    /// A version that its adapter was not tested with.
    fn untested(&self) -> &'static str;

    /// Starts a practice device of this release.
    async fn start_as(&self, release: &str) -> Box<dyn Practice>;

    fn case(&self) -> Case;

    fn asked(&self) -> Asked;

    /// A change that begins a task at the device, where the vendor has tasks. Another task takes it back.
    fn task(&self) -> Option<Task> {
        None
    }

    /// What the tests of channels do. A test asks for it where the manifest has channels.
    fn pushes(&self) -> Option<Pushes> {
        None
    }

    fn usual(&self) -> &'static str {
        self.releases().last().expect("a practice device has a release")
    }

    async fn start(&self) -> Box<dyn Practice> {
        self.start_as(self.usual()).await
    }
}

/// All vendors; a test compares them with the adapters that were built.
pub(super) fn all() -> Vec<&'static dyn Vendor> {
    with_vendors! { listed }
}

/// The vendor with this id.
pub(super) fn of(id: &str) -> &'static dyn Vendor {
    let found = all().into_iter().find(|vendor| vendor.id() == id);
    found.unwrap_or_else(|| panic!("'{id}' has no practice device"))
}

/// What the scenario changes at a vendor's controller.
pub(super) struct Case {
    pub(super) area: &'static str,
    pub(super) feature: &'static str,
    pub(super) kind: &'static str,
    /// What is created.
    pub(super) payload: Value,
    /// Its natural key, as live lists show it.
    pub(super) key: &'static str,
    /// A kind of device that a sync finds.
    pub(super) finds: &'static str,
}

/// What is asked of a vendor in the words of the model.
pub(super) struct Asked {
    pub(super) kind: &'static str,
    pub(super) create: Value,
    /// Names the created object in lists.
    pub(super) label: &'static str,
    pub(super) update: Value,
}

pub(super) struct Task {
    pub(super) area: &'static str,
    pub(super) feature: &'static str,
    pub(super) payload: Value,
}

/// What the tests of channels do with a vendor's practice device.
pub(super) struct Pushes {
    /// Two edits, each of which takes the other back: the tests make them in turn.
    pub(super) edits: [Edit; 2],
    pub(super) opened: Opened,
}

/// Which side opens the channels of a vendor.
pub(super) enum Opened {
    ByHost {
        /// The fault with which the practice device refuses them, as [`Practice::refuse`] takes it.
        refusal: Value,
        /// What the reason says then.
        reason: &'static str,
    },
    /// The practice device, once a person has entered this address and secret.
    ByController(fn(&dyn Practice, &str, &str)),
}

/// An edit by a person at a practice device.
pub(super) struct Edit {
    /// As the control port of the practice device takes it.
    pub(super) order: Value,
    /// What the event of it says, among other things.
    pub(super) says: Value,
}

/// What the tests do with a practice device.
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

    /// Has a person edit it, behind the manager's back; returns what the person sees. Needed where the vendor
    /// [`Vendor::pushes`].
    fn edit(&self, order: &Value) -> Value {
        panic!("this practice device takes no edits: {order}");
    }

    /// Orders a fault, and closes what is open. Needed where the vendor [`Vendor::pushes`].
    fn refuse(&self, fault: &Value) {
        panic!("this practice device takes no orders: {fault}");
    }

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
