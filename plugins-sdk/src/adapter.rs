//! The trait that a vendor implements, and its wiring to the exports.

use std::marker::PhantomData;

use crate::bindings::exports::heddle::adapter::{changes, files, inventory, lifecycle};
use crate::{
    Attribute, Change, ChangePlan, Comparison, Completion, DevicePage, DeviceProfile, Effect, Fault,
    FaultExt, Host, Live, ModelChange, ModelPage, Object, ObjectPage, Outcome, Readiness, Response,
    SavedFile, SitePage, Stage, fault,
};

/// One vendor's knowledge, without any state: every call is a fresh instance.
///
/// What it manages stands in the package's `description.json`. An adapter that only reads leaves the last six functions
/// as they are and describes no features. The interface files say what each function owes to the host.
pub trait Adapter: 'static {
    /// Logs in and asks the device who it is.
    fn check(host: &dyn Host) -> Result<DeviceProfile, Fault>;

    /// Everything that is managed or seen, page by page.
    fn list_devices(host: &dyn Host, site: Option<&str>, cursor: Option<&str>) -> Result<DevicePage, Fault>;

    /// The sites of the controller, where the vendor has sites. Their ids are the `site` of the other functions.
    fn list_sites(_host: &dyn Host, _cursor: Option<&str>) -> Result<SitePage, Fault> {
        Ok(SitePage { items: Vec::new(), next: None })
    }

    /// Objects of a kind, as they are now.
    fn list_objects(_host: &dyn Host, listing: &Listing<'_>) -> Result<ObjectPage, Fault> {
        Err(fault::unsupported(format!("objects of kind '{}' cannot be listed", listing.kind)))
    }

    /// One object by its natural key.
    fn get_object(_host: &dyn Host, kind: &str, _site: Option<&str>, _key: &str) -> Result<Object, Fault> {
        Err(fault::unsupported(format!("objects of kind '{kind}' cannot be read")))
    }

    /// Objects of a kind of the model, which the description names.
    fn list_model(
        _host: &dyn Host,
        kind: &str,
        _site: Option<&str>,
        _cursor: Option<&str>,
    ) -> Result<ModelPage, Fault> {
        Err(fault::unsupported(format!("the kind '{kind}' of the model is not filled")))
    }

    /// The file of a kind that the description says is one: what [`Host::save`] answered.
    fn fetch_file(_host: &dyn Host, fetching: &Fetching<'_>) -> Result<SavedFile, Fault> {
        Err(fault::unsupported(format!("the kind '{}' is no file", fetching.kind)))
    }

    /// What each change in the words of the model is in this adapter's own features.
    fn express(_host: &dyn Host, changes: &[ModelChange]) -> Result<Vec<Vec<Change>>, Fault> {
        let kind = changes.first().map_or("", |change| change.kind.as_str());
        Err(fault::unsupported(format!("the kind '{kind}' of the model is only read")))
    }

    /// Computes every call of a set of changes beforehand.
    fn plan(_host: &dyn Host, _changes: &[Change]) -> Result<ChangePlan, Fault> {
        Err(fault::unsupported("this adapter only reads"))
    }

    /// Whether a stage can be sent, and from which of its calls on; `left` is how many of them left the host before.
    fn ready(
        _host: &dyn Host,
        _stage: Stage,
        _changes: &[Change],
        _token: &[u8],
        _left: u32,
    ) -> Result<Readiness, Fault> {
        Err(fault::unsupported("this adapter only reads"))
    }

    /// What came of a call that the host sent. A fault instead of an outcome is the same as [`Outcome::Failed`].
    ///
    /// Without an own implementation, a status from 200 to 299 is a success, and any other answer may have changed
    /// something.
    fn judge(
        _host: &dyn Host,
        _call: Sent,
        answer: Result<Response, Fault>,
        _changes: &[Change],
        _token: &[u8],
    ) -> Result<Outcome, Fault> {
        let response = answer?;
        if (200..300).contains(&response.status) {
            return Ok(Outcome::Done(Completion::default()));
        }
        Err(fault::of_status(&response).with_effect(Effect::Possible))
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

/// Which objects are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    pub kind: &'a str,
    pub site: Option<&'a str>,
    /// The `next` of the page before.
    pub cursor: Option<&'a str>,
    /// Most objects of the page.
    pub limit: u32,
    /// Names and values that people gave.
    pub filter: &'a [Attribute],
}

impl<'a> Listing<'a> {
    /// The first page of a kind, without a filter.
    #[must_use]
    pub fn of(kind: &'a str, limit: u32) -> Self {
        Self { kind, site: None, cursor: None, limit, filter: &[] }
    }

    /// Refuses a filter by another name than these: what is not understood must not look like an empty list.
    pub fn refuse_filters_but(&self, names: &[&str]) -> Result<(), Fault> {
        refuse_filters_but(&format!("objects of kind '{}'", self.kind), self.filter, names)
    }
}

