//! Every route without a caller, as each role, with bodies of the wrong shape, and with ids of another organization.
//!
//! A route that is added is walked without being named here; a path parameter
//! that the walk does not know fails it.

use std::collections::BTreeSet;

use heddle_core::Role;
use heddle_kernel::http::conditional::SHOWN_ONCE;
use serde_json::{Map, Value, json};

use super::world::{ABSENT, World};
use crate::fixtures::{FIXTURES, Ids};
use crate::support::{Answer, Api, Contract, Operation, Server, on_both};

/// Path parameters that are not ids and have no example in the document, with what the walk gives for them.
const WORDS: &[(&str, &str)] = &[("key", "none"), ("door_id", ABSENT)];

/// What a path parameter is given that is not an id.
pub(super) fn word(operation: &Operation, name: &str) -> Option<String> {
    let parameters = operation.definition["parameters"].as_array()?;
    let parameter =
        parameters.iter().find(|parameter| parameter["name"] == name && parameter["in"] == "path");
    let known = WORDS.iter().find(|(known, _)| *known == name).map(|(_, word)| *word);
    parameter.and_then(|parameter| parameter["example"].as_str()).or(known).map(str::to_owned)
}

/// A path with these ids, its required query included.
pub(crate) fn filled(operation: &Operation, ids: &dyn Fn(&str) -> String) -> String {
    let fill = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) => word(operation, name).unwrap_or_else(|| ids(name)),
        None => part.to_owned(),
    };
    let path = operation.path.split('/').map(fill).collect::<Vec<_>>().join("/");
    let parameters = operation.definition["parameters"].as_array().cloned().unwrap_or_default();
    let required = |parameter: &&Value| parameter["in"] == "query" && parameter["required"] == true;
    let query: Vec<String> = parameters
        .iter()
        .filter(required)
        .map(|parameter| match parameter["name"].as_str() {
            Some("operation") => "operation=create".to_owned(),
            Some("verb") => {
                format!("verb={}", parameter["example"].as_str().expect("the document shows a verb"))
            }
            Some("name") => "name=some".to_owned(),
            Some("vendor") => "vendor=openwrt".to_owned(),
            Some("site_id") => format!("site_id={}", ids("site_id")),
            Some("object_id") => format!("object_id={}", ids("model_object_id")),
            Some("source_event") => "source_event=device.offline".to_owned(),
            Some("organization_slug") => "organization_slug=nowhere".to_owned(),
            Some("provider_id") => format!("provider_id={ABSENT}"),
            Some("client_id") => format!("client_id={ABSENT}"),
            Some(name @ ("response_type" | "redirect_uri" | "code_challenge" | "code_challenge_method")) => {
                format!("{name}=none")
            }
            other => panic!("teach the walk about the query parameter {other:?} of {}", operation.path),
        })
        .collect();
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

fn absent(_: &str) -> String {
    ABSENT.to_owned()
}

/// Some value that fits a schema of the document, with the required fields only.
fn sample(contract: &Contract, schema: &Value) -> Value {
    let schema = contract.resolve(schema);
    if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return value.clone();
    }
    let choice = ["allOf", "anyOf", "oneOf"].iter().find_map(|word| schema[*word].get(0));
    if let Some(choice) = choice {
        return sample(contract, choice);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match (kind, schema["format"].as_str()) {
        (Some("object"), _) => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let field = |name: &str| (name.to_owned(), sample(contract, &schema["properties"][name]));
            Value::Object(required.map(field).collect::<Map<_, _>>())
        }
        (Some("array"), _) => json!([]),
        (Some("integer" | "number"), _) => schema.get("minimum").cloned().unwrap_or(json!(1)),
        (Some("boolean"), _) => json!(true),
        (Some("string"), Some("uuid")) => json!(ABSENT),
        (Some("string"), Some("date-time")) => json!("2026-01-01T00:00:00Z"),
        _ => json!("sample"),
    }
}

fn body_schema<'a>(contract: &'a Contract, operation: &'a Operation) -> Option<&'a Value> {
    let schema = &operation.definition["requestBody"]["content"]["application/json"]["schema"];
    if schema.is_null() { None } else { Some(contract.resolve(schema)) }
}

pub(super) fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

