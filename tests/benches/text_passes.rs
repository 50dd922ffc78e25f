//! Every pass over texts that devices and users send, over input that was made to be slow: nanoseconds for each byte must
//! not grow with the text. Beside each stands a copy of the same text.

use std::hint::black_box;

use heddle_core::Clock;
use heddle_core::bounds::{JsonRoom, cut_json};
use heddle_core::condition::{Condition, Conditions, Logic, Operator};
use heddle_core::event::Event;
use heddle_core::redact::{mask, mask_text, sanitize};
use heddle_core::secret::Secret;
use heddle_core::template::{Values, fill};
use heddle_runtime::passes;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::measure::{Report, Samples, timed};
use crate::support::event_type;

const MIB: &[usize] = &[1, 2, 4, 8];
const TURNS: usize = if cfg!(debug_assertions) { 1 } else { 5 };

/// A pass: what it is fed again and again, and what it does with a text of that.
struct Pass {
    name: &'static str,
    piece: String,
    work: fn(String),
}

pub(crate) fn measure(_: &Runtime, report: &mut Report) {
    for pass in passes_of_all() {
        let mut per_byte = Vec::new();
        for mib in MIB {
            let text = pass.piece.repeat((mib << 20) / pass.piece.len());
            let copies: Vec<_> =
                (0..TURNS).map(|_| timed(|| black_box(text.as_str()).to_owned()).0).collect();
            let times: Vec<_> = (0..TURNS)
                .map(|_| {
                    let text = text.clone();
                    timed(|| (pass.work)(text)).0
                })
                .collect();
            let (copy, samples) = (Samples::of(copies), Samples::of(times));
            let bytes = u32::try_from(text.len()).expect("it is small");
            let each = samples.median().as_secs_f64() * 1e9 / f64::from(bytes);
            let baseline = copy.median().as_secs_f64() * 1e9 / f64::from(bytes);
            per_byte.push(each);
            let result = format!("{each:.2} ns/byte; a copy {baseline:.2}");
            report.row(format!("{}, {mib} MiB", pass.name), &samples, result, "");
        }
        let growth = per_byte[per_byte.len() - 1] / per_byte[0];
        report.value(format!("{}, ns/byte at 8 MiB / at 1 MiB", pass.name), format!("x {growth:.2}"), "x 1");
        report.noise.sample();
    }
}

fn passes_of_all() -> Vec<Pass> {
    let reference = format!("hdl-secret:{}", "0123456789abcdef".repeat(2));
    let pass = |name, piece: &str, work| Pass { name, piece: piece.to_owned(), work };
    vec![
        pass("mask_text, references without digits", "hdl-secret:", |mut text| mask_text(&mut text)),
        pass("mask_text, whole references", &reference, |mut text| mask_text(&mut text)),
        pass("mask of a text in JSON", "hdl-secret:", |text| mask(&mut json!({ "a": text }))),
        pass("sanitize of a text in JSON", "hdl-secret:", |text| sanitize(&mut json!([text]))),
        pass("cut of a text in JSON", "ü", |text| cut_json(&mut json!({ "a": text }), 64 << 10)),
        pass("look at the size of JSON", "{\"a\":\"\\\"\"}", |text| {
            let _ = black_box(JsonRoom::default().take(format!("\"{text}").as_bytes()));
        }),
        pass("scrub, secrets of backslashes", "\\", scrub),
        pass("scrub, what begins like a secret", "aaaaaaaaaaaaaaab", scrub),
        pass("scrub, escapes of JSON and URLs", "%61\\u0061", scrub),
        pass("references find", "hdl-secret:0", |text| assert_eq!(passes::find(&text), 0)),
        pass("references replace", "x", |text| {
            let body = json!({ "key": text }).to_string().into_bytes();
            let replaced = passes::replace(body, &["key".to_owned()], &[1; 32]).expect("it is JSON");
            assert!(replaced.len() < 100);
        }),
        pass("references replace, nothing to replace", "[\\\"", |text| {
            let body = json!({ "no": text }).to_string().into_bytes();
            assert!(passes::replace(body, &["key".to_owned()], &[1; 32]).is_ok());
        }),
        pass("template, openings", "{{", |text| {
            black_box(filled(&text));
        }),
        pass("template, references", "{{trigger.a}}", |text| {
            black_box(filled(&text));
        }),
        pass("template, ends", "{{trigger.a}} }}", |text| {
            black_box(filled(&text));
        }),
        pass("condition, contains", "aaaaaaaaaaaaaaaa", |text| {
            let needle = json!(format!("{}b", "a".repeat(4_000)));
            assert!(
                conditions(Operator::Contains, needle)
                    .check(&event(json!({ "a": text })), &Value::Null)
                    .is_err()
            );
        }),
    ]
}

fn scrub(text: String) {
    let texts = ["\\".repeat(300), "\\".repeat(9), format!("{}b", "a".repeat(500)), "aaaaaaaac".to_owned()];
    let secrets: Vec<Secret> = texts.into_iter().map(Secret::new).collect();
    black_box(passes::scrub(&mut text.into_bytes(), &secrets));
}

fn filled(text: &str) -> bool {
    let trigger = json!({ "a": "" });
    fill(&json!({ "text": text }), &Values { trigger: &trigger, event: None, outputs: &[], own: None })
        .is_ok()
}

fn conditions(operator: Operator, value: Value) -> Conditions {
    Conditions { logic: Logic::And, conditions: vec![Condition { field: "a".to_owned(), operator, value }] }
}

fn event(payload: Value) -> Event {
    let clock = Clock::default();
    let event_type = event_type("device.offline");
    Event {
        id: clock.new_id(),
        seq: 1,
        event_type,
        category: event_type.category().to_owned(),
        priority: event_type.priority(),
        organization_id: clock.new_id(),
        occurred_at: clock.now(),
        causation_id: None,
        schema_version: 1,
        payload,
    }
}