fn refuse_filters_but(what: &str, given: &[Attribute], names: &[&str]) -> Result<(), Fault> {
    let Some(other) = given.iter().find(|filter| !names.contains(&filter.key.as_str())) else {
        return Ok(());
    };
    let wanted = match names {
        [] => "take no filter".to_owned(),
        _ => format!("take a filter by {}", names.join(", ")),
    };
    Err(fault::invalid(format!("{what} {wanted}, not by '{}'", other.key)).with_field("/filter", wanted))
}

/// Which file is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Fetching<'a> {
    pub kind: &'a str,
    pub site: Option<&'a str>,
    /// Which of several files, where the kind has several.
    pub key: Option<&'a str>,
    /// Names and values that people gave.
    pub filter: &'a [Attribute],
}

impl<'a> Fetching<'a> {
    /// The only file of a kind.
    #[must_use]
    pub fn of(kind: &'a str) -> Self {
        Self { kind, site: None, key: None, filter: &[] }
    }

    /// Refuses a filter by another name than these.
    pub fn refuse_filters_but(&self, names: &[&str]) -> Result<(), Fault> {
        refuse_filters_but(&format!("files of kind '{}'", self.kind), self.filter, names)
    }
}

/// A call of a plan that the host sent, or tried to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub stage: Stage,
    /// Its place among the calls of the stage, counted from 0.
    pub index: usize,
}

/// What `register!` exports for `A`; nothing to call by hand.
#[derive(Debug)]
pub struct Exported<A>(PhantomData<A>);

impl<A: Adapter> lifecycle::Guest for Exported<A> {
    fn check() -> Result<DeviceProfile, Fault> {
        A::check(&Live::open()?)
    }
}

impl<A: Adapter> inventory::Guest for Exported<A> {
    fn list_devices(site: Option<String>, cursor: Option<String>) -> Result<DevicePage, Fault> {
        A::list_devices(&Live::open()?, site.as_deref(), cursor.as_deref())
    }
    fn list_sites(cursor: Option<String>) -> Result<SitePage, Fault> {
        A::list_sites(&Live::open()?, cursor.as_deref())
    }
    fn list_model(kind: String, site: Option<String>, cursor: Option<String>) -> Result<ModelPage, Fault> {
        A::list_model(&Live::open()?, &kind, site.as_deref(), cursor.as_deref())
    }
    fn list_objects(
        kind: String,
        site: Option<String>,
        cursor: Option<String>,
        limit: u32,
        filter: Vec<Attribute>,
    ) -> Result<ObjectPage, Fault> {
        let (site, cursor) = (site.as_deref(), cursor.as_deref());
        let listing = Listing { kind: &kind, site, cursor, limit, filter: &filter };
        A::list_objects(&Live::open()?, &listing)
    }
    fn get_object(kind: String, site: Option<String>, key: String) -> Result<Object, Fault> {
        A::get_object(&Live::open()?, &kind, site.as_deref(), &key)
    }
}

impl<A: Adapter> files::Guest for Exported<A> {
    fn fetch(
        kind: String,
        site: Option<String>,
        key: Option<String>,
        filter: Vec<Attribute>,
    ) -> Result<SavedFile, Fault> {
        let (site, key) = (site.as_deref(), key.as_deref());
        A::fetch_file(&Live::open()?, &Fetching { kind: &kind, site, key, filter: &filter })
    }
}

impl<A: Adapter> changes::Guest for Exported<A> {
    fn express(changes: Vec<ModelChange>) -> Result<Vec<Vec<Change>>, Fault> {
        A::express(&Live::open()?, &changes)
    }
    fn plan(changes: Vec<Change>) -> Result<ChangePlan, Fault> {
        A::plan(&Live::open()?, &changes)
    }
    fn ready(stage: Stage, changes: Vec<Change>, token: Vec<u8>, left: u32) -> Result<Readiness, Fault> {
        A::ready(&Live::open()?, stage, &changes, &token, left)
    }
    fn judge(
        stage: Stage,
        index: u32,
        answer: Result<Response, Fault>,
        changes: Vec<Change>,
        token: Vec<u8>,
    ) -> Outcome {
        let call = Sent { stage, index: index as usize };
        let judged = Live::open().and_then(|host| A::judge(&host, call, answer, &changes, &token));
        judged.unwrap_or_else(Outcome::Failed)
    }
    fn poll(task: Vec<u8>) -> Result<Outcome, Fault> {
        A::poll(&Live::open()?, &task)
    }
    fn compare(changes: Vec<Change>, token: Vec<u8>) -> Result<Comparison, Fault> {
        A::compare(&Live::open()?, &changes, &token)
    }
}
