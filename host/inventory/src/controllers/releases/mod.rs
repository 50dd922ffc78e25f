//! The release that a controller runs: what the adapter says of it, whether a person allowed it, and what it has.
//!
//! Only applying is held back. A change of an untested release is staged, planned and read like any other, so that people
//! see what it would do before they allow it.

mod again;
mod allow;

use heddle_core::adapter::DeviceProfile;
use heddle_core::event::NewEvent;
use heddle_core::release::{ReleaseSpan, ReleaseState};
use heddle_core::{ControllerId, OrgId, SiteId, storable};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_marketplace::release::{self, Span, Tested};
use heddle_runtime::Adapter;
use heddle_store::controllers::{Controller, ControllerTarget, releases};
use heddle_store::{Tx, events};
use serde_json::json;

pub(super) use self::again::follow;
pub(super) use self::allow::routes;
use super::declarations::CONTROLLER_RELEASE_CHANGED;
use crate::adapters::call_for;

/// What the adapter says of the product and the version that a controller runs; `allowed` is the version that a person
/// allowed there.
pub fn judge(
    releases: &[Tested],
    product: Option<&str>,
    version: Option<&str>,
    allowed: Option<&str>,
) -> ReleaseState {
    let Some(version) = version else { return ReleaseState::Unknown };
    match release::is_tested(releases, product.unwrap_or_default(), version) {
        None => ReleaseState::Unknown,
        Some(true) => ReleaseState::Tested,
        Some(false) if allowed == Some(version) => ReleaseState::Allowed,
        Some(false) => ReleaseState::Untested,
    }
}

/// Whether a controller with this version has what the package says of some releases only. A version that was not read
/// yet, or that has more than numbers, counts as one that has it.
pub fn is_offered(releases: Option<&ReleaseSpan>, version: Option<&str>) -> bool {
    let (Some(span), Some(version)) = (releases, version) else { return true };
    release::is_between(version, span.from.as_deref(), span.to.as_deref()).unwrap_or(true)
}

/// Says why a controller does not have something; none where it has it. `what` is the subject of the sentence.
pub fn lacking(what: &str, releases: Option<&ReleaseSpan>, controller: &ControllerTarget) -> Option<String> {
    let version = controller.firmware.as_deref();
    if is_offered(releases, version) {
        return None;
    }
    let span = releases.map(|span| Span { from: span.from.clone(), to: span.to.clone() })?;
    let runs = version.unwrap_or_default();
    Some(format!("{what} needs release {span}; controller '{}' runs {runs}", controller.name))
}

/// What the adapter says of the release that a controller runs, as it was last read.
pub fn state_of(adapter: &Adapter, controller: &ControllerTarget) -> ReleaseState {
    let (product, version) = (controller.product.as_deref(), controller.firmware.as_deref());
    judge(adapter.releases(), product, version, controller.allowed_release.as_deref())
}

/// Says which release is held back, what was tested, and how a person lets changes be applied.
pub fn held_back(adapter: &Adapter, controller: &ControllerTarget) -> String {
    let product = controller.product.as_deref().unwrap_or_default();
    let version = controller.firmware.as_deref().unwrap_or_default();
    let tested = release::tested_in_words(adapter.releases(), product);
    let tested =
        tested.map_or_else(|| "other products only".to_owned(), |tested| format!("release {tested}"));
    format!(
        "controller '{}' runs {product} {version}; this adapter ({} {}) was tested with {tested}; POST \
         /controllers/{}/untested-release with this version lets changes be applied",
        controller.name,
        adapter.id(),
        adapter.version(),
        controller.id
    )
}

/// Asks a controller for its version where the adapter judges versions: it may have been upgraded since it was read. Stores
/// what differs.
pub async fn learn(app: &App, request_id: &str, controller: &ControllerTarget) -> Result<(), Error> {
    let adapter = app.adapter(&controller.vendor)?;
    if adapter.releases().is_empty() {
        return Ok(());
    }
    let DeviceProfile { product, version, .. } = adapter.check(&call_for(controller, request_id)?).await?;
    let (product, version) = (storable::line(&product), storable::version(&version));
    if controller.product.as_ref() == Some(&product) && controller.firmware.as_ref() == Some(&version) {
        return Ok(());
    }
    let mut tx = app.db.write().await?;
    let Some(held) = releases::hold(&mut tx, controller).await? else {
        return Err(not_known(controller));
    };
    let state = judge(adapter.releases(), Some(&product), Some(&version), held.allowed_release.as_deref());
    releases::learn(&mut tx, held.id, (&product, &version), state, app.clock.now()).await?;
    let place = Place { org: held.org_id, site: held.site_id, controller: held.id };
    let changed = changed(place, &version, (held.release_state, state));
    events::append_all(&mut tx, held.org_id, changed.as_slice(), &app.clock).await?;
    tx.commit().await?;
    Ok(())
}

