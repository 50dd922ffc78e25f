use heddle_core::Clock;
use heddle_core::change::{ChangeStatus, Operation, OutcomeState};
use heddle_marketplace::model;
use serde_json::json;

use super::*;
use crate::drift::label::{common, value_key};
use crate::drift::testing::{own, row};

fn content(value: Value) -> Content {
    Content::from_value(&value)
}

/// A VLAN that was wanted and is observed like this.
struct Case {
    wanted: Option<Value>,
    observed: Option<Value>,
    upgrade: bool,
    known: Vec<FieldDrift>,
}

impl Case {
    fn moved(wanted: Value, observed: Value) -> Self {
        Self { wanted: Some(wanted), observed: Some(observed), upgrade: false, known: Vec::new() }
    }

    fn judge(&self, evidence: &Evidence) -> Judged {
        let fields = self.observed.clone();
        let subject = Subject {
            kind: model::find("vlan").unwrap(),
            key: "v20",
            label: "guests",
            native: None,
            fields: fields.as_ref(),
        };
        let compared = Compared {
            subject,
            wanted: self.wanted.clone().map(content),
            observed: self.observed.clone().map(content),
            upgrade: self.upgrade.then(|| ("1".to_owned(), "2".to_owned())),
            known: &self.known,
        };
        judge(&compared, evidence)
    }
}

fn update(clock: &Clock, payload: Value) -> OwnChange {
    own(&row(clock, "acme.model.vlan", Operation::Update, payload))
}

fn of(changes: Vec<OwnChange>) -> Evidence {
    Evidence { changes, ..Evidence::default() }
}

fn label(judged: &Judged) -> Option<DriftLabel> {
    judged.drift.as_ref().map(|found| found.label)
}

#[test]
fn what_a_change_of_ours_wrote_is_wanted_and_no_drift() {
    let clock = Clock::default();
    let change = update(&clock, json!({ "key": "v20", "name": "office" }));
    let id = change.id;
    let judged =
        Case::moved(json!({ "name": "guests" }), json!({ "name": "office" })).judge(&of(vec![change]));
    assert_eq!((judged.drift, judged.written_by), (None, Some(id)));
    assert_eq!(judged.wanted, Some(content(json!({ "name": "office" }))));
}

#[test]
fn an_edit_of_others_in_the_same_time_stays_a_difference() {
    let clock = Clock::default();
    let change = update(&clock, json!({ "key": "v20", "name": "office" }));
    let case = Case::moved(
        json!({ "name": "guests", "gateway": "10.0.0.1" }),
        json!({ "name": "office", "gateway": "10.0.0.9" }),
    );
    let judged = case.judge(&of(vec![change]));
    let found = judged.drift.unwrap();
    let fields: Vec<&str> = found.differences.iter().map(|one| one.field.as_str()).collect();
    assert_eq!((found.label, fields), (DriftLabel::Unknown, vec!["gateway"]));
    assert_eq!(judged.wanted, Some(content(json!({ "name": "office", "gateway": "10.0.0.1" }))));
}

#[test]
fn what_was_applied_is_wanted_even_if_others_put_it_back_at_once() {
    let clock = Clock::default();
    let change = update(&clock, json!({ "key": "v20", "name": "office" }));
    let judged =
        Case::moved(json!({ "name": "guests" }), json!({ "name": "guests" })).judge(&of(vec![change]));
    let found = judged.drift.unwrap();
    assert_eq!(found.differences[0].wanted, Some(json!("office")));
    assert_eq!((found.label, found.change), (DriftLabel::Unknown, DriftChange::Changed));
}

#[test]
fn what_the_vendor_makes_of_a_value_is_learned_once_and_known_then() {
    let clock = Clock::default();
    let mut applied =
        row(&clock, "acme.model.vlan", Operation::Update, json!({ "key": "v20", "name": "Office" }));
    applied.outcome_detail = Some(json!({ "difference": [{ "object": "vlan 20" }] }));
    let case = Case::moved(json!({ "name": "guests" }), json!({ "name": "office" }));
    let judged = case.judge(&of(vec![own(&applied)]));
    assert_eq!((judged.drift.is_none(), judged.learned.len()), (true, 1));
    assert_eq!(judged.wanted, Some(content(json!({ "name": "office" }))));
    let learned = &judged.learned[0];
    let mut known = Evidence::default();
    known.rewrites.insert((learned.field.clone(), learned.digest.clone()));
    let again = Case::moved(json!({ "name": "Office" }), json!({ "name": "office" }));
    assert_eq!(again.judge(&known).drift, None);
    assert_eq!(label(&again.judge(&Evidence::default())), Some(DriftLabel::Unknown));
}

#[test]
fn a_change_whose_outcome_is_in_doubt_is_ours() {
    let clock = Clock::default();
    let mut change =
        row(&clock, "acme.model.vlan", Operation::Update, json!({ "key": "v20", "name": "office" }));
    (change.status, change.outcome_state) = (ChangeStatus::Pending, OutcomeState::Partial);
    let judged =
        Case::moved(json!({ "name": "guests" }), json!({ "name": "office" })).judge(&of(vec![own(&change)]));
    assert_eq!(label(&judged), Some(DriftLabel::Ours));
    assert_eq!(judged.wanted, Some(content(json!({ "name": "guests" }))), "it is not what is wanted");
}

