//! Where a request is for: a controller, and one of the vendor's sites below it, where it has some.
//!
//! Rights are those at the site of ours that the vendor's site is. A caller of that site needs no right at the
//! controller's own, except for what belongs to the controller as a whole.

use heddle_core::{ControllerId, SiteId};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_kernel::nearest::nearest;
use heddle_store::controllers::ControllerTarget;
use heddle_store::{Scope, SiteScope, vendor_sites};

/// How many sites an error names.
const NAMED_MAX: usize = 20;

/// What a path and a query name.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub controller_id: ControllerId,
    /// Where the path names a site of ours.
    pub site_id: Option<SiteId>,
    pub vendor: Option<&'a str>,
    /// Id of a site of the vendor's, or its name where no other has it.
    pub site_ref: Option<&'a str>,
    /// Whether what is meant belongs to one of the vendor's sites, and not to the controller as a whole.
    pub is_of_site: bool,
}

impl<'a> Asked<'a> {
    /// The controller alone, whatever its vendor.
    pub fn of(controller_id: ControllerId, site_ref: Option<&'a str>) -> Self {
        Self { controller_id, site_id: None, vendor: None, site_ref, is_of_site: true }
    }
}

/// A controller, and where a call to it is for.
#[derive(Debug, Clone)]
pub struct Place {
    pub controller: ControllerTarget,
    /// The vendor's id of the site; none where the controller has no sites.
    pub site_ref: Option<String>,
    /// The site of ours that it is.
    pub site_id: SiteId,
}

/// A controller, with those of the vendor's sites that the caller may see.
#[derive(Debug)]
pub struct Seen {
    pub controller: ControllerTarget,
    sites: Vec<vendor_sites::Place>,
    /// Whether the vendor has sites, seen or not.
    has_sites: bool,
}

impl Seen {
    /// Chooses the one site that is meant, as it was when the controller was looked up. `asked` is what that was looked up
    /// by; `is_of_site` counts only here, because it follows from the controller's adapter.
    pub fn place(self, caller: &Caller, asked: Asked<'_>) -> Result<Place, Error> {
        let Self { controller, sites, has_sites } = self;
        if !has_sites {
            if asked.site_ref.is_some() {
                return Err(refused(
                    "this controller has no sites of its own; leave site_ref out".to_owned(),
                ));
            }
            let site_id = controller.site_id;
            return Ok(Place { controller, site_ref: None, site_id });
        }
        if !asked.is_of_site {
            return of_controller(caller, controller, asked);
        }
        let site = chosen(&sites, asked.site_ref)?;
        if site.is_ignored {
            return Err(refused(format!(
                "site '{}' of the controller is ignored; change that at /controllers/{}/vendor-sites",
                site.name, controller.id
            )));
        }
        Ok(Place { site_ref: Some(site.site_ref.clone()), site_id: site.site_id, controller })
    }
}

/// Looks the controller up with its sites, if the caller may see it or one of them, and it belongs to this path. The place
/// is chosen from what was found ([`Seen::place`]), so that no request looks twice.
pub async fn controller_on_path(app: &App, caller: &Caller, asked: Asked<'_>) -> Result<Seen, Error> {
    let missing = || Error::NotFound("controller");
    let scope = Scope { sites: SiteScope::All, ..caller.scope() };
    let mut tx = app.db.single().await?;
    let found = vendor_sites::target_with_sites(&mut tx, &scope, asked.controller_id).await?;
    let found = found.filter(|(target, _)| asked.vendor.is_none_or(|vendor| vendor == target.vendor));
    let (controller, mut sites) = found.ok_or_else(missing)?;
    let has_sites = !sites.is_empty();
    let is_asked = |site: SiteId| caller.may_access_site(site) && asked.site_id.is_none_or(|id| id == site);
    sites.retain(|site| is_asked(site.site_id));
    // A caller of the controller's own site sees the controller, also where none of the vendor's sites is there.
    let is_seen = !sites.is_empty() || is_asked(controller.site_id);
    if is_seen { Ok(Seen { controller, sites, has_sites }) } else { Err(missing()) }
}

/// The place of what belongs to the controller as a whole, although that has sites.
fn of_controller(caller: &Caller, controller: ControllerTarget, asked: Asked<'_>) -> Result<Place, Error> {
    let site_id = controller.site_id;
    if !caller.may_access_site(site_id) || asked.site_id.is_some_and(|asked| asked != site_id) {
        return Err(Error::NotFound("controller"));
    }
    if asked.site_ref.is_some() {
        return Err(refused("this belongs to the controller as a whole; leave site_ref out".to_owned()));
    }
    Ok(Place { controller, site_ref: None, site_id })
}

/// The site that is named; without a name, the only one.
fn chosen<'s>(
    sites: &'s [vendor_sites::Place],
    wanted: Option<&str>,
) -> Result<&'s vendor_sites::Place, Error> {
    let names = || sites.iter().map(|site| site.name.as_str());
    let Some(wanted) = wanted else {
        let mut used = sites.iter().filter(|site| !site.is_ignored);
        return match (used.next(), used.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(refused("the controller has no site here that is not ignored".to_owned())),
            (Some(_), Some(_)) => {
                let shown: Vec<String> = names().take(NAMED_MAX).map(|name| format!("'{name}'")).collect();
                let more = sites.len().saturating_sub(NAMED_MAX);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                Err(refused(format!(
                    "the controller has the sites {}{more}; name one of them, or its id",
                    shown.join(", ")
                )))
            }
        };
    };
    if let Some(site) = sites.iter().find(|site| site.site_ref == wanted) {
        return Ok(site);
    }
    let mut alike = sites.iter().filter(|site| site.name == wanted);
    match (alike.next(), alike.next()) {
        (Some(site), None) => Ok(site),
        (Some(_), Some(_)) => {
            Err(refused(format!("several sites have the name '{wanted}'; write the id of one")))
        }
        (None, _) => {
            let hint = nearest(wanted, names()).map(|name| format!("; nearest is '{name}'"));
            Err(refused(format!("the controller has no site '{wanted}'{}", hint.unwrap_or_default())))
        }
    }
}

fn refused(message: String) -> Error {
    Error::field("site_ref", message)
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    fn site(site_ref: &str, name: &str, is_ignored: bool) -> vendor_sites::Place {
        let site_id = Clock::default().new_id();
        vendor_sites::Place { site_ref: site_ref.to_owned(), name: name.to_owned(), site_id, is_ignored }
    }

    #[test]
    fn a_site_is_named_by_its_id_by_its_name_or_not_at_all_where_there_is_one() {
        let sites = [site("1", "Head office", false), site("2", "Lab", false), site("3", "Lab", true)];
        let named = |sites: &[vendor_sites::Place], wanted| {
            chosen(sites, wanted).map(|site| site.site_ref.clone()).map_err(|error| format!("{error:?}"))
        };
        assert_eq!(named(&sites, Some("3")), Ok("3".to_owned()));
        assert_eq!(named(&sites, Some("Head office")), Ok("1".to_owned()));
        assert_eq!(named(&sites[1..], None), Ok("2".to_owned()), "the other one is ignored");
        for (wanted, said) in [
            (None, "the sites 'Head office', 'Lab', 'Lab'"),
            (Some("Lab"), "several sites"),
            (Some("Hed office"), "nearest is 'Head office'"),
        ] {
            let error = named(&sites, wanted).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let many: Vec<_> = (0..30).map(|n| site(&n.to_string(), &format!("s{n}"), false)).collect();
        assert!(named(&many, None).unwrap_err().contains("'s19' and 10 more"));
    }
}