#[tokio::test]
async fn the_walk_knows_every_route_and_every_path_parameter() {
    let world = World::start(crate::support::Database::sqlite()).await;
    let contract = world.server.contract();
    let named = |method: &str, path: &str| format!("{method} {path}");
    let walked: BTreeSet<String> =
        contract.operations().iter().map(|operation| named(&operation.method, &operation.path)).collect();
    let table = heddle_kernel::http::routes(&world.server.running().app);
    let routes: BTreeSet<String> =
        table.iter().map(|route| named(route.method.as_str(), &route.path)).collect();
    assert_eq!(walked, routes);
    assert!(routes.len() > 60, "{}", routes.len());
    for operation in contract.operations() {
        for name in operation.parameters() {
            let is_word = word(operation, name).is_some();
            assert!(
                is_word || (world.own.contains_key(name) && world.foreign.contains_key(name)),
                "teach the walk about {name}: an id in tests/surface/world.rs, or a word in tests/surface/walk.rs"
            );
        }
    }
}

on_both! {
    async fn nobody_gets_past_a_route_that_is_not_public(database: Database) {
        let server = Server::start_with(database, crate::surface::unlimited()).await;
        server.set_up().await;
        for operation in server.contract().operations() {
            if operation.access == "public" {
                continue;
            }
            let (method, path) = (&operation.method, filled(operation, &absent));
            let answer = server.nobody().send(method, &path, Some(bytes(&json!({})))).await;
            assert_eq!(answer.status, 401, "{method} {path}: {}", answer.text);
            assert_eq!(answer.error_type(), "unauthenticated");
            assert_eq!(answer.header("www-authenticate"), "Bearer", "{method} {path}");
        }
    }
}

/// Whether the declared access lets this role in; `None` when the rule decides.
pub(crate) fn admits(access: &str, role: Role) -> Option<bool> {
    match access.split_once(' ') {
        Some(("permission", permission)) => {
            let declared = &crate::support::declared().permissions;
            let found = declared.iter().find(|one| one.as_str() == permission);
            Some(role.holds(found.expect("a declared permission")))
        }
        Some(("role", rest)) => {
            let least = rest.split(' ').next().unwrap_or_default();
            Some(role.is_at_least(least.parse().expect("a declared role")))
        }
        _ => None,
    }
}

on_both! {
    async fn every_route_lets_in_the_roles_that_it_declares_and_no_other(database: Database) {
        let world = World::start(database).await;
        for role in Role::ALL {
            let api = world.member(*role).await;
            for operation in world.server.contract().operations() {
                let Some(is_admitted) = admits(&operation.access, *role) else { continue };
                let (method, path) = (&operation.method, filled(operation, &absent));
                let answer = api.send(method, &path, Some(bytes(&json!({ "surprise": 1 })))).await;
                let place = format!("{role}: {method} {path}: {}", answer.text);
                assert_ne!(answer.status, 500, "{place}");
                // A switch of the platform refuses in a body of its own.
                let is_forbidden = answer.status == 403 && answer.body["detail"].is_null();
                assert_eq!(is_forbidden, !is_admitted, "{place}");
                if !is_admitted {
                    assert_eq!(answer.error_type(), "permission_denied", "{place}");
                    let named = operation.access.split(' ').nth(1).expect("a declared access");
                    assert!(answer.message().contains(named), "{place}");
                }
            }
        }
    }
}

/// Bodies that do not fit, with the field that has to be named.
fn misshapen(contract: &Contract, schema: &Value) -> Vec<(Value, Option<String>)> {
    let right = sample(contract, schema);
    let mut bodies = vec![(json!([]), None), (json!("text"), None), (json!(null), None)];
    let mut surprising = right.clone();
    surprising["surprise"] = json!(1);
    bodies.push((surprising, Some("surprise".to_owned())));
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let mut without = right.clone();
        without.as_object_mut().expect("a body is an object").remove(name);
        bodies.push((without, Some(name.to_owned())));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let mut wrong = right.clone();
        // No field is either of the two.
        let is_text = matches!(sample(contract, field), Value::String(_));
        wrong[name] = if is_text { json!([[7]]) } else { json!("not this") };
        bodies.push((wrong, Some(name.clone())));
    }
    bodies
}

on_both! {
    async fn a_body_of_the_wrong_shape_is_refused_and_its_field_named(database: Database) {
        let world = World::start(database).await;
        let contract = world.server.contract();
        let mut named = 0;
        for operation in contract.operations() {
            let Some(schema) = body_schema(&contract, operation) else { continue };
            let path = filled(operation, &|name| world.own[name].clone());
            for (body, field) in misshapen(&contract, schema) {
                let answer = world.admin.send(&operation.method, &path, Some(bytes(&body))).await;
                let place = format!("{} {path} with {body}: {} {}", operation.method, answer.status, answer.text);
                assert!((400..500).contains(&answer.status), "{place}");
                let Some(field) = field.filter(|_| answer.status == 422) else { continue };
                let details = answer.body["error"]["details"].as_array().cloned().unwrap_or_default();
                let names_it = |detail: &Value| {
                    let at = detail["field"].as_str().unwrap_or_default();
                    at == format!("/{field}") || at.starts_with(&format!("/{field}/"))
                };
                assert!(details.iter().any(names_it), "{place}\nnames {field}");
                named += 1;
            }
        }
        assert!(named > 40, "{named} bodies were refused by their field");
    }
}