/// The refusal where the release that a controller runs is not known, although its adapter judges releases.
pub fn not_known(controller: &ControllerTarget) -> Error {
    Error::Conflict {
        kind: "unknown_release",
        message: format!(
            "the release that controller '{}' runs is not known, because it is reached otherwise than when it was read; \
             try again, or sync it first",
            controller.name
        ),
    }
}

/// Tells that a controller is held back no longer, because what is known of its release was forgotten with its address.
pub(super) async fn tell_forgotten(
    tx: &mut Tx,
    app: &App,
    before: &Controller,
    after: &Controller,
) -> Result<(), Error> {
    let place = Place { org: after.org_id, site: after.site_id, controller: after.id };
    let version = after.firmware.as_deref().unwrap_or_default();
    let event = changed(place, version, (before.release_state, after.release_state));
    Ok(events::append_all(tx, after.org_id, event.as_slice(), &app.clock).await?)
}

/// Where a controller is.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub org: OrgId,
    pub site: SiteId,
    pub controller: ControllerId,
}

/// The event where changes are held back from now on, or are no longer.
pub fn changed(
    place: Place,
    version: &str,
    (before, after): (ReleaseState, ReleaseState),
) -> Option<NewEvent> {
    (before.holds_back() != after.holds_back()).then(|| NewEvent {
        event_type: CONTROLLER_RELEASE_CHANGED,
        org_id: place.org,
        site_id: Some(place.site),
        controller_id: Some(place.controller),
        device_id: None,
        causation_id: None,
        run_id: None,
        payload: json!({
            "controller_id": place.controller,
            "site_id": place.site,
            "version": version,
            "release_state": after,
        }),
    })
}

#[cfg(test)]
mod tests {
    use heddle_core::Clock;

    use super::*;

    fn tested(series: &str) -> Vec<Tested> {
        serde_json::from_value(json!([{ "tested": [series] }])).unwrap()
    }

    #[test]
    fn a_release_is_tested_untested_allowed_or_unknown() {
        for (releases, version, allowed, expected) in [
            (tested("24.10"), Some("24.10.2"), None, ReleaseState::Tested),
            (tested("24.10"), Some("24.10.2"), Some("24.10.2"), ReleaseState::Tested),
            (tested("24.10"), Some("25.12.0"), None, ReleaseState::Untested),
            (tested("24.10"), Some("25.12.0"), Some("25.12.0"), ReleaseState::Allowed),
            (tested("24.10"), Some("25.12.1"), Some("25.12.0"), ReleaseState::Untested),
            (tested("24.10"), Some("SNAPSHOT"), None, ReleaseState::Untested),
            (tested("24.10"), None, None, ReleaseState::Unknown),
            (Vec::new(), Some("25.12.0"), None, ReleaseState::Unknown),
        ] {
            assert_eq!(judge(&releases, Some("M"), version, allowed), expected, "{version:?} {allowed:?}");
        }
    }

    #[test]
    fn what_a_release_lacks_is_not_offered() {
        let span = |from: Option<&str>, to: Option<&str>| ReleaseSpan {
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
        };
        let (new, old) = (span(Some("26.7"), None), span(None, Some("26.1")));
        for (releases, version, expected) in [
            (None, Some("26.1.6"), true),
            (Some(&new), Some("26.7.2"), true),
            (Some(&new), Some("26.1.6"), false),
            (Some(&old), Some("26.1.6"), true),
            (Some(&old), Some("26.7.2"), false),
            (Some(&new), None, true),
            (Some(&new), Some("SNAPSHOT"), true),
        ] {
            assert_eq!(is_offered(releases, version), expected, "{releases:?} {version:?}");
        }
    }

    #[test]
    fn an_event_tells_only_that_changes_are_held_back_or_no_longer() {
        use ReleaseState::{Allowed, Tested, Unknown, Untested};
        let clock = Clock::default();
        let place = Place { org: clock.new_id(), site: clock.new_id(), controller: clock.new_id() };
        for (before, after, is_told) in [
            (Unknown, Tested, false),
            (Unknown, Untested, true),
            (Tested, Untested, true),
            (Untested, Allowed, true),
            (Allowed, Untested, true),
            (Allowed, Tested, false),
        ] {
            assert_eq!(changed(place, "1", (before, after)).is_some(), is_told, "{before} {after}");
        }
    }
}
