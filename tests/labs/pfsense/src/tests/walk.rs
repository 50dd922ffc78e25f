//! Every route of the facts answers, and every kind of object is created, read, changed and deleted.

use super::samples::sample;
use super::*;
use crate::facts::{Facts, Field, Model};
use crate::store::Object;

/// Actions that take the firewall down, or the API away.
const ENDS: [&str; 4] =
    ["/diagnostics/reboot", "/diagnostics/halt_system", "/system/update", "/system/restapi/settings/sync"];

#[test]
fn every_pattern_of_the_facts_compiles() {
    assert_eq!(Facts::get().broken_patterns(), Vec::<&str>::new());
}

#[tokio::test]
async fn every_route_answers_in_the_envelope() {
    for release in [Release::V2_7, Release::V2_8, Release::V2_10] {
        let peer = Peer::of_release(release).await;
        for (path, route) in &Facts::get().routes {
            if !route.exists_in(release) || ENDS.contains(&path.as_str()) || path == "/graphql" {
                continue;
            }
            for method in &route.methods {
                let body = match method.as_str() {
                    "POST" | "PATCH" => json!({}),
                    // An empty list would delete what later routes look for.
                    "PUT" => continue,
                    _ => Value::Null,
                };
                if method == "PATCH" && path == "/system/restapi/settings" {
                    continue;
                }
                let response = peer.send(method, path, &body).await;
                let status = response.status().as_u16();
                let text = response.text().await.unwrap();
                let answer: Value =
                    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{method} {path} {text}"));
                assert_eq!(answer["code"], status, "{method} {path}");
                assert!(answer["data"].is_array() || answer["data"].is_object(), "{method} {path} {answer}");
                let is_plain_read =
                    method == "GET" && (route.many || !Facts::get().models[&route.model].many);
                assert!(!is_plain_read || status == 200, "{method} {path} {answer}");
            }
        }
    }
}

/// Lists that are unset are `null` or empty; values that are never stored, and those that only a read computes, are left
/// out.
fn comparable(model: &Model, object: &Value) -> Object {
    let is_kept = |field: &&Field| {
        let is_computed = field.representation_only || (field.read_only && object[&field.name].is_null());
        !is_computed && field.nested.is_none()
    };
    let fields = model.fields.iter().filter(is_kept);
    let value =
        |name: &str| Some(object[name].clone()).filter(|value| *value != json!([])).unwrap_or(Value::Null);
    fields.map(|field| (field.name.clone(), value(&field.name))).collect()
}

/// The routes of objects that can be created, changed and deleted: of one and of all.
fn routes() -> Vec<(&'static str, &'static Model)> {
    let all = ["GET", "POST", "PATCH", "DELETE"];
    let facts = Facts::get();
    facts
        .routes
        .iter()
        .filter(|(_, route)| {
            !route.many && all.iter().all(|own| route.methods.iter().any(|method| method == own))
        })
        .map(|(path, route)| (path.as_str(), &facts.models[&route.model]))
        .filter(|(_, model)| model.many && model.stored)
        .collect()
}

/// An id of the parent, which is made where there is none.
async fn parent(peer: &Peer, model: &Model) -> Result<Value, String> {
    let above = model.parent.as_deref().and_then(|name| Facts::get().model(name));
    let Some(above) = above.filter(|above| above.many) else { return Ok(Value::Null) };
    let first = |peer: &Peer| {
        let firewall = peer.lab.lock();
        crate::represent::rows(&firewall, above).first().and_then(|row| row.id.clone())
    };
    if first(peer).is_none() {
        create(peer, above).await?;
    }
    first(peer).ok_or_else(|| format!("{} has no object", above.name))
}

/// Creates an object, and before it those that it needs.
async fn create(peer: &Peer, model: &'static Model) -> Result<Value, String> {
    Box::pin(make_referred(peer, model)).await?;
    let found = { routes() }.into_iter().find(|(_, own)| own.name == model.name);
    let Some((path, _)) = found else { return Err(format!("{} has no route", model.name)) };
    let above = Box::pin(parent(peer, model)).await?;
    let mut body = sample(&peer.lab.lock(), model);
    if !above.is_null() {
        body.insert("parent_id".to_owned(), above);
    }
    succeed(peer, "POST", path, json!(body)).await
}

