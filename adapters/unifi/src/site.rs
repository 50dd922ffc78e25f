//! The sites of the controller. Paths name a site by its short name, which stays through renames.

use heddle_sdk::crud::Place;
use heddle_sdk::{Fault, FaultExt, Host, SitePage, VendorSite, fault, json as sdk_json};
use serde_json::Value;

use crate::answer::rows;

/// The short name of the site that every controller has.
const FIRST: &str = "default";

/// The sites that calls may be about: all that the account may see, or the one of the settings.
pub(crate) fn list(host: &dyn Host) -> Result<SitePage, Fault> {
    let rows = rows(host, "/api/self/sites")?;
    let wanted = setting(host);
    let one = |row: &Value| {
        let id = sdk_json::text(row, "/name")?.to_owned();
        let name = sdk_json::text(row, "/desc").unwrap_or(&id).to_owned();
        let is_meant = wanted.as_ref().is_none_or(|wanted| *wanted == id || *wanted == name);
        is_meant.then_some(VendorSite { id, name })
    };
    let items: Vec<VendorSite> = rows.iter().filter_map(one).collect();
    if let (Some(wanted), true) = (&wanted, items.is_empty()) {
        let message = format!("the controller has no site '{wanted}'");
        return Err(fault::invalid(&message).with_field("/site", message));
    }
    Ok(SitePage { items, next: None })
}

/// The name or short name of the only site that is managed.
fn setting(host: &dyn Host) -> Option<String> {
    sdk_json::text(&host.settings(), "/site").map(str::to_owned)
}

/// The short name of the site that is meant: the one that the call names, else the one of the settings, else the first.
pub(crate) fn chosen(host: &dyn Host, wanted: Option<&str>) -> Result<String, Fault> {
    match (wanted, setting(host)) {
        (Some(site), _) => Ok(site.to_owned()),
        (None, None) => Ok(FIRST.to_owned()),
        (None, Some(_)) => {
            let site = list(host)?.items.into_iter().next();
            site.map(|site| site.id).ok_or_else(|| fault::invalid("the controller has no site"))
        }
    }
}

/// What stands in every path. In those of the official API, an id takes its place on the wire.
pub(crate) fn place(host: &dyn Host, wanted: Option<&str>) -> Result<Place, Fault> {
    let site = chosen(host, wanted)?;
    Ok(Place::from([("site".to_owned(), site.clone()), ("siteId".to_owned(), site)]))
}
