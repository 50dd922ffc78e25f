use serde_json::json;

use super::*;

#[test]
fn every_value_of_json_is_read_as_it_was_written() {
    for value in [
        json!({ "b": 1, "a": [1, -2, 2.5, true, null, "x"], "empty": { "map": {}, "list": [] } }),
        json!({ "deep": [[1, [2]], { "k": [{ "a": 1, "b": [] }] }] }),
        json!({ "no": "no", "null": "null", "20": "20", "1e3": "1e3", "~": "~", "0x1f": "0x1f", ".inf": ".inf" }),
        json!({ "a: b": "c #d", "- x": "- y", "": "", " ": " x ", "é": "😀", "q\"": "\\n\n\t\r\u{1}\u{7f}\u{85}\u{feff}" }),
        json!(["---", "...", "&a", "*a", "!t", "%x", "@", "`", "<<", "?", "a\u{2028}b"]),
        json!("only a text"),
        json!([]),
        json!({ "large": u64::MAX, "small": i64::MIN, "float": 1e300 }),
    ] {
        let text = write(&value);
        assert_eq!(read(&text).unwrap_or_else(|problem| panic!("{problem:?}: {text}")), value, "{text}");
    }
}

#[test]
fn values_that_a_generator_makes_come_back_as_they_were() {
    let mut state = 7_u64;
    for _ in 0..2_000 {
        let value = any(&mut state, 4);
        let text = write(&value);
        assert_eq!(read(&text).unwrap_or_else(|problem| panic!("{problem:?}: {text}")), value, "{text}");
    }
}

/// A step of splitmix64.
fn below(state: &mut u64, limit: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % limit
}

fn any_text(state: &mut u64) -> String {
    const CHARS: [char; 24] = [
        'a', 'Z', '0', '9', ' ', '-', ':', '#', '"', '\'', '\\', '\n', '\t', '[', '}', ',', '&', '*', '!',
        '~', '.', 'e', 'é', '\u{2028}',
    ];
    let length = below(state, 6);
    (0..length).map(|_| CHARS[usize::try_from(below(state, 24)).unwrap()]).collect()
}

fn any(state: &mut u64, depth: u64) -> Value {
    match below(state, if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => Value::Bool(below(state, 2) == 0),
        2 => json!(i64::try_from(below(state, 1000)).unwrap() - 500),
        3 => json!(f64::from(u32::try_from(below(state, 1000)).unwrap()) / 8.0 + 0.0625),
        4 => Value::String(any_text(state)),
        5 => (0..below(state, 4)).map(|_| any(state, depth - 1)).collect(),
        _ => (0..below(state, 4)).map(|_| (any_text(state), any(state, depth - 1))).collect(),
    }
}

#[test]
fn what_people_write_by_hand_means_what_it_looks_like() {
    let text = "\
# A comment.
---
vlan:
  '20': {vlan_id: 20, name: guests, members: [{port: lan1, tagged: no}]}
  v30:
    vlan_id: 0x1e
    name: |
      two
      lines
    gateway: ~
    country: no
";
    let vlan = json!({
        "20": { "vlan_id": 20, "name": "guests", "members": [{ "port": "lan1", "tagged": "no" }] },
        "v30": { "vlan_id": 30, "name": "two\nlines\n", "gateway": null, "country": "no" },
    });
    assert_eq!(read(text).unwrap(), json!({ "vlan": vlan }));
}

#[test]
fn what_could_grow_or_surprise_is_refused_at_its_place() {
    for (text, path, kind) in [
        ("a: &x [1]\nb: 2\n", "/a", "yaml_refused"),
        ("a: &x 1\n", "/a", "yaml_refused"),
        ("a: !!int '1'\n", "/a", "yaml_refused"),
        ("a:\n  <<: {b: 1}\n", "/a", "yaml_refused"),
        ("a:\n  b: 1\n  b: 2\n", "/a/b", "duplicate_key"),
        ("a:\n  - {x: 1, x: 2}\n", "/a/0/x", "duplicate_key"),
        ("? [1, 2]\n: 3\n", "", "yaml_refused"),
        ("a: .nan\n", "/a", "value_error"),
        ("a: 99999999999999999999\n", "/a", "value_error"),
        ("--- 1\n--- 2\n", "", "yaml_refused"),
        ("", "", "yaml_invalid"),
        ("a: [1\n", "", "yaml_invalid"),
        ("a: \"\\0\"\n", "/a", "yaml_refused"),
    ] {
        let problem = read(text).unwrap_err();
        assert_eq!((problem.path.as_str(), problem.kind), (path, kind), "{text}: {problem:?}");
    }
    let problem = read("x: &a [1]\ny: *a\n").unwrap_err();
    assert!(problem.message.contains("anchors") && problem.message.contains("line 1"), "{problem:?}");
}

#[test]
fn a_bomb_is_small_and_stays_so() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let before = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [before.as_str(); 9].join(", ")));
    }
    assert_eq!(read(&bomb).unwrap_err().kind, "yaml_refused");
    assert_eq!(read(&"[".repeat(40)).unwrap_err().kind, "too_deep");
    assert_eq!(read(&"[".repeat(50_000)).unwrap_err().kind, "yaml_invalid", "the parser itself gives up");
    assert_eq!(read(&format!("[{}1]", "1,".repeat(100_001))).unwrap_err().kind, "too_large");
    let deep: String = (0..40).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert_eq!(read(&deep).unwrap_err().kind, "too_deep");
}
