use super::*;
use crate::Clock;
use crate::event::samples::DEVICE_OFFLINE;

fn event(payload: Value) -> Event {
    let clock = Clock::default();
    Event {
        id: clock.new_id(),
        seq: 1,
        event_type: DEVICE_OFFLINE,
        category: "device".to_owned(),
        priority: DEVICE_OFFLINE.priority(),
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
    let answer = given.check(&event(payload()), &Value::Null);
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
    let check = |logic, conditions: Vec<Condition>| {
        Conditions { logic, conditions }.check(&event(payload()), &Value::Null)
    };
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

#[test]
fn what_is_too_large_to_compare_is_told_so() {
    let of = |field: String, value: Value| {
        let conditions = vec![Condition { field, operator: Operator::Eq, value }];
        Conditions { logic: Logic::And, conditions }.faults()
    };
    // A text has its two quotes, too; what counts is the JSON, in bytes.
    let fits = "x".repeat(VALUE_BYTES_MAX - 2);
    assert_eq!(of("a".repeat(FIELD_CHARS_MAX), json!(fits)), []);
    for value in
        [json!(format!("{fits}x")), json!("\n".repeat(2100)), json!("ä".repeat(2048)), json!(vec![7; 2500])]
    {
        let faults = of("a".to_owned(), value);
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].0, "conditions.0.value");
        assert!(faults[0].1.contains("4096 bytes as JSON"), "{}", faults[0].1);
    }
    assert_eq!(of("a".repeat(FIELD_CHARS_MAX + 1), json!(1))[0].0, "conditions.0.field");
}

/// Values of every kind, such as a payload can have and a condition can name.
fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(5),
        json!(5.0),
        json!(5.5),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("5"),
        json!("ap"),
        json!("ap-7"),
        json!("äp"),
        json!([]),
        json!([5]),
        json!(["ap", 5.0]),
        json!([[5]]),
        json!({}),
        json!({ "a": 5 }),
    ]
}

#[test]
fn a_reason_names_what_was_found_and_its_type_and_no_secret() {
    let reason = |field: &str, value: Value| {
        let condition = Condition { field: field.to_owned(), operator: Operator::Eq, value };
        let given = event(
            json!({ "count": 5, "token": "geheim", "deep": { "token": "geheim" }, "long": "x".repeat(500) }),
        );
        Conditions { logic: Logic::And, conditions: vec![condition] }.check(&given, &Value::Null).unwrap_err()
    };
    assert_eq!(reason("count", json!("5")), "condition 0 is false: count eq \"5\", and it is 5 (a number)");
    assert!(reason("nmae", json!(1)).ends_with("and it is not there"));
    for field in ["token", "deep.token", "deep"] {
        assert!(!reason(field, json!(1)).contains("geheim"), "{field}");
    }
    assert!(reason("long", json!(1)).chars().count() < 200);
}

#[test]
fn laws_hold_for_every_pair_of_values() {
    use Operator::*;
    let holds = |given: &Value, operator: Operator, value: &Value| {
        let condition = Condition { field: "x".to_owned(), operator, value: value.clone() };
        condition.holds(Some(given))
    };
    for one in &values() {
        for other in &values() {
            let is = |operator| holds(one, operator, other);
            let pair = format!("{one} and {other}");
            for (operator, negation) in [(Eq, Ne), (Contains, NotContains), (In, NotIn), (Exists, NotExists)]
            {
                assert_ne!(is(operator), is(negation), "{operator} {negation}: {pair}");
            }
            assert_eq!(is(Eq), holds(other, Eq, one), "{pair}");
            assert_eq!(is(Gt), holds(other, Lt, one), "{pair}");
            assert_eq!(is(Gte), holds(other, Lte, one), "{pair}");
            assert!(u8::from(is(Gt)) + u8::from(is(Lt)) + u8::from(is(Eq)) <= 1, "{pair}");
            let is_ordered = (one.is_string() && other.is_string()) || (one.is_number() && other.is_number());
            assert_eq!(is(Gt) || is(Lt) || is(Eq), is_ordered || one == other, "{pair}");
            assert_eq!(is(Gte), is(Gt) || (is_ordered && is(Eq)), "{pair}");
            assert_eq!(is(Lte), is(Lt) || (is_ordered && is(Eq)), "{pair}");
            if is(StartsWith) || is(EndsWith) {
                assert!(is(Contains), "{pair}");
            }
            assert_eq!(is(In), other.is_array() && holds(other, Contains, one), "{pair}");
            // Neither holds of a field that is not there, whatever it is compared with.
            let absent = Condition { field: "y".to_owned(), operator: Eq, value: other.clone() };
            assert!(!absent.holds(None), "{pair}");
        }
    }
}

#[test]
fn all_hold_where_none_of_their_negations_does() {
    use Operator::*;
    let pairs = [(Eq, Ne), (Contains, NotContains), (In, NotIn), (Exists, NotExists)];
    let all = values();
    for (at, given) in all.iter().enumerate() {
        let of = |logic, negated: bool| {
            let conditions = pairs.iter().enumerate().map(|(place, (operator, negation))| Condition {
                field: "x".to_owned(),
                operator: if negated { *negation } else { *operator },
                value: all[(at * 7 + place * 5) % all.len()].clone(),
            });
            let given = event(json!({ "x": given }));
            Conditions { logic, conditions: conditions.collect() }.check(&given, &Value::Null).is_ok()
        };
        assert_ne!(of(Logic::And, false), of(Logic::Or, true), "{given}");
        assert_ne!(of(Logic::Or, false), of(Logic::And, true), "{given}");
    }
}
