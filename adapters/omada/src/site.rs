//! The controller and the site that a call is about.

use heddle_sdk::crud::{Place, Vendor as _};
use heddle_sdk::{Auth, Fault, FaultExt, Host, Request, SitePage, VendorSite, fault, json as sdk_json};
use serde_json::Value;

use crate::answer::{Omada, SESSION, read};

/// The name under which the login keeps the controller's id.
const CONTROLLER: &str = "omadacId";
/// Rows that one request asks for.
const ROWS_MAX: usize = 1_000;
const PAGES_MAX: usize = 64;
const ID_CHARS: usize = 24;
/// How many sites a fault names.
const NAMED_MAX: usize = 20;

/// A site as people and paths name it.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// What the controller says of itself to everybody.
pub(crate) fn info(host: &dyn Host) -> Result<Value, Fault> {
    let response = host.send(Request::get("/api/info"), Auth::None)?;
    Omada.content(&response)
}

/// The controller's id, which stands in every path. It changes when the controller is created anew.
pub(crate) fn controller(host: &dyn Host) -> Result<String, Fault> {
    let known = host.session_facts(SESSION)?;
    if let Some((_, id)) = known.into_iter().find(|(name, _)| name == CONTROLLER) {
        return Ok(id);
    }
    let info = info(host)?;
    sdk_json::text(&info, "/omadacId")
        .map(str::to_owned)
        .ok_or_else(|| fault::not_ready("the controller does not say its id"))
}

/// All rows of a list that comes in pages, below `/openapi`.
pub(crate) fn rows(host: &dyn Host, path: &str) -> Result<Vec<Value>, Fault> {
    let mut out = Vec::new();
    each(host, path, |row| out.push(row.clone()))?;
    Ok(out)
}

/// Shows each row of such a list. One page is held at a time: a site can have tens of thousands of clients.
pub(crate) fn each(host: &dyn Host, path: &str, mut show: impl FnMut(&Value)) -> Result<(), Fault> {
    let mut shown = 0;
    for number in 1..=PAGES_MAX {
        let answer = read(host, &format!("{path}?page={number}&pageSize={ROWS_MAX}"))?;
        let page = sdk_json::items(&answer, "/data");
        page.iter().for_each(&mut show);
        shown += page.len();
        let total = sdk_json::number(&answer, "/totalRows").unwrap_or_default();
        if page.is_empty() || shown as u64 >= total {
            return Ok(());
        }
    }
    Err(fault::unsupported(format!("the controller has more than {shown} rows of a list")))
}

/// The sites that the application may see.
pub(crate) fn sites(host: &dyn Host, controller: &str) -> Result<Vec<Site>, Fault> {
    let rows = rows(host, &format!("/openapi/v1/{controller}/sites"))?;
    let text = |row: &Value, pointer: &str| sdk_json::text(row, pointer).unwrap_or_default().to_owned();
    Ok(rows.iter().map(|row| Site { id: text(row, "/siteId"), name: text(row, "/name") }).collect())
}

/// The sites that calls may be about: all that the application may see, or the one of the settings.
pub(crate) fn list(host: &dyn Host) -> Result<SitePage, Fault> {
    let controller = controller(host)?;
    let is_set = sdk_json::text(&host.settings(), "/site").is_some();
    let sites = if is_set { vec![chosen(host, &controller, None)?] } else { sites(host, &controller)? };
    let one = |site: Site| VendorSite { id: site.id, name: site.name };
    Ok(SitePage { items: sites.into_iter().map(one).collect(), next: None })
}

/// The site that is meant: the one that the call names, else the one of the settings, else the only one.
pub(crate) fn chosen(host: &dyn Host, controller: &str, wanted: Option<&str>) -> Result<Site, Fault> {
    let settings = host.settings();
    let wanted = wanted.or_else(|| sdk_json::text(&settings, "/site"));
    let sites = sites(host, controller)?;
    let listed = |sites: &[Site]| {
        let names: Vec<String> =
            sites.iter().take(NAMED_MAX).map(|site| format!("'{}'", site.name)).collect();
        let more = sites.len().saturating_sub(NAMED_MAX);
        if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
    };
    if let Some(wanted) = wanted {
        let by_id = sites.iter().find(|site| site.id == wanted);
        let named: Vec<&Site> = sites.iter().filter(|site| site.name == wanted).collect();
        return match (by_id, named.first().copied(), named.len()) {
            (Some(site), ..) | (None, Some(site), 1) => Ok(site.clone()),
            (None, Some(_), several) => {
                Err(not_chosen(format!("{several} sites have the name '{wanted}'; write the id of one")))
            }
            (None, None, _) => {
                Err(not_chosen(format!("there is no site '{wanted}'; there are {}", listed(&sites))))
            }
        };
    }
    match &sites[..] {
        [only] => Ok(only.clone()),
        [] => Err(not_chosen("the application may see no site of the controller".to_owned())),
        several => Err(not_chosen(format!(
            "the controller has the sites {}; name one in the call or in the setting 'site'",
            listed(several)
        ))),
    }
}

fn not_chosen(message: String) -> Fault {
    let field = message.clone();
    fault::invalid(message).with_field("/site", field)
}

/// What stands in the path of every call. What has the form of an id is taken for one, which saves a request: the
/// controller says it where it has no such site.
pub(crate) fn place(host: &dyn Host, wanted: Option<&str>) -> Result<Place, Fault> {
    let controller = controller(host)?;
    let settings = host.settings();
    let id = wanted.or_else(|| sdk_json::text(&settings, "/site")).filter(|wanted| is_id(wanted));
    let id = match id {
        Some(id) => id.to_owned(),
        None => chosen(host, &controller, wanted)?.id,
    };
    Ok(Place::from([("omadacId".to_owned(), controller), ("siteId".to_owned(), id)]))
}

/// Ids have 24 hexadecimal digits.
fn is_id(text: &str) -> bool {
    text.len() == ID_CHARS && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