/// References may name objects that the household does not have.
async fn make_referred(peer: &Peer, model: &'static Model) -> Result<(), String> {
    let fields = model.fields.iter().filter(|field| field.required || field.nested.is_some());
    for field in fields {
        let child = field.nested.as_deref().and_then(|name| Facts::get().model(name));
        let inner = child.into_iter().flat_map(|child| &child.fields).filter(|field| field.required);
        for refers in inner.chain([field]).filter_map(|field| field.refers.as_ref()) {
            let is_known = !crate::choices::referred(&peer.lab.lock(), refers).is_empty();
            let needed = Facts::get().model(&refers.models[0]);
            if let Some(needed) = needed.filter(|_| !is_known && refers.words.is_empty()) {
                create(peer, needed).await?;
            }
        }
    }
    Ok(())
}

/// Creates, reads, changes and deletes one object. Returns what is wrong.
async fn walk(path: &str, model: &'static Model) -> Result<(), String> {
    let peer = Peer::new().await;
    let above = parent(&peer, model).await?;
    make_referred(&peer, model).await?;
    let mut body = sample(&peer.lab.lock(), model);
    let mut query = String::new();
    if !above.is_null() {
        query = format!("parent_id={}&", crate::php::text(&above));
        body.insert("parent_id".to_owned(), above.clone());
    }
    let before = crate::represent::rows(&peer.lab.lock(), model).len();
    let made = succeed(&peer, "POST", path, json!(body)).await?;
    let one = |id: &Value| format!("{path}?{query}id={}", crate::php::text(id));
    let read = succeed(&peer, "GET", &one(&made["id"]), Value::Null).await?;
    let shown = comparable(model, &read);
    if comparable(model, &made).iter().any(|(name, value)| shown.get(name).unwrap_or(&Value::Null) != value) {
        return Err(format!("created {made}, read {read}"));
    }
    let mut change = json!({ "id": made["id"] });
    if !above.is_null() {
        change["parent_id"] = above;
    }
    let texts = ["descr", "description", "desc"];
    let is_free = |name: &&&str| {
        model
            .field(name)
            .is_some_and(|field| !field.required && !field.fixed && !field.read_only && !field.write_only)
    };
    let text = texts.iter().find(is_free);
    if let Some(name) = text {
        change[name] = json!("changed");
    }
    let id = succeed(&peer, "PATCH", path, change).await?["id"].clone();
    let changed = succeed(&peer, "GET", &one(&id), Value::Null).await?;
    if text.is_some_and(|name| changed[name] != "changed") {
        return Err(format!("not changed: {changed}"));
    }
    succeed(&peer, "DELETE", &one(&id), Value::Null).await?;
    let after = crate::represent::rows(&peer.lab.lock(), model).len();
    if after == before { Ok(()) } else { Err(format!("{before} objects became {after}")) }
}

async fn succeed(peer: &Peer, method: &str, path: &str, body: Value) -> Result<Value, String> {
    let shown = body.to_string();
    let answer: Value = peer.send(method, path, &body).await.json().await.unwrap();
    if answer["code"] == 200 {
        Ok(answer["data"].clone())
    } else {
        Err(format!("{method} {shown}: {answer}"))
    }
}

#[tokio::test]
async fn every_kind_of_object_is_created_read_changed_and_deleted() {
    let mut problems = Vec::new();
    for (path, model) in routes() {
        problems.extend(walk(path, model).await.err().map(|problem| format!("{path}: {problem}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test]
async fn every_setting_can_be_written_back_as_it_was_read() {
    let peer = Peer::new().await;
    let facts = Facts::get();
    let mut problems = Vec::new();
    for (path, route) in &facts.routes {
        let model = &facts.models[&route.model];
        let both = ["GET", "PATCH"].iter().all(|own| route.methods.iter().any(|method| method == own));
        if model.many || !both || path == "/system/restapi/version" {
            continue;
        }
        let mut sent = peer.get(path).await.as_object().cloned().unwrap_or_default();
        // What is not set is not sent.
        sent.retain(|_, value| !value.is_null());
        let complete = sample(&peer.lab.lock(), model);
        for (name, value) in complete {
            sent.entry(name).or_insert(value);
        }
        match succeed(&peer, "PATCH", path, Value::Object(sent.clone())).await {
            Err(problem) => problems.push(format!("{path}: {problem}")),
            Ok(after) => {
                let is_free = |name: &str| model.field(name).is_some_and(|field| field.when.is_empty());
                let lost = sent.iter().filter(|(name, value)| {
                    is_free(name) && after.get(*name).is_some_and(|own| own != *value)
                });
                problems.extend(lost.map(|(name, value)| format!("{path}: {name} was {value}")));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
