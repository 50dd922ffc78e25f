//! Where a change is for, as that is now: its controller, and one of the vendor's sites below it, where it has some. Where a
//! request is for: `heddle_inventory::controllers::place`.

use heddle_core::SiteLevel;
use heddle_core::organization_settings::OrganizationSettings;
pub use heddle_inventory::controllers::place::{Asked, Place, Seen, controller_on_path};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::Error;
use heddle_store::changes::ChangeRow;
use heddle_store::controllers::{self, ControllerTarget};
use heddle_store::{Scope, SiteScope, Tx, vendor_sites};

/// Returns where a change is for, as it is now, if the caller may write there: the controller may have been moved since
/// the change was staged, and so may the vendor's site.
///
/// The vendor's site may be ignored or gone, so that what was sent there can be compared and taken back.
pub(super) async fn place_of(app: &App, caller: &Caller, row: &ChangeRow) -> Result<Place, Error> {
    let mut tx = app.db.read().await?;
    Ok(found(&mut tx, caller, row).await?.0)
}

/// The same, for what is to be sent: refuses a place that is not read any more.
pub(super) async fn used_place_of(app: &App, caller: &Caller, row: &ChangeRow) -> Result<Place, Error> {
    let mut tx = app.db.read().await?;
    used_place_in(&mut tx, app, caller, row).await
}

/// [`used_place_of`] within a transaction.
pub(super) async fn used_place_in(
    tx: &mut Tx,
    app: &App,
    caller: &Caller,
    row: &ChangeRow,
) -> Result<Place, Error> {
    let (place, site) = found(tx, caller, row).await?;
    let controller = place.controller.id;
    let Some(site_ref) = &row.site_ref else {
        let has_sites =
            is_of_site(app, &place, row)? && !vendor_sites::present(tx, controller).await?.is_empty();
        if has_sites {
            let message =
                "the controller has sites by now, and the change names none; discard it and stage it again";
            return Err(changed(message.to_owned()));
        }
        return Ok(place);
    };
    match site {
        Some(site) if site.is_ignored => Err(changed(format!(
            "site '{}' of the controller is ignored; change that at /controllers/{controller}/vendor-sites, or discard \
             the change",
            site.name
        ))),
        Some(site) if site.is_present => Ok(place),
        _ => Err(changed(format!("site '{site_ref}' of the vendor's is gone; discard the change"))),
    }
}

/// Returns the controller of what is to be sent, for the service's own steps: its caller was asked before. Refuses a vendor's
/// site that readings no longer find.
pub(super) async fn still_used(tx: &mut Tx, row: &ChangeRow) -> Result<ControllerTarget, Error> {
    let controller = controllers::find_target(tx, &Scope::everything(), row.controller_id).await?;
    let controller = controller.ok_or(Error::NotFound("controller"))?;
    let Some(site_ref) = &row.site_ref else { return Ok(controller) };
    let site = vendor_sites::find(tx, controller.id, site_ref).await?;
    if site.is_some_and(|site| site.is_present && !site.is_ignored) {
        return Ok(controller);
    }
    Err(changed(format!("site '{site_ref}' of the vendor's is ignored or gone")))
}

/// Requires the level to write where a change is for now. Where its controller was removed, the site that it was staged
/// for decides.
pub(super) async fn caller_may_write(tx: &mut Tx, caller: &Caller, row: &ChangeRow) -> Result<(), Error> {
    let everywhere = Scope::everything();
    if controllers::find_target(tx, &everywhere, row.controller_id).await?.is_none() {
        return caller.require_level(row.site_id, SiteLevel::Write);
    }
    found(tx, caller, row).await.map(|_| ())
}

/// Refuses where the place is another one than when it was looked up: the controller was moved, or the vendor's site was
/// mapped elsewhere, is ignored or is gone. It stays the same until the transaction ends. Returns the settings of its
/// organization.
pub(super) async fn place_is_the_same(tx: &mut Tx, place: &Place) -> Result<OrganizationSettings, Error> {
    let (org, id) = (place.controller.org_id, place.controller.id);
    let locked = controllers::lock_at_site(tx, org, id).await?;
    let (site_id, settings) = locked.ok_or(Error::NotFound("controller"))?;
    let now = match &place.site_ref {
        // A statement of its own: it must see what a transaction wrote that the lock waited for.
        Some(site_ref) => vendor_sites::place(tx, id, site_ref).await?,
        None => Some(site_id),
    };
    if now == Some(place.site_id) {
        return Ok(settings);
    }
    let message =
        "the controller, or its site, belongs to another site by now or is not read any more; try again";
    Err(changed(message.to_owned()))
}

fn changed(message: String) -> Error {
    Error::Conflict { kind: "place_changed", message }
}

/// Whether a change writes anything that belongs to one of the vendor's sites.
fn is_of_site(app: &App, place: &Place, row: &ChangeRow) -> Result<bool, Error> {
    let adapter = app.adapter(&place.controller.vendor)?;
    let further = row.also.iter().chain(row.expressed_as.iter().flatten());
    let mut written = std::iter::once(&row.feature).chain(further.map(|spec| &spec.feature));
    Ok(written.any(|id| adapter.description().feature(id).is_some_and(|feature| feature.is_of_site)))
}

/// The place of a change where the caller may write, and the vendor's site as far as it is known.
async fn found(
    tx: &mut Tx,
    caller: &Caller,
    row: &ChangeRow,
) -> Result<(Place, Option<vendor_sites::Row>), Error> {
    let missing = || Error::NotFound("controller");
    let scope = Scope { sites: SiteScope::All, ..caller.scope() };
    let controller = controllers::find_target(tx, &scope, row.controller_id).await?.ok_or_else(missing)?;
    let site = match &row.site_ref {
        Some(site_ref) => vendor_sites::find(tx, controller.id, site_ref).await?,
        None => None,
    };
    let site_id = site.as_ref().map_or(controller.site_id, |site| site.site_id);
    if !caller.may_access_site(site_id) {
        return Err(missing());
    }
    caller.require_level(site_id, SiteLevel::Write)?;
    Ok((Place { site_ref: row.site_ref.clone(), site_id, controller }, site))
}
