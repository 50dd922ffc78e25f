use serde_json::json;

use super::*;

fn world() -> (Value, Vec<Option<Value>>) {
    let trigger = json!({
        "name": "wan", "count": 3, "up": true, "none": null, "data": { "list": [10, { "deep": "x" }] },
        "evil": "{{trigger.secret}}", "secret": "s3cret",
    });
    (trigger, vec![Some(json!({ "status": 200, "body": { "id": 7 } })), None])
}

fn filled(params: &Value) -> Result<Value, TemplateError> {
    let (trigger, outputs) = world();
    let event = json!({ "seq": 4, "priority": "high", "payload": trigger });
    fill(params, &Values { trigger: &trigger, event: Some(&event), outputs: &outputs, own: None })
}

#[track_caller]
fn check(template: &str, expected: Value) {
    assert_eq!(filled(&json!(template)), Ok(expected), "{template}");
}

#[track_caller]
fn check_refused(template: &str, words: &str) {
    let error = filled(&json!(template)).unwrap_err().to_string();
    assert!(error.contains(words), "{template}: {error}");
}

#[test]
fn a_whole_reference_keeps_its_type_and_others_are_written() {
    check("{{trigger.count}}", json!(3));
    check("{{ trigger.up }}", json!(true));
    check("{{trigger.none}}", json!(null));
    check("{{trigger.data}}", json!({ "list": [10, { "deep": "x" }] }));
    check("{{trigger.data.list.0}}", json!(10));
    check("{{trigger.data.list.1.deep}}", json!("x"));
    check("{{event.seq}} {{event.payload.name}}", json!("4 wan"));
    check("{{steps.0.output.body.id}}", json!(7));
    check("{{steps.0.output}}", json!({ "status": 200, "body": { "id": 7 } }));
    check(
        "a {{trigger.name}}, {{trigger.count}} and {{trigger.data.list}}",
        json!("a wan, 3 and [10,{\"deep\":\"x\"}]"),
    );
    check(" {{trigger.count}}", json!(" 3"));
    check("nothing", json!("nothing"));
    check("} } {", json!("} } {"));
}

#[test]
fn without_an_event_its_fields_are_missing() {
    let values = Values { trigger: &json!({ "seq": 1 }), event: None, outputs: &[], own: None };
    let error = fill(&json!("{{event.seq}}"), &values).unwrap_err().to_string();
    assert!(error.contains("'event.seq' has no value: there is no 'event'"), "{error}");
    check_refused("{{event.nope}}", "'nope'");
}

#[test]
fn what_was_put_in_is_not_looked_at_again() {
    check("{{trigger.evil}}", json!("{{trigger.secret}}"));
    check("<{{trigger.evil}}>", json!("<{{trigger.secret}}>"));
}

#[test]
fn what_is_missing_is_named() {
    check_refused("{{trigger.data.nope.deeper}}", "'nope'");
    check_refused("{{trigger.data.list.2}}", "'2'");
    check_refused("{{trigger.data.list.01}}", "'01'");
    check_refused("{{steps.1.output.x}}", "'steps.1.output'");
    check_refused("{{steps.9.output}}", "'steps.9.output'");
    check_refused("{{trigger.name.x}}", "'x'");
}

#[test]
fn only_paths_are_references() {
    for text in [
        "{{",
        "{{trigger.name}",
        "{{}}",
        "{{ }}",
        "{{trigger}.name}}",
        "{{trigger..name}}",
        "{{steps.x.output}}",
        "{{steps.0}}",
        "{{steps.0.params.url}}",
        "{{env.HOME}}",
        "{{trigger.a b}}",
        "{{trigger.name | upper}}",
        "{{1 + 1}}",
        "{{{{trigger.name}}}}",
        "{{steps.-1.output}}",
        "{{trigger.name\n}}x{{",
    ] {
        assert!(references(&json!(text)).is_err() && filled(&json!(text)).is_err(), "{text}");
    }
    assert!(references(&json!({ "{{": 1 })).unwrap().is_empty());
    let found = references(&json!([{ "a": "{{steps.3.output.x}} {{trigger.y}}" }])).unwrap();
    assert_eq!(found.iter().map(Reference::step).collect::<Vec<_>>(), [Some(3), None]);
}

#[test]
fn depth_and_size_are_bounded() {
    let mut deep = json!(1);
    for _ in 0..=DEPTH_MAX {
        deep = json!([deep]);
    }
    assert_eq!(filled(&deep), Err(TemplateError::TooDeep));
    assert_eq!(references(&deep), Err(TemplateError::TooDeep));
    let trigger = json!({ "long": "x".repeat(1024) });
    let many = Value::Array(vec![json!("{{trigger.long}}"); 300]);
    assert_eq!(
        fill(&many, &Values { trigger: &trigger, event: None, outputs: &[], own: None }),
        Err(TemplateError::TooLarge)
    );
    let text = json!("{{trigger.long}}".repeat(300));
    assert_eq!(
        fill(&text, &Values { trigger: &trigger, event: None, outputs: &[], own: None }),
        Err(TemplateError::TooLarge)
    );
}