/// Whether a schema lets `null` stand.
fn accepts_null(contract: &Contract, schema: &Value) -> bool {
    let schema = contract.resolve(schema);
    let kinds = &schema["type"];
    let choices = ["anyOf", "oneOf"].iter().find_map(|word| schema[*word].as_array());
    match choices {
        Some(choices) => choices.iter().any(|choice| accepts_null(contract, choice)),
        None => {
            kinds.is_null() && schema["enum"].is_null() && schema["allOf"].is_null()
                || kinds == "null"
                || kinds.as_array().is_some_and(|kinds| kinds.contains(&json!("null")))
        }
    }
}

on_both! {
    async fn null_is_accepted_where_the_document_says_so_and_nowhere_else(database: Database) {
        let world = World::start(database).await;
        let contract = world.server.contract();
        let (mut refused, mut accepted) = (0, 0);
        for operation in contract.operations() {
            let Some(schema) = body_schema(&contract, operation) else { continue };
            let path = filled(operation, &|name| world.own[name].clone());
            let right = sample(&contract, schema);
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                let place = format!("{} {}: {name}", operation.method, operation.path);
                assert!(field.get("default") != Some(&Value::Null), "{place} has the default null");
                let mut body = right.clone();
                body[name] = Value::Null;
                let answer = world.admin.send(&operation.method, &path, Some(bytes(&body))).await;
                let details = answer.body["error"]["details"].as_array().cloned().unwrap_or_default();
                let names_null = details.iter().any(|detail| {
                    let message = detail["message"].as_str().unwrap_or_default();
                    detail["field"] == crate::support::at(name) && (message.starts_with("must not be null") || detail["type"] == "type")
                });
                let place = format!("{place}: {} {}", answer.status, answer.text);
                if accepts_null(&contract, field) {
                    assert!(!names_null, "the document says that null is accepted: {place}");
                    accepted += 1;
                } else if answer.status == 422 || answer.status < 300 {
                    assert!(names_null, "the document says that null is refused: {place}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 150 && accepted > 15, "{refused} refused, {accepted} accepted");
    }
}

/// The ways to fill a path with ids of which at least one is another's: all of them, and each alone among own ones.
fn intrusions(operation: &Operation, theirs: &Ids) -> Vec<BTreeSet<String>> {
    let ids: Vec<&str> =
        operation.parameters().into_iter().filter(|name| theirs.contains_key(name)).collect();
    let mut ways: Vec<BTreeSet<String>> = ids.iter().map(|name| [(*name).to_owned()].into()).collect();
    if ids.len() > 1 {
        ways.push(ids.into_iter().map(str::to_owned).collect());
    }
    ways
}

/// The answer without what differs between any two requests.
fn plain(answer: &Answer) -> (u16, String) {
    let request = answer.header("x-request-id");
    (answer.status, answer.text.replace(request, "REQUEST"))
}

async fn intrude(world: &World, api: &Api, theirs: &Ids) -> usize {
    let contract = world.server.contract();
    let mut hidden = 0;
    for operation in contract.operations() {
        let body = body_schema(&contract, operation).map_or(json!({}), |schema| sample(&contract, schema));
        for way in intrusions(operation, theirs) {
            let fill = |theirs: &dyn Fn(&str) -> String| {
                filled(operation, &|name| {
                    if way.contains(name) { theirs(name) } else { world.own[name].clone() }
                })
            };
            let (foreign, nowhere) = (fill(&|name| theirs[name].clone()), fill(&absent));
            let method = &operation.method;
            let one = api.send(method, &foreign, Some(bytes(&body))).await;
            let two = api.send(method, &nowhere, Some(bytes(&body))).await;
            assert_eq!(plain(&one), plain(&two), "{method} {foreign} and {nowhere}");
            assert!((400..500).contains(&one.status), "{method} {foreign}: {}", one.text);
            hidden += usize::from(one.status == 404);
        }
    }
    hidden
}

on_both! {
    async fn what_another_organization_has_looks_like_what_does_not_exist(database: Database) {
        let world = World::start(database).await;
        for role in [Role::OrgAdmin, Role::Viewer] {
            let api = world.member(role).await;
            let hidden = intrude(&world, &api, &world.foreign).await;
            assert!(hidden > if role == Role::OrgAdmin { 50 } else { 20 }, "{role}: {hidden} were not found");
            intrude(&world, &api, &world.removed).await;
        }
        // And nothing of it has come to harm.
        let others = [("organizations", "organization_id"), ("gateway-vpn/changes", "change_id")];
        let removable = FIXTURES.iter().flat_map(|fixture| fixture.removable());
        for (kind, name) in removable.chain(&others) {
            world.admin.get(&format!("/{kind}/{}", world.foreign[name])).await.expect_status(200);
        }
    }
}

/// The permission that opens a route to a key with scopes; `None` when no scope does, or the rule decides.
fn permission(operation: &Operation) -> Option<&str> {
    let access = operation.access.as_str();
    access
        .strip_prefix("permission ")
        .or_else(|| access.split_once(" with ").map(|(_, permission)| permission))
}

/// Whether a scope that has nothing to do with a route is refused.
fn is_closed(operation: &Operation) -> bool {
    permission(operation).is_some()
        || operation.access == "authenticated"
        || operation.access.starts_with("role ")
}

on_both! {
    async fn a_scope_is_the_ceiling_of_its_key_on_every_route(database: Database) {
        let server = Server::start_with(database, crate::surface::unlimited()).await;
        let admin = server.set_up().await;
        let contract = server.contract();
        let key = async |name: &str| {
            let body = json!({ "name": name, "scopes": [name] });
            let key = admin.post("/api-keys", &body).await.expect_status(201).body;
            server.nobody().with("x-api-key", key["api_key"].as_str().unwrap())
        };
        let owner = admin.post("/api-keys", &json!({ "name": "owner" })).await.expect_status(201).body;
        let owner = server.nobody().with("x-api-key", owner["api_key"].as_str().unwrap());
        let permissions: BTreeSet<&str> = contract.operations().iter().filter_map(permission).collect();
        assert!(permissions.len() > 10, "{permissions:?}");
        let unrelated = key("cameras.view").await;
        for scope in permissions {
            let holder = key(scope).await;
            for operation in contract.operations().iter().filter(|operation| permission(operation) == Some(scope)) {
                let (method, path) = (&operation.method, filled(operation, &absent));
                let body = || Some(bytes(&json!({ "surprise": 1 })));
                let (one, two) = (holder.send(method, &path, body()).await, owner.send(method, &path, body()).await);
                // The scope is enough: what is wrong with the request is all that is answered.
                assert_eq!((one.status, one.error_type()), (two.status, two.error_type()), "{scope}: {method} {path}: {}", one.text);
            }
        }
        for operation in contract.operations().iter().filter(|operation| is_closed(operation)) {
            if permission(operation) == Some("cameras.view") {
                continue;
            }
            let (method, path) = (&operation.method, filled(operation, &absent));
            let refused = unrelated.send(method, &path, Some(bytes(&json!({ "surprise": 1 })))).await;
            assert_eq!((refused.status, refused.error_type()), (403, "scope_ceiling"), "{method} {path}: {}", refused.text);
        }
    }
}

/// Creations that are honoured once show a secret in no field but those that a replay leaves out.
#[tokio::test]
async fn every_secret_of_a_creation_is_shown_once() {
    let server = Server::start_with(crate::support::Database::sqlite(), super::described()).await;
    let contract = server.contract();
    let mut shown = BTreeSet::new();
    for operation in contract.operations() {
        if !operation.definition["parameters"].to_string().contains("Idempotency") {
            continue;
        }
        let schema = &operation.definition["responses"]["201"]["content"]["application/json"]["schema"];
        for (name, field) in contract.resolve(schema)["properties"].as_object().into_iter().flatten() {
            let is_secret = ["secret", "token", "password", "key"].iter().any(|word| name.ends_with(word));
            let is_text = contract.resolve(field)["type"].to_string().contains("string");
            if is_secret && is_text && !["run_key", "cooldown_key", "public_key"].contains(&name.as_str()) {
                assert!(
                    SHOWN_ONCE.contains(&name.as_str()),
                    "{} {}: {name}",
                    operation.method,
                    operation.path
                );
                shown.insert(name.clone());
            }
        }
    }
    assert_eq!(shown, SHOWN_ONCE.iter().map(|name| (*name).to_owned()).collect());
}
