use heddle_marketplace::push::SiteIs;
use serde_json::json;

use super::*;

fn channel(rules: Value) -> Channel {
    serde_json::from_value(json!({ "socket": { "ping-s": 15, "silence-s": 45 }, "rules": rules })).unwrap()
}

/// The numbers of the rules that each message in turn asks for.
fn told(channel: &Channel, messages: Vec<Value>) -> Vec<Vec<usize>> {
    let mut memory = Memory::default();
    let numbers = |told: Vec<Told>| told.iter().filter_map(|told| told.rule).collect();
    messages
        .iter()
        .map(|message| numbers(wanted(channel, &Place::Controller, message, &mut memory)))
        .collect()
}

#[test]
fn a_pattern_stands_for_any_text_between_its_parts() {
    for (pattern, text, is_it) in [
        ("up", "up", true),
        ("up", "ups", false),
        ("*", "", true),
        ("up*", "up", true),
        ("up*", "setup", false),
        ("*up", "setup", true),
        ("*up*", "groups", true),
        ("EVT_*_Lost_Contact", "EVT_AP_Lost_Contact", true),
        ("EVT_*_Lost_Contact", "EVT_Lost_Contact", false),
        ("a*b*c", "aXbYc", true),
        ("a*b*c", "abc", true),
        ("a*b*c", "ac", false),
        ("a*b*c", "aXcYb", false),
        ("ab*ba", "aba", false),
        ("ä*ö", "äüö", true),
    ] {
        assert_eq!(like(pattern, text), is_it, "{pattern} {text}");
    }
}

#[test]
fn all_conditions_of_a_rule_hold_and_all_rules_that_fit_count() {
    let channel = channel(json!([
        { "when": { "/kind": ["device:*", "alert"], "/n": [1, null, true] }, "reads": ["device"] },
        { "when": { "/data/*/key": ["EVT_*"] }, "reads": ["client"] },
        { "when": { "/kind": ["*"] }, "reads": ["port"] },
        { "when": { "/a~1b/0/c~0d": ["x"] }, "reads": ["vlan"] },
        { "when": { "/groups/*/*/up": [true] }, "reads": ["interface"] }
    ]));
    for (message, expected) in [
        (json!({"kind": "device:add", "n": 1}), vec![0, 2]),
        (json!({"kind": "alert", "n": null}), vec![0, 2]),
        (json!({"kind": "alert"}), vec![2]),
        (json!({"kind": "device", "n": true}), vec![2]),
        (json!({"kind": 7, "n": 1}), vec![]),
        (json!({"data": [{"key": "x"}, {}, 7, {"key": "EVT_1"}]}), vec![1]),
        (json!({"data": {"first": {"key": "EVT_1"}}}), vec![1]),
        (json!({"data": "EVT_1"}), vec![]),
        (json!({"a/b": [{"c~d": "x"}]}), vec![3]),
        (json!({"groups": [[{"up": false}], [{"up": true}]]}), vec![4]),
        (json!([]), vec![]),
        (json!("text"), vec![]),
    ] {
        assert_eq!(told(&channel, vec![message.clone()]), [expected], "{message}");
    }
}

#[test]
fn a_message_counts_where_a_thing_differs_from_its_last_one() {
    let rules = json!([{
        "when": { "/kind": ["sync"] }, "reads": ["device"],
        "differs": { "by": "/data/*/mac", "of": ["/state", "/at/version"] }
    }]);
    let of = |things: Value| json!({"kind": "sync", "data": things});
    let messages = vec![
        of(json!([{"mac": "a", "state": 1, "load": 5}, {"mac": "b", "state": 1}])),
        of(json!([{"mac": "a", "state": 1, "load": 6}, {"mac": "b", "state": 1}])),
        of(json!([{"mac": "b", "state": 2}])),
        of(json!([{"mac": "a", "state": 1}, {"mac": "b", "state": 2}])),
        of(json!([{"mac": "a", "state": 1, "at": {"version": "2"}}])),
        of(json!([{"mac": "a", "state": "1", "at": {"version": "2"}}])),
        of(json!([{"state": 1}])),
        of(json!([])),
        json!({"kind": "sync"}),
        of(json!([{"mac": "a", "state": "1", "at": {"version": "2"}}])),
    ];
    let counts: Vec<bool> = told(&channel(rules), messages).iter().map(|told| !told.is_empty()).collect();
    assert_eq!(counts, [true, false, true, false, true, true, true, true, true, false]);
}

#[test]
fn without_an_array_the_message_is_the_thing_and_rules_remember_apart() {
    let differs = json!({ "by": "/id", "of": ["/up"] });
    let rule = json!({ "when": { "": ["x"] }, "reads": ["device"], "differs": differs });
    let mut first = rule.clone();
    first["when"] = json!({ "/id": ["*"] });
    let mut second = rule;
    second["when"] = json!({ "/up": [true] });
    let up = |up: bool| json!({"id": "a", "up": up});
    let found = told(&channel(json!([first, second])), vec![up(true), up(true), up(false), up(true)]);
    assert_eq!(found, [vec![0, 1], vec![], vec![0], vec![0]]);
}

#[test]
fn things_without_room_count_every_time() {
    let rules =
        json!([{ "when": { "/id": ["*"] }, "reads": ["device"], "differs": { "by": "/id", "of": ["/up"] } }]);
    let channel = channel(rules);
    let mut memory = Memory::default();
    let mut counts = |id: usize| {
        !wanted(&channel, &Place::Controller, &json!({"id": id.to_string()}), &mut memory).is_empty()
    };
    assert!((0..KEYS_MAX).all(&mut counts));
    assert!(!counts(0) && !counts(KEYS_MAX - 1));
    assert!(counts(KEYS_MAX) && counts(KEYS_MAX));
    assert_eq!(memory.seen.len(), KEYS_MAX);
}

#[test]
fn a_site_is_that_of_the_place_or_of_the_message() {
    let mut channel = channel(json!([{ "when": { "": ["*"] }, "reads": ["device", "client"] }]));
    let here = Place::Site("7".to_owned());
    assert_eq!(site::of(&channel, &here, &json!({})), ToldSite::Id("7".to_owned()));
    assert_eq!(site::of(&channel, &Place::Controller, &json!({"site": "a"})), ToldSite::All);
    let at = "/site".to_owned();
    channel.site = Some(heddle_marketplace::push::MessageSite { at, is: SiteIs::Name });
    let of = |message: Value| site::of(&channel, &Place::Controller, &message);
    assert_eq!(of(json!({"site": "Home"})), ToldSite::Name("Home".to_owned()));
    assert_eq!(of(json!({"site": 12})), ToldSite::Name("12".to_owned()));
    for message in [json!({}), json!({"site": ""}), json!({"site": ["a"]}), json!({"site": "a".repeat(300)})]
    {
        assert_eq!(of(message), ToldSite::All);
    }
    let everything = gap(&channel, &here);
    assert_eq!(everything.reads, ["client", "device"]);
    assert_eq!((everything.site, everything.rule), (ToldSite::Id("7".to_owned()), None));
}
