//! What an adapter can express in the words of the model, told from its bindings.

use heddle_marketplace::model::{self, ModelKind};
use serde_json::{Map, Value, json};

/// Adds to each kind of the model what its sources say of writes: verbs, their fields, and the operations that they become.
/// A kind that says it by hand keeps that.
pub(crate) fn add(model: &mut Value, features: &Value) {
    for filled in model.as_array_mut().into_iter().flatten() {
        if filled.get("writes").is_some() {
            continue;
        }
        let mut verbs: Vec<Verb> = Vec::new();
        let Some(kind) = model::find(filled["kind"].as_str().unwrap_or_default()) else { continue };
        for source in filled["binding"]["sources"].as_array().into_iter().flatten() {
            of_source(kind, source, features, &mut verbs);
        }
        if !verbs.is_empty() {
            let shown = verbs.iter().map(|verb| {
                let mut shown = json!({ "verb": verb.name, "uses": verb.uses });
                if !verb.fields.is_empty() {
                    shown["fields"] = json!(verb.fields);
                }
                shown
            });
            let writes: Vec<Value> = shown.collect();
            // Before the binding, as people read it.
            let binding = filled.as_object_mut().and_then(|entry| entry.remove("binding"));
            filled["writes"] = json!(writes);
            if let Some(binding) = binding {
                filled["binding"] = binding;
            }
        }
    }
}

struct Verb {
    name: String,
    fields: Vec<String>,
    uses: Vec<Value>,
}

fn of_source(kind: &ModelKind, source: &Value, features: &Value, verbs: &mut Vec<Verb>) {
    let writes = &source["writes"];
    let feature = writes["feature"].as_str().unwrap_or_default();
    for verb in texts(&writes["verbs"]) {
        let fields = match verb.as_str() {
            "delete" => Vec::new(),
            verb => fields((kind, verb), writes, &natural_key(features, feature)),
        };
        note(verbs, &verb, fields, json!({ "feature": feature, "operation": verb }));
        for beside in texts(&writes["beside"]).iter().filter(|_| verb == "update") {
            note(verbs, &verb, Vec::new(), json!({ "feature": beside, "operation": verb }));
        }
    }
    for (verb, acts) in source["actions"].as_object().into_iter().flatten() {
        let operation = acts["operation"].as_str().unwrap_or("create");
        note(verbs, verb, Vec::new(), json!({ "feature": acts["feature"], "operation": operation }));
    }
}

/// The fields of the model that a verb takes, as the kind names them: an update leaves those out that name the object
/// there.
fn fields((kind, verb): (&ModelKind, &str), writes: &Value, key: &[String]) -> Vec<String> {
    let none = Map::new();
    let given = writes["fields"].as_object().unwrap_or(&none).iter();
    let names_it = |to: &Value| {
        let to = to.as_str().or_else(|| to["to"].as_str()).unwrap_or_default();
        verb == "update" && key.iter().any(|name| name == to)
    };
    let given = given.filter(|(_, to)| !names_it(to)).map(|(field, _)| field.clone());
    let when = writes["when"].as_object().unwrap_or(&none).keys().cloned();
    let mut out: Vec<String> = Vec::new();
    for field in given.chain(texts(&writes["by-code"])).chain(when) {
        // A part of a field that the kind takes as a whole, such as `scope.key`.
        let whole = field.split('.').next().unwrap_or_default();
        let is_part = !kind.written_fields(verb).any(|known| known == field);
        let named = if is_part { whole.to_owned() } else { field };
        if kind.written_fields(verb).any(|known| known == named) && !out.contains(&named) {
            out.push(named);
        }
    }
    out
}

fn natural_key(features: &Value, feature: &str) -> Vec<String> {
    let mut all = features.as_array().into_iter().flatten();
    all.find(|one| one["id"] == feature).map(|one| texts(&one["natural-key"])).unwrap_or_default()
}

fn note(verbs: &mut Vec<Verb>, name: &str, fields: Vec<String>, used: Value) {
    let at = verbs.iter().position(|verb| verb.name == name).unwrap_or_else(|| {
        verbs.push(Verb { name: name.to_owned(), fields: Vec::new(), uses: Vec::new() });
        verbs.len() - 1
    });
    let verb = &mut verbs[at];
    let new: Vec<String> = fields.into_iter().filter(|field| !verb.fields.contains(field)).collect();
    verb.fields.extend(new);
    if !verb.uses.contains(&used) {
        verb.uses.push(used);
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_come_from_all_sources() {
        let features = json!([{ "id": "acme.net", "natural-key": ["tag"] }]);
        let mut model = json!([{ "kind": "vlan", "fields": [], "binding": { "sources": [
            { "from": "net", "writes": { "feature": "acme.net", "verbs": ["create", "update", "delete"],
              "fields": { "vlan_id": "tag", "name": { "to": "descr" } } } },
            { "from": "old", "writes": { "feature": "acme.old", "verbs": ["delete"] },
              "actions": { "poe-cycle": { "feature": "acme.cycle" } } },
        ] } }]);
        add(&mut model, &features);
        let used = |feature: &str, operation: &str| json!({ "feature": feature, "operation": operation });
        assert_eq!(
            model[0]["writes"],
            json!([
                { "verb": "create", "uses": [used("acme.net", "create")], "fields": ["vlan_id", "name"] },
                { "verb": "update", "uses": [used("acme.net", "update")], "fields": ["name"] },
                { "verb": "delete", "uses": [used("acme.net", "delete"), used("acme.old", "delete")] },
                { "verb": "poe-cycle", "uses": [used("acme.cycle", "create")] },
            ])
        );
    }
}
