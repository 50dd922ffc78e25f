//! Judges the changes of a plan: makes of them what the pure part understands, and asks the graph of their site.

use std::collections::{BTreeSet, HashMap};

use heddle_core::adapter::Description;
use heddle_core::blast_radius::BlastRadius;
use heddle_core::change::ChangeSpec;
use heddle_core::{ControllerId, OrgId, SiteId};
use heddle_kernel::app::App;
use heddle_kernel::http::error::Error;
use heddle_store::model_objects::record::{self, List};
use serde_json::Value;

use crate::order;
use crate::radius::{self, Rules};
use crate::read;
use crate::touch::{Change, Native, Words};

/// The changes of a plan, and where they are for.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    pub org_id: OrgId,
    pub site_id: SiteId,
    pub controller_id: ControllerId,
    /// What the controller's adapter says of its features.
    pub description: &'q Description,
    /// What was asked for; in the words of the model where it was asked in them.
    pub asked: &'q [ChangeSpec],
    /// What the plan says that it touches.
    pub touches: &'q [String],
}

/// What lies behind what a plan changes, as the site was last read. No device is asked.
///
/// # Errors
/// The database does not answer.
pub async fn blast_radius(app: &App, question: Question<'_>) -> Result<BlastRadius, Error> {
    let changes: Vec<Change> = question.asked.iter().map(|spec| change(&question, spec)).collect();
    let rules = stored_rules(app, &question).await?;
    let site = read::graph(app, question.org_id, question.site_id).await?;
    Ok(heddle_kernel::task::block(move || radius::of_changes(&site, &changes, &rules)).await)
}

/// Hops from the service to each of these controllers, as their sites were last read; those to which no path is known are
/// absent. What is written to several controllers is written to the farthest first, so that no change cuts the way to the next.
///
/// # Errors
/// The database does not answer.
pub async fn distances(
    app: &App,
    places: &BTreeSet<(OrgId, SiteId, ControllerId)>,
) -> Result<HashMap<ControllerId, u32>, Error> {
    let sites: BTreeSet<(OrgId, SiteId)> = places.iter().map(|(org, site, _)| (*org, *site)).collect();
    let mut distances = HashMap::new();
    for (org, site_id) in sites {
        let site = read::graph(app, org, site_id).await?;
        let found = heddle_kernel::task::block(move || order::distances(&site)).await;
        let own = found.into_iter().filter(|(id, _)| places.contains(&(org, site_id, *id)));
        distances.extend(own);
    }
    Ok(distances)
}

/// The fields of the rules of firewalls that are changed or deleted, as they are stored.
async fn stored_rules(app: &App, question: &Question<'_>) -> Result<Rules, Error> {
    let kind = "firewall-rule";
    let is_rule = |spec: &&ChangeSpec| {
        let model = question.description.feature(&spec.feature).and_then(|feature| feature.model.as_ref());
        model.is_some_and(|model| model.kind == kind)
    };
    let of_rules = || question.asked.iter().filter(is_rule);
    let keys: Vec<&str> =
        of_rules().filter_map(|spec| spec.payload.get("key")?.as_str()).take(record::LOADED_MAX).collect();
    if keys.is_empty() {
        return Ok(Rules::new());
    }
    let site_ref = of_rules().find_map(|spec| spec.site.as_deref()).unwrap_or_default();
    let list = List { controller_id: question.controller_id, kind, site_ref };
    let mut tx = app.db.single().await?;
    let known = record::known(&mut tx, &list, &keys).await?;
    Ok(known.into_iter().map(|(key, rule)| ((question.controller_id, key), rule.fields)).collect())
}

fn change(question: &Question<'_>, spec: &ChangeSpec) -> Change {
    let feature = question.description.feature(&spec.feature);
    let model = feature.and_then(|feature| feature.model.as_ref());
    let words = if let Some(model) = model {
        Words::Model { kind: model.kind.clone(), verb: model.verb(spec.operation).to_owned() }
    } else {
        let naming = feature.map(|feature| feature.natural_key.clone()).unwrap_or_default();
        let kind = feature.and_then(|feature| feature.kind.clone());
        Words::Native(Native {
            feature: spec.feature.clone(),
            operation: spec.operation,
            kinds: kinds(question.description, &spec.feature),
            names: names(spec, &naming, kind.as_deref(), question.touches),
            kind,
            naming,
        })
    };
    let site_ref = spec.site.clone();
    Change { controller: question.controller_id, site_ref, words, payload: spec.payload.clone() }
}

/// The kinds of the model that a feature is used for.
fn kinds(description: &Description, feature: &str) -> Vec<String> {
    let is_used = |filled: &&heddle_core::adapter::Filled| {
        filled.writes.iter().any(|written| written.uses.iter().any(|(used, _)| used == feature))
    };
    description.model.iter().filter(is_used).map(|filled| filled.kind.clone()).collect()
}

/// What the object of a change may be called: by the fields that name it, and as the plan says.
fn names(spec: &ChangeSpec, naming: &[String], kind: Option<&str>, touches: &[String]) -> Vec<String> {
    let text = |name: &str| match spec.payload.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let parts: Vec<String> = naming.iter().filter_map(|name| text(name)).collect();
    let mut found = if parts.is_empty() { Vec::new() } else { vec![parts.join(":")] };
    found.extend(["name", "key", "id"].iter().filter_map(|name| text(name)));
    if let Some(kind) = kind {
        for touch in touches {
            let own = [format!("{kind}/"), format!("{}/", kind.replace('.', "/"))];
            found.extend(own.iter().find_map(|begin| touch.strip_prefix(begin.as_str())).map(str::to_owned));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use heddle_core::change::Operation;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_called_as_its_key_and_as_the_plan_says() {
        let spec = ChangeSpec {
            feature: "acme.lan.port".to_owned(),
            operation: Operation::Update,
            site: None,
            payload: json!({ "switch": "s1", "port": 7, "name": "Desk" }),
        };
        let touches = ["lan.port/s1:7", "lan/port/s1/7", "lan.vlan/20"].map(str::to_owned);
        let naming = ["switch", "port"].map(str::to_owned);
        assert_eq!(names(&spec, &naming, Some("lan.port"), &touches), ["s1:7", "Desk", "s1:7", "s1/7"]);
        assert_eq!(names(&spec, &[], None, &touches), ["Desk"]);
    }
}
