use serde_json::json;

use super::*;

#[track_caller]
fn refused(document: &Value, expected: &str) {
    let error = Schema::parse(document).expect_err(expected).to_string();
    assert!(error.contains(expected), "expected {expected}, got: {error}");
}

fn with(field: Value) -> Value {
    json!({ "type": "object", "properties": { "field": field } })
}

#[test]
fn an_ordinary_schema_is_compiled() {
    let schema = Schema::parse(&json!({
        "$schema": DIALECT,
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "pattern": { "$ref": "#/$defs/word" },
            "id": { "type": "string", "pattern": "^https?://[^\\x00-\\x20'\"\\\\]{1,1000}$" },
            "$ref": { "enum": ["https://elsewhere.test/a"] },
            "list": { "type": "array", "items": { "$ref": "#/$defs/word" } },
        },
        "$defs": { "word": { "type": "string", "pattern": "^\\w{1,64}$" }, "text": { "pattern": "^[^\\x00-\\x1f'\"\\\\]{1,1024}$" } },
    }))
    .unwrap();
    assert!(schema.validator().is_valid(&json!({ "pattern": "a", "list": ["b"], "id": "https://a" })));
    assert!(!schema.validator().is_valid(&json!({ "pattern": "a b" })));
    assert!(!schema.validator().is_valid(&json!({ "list": ["-"] })));
}

#[test]
fn what_needs_something_from_outside_is_refused() {
    for target in
        ["https://acme.test/s.json", "file:///etc/passwd", "other.json", "#anchor", "#", "#/properties/field"]
    {
        refused(&with(json!({ "$ref": target })), "leaves the schema");
        refused(&with(json!({ "anyOf": [{ "not": { "$ref": target } }] })), "leaves the schema");
    }
    for keyword in ["$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor", "$vocabulary"] {
        refused(&with(json!({ keyword: "#x" })), keyword);
    }
    refused(&json!({ "$schema": "https://acme.test/dialect" }), "acme.test");
    refused(&json!({ "$schema": "http://json-schema.org/draft-07/schema#" }), "draft-07");
    refused(&with(json!({ "$ref": "#/$defs/none" })), "names no definition");
}

#[test]
fn references_neither_turn_in_circles_nor_multiply() {
    let circle = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } });
    refused(&circle, "leads back to itself");
    let nested = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "items": { "$ref": "#/$defs/a" } } } });
    refused(&nested, "leads back to itself");
    let mut definitions = json!({ "d0": true });
    for n in 1..20 {
        let twice = json!({ "$ref": format!("#/$defs/d{}", n - 1) });
        definitions[format!("d{n}")] = json!({ "allOf": [twice, twice] });
    }
    refused(&json!({ "$defs": definitions }), "multiply");
    let mut definitions = json!({ "d0": true });
    for n in 1..2_000 {
        definitions[format!("d{n}")] = json!({ "$ref": format!("#/$defs/d{}", n - 1) });
    }
    refused(&json!({ "$ref": "#/$defs/d1999", "$defs": definitions }), "deeper");
}

#[test]
fn patterns_are_bounded_and_linear() {
    for pattern in ["a{0,100000}", "a{100000}", "a{100000,}", "(a{2}){5000}", "a{99999999999999999999999}"] {
        refused(&with(json!({ "pattern": pattern })), "times");
        refused(&json!({ "patternProperties": { pattern: true } }), "times");
    }
    refused(&with(json!({ "pattern": "((a{900}){900}){900}" })), "cannot be used");
    refused(&with(json!({ "pattern": "a".repeat(2_000) })), "bytes");
    refused(&with(json!({ "pattern": "(?=a)b" })), "cannot be used");
    refused(&with(json!({ "pattern": "(a)\\1" })), "cannot be used");
    refused(&with(json!({ "pattern": "(" })), "cannot be used");
    refused(&json!({ "anyOf": vec![json!({ "pattern": "a" }); 129] }), "patterns");
}

#[test]
fn the_patterns_of_a_schema_have_equal_parts_of_its_memory() {
    let of = |count: usize, pattern: fn(usize) -> String| json!({ "anyOf": (0..count).map(|n| json!({ "pattern": pattern(n) })).collect::<Vec<_>>() });
    // Each of them takes some hundred kilobytes.
    let large = |n| format!("^[^a]{{1,{}}}$", 1_000 + n);
    Schema::parse(&of(4, large)).unwrap();
    refused(&of(128, large), "cannot be used");
    // The same one is compiled once, and small ones have room enough.
    Schema::parse(&of(128, |_| "^[^a]{1,1000}$".to_owned())).unwrap();
    Schema::parse(&of(128, |n| format!("^[a-z0-9.-]{{1,{}}}$", 200 + n))).unwrap();
    assert!(Schema::compile_within(&of(1, large), 1 << 10).is_err());
}

#[test]
fn size_and_depth_are_bounded() {
    refused(&json!([]), "object");
    refused(&json!({ "title": "x".repeat(65 * 1024) }), "bytes");
    refused(&(0..16).fold(json!({}), |inner, _| json!({ "not": inner })), "deeper");
    refused(&with(json!({ "type": "text" })), "cannot be used");
    refused(&with(json!(3)), "where a schema belongs");
    refused(&json!({ "properties": [] }), "cannot be used");
}
