use super::*;
use crate::Clock;
use crate::event::EventType;

fn event(payload: Value) -> Event {
    let clock = Clock::default();
    Event {
        id: clock.new_id(),
        seq: 1,
        event_type: EventType::DeviceOffline,
        category: "device".to_owned(),
        priority: EventType::DeviceOffline.priority(),
        organization_id: clock.new_id(),
        occurred_at: clock.now(),
        causation_id: None,
        schema_version: 1,
        payload,
    }
}

fn payload() -> Value {
    json!({
        "name": "ap-7", "count": 5, "load": 0.5, "none": null, "tags": ["a", 2], "data": { "site": "hq" },
        "payload": { "x": "inner" }, "category": "own",
    })
}

#[track_caller]
fn check(field: &str, operator: Operator, value: Value, holds: bool) {
    let condition = Condition { field: field.to_owned(), operator, value };
    let given = Conditions { logic: Logic::And, conditions: vec![condition.clone()] };
    let answer = given.check(&event(payload()));
    assert_eq!(answer.is_ok(), holds, "{condition:?}");
    if let Err(reason) = answer {
        assert!(reason.contains("condition 0") && reason.contains(field), "{reason}");
    }
}

#[test]
fn each_operator_compares_as_its_name_says() {
    use Operator::*;
    for (operator, value, holds) in [
        (Eq, json!(5), true),
        (Eq, json!(5.0), true),
        (Eq, json!("5"), false),
        (Ne, json!(5), false),
        (Ne, json!(6), true),
        (Gt, json!(4), true),
        (Gt, json!(5), false),
        (Gte, json!(5), true),
        (Lt, json!(5.5), true),
        (Lt, json!(5), false),
        (Lte, json!(5), true),
        (Lt, json!("6"), false),
        (In, json!([1, 5]), true),
        (In, json!([1]), false),
        (NotIn, json!([1]), true),
        (NotIn, json!([5]), false),
    ] {
        check("count", operator, value, holds);
    }
    for (operator, value, holds) in [
        (Contains, json!("p-"), true),
        (Contains, json!("x"), false),
        (NotContains, json!("x"), true),
        (NotContains, json!("ap"), false),
        (StartsWith, json!("ap"), true),
        (StartsWith, json!("p"), false),
        (EndsWith, json!("-7"), true),
        (EndsWith, json!("-"), false),
        (Gt, json!("ap-6"), true),
        (In, json!("ap-7 and more"), false),
    ] {
        check("name", operator, value, holds);
    }
    check("tags", Contains, json!(2), true);
    check("tags", Contains, json!("2"), false);
    check("load", Gt, json!(0), true);
}

#[test]
fn what_is_not_there_is_false_and_its_negation_true() {
    use Operator::*;
    for operator in [Eq, Gt, Gte, Lt, Lte, Contains, StartsWith, EndsWith, Exists] {
        check("nope.deeper", operator, json!("x"), false);
    }
    check("nope", In, json!(["x"]), false);
    for (operator, value) in
        [(Ne, json!("x")), (NotContains, json!("x")), (NotIn, json!(["x"])), (NotExists, json!(null))]
    {
        check("nope", operator, value, true);
    }
    check("none", Exists, json!(null), false);
    check("none", NotExists, json!(null), true);
    check("none", Eq, json!(null), true);
    check("count", Exists, json!(null), true);
}

#[test]
fn a_path_finds_its_field() {
    use Operator::Eq;
    check("data.site", Eq, json!("hq"), true);
    check("payload.data.site", Eq, json!("hq"), true);
    check("trigger.data.site", Eq, json!("hq"), true);
    check("tags.0", Eq, json!("a"), true);
    check("payload.x", Eq, json!("inner"), true);
    check("event_type", Eq, json!("device.offline"), true);
    check("priority", Eq, json!("high"), true);
    check("category", Eq, json!("own"), true);
}

#[test]
fn logic_and_faults() {
    let one = |field: &str, value: i64| Condition {
        field: field.to_owned(),
        operator: Operator::Eq,
        value: json!(value),
    };
    let check = |logic, conditions: Vec<Condition>| Conditions { logic, conditions }.check(&event(payload()));
    assert!(check(Logic::And, vec![]).is_ok() && check(Logic::Or, vec![]).is_ok());
    assert!(check(Logic::Or, vec![one("count", 1), one("count", 5)]).is_ok());
    assert!(check(Logic::And, vec![one("count", 5), one("count", 1)]).unwrap_err().contains("condition 1"));
    assert!(check(Logic::Or, vec![one("count", 1), one("count", 2)]).unwrap_err().contains("none of 2"));
    let wrong = Conditions {
        logic: Logic::And,
        conditions: vec![
            Condition { field: "a..b".to_owned(), operator: Operator::In, value: json!(1) },
            Condition { field: "a".to_owned(), operator: Operator::Gt, value: json!([]) },
        ],
    };
    let fields: Vec<String> = wrong.faults().into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["conditions.0.field", "conditions.0.value", "conditions.1.value"]);
    let many = Conditions { logic: Logic::And, conditions: vec![one("a", 1); CONDITIONS_MAX + 1] };
    assert_eq!(many.faults().len(), 1);
}
