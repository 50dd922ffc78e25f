//! Changes and a vendor for tests of drift.

use heddle_core::adapter::{Description, Feature, FeatureOperation, OfModel};
use heddle_core::change::{ApplyStep, ChangeStatus, Danger, Operation, OutcomeState};
use heddle_core::{Clock, Document};
use heddle_store::changes::ChangeRow;
use serde_json::{Value, json};

use super::own::OwnChange;

/// A vendor whose VLANs are changed in the words of the model, and in its own by their tag.
pub(super) fn description() -> Description {
    let operation = |operation| FeatureOperation {
        operation,
        danger: Danger::Normal,
        payload_schema: Document::from(&json!({})),
        time_limit_ms: None,
        invertible: true,
    };
    let feature = |id: &str, kind: Option<&str>, model: Option<OfModel>| Feature {
        id: id.to_owned(),
        area: "lan".to_owned(),
        title: id.to_owned(),
        kind: kind.map(str::to_owned),
        is_of_site: false,
        natural_key: vec!["tag".to_owned()],
        operations: Operation::ALL.iter().map(|one| operation(*one)).collect(),
        releases: None,
        model,
    };
    let of_model = |kind: &str| Some(OfModel { kind: kind.to_owned(), action: None });
    Description {
        vendor: "acme".to_owned(),
        title: "Acme".to_owned(),
        areas: Vec::new(),
        kinds: Vec::new(),
        features: vec![
            feature("acme.model.vlan", None, of_model("vlan")),
            feature("acme.model.port", None, of_model("port")),
            feature("acme.lan.vlan", Some("lan.vlan"), None),
        ],
        model: Vec::new(),
    }
}

/// A change that was applied.
pub(super) fn row(clock: &Clock, feature: &str, operation: Operation, payload: Value) -> ChangeRow {
    let now = clock.now();
    ChangeRow {
        id: clock.new_id(),
        org_id: clock.new_id(),
        site_id: clock.new_id(),
        site_ref: None,
        controller_id: clock.new_id(),
        vendor: "acme".to_owned(),
        area: "lan".to_owned(),
        feature: feature.to_owned(),
        operation,
        payload,
        also: Vec::new(),
        expressed_as: None,
        notes: None,
        status: ChangeStatus::Applied,
        danger: Danger::Normal,
        staged_by: clock.new_id(),
        staged_at: now,
        applied_by: None,
        applied_at: Some(now),
        expires_at: now,
        plan: None,
        plan_token: None,
        plan_inverse: None,
        plan_error: None,
        secret: None,
        outcome_state: OutcomeState::Applied,
        outcome_message: None,
        outcome_detail: None,
        apply_step: ApplyStep::Idle,
        apply_owner: None,
        apply_started_at: None,
        confirm_within_secs: None,
        confirm_deadline: None,
        extendable_to_secs: None,
        task: None,
        task_step: None,
        sent: None,
        hole_values: None,
        verified_at: None,
        attempts: Vec::new(),
        reverts: None,
        reverted_by: None,
        run_id: None,
        is_set: false,
        set_id: None,
        set_position: None,
        saga_id: None,
        staged_via: None,
        updated_at: now,
    }
}

pub(super) fn own(row: &ChangeRow) -> OwnChange {
    OwnChange::of(row, None, &description()).unwrap()
}