#[test]
fn a_new_version_explains_only_what_it_did_to_all() {
    let mut case = Case::moved(json!({ "dhcp": "none" }), json!({ "dhcp": "relay" }));
    case.upgrade = true;
    let pair = digest_of("dhcp", Some(&json!("none")), Some(&json!("relay")));
    let all = Evidence { common: [("dhcp".to_owned(), pair)].into(), ..Evidence::default() };
    assert_eq!(label(&case.judge(&all)), Some(DriftLabel::Vendor));
    assert_eq!(
        label(&case.judge(&Evidence::default())),
        Some(DriftLabel::Unknown),
        "one object alone tells nothing"
    );
    let mut new_field = Case::moved(json!({}), json!({ "dhcp": "none" }));
    new_field.upgrade = true;
    assert_eq!(label(&new_field.judge(&Evidence::default())), Some(DriftLabel::Unknown));
    let everywhere = [("dhcp".to_owned(), pair_of("dhcp", None, Some(&json!("none"))))].into();
    let all = Evidence { common: everywhere, ..Evidence::default() };
    assert_eq!(label(&new_field.judge(&all)), Some(DriftLabel::Vendor), "whatever the value");
}

#[test]
fn another_package_that_says_more_is_no_drift() {
    let case = Case::moved(json!({ "name": "a" }), json!({ "name": "a", "dhcp": "none" }));
    let anew = Evidence { is_read_anew: true, ..Evidence::default() };
    let judged = case.judge(&anew);
    assert_eq!((judged.drift, judged.wanted), (None, Some(content(json!({ "name": "a", "dhcp": "none" })))));
    let edited = Case::moved(json!({ "name": "a" }), json!({ "name": "b" }));
    assert_eq!(label(&edited.judge(&anew)), Some(DriftLabel::Unknown));
}

#[test]
fn objects_that_come_and_go_are_ours_or_are_told() {
    let clock = Clock::default();
    let made = Case { wanted: None, ..Case::moved(json!({}), json!({ "vlan_id": 20, "name": "guests" })) };
    let create =
        own(&row(&clock, "acme.model.vlan", Operation::Create, json!({ "vlan_id": 20, "name": "guests" })));
    let judged = made.judge(&of(vec![create]));
    assert!(judged.drift.is_none() && judged.wanted.is_some() && judged.written_by.is_some());
    let foreign = made.judge(&Evidence::default());
    let found = foreign.drift.unwrap();
    assert_eq!(
        (found.change, found.label, foreign.wanted),
        (DriftChange::Created, DriftLabel::Unknown, None)
    );
    let gone = Case { observed: None, ..Case::moved(json!({ "vlan_id": 20 }), json!({})) };
    let delete = own(&row(&clock, "acme.model.vlan", Operation::Delete, json!({ "key": "v20" })));
    let judged = gone.judge(&of(vec![delete]));
    assert_eq!((judged.drift, judged.wanted), (None, None));
    assert_eq!(gone.judge(&Evidence::default()).drift.unwrap().change, DriftChange::Removed);
}

#[test]
fn what_follows_from_a_change_of_another_object_is_ours() {
    let clock = Clock::default();
    let delete =
        own(&row(&clock, "acme.model.port", Operation::Update, json!({ "key": "lan1", "name": "uplink" })));
    let case =
        Case::moved(json!({ "members": [{ "port": "lan1" }] }), json!({ "members": [{ "port": "uplink" }] }));
    assert_eq!(case.judge(&of(vec![delete])).drift, None);
    assert_eq!(label(&case.judge(&Evidence::default())), Some(DriftLabel::Unknown));
}

#[test]
fn an_open_difference_keeps_its_label_and_is_not_taken_for_ours() {
    let known = vec![FieldDrift {
        field: "gateway".to_owned(),
        wanted: Some(json!("10.0.0.1")),
        observed: Some(json!("10.0.0.9")),
        label: DriftLabel::Vendor,
        reasons: vec!["known".to_owned()],
    }];
    let mut case = Case::moved(
        json!({ "name": "a", "gateway": "10.0.0.1" }),
        json!({ "name": "b", "gateway": "10.0.0.9" }),
    );
    case.known = known.clone();
    let found = case.judge(&Evidence::default()).drift.unwrap();
    assert_eq!(found.label, DriftLabel::Unknown, "two fields with different originators");
    assert_eq!(found.differences[0], known[0]);
}

#[test]
fn several_objects_tell_and_one_that_kept_its_value_tells_the_opposite() {
    let pairs =
        |count: usize| vec![(content(json!({ "dhcp": "none" })), content(json!({ "dhcp": "relay" }))); count];
    let found = |pairs: &[(Content, Content)], kept: &HashSet<(String, String)>| {
        common(pairs.iter().map(|(wanted, observed)| (wanted, observed)), kept).len()
    };
    assert_eq!(found(&pairs(1), &HashSet::new()), 0);
    assert_eq!(found(&pairs(2), &HashSet::new()), 1);
    let kept = [value_key("dhcp", Some(&json!("none")))].into();
    assert_eq!(found(&pairs(2), &kept), 0);
}
