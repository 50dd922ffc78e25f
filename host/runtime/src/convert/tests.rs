use serde_json::json;

use super::*;

fn info(code: &str, fields: Vec<types::FieldError>) -> types::FaultInfo {
    types::FaultInfo {
        message: "m".repeat(5_000),
        code: Some(code.to_owned()),
        upstream_status: None,
        retry_after_ms: None,
        effect: types::Effect::None,
        fields,
    }
}

#[test]
fn what_a_fault_says_is_bounded_and_masked() {
    let field = types::FieldError {
        pointer: "/a\n".repeat(500),
        message: "hdl-secret:00112233445566778899aabbccddeeff\u{7}".to_owned(),
    };
    let code = format!("hdl-secret:{}", "0".repeat(100));
    let found = fault(types::Fault::Generic(info(&code, vec![field; 100])));
    assert_eq!(found.message.chars().count(), FAULT_MESSAGE_CHARS_MAX + 1);
    assert!(found.message.ends_with('…'));
    assert!(!found.code.unwrap().contains("hdl-secret"));
    assert_eq!(found.fields.len(), FAULT_FIELDS_MAX);
    assert_eq!(found.fields[0].message, "***");
    assert!(!found.fields[0].pointer.contains('\n'));
    assert!(found.fields[0].pointer.chars().count() <= FAULT_FIELD_CHARS_MAX + 1);
}

fn page(body: &str, count: usize) -> inventory::ObjectPage {
    let reference =
        types::ObjectRef { kind: "k".to_owned(), site: None, key: "1".to_owned(), locators: Vec::new() };
    let object = inventory::Object { reference, revision: None, body: body.to_owned() };
    inventory::ObjectPage {
        items: vec![object; count],
        next: None,
        total: None,
        complete: inventory::Completeness::Complete,
    }
}

#[test]
fn long_texts_of_objects_are_cut_and_too_long_a_key_costs_its_object_alone() {
    let long = json!({ "name": "x".repeat(880_000) }).to_string();
    let found = objects(page(&long, 1)).unwrap();
    let name = found.items[0].body["name"].as_str().unwrap();
    assert!(name.len() <= OBJECT_TEXT_BYTES_MAX && name.ends_with('…'));
    let mut with_key = page("{}", 3);
    with_key.items[1].reference.key = "k".repeat(KEY_BYTES_MAX + 1);
    let single = with_key.items[1].clone();
    with_key.items[2].reference.key = "2".to_owned();
    let found = objects(with_key).unwrap();
    let keys: Vec<&str> = found.items.iter().map(|item| item.reference.key.as_str()).collect();
    assert_eq!((keys.join(" ").as_str(), found.complete), ("1 2", Completeness::Partial));
    assert!(matches!(object(single), Err(Unfit::Name(_))));
}

#[test]
fn the_values_of_all_objects_together_are_bounded() {
    let body = json!(vec![0; 1_000]).to_string();
    assert!(objects(page(&body, 100)).is_ok());
    assert!(matches!(objects(page(&body, 300)), Err(Unfit::Size(_))));
    assert!(matches!(objects(page("{", 1)), Err(Unfit::Form(_))));
    assert!(matches!(objects(page(&"[".repeat(100), 1)), Err(Unfit::Size(_))));
}
