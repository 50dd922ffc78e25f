//! The gates before a write: one function each, with the reason in its name.

use axum::http::StatusCode;
use heddle_core::change::{ChangeSpec, ChangeStatus, Danger, OutcomeState, Plan, Stage};
use heddle_core::organization_settings::OrganizationSettings;
use heddle_core::{Role, SiteLevel, Timestamp, UserId};
use heddle_inventory::controllers::releases;
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::http::error::{Detail, Error};
use heddle_runtime::Adapter;
use heddle_store::ControllerTarget;
use heddle_store::changes::ChangeRow;

use super::plan::specs_of;
use super::vendors::for_feature;
use crate::declarations::ChangesSettings;

/// Checks the permission for the feature's prefix.
pub(super) fn feature_is_permitted(caller: &Caller, feature: &str, danger: Danger) -> Result<(), Error> {
    caller.require(for_feature(feature, danger))
}

/// Checks the permission for every feature that this change writes, and the level to write at its site.
pub(super) fn change_is_permitted(caller: &Caller, row: &ChangeRow) -> Result<(), Error> {
    caller.require_level(row.site_id, SiteLevel::Write)?;
    let further = row.also.iter().chain(row.expressed_as.iter().flatten());
    let mut features = std::iter::once(&row.feature).chain(further.map(|spec| &spec.feature));
    features.try_for_each(|feature| feature_is_permitted(caller, feature, row.danger))
}

/// Checks what every request needs that moves a change on which is being applied, or takes one back: its permissions, that
/// it is no member of a set, and who may do what is catastrophic.
pub(super) fn change_may_be_moved_on(caller: &Caller, row: &ChangeRow) -> Result<(), Error> {
    change_is_permitted(caller, row)?;
    change_is_its_own(row)?;
    catastrophe_needs_site_admin(caller, row.danger)
}

/// A window only makes sense for a change that can be taken back, and must be longer than the device needs to settle.
pub(super) fn window_fits(app: &App, plan: &Plan, window_secs: u32) -> Result<(), Error> {
    let can_be_taken_back = plan.native.is_empty()
        || plan.native.iter().any(|call| matches!(call.stage, Stage::Undo | Stage::Restore));
    if !can_be_taken_back {
        return Err(Error::Conflict {
            kind: "not_restorable",
            message: "what this change does cannot be taken back; apply it without confirm_within_secs"
                .to_owned(),
        });
    }
    let settle_ms = app.config.of::<ChangesSettings>().apply_settle_ms.saturating_mul(if plan.lockout_risk {
        3
    } else {
        1
    });
    let least_secs = settle_ms.div_ceil(1000) + 5;
    if window_secs < least_secs {
        return Err(Error::field(
            "confirm_within_secs",
            format!(
                "the device is read back after some seconds; confirm_within_secs must be at least {least_secs}"
            ),
        ));
    }
    Ok(())
}

/// Refuses an expired change, even before it is discarded.
pub(super) fn change_has_not_expired(row: &ChangeRow, now: Timestamp) -> Result<(), Error> {
    if row.expires_at > now {
        return Ok(());
    }
    Err(Error::Conflict { kind: "expired", message: "change has expired; stage it again".to_owned() })
}

/// Catastrophic changes need `site_admin`, when staged and when applied.
pub(super) fn catastrophe_needs_site_admin(caller: &Caller, danger: Danger) -> Result<(), Error> {
    if danger == Danger::Catastrophic { caller.require_role(Role::SiteAdmin) } else { Ok(()) }
}

pub fn platform_is_writable(app: &App) -> Result<(), Error> {
    if app.config.adapter_read_only {
        return Err(Error::Bare {
            status: StatusCode::FORBIDDEN,
            detail: "staged changes cannot be pushed while ADAPTER_READ_ONLY is set; \
                     ADAPTER_READ_ONLY=false plus force=true are needed"
                .to_owned(),
        });
    }
    Ok(())
}

/// `force` must be there and true: a missing one is a malformed request, a false one is a decision not to.
pub(super) fn force_is_given(force: Option<bool>) -> Result<(), Error> {
    match force {
        Some(true) => Ok(()),
        Some(false) => Err(Error::BadRequest {
            kind: "force_required",
            message: "nothing was sent because force is false; send 'force': true to apply".to_owned(),
        }),
        None => Err(Error::Validation(vec![Detail::new(
            "force",
            "missing field 'force'; send 'force': true",
            "missing",
        )])),
    }
}