/// A generator whose seed is printed, so that a failure can be reproduced.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % below).unwrap()
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.next(words.len() as u64)]
    }

    fn text(&mut self) -> String {
        const WORDS: &[&str] = &[
            "{{",
            "}}",
            "{",
            "}",
            "trigger",
            "steps",
            ".",
            "0",
            "output",
            " ",
            "name",
            "x",
            "{{trigger.a}}",
            "\u{0}",
            "{{steps.0.output.b}}",
            "${",
            "<%",
            "|",
            "(",
            "\"",
            "\\",
            "é",
        ];
        (0..self.next(8)).map(|_| self.pick(WORDS)).collect()
    }

    fn value(&mut self, depth: u32) -> Value {
        match self.next(if depth == 0 { 5 } else { 7 }) {
            0 => json!(null),
            1 => json!(self.next(2) == 0),
            2 => json!(self.next(1000)),
            3 | 4 => json!(self.text()),
            5 => Value::Array((0..self.next(4)).map(|_| self.value(depth - 1)).collect()),
            _ => Value::Object((0..self.next(4)).map(|_| (self.text(), self.value(depth - 1))).collect()),
        }
    }
}

/// Texts of the result, each of which must come from the template or, whole or in part, from a value.
#[test]
fn no_value_from_outside_is_ever_read_as_a_template() {
    let seed = u64::from_be_bytes(*crate::secret::random_bytes::<8>());
    let mut random = Random(seed);
    for round in 0..20_000 {
        let value = random.value(3);
        let trigger = json!({ "a": value, "canary": "CANARY" });
        let outputs = [Some(json!({ "b": random.value(3), "canary": "CANARY" }))];
        let values = Values { trigger: &trigger, event: None, outputs: &outputs, own: None };
        // A whole reference is the value, whatever is in it.
        assert_eq!(fill(&json!("{{trigger.a}}"), &values), Ok(value), "seed {seed}, round {round}");
        assert_eq!(
            fill(&json!("{{steps.0.output.b}}"), &values).as_ref(),
            Ok(&outputs[0].as_ref().unwrap()["b"])
        );
        // And no value brings another one in.
        let template = random.value(3);
        let filled = fill(&template, &values);
        if let Ok(filled) = &filled {
            // The template itself may ask for all there is.
            let asked = template.to_string().replace(' ', "");
            let names_it =
                ["canary", "{{trigger}}", "{{steps.0.output}}"].iter().any(|all| asked.contains(all));
            assert!(
                names_it || !filled.to_string().contains("CANARY"),
                "seed {seed}, round {round}: {template}"
            );
        }
        // A template that can be filled also passes the check of its references.
        if filled.is_ok() {
            assert!(references(&template).is_ok(), "seed {seed}, round {round}: {template}");
        }
    }
}

#[test]
fn taking_a_text_apart_takes_work_in_proportion_to_it() {
    for piece in ["{{", "}}", "{{trigger.a}}", "{{trigger.a}} }}", "{", "a"] {
        for length in [10_000, 80_000] {
            let text = piece.repeat(length / piece.len());
            let worked = work::counted(|| drop(pieces(&text)));
            assert!(worked <= text.len(), "'{piece}': {worked} bytes of work for {}", text.len());
        }
    }
}

#[test]
fn what_only_a_step_has_is_named_by_its_own_words() {
    let own = json!({ "item": { "id": 7, "tags": ["a"] }, "index": 3, "error": { "message": "no route" } });
    let trigger = json!({ "item": "not this one" });
    let given =
        json!({ "id": "{{item.id}}", "at": "{{index}}", "text": "{{item.tags.0}}: {{error.message}}" });
    let values = Values { trigger: &trigger, event: None, outputs: &[], own: Some(&own) };
    assert_eq!(fill(&given, &values), Ok(json!({ "id": 7, "at": 3, "text": "a: no route" })));
    let without = Values { own: None, ..values };
    assert!(matches!(fill(&given, &without), Err(TemplateError::Missing { .. })));
    let words: Vec<Option<String>> = references(&json!(["{{item}}", "{{trigger.item}}"]))
        .unwrap()
        .iter()
        .map(|r| r.own().map(str::to_owned))
        .collect();
    assert_eq!(words, [Some("item".to_owned()), None]);
}
