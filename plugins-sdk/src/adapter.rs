//! The trait that a vendor implements, and its wiring to the exports.

use std::marker::PhantomData;

use crate::bindings::exports::heddle::adapter::{changes, inventory, lifecycle};
use crate::{
    Change, ChangePlan, Comparison, Description, DevicePage, DeviceProfile, Fault, Host, Live, Object,
    ObjectPage, Outcome, Stage, fault,
};

/// One vendor's knowledge, without any state: every call is a fresh instance.
///
/// An adapter that only reads leaves the last four functions as they are and describes no features. The interface files
/// say what each function owes to the host.
pub trait Adapter: 'static {
    /// Static: called at load, without a target.
    fn describe() -> Description;

    /// Logs in and asks the device who it is.
    fn check(host: &dyn Host) -> Result<DeviceProfile, Fault>;

    /// Everything that is managed or seen, page by page.
    fn list_devices(host: &dyn Host, site: Option<&str>, cursor: Option<&str>) -> Result<DevicePage, Fault>;

    /// Objects of a kind, as they are now.
    fn list_objects(
        _host: &dyn Host,
        kind: &str,
        _site: Option<&str>,
        _cursor: Option<&str>,
        _limit: u32,
    ) -> Result<ObjectPage, Fault> {
        Err(fault::unsupported(format!("objects of kind '{kind}' cannot be listed")))
    }

    /// One object by its natural key.
    fn get_object(_host: &dyn Host, kind: &str, _site: Option<&str>, _key: &str) -> Result<Object, Fault> {
        Err(fault::unsupported(format!("objects of kind '{kind}' cannot be read")))
    }

    /// Computes every call of a set of changes beforehand.
    fn plan(_host: &dyn Host, _changes: &[Change]) -> Result<ChangePlan, Fault> {
        Err(fault::unsupported("this adapter only reads"))
    }

    /// Sends the calls of one stage.
    fn run(_host: &dyn Host, _stage: Stage, _changes: &[Change], _token: &[u8]) -> Result<Outcome, Fault> {
        Err(fault::unsupported("this adapter only reads"))
    }

    /// Asks after a job that runs on at the device.
    fn poll(_host: &dyn Host, _task: &[u8]) -> Result<Outcome, Fault> {
        Err(fault::unsupported("this adapter starts no jobs"))
    }

    /// Where the device stands, seen from a plan.
    fn compare(_host: &dyn Host, _changes: &[Change], _token: &[u8]) -> Result<Comparison, Fault> {
        Err(fault::unsupported("this adapter only reads"))
    }
}

/// What `register!` exports for `A`; nothing to call by hand.
#[derive(Debug)]
pub struct Exported<A>(PhantomData<A>);

impl<A: Adapter> lifecycle::Guest for Exported<A> {
    fn describe() -> Description {
        A::describe()
    }
    fn check() -> Result<DeviceProfile, Fault> {
        A::check(&Live::open()?)
    }
}

impl<A: Adapter> inventory::Guest for Exported<A> {
    fn list_devices(site: Option<String>, cursor: Option<String>) -> Result<DevicePage, Fault> {
        A::list_devices(&Live::open()?, site.as_deref(), cursor.as_deref())
    }
    fn list_objects(
        kind: String,
        site: Option<String>,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<ObjectPage, Fault> {
        A::list_objects(&Live::open()?, &kind, site.as_deref(), cursor.as_deref(), limit)
    }
    fn get_object(kind: String, site: Option<String>, key: String) -> Result<Object, Fault> {
        A::get_object(&Live::open()?, &kind, site.as_deref(), &key)
    }
}

impl<A: Adapter> changes::Guest for Exported<A> {
    fn plan(changes: Vec<Change>) -> Result<ChangePlan, Fault> {
        A::plan(&Live::open()?, &changes)
    }
    fn run(stage: Stage, changes: Vec<Change>, token: Vec<u8>) -> Result<Outcome, Fault> {
        A::run(&Live::open()?, stage, &changes, &token)
    }
    fn poll(task: Vec<u8>) -> Result<Outcome, Fault> {
        A::poll(&Live::open()?, &task)
    }
    fn compare(changes: Vec<Change>, token: Vec<u8>) -> Result<Comparison, Fault> {
        A::compare(&Live::open()?, &changes, &token)
    }
}