pub(super) fn change_is_pending(status: ChangeStatus) -> Result<(), Error> {
    if status == ChangeStatus::Pending {
        return Ok(());
    }
    Err(Error::Conflict { kind: "not_pending", message: format!("change is already {status}") })
}

/// Refuses a member of a set: it is handled only with its set.
pub(super) fn change_is_its_own(row: &ChangeRow) -> Result<(), Error> {
    let Some(set) = row.saga_id.or(row.set_id) else { return Ok(()) };
    Err(Error::Conflict {
        kind: "in_set",
        message: format!(
            "change is a member of set {set}; use /gateway-vpn/changes/sets/{set}, or discard the set with \
             keep_changes=true first"
        ),
    })
}

/// Whether an outcome must be verified before anything else is sent.
pub(super) fn must_be_verified(row: &ChangeRow) -> bool {
    row.status == ChangeStatus::Pending
        && matches!(row.outcome_state, OutcomeState::Partial | OutcomeState::Unknown)
}

/// After a partial or unknown outcome, the device must be read before anything else is sent.
pub(super) fn outcome_is_settled(row: &ChangeRow) -> Result<(), Error> {
    if !must_be_verified(row) {
        return Ok(());
    }
    Err(Error::Conflict {
        kind: "outcome_unknown",
        message: format!(
            "the last attempt ended {}; verify the change, then plan it again, or revert or discard it",
            row.outcome_state
        ),
    })
}

/// Nothing is written to a release that the adapter was not tested with, unless a person allowed it. What ends a change that
/// is under way asks no gate: an upgrade in its window does not close the way back.
pub(super) fn release_is_tested_or_allowed(app: &App, controller: &ControllerTarget) -> Result<(), Error> {
    let adapter = app.adapter(&controller.vendor)?;
    if controller.firmware.is_none() && !adapter.releases().is_empty() {
        return Err(releases::not_known(controller));
    }
    if !releases::state_of(&adapter, controller).holds_back() {
        return Ok(());
    }
    Err(Error::Conflict { kind: "untested_release", message: releases::held_back(&adapter, controller) })
}

/// What is planned must be there in the release that the controller runs.
pub(super) fn features_are_offered(
    adapter: &Adapter,
    specs: &[ChangeSpec],
    controller: &ControllerTarget,
) -> Result<(), Error> {
    match lacking(adapter, specs, controller) {
        Some(message) => Err(Error::field("feature", message)),
        None => Ok(()),
    }
}

/// The same for what is to be sent: the controller may run another release than when the change was planned.
pub(super) fn change_is_offered(
    app: &App,
    row: &ChangeRow,
    controller: &ControllerTarget,
) -> Result<(), Error> {
    match lacking(&app.adapter(&controller.vendor)?, &specs_of(row), controller) {
        Some(message) => Err(Error::Conflict { kind: "feature_not_offered", message }),
        None => Ok(()),
    }
}

/// Says what of the changes the controller does not have.
fn lacking(adapter: &Adapter, specs: &[ChangeSpec], controller: &ControllerTarget) -> Option<String> {
    let mut features = specs.iter().filter_map(|spec| adapter.description().feature(&spec.feature));
    features.find_map(|one| releases::lacking(&format!("'{}'", one.id), one.releases.as_ref(), controller))
}

/// A plan is applied by the adapter that made it: another one reads its token and numbers its calls in its own way.
pub(super) fn plan_is_of_this_adapter(app: &App, row: &ChangeRow, plan: &Plan) -> Result<(), Error> {
    let adapter = app.adapter(&row.vendor)?;
    let now = adapter.identity();
    if plan.made_by == now {
        return Ok(());
    }
    let then = if plan.made_by.is_empty() { "an earlier one" } else { &plan.made_by };
    Err(Error::Conflict {
        kind: "not_planned",
        message: format!(
            "the adapter was replaced since the change was planned ({then}, now {now}): plan it again first"
        ),
    })
}

/// A new plan is allowed once the device was read, because it is made from the present state of the device.
pub(super) fn plan_may_be_made(row: &ChangeRow) -> Result<(), Error> {
    if row.verified_at.is_some() { Ok(()) } else { outcome_is_settled(row) }
}

/// Where the organization demands it, a user that staged a change may not apply it.
pub(super) fn second_person_applies(
    caller: &Caller,
    stagers: &[UserId],
    settings: &OrganizationSettings,
) -> Result<(), Error> {
    if settings.require_second_person && stagers.contains(&caller.user_id) {
        return Err(Error::Refused {
            kind: "second_person_required",
            message: "the organization requires that a second person applies; you staged this change"
                .to_owned(),
        });
    }
    Ok(())
}
