//! Other people edit the router while a change is in its window: no edit of theirs is lost without having been named
//! beforehand, no outcome is false, and every change has a way out.

use heddle_openwrt_router::Change;
use serde_json::{Value, json};

use super::Lab;
use crate::support::{Database, Options, Random, variable};

/// Rounds of one database, where nothing else is asked for.
const ROUNDS: u32 = 60;

/// What somebody else saved, and how it is found again.
#[derive(Debug, Clone, PartialEq)]
enum Edit {
    /// A rule of this name was added, in a section of this name.
    Added { section: String, rule: String },
    /// An option was set.
    Set { config: &'static str, section: &'static str, option: &'static str, value: String },
}

impl Edit {
    fn save(&self, lab: &Lab) {
        let done = match self {
            Edit::Added { section, rule } => {
                let add = Change::Create { section: section.clone(), kind: "rule".to_owned() };
                let named = |option, value| Change::set(section, option, value);
                lab.router.edit(
                    "firewall",
                    &[add, named("name", rule), named("src", "wan"), named("target", "ACCEPT")],
                )
            }
            Edit::Set { config, section, option, value } => {
                lab.router.edit(config, &[Change::set(section, option, value)])
            }
        };
        assert!(done, "{self:?} can be saved");
    }

    fn is_there(&self, lab: &Lab) -> bool {
        match self {
            Edit::Added { rule, .. } => times(lab, rule) == 1,
            Edit::Set { config, section, option, value } => {
                lab.router.option(config, section, option) == Some(json!(value))
            }
        }
    }

    fn clean(&self, lab: &Lab) {
        if let Edit::Added { section, .. } = self {
            lab.router.edit("firewall", &[Change::remove(section)]);
        }
    }
}

fn times(lab: &Lab, rule: &str) -> usize {
    lab.router
        .config_text("firewall")
        .expect("the router has a firewall")
        .matches(&format!("'{rule}'"))
        .count()
}

/// The section of the rule with this name.
fn section_of(lab: &Lab, rule: &str) -> Option<String> {
    let state = lab.router.state();
    let sections = state["configs"]["firewall"].as_object()?.clone();
    let is_it = |(_, section): &(String, Value)| section["name"] == rule;
    sections.into_iter().find(is_it).map(|(name, _)| name)
}

fn some_edit(random: &mut Random, round: u32, n: u64) -> Edit {
    match random.next(10) {
        0..6 => Edit::Added { section: format!("f{round}x{n}"), rule: format!("Foreign-{round}-{n}") },
        6..8 => Edit::Set {
            config: "firewall",
            section: "@defaults[0]",
            option: "synflood_rate",
            value: format!("{}/s", 10 + round % 50),
        },
        _ => Edit::Set {
            config: "system",
            section: "@system[0]",
            option: "hostname",
            value: format!("edge-{round}-{n}"),
        },
    }
}

/// Later edits of one option replace earlier ones.
fn standing(edits: &[Edit]) -> Vec<Edit> {
    let is_last = |(at, edit): &(usize, &Edit)| match edit {
        Edit::Added { .. } => true,
        Edit::Set { option, .. } => !edits[at + 1..]
            .iter()
            .any(|later| matches!(later, Edit::Set { option: other, .. } if other == option)),
    };
    edits.iter().enumerate().filter(is_last).map(|(_, edit)| edit.clone()).collect()
}

/// One change among the edits of others, from its staging to its end.
async fn round(lab: &Lab, random: &mut Random, round: u32) -> String {
    let own = format!("Own-{round}");
    let seed = random.seed;
    let change = lab.stage_rule(&own).await;
    let is_warned = change["plan"]["warnings"].as_array().is_some_and(|warnings| {
        warnings.iter().any(|w| w.as_str().unwrap_or_default().contains("taken back with it"))
    });
    let body = json!({ "force": true, "confirm_within_secs": 120 });
    lab.api.post(&Lab::path(&change, "apply"), &body).await.expect_status(200);

    let mut edits = Vec::new();
    for n in 0..random.next(4) {
        let edit = some_edit(random, round, n);
        edit.save(lab);
        edits.push(edit);
        if random.next(3) == 0 {
            lab.api.post(&Lab::path(&change, "verify"), &json!({})).await.expect_status(200);
        }
    }
    let touches_own = random.next(12) == 0;
    if touches_own && let Some(section) = section_of(lab, &own) {
        lab.router.edit("firewall", &[Change::set(&section, "dest_port", "9443")]);
    }
    let verb = *random.pick(&["confirm", "revert"]);
    let answer = lab.api.post(&Lab::path(&change, verb), &json!({})).await;
    let ended = lab.wait_for(&change, &["applied", "reverted", "failed", "partial", "unknown"]).await;
    let state = ended["outcome"]["state"].as_str().unwrap_or_default().to_owned();
    let told =
        format!("seed {seed} round {round} {verb} own {touches_own} {edits:?}: {} {ended}", answer.text);

    // What is told of the change is what the router holds.
    match (verb, state.as_str()) {
        ("confirm", "applied") => assert_eq!(times(lab, &own), 1, "{told}"),
        (_, "reverted") => assert_eq!(times(lab, &own), 0, "{told}"),
        (_, "partial") => assert!(touches_own, "{told}"),
        _ => panic!("{told}"),
    }
    // No edit of others is lost that was not named beforehand, and none at all by a confirmation.
    for edit in standing(&edits) {
        if !edit.is_there(lab) {
            assert!(is_warned && verb == "revert", "{edit:?} is lost; {told}");
        }
    }
    // Each has a way out.
    if state == "partial" {
        lab.api.post(&Lab::path(&change, "verify"), &json!({})).await.expect_status(200);
        lab.api.post(&Lab::path(&change, "plan"), &json!({})).await;
    }
    if lab.get(&change).await["status"] == "pending" {
        lab.api.post(&Lab::path(&change, "discard"), &json!({})).await.expect_status(200);
    }
    edits.iter().for_each(|edit| edit.clean(lab));
    if let Some(section) = section_of(lab, &own) {
        lab.router.edit("firewall", &[Change::remove(&section)]);
    }
    state
}

async fn many(database: Database) {
    let options = Options::default().with("APPLY_SETTLE_MS", "10").with("LOG_FILTER", "error");
    let lab = Lab::start_with(database, options).await;
    let rounds = variable("HEDDLE_FOREIGN_ROUNDS").and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let seed = variable("HEDDLE_FOREIGN_SEED").and_then(|text| text.parse().ok());
    let mut random = seed.map_or_else(Random::new, Random::of);
    let mut ends = std::collections::BTreeMap::<String, u32>::new();
    for n in 0..rounds {
        *ends.entry(round(&lab, &mut random, n).await).or_default() += 1;
    }
    assert!(ends.contains_key("applied") && ends.contains_key("reverted"), "{ends:?}");
    let valid = lab.api.get("/audit/validate").await.expect_status(200).body;
    assert_eq!(valid["valid"], true, "{valid}");
}

/// `HEDDLE_FOREIGN_ROUNDS` says how many rounds there are, `HEDDLE_FOREIGN_SEED` repeats a run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_edit_of_others_is_lost_and_no_outcome_is_false_on_sqlite() {
    many(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_edit_of_others_is_lost_and_no_outcome_is_false_on_postgres() {
    if let Some(database) = Database::postgres().await {
        many(database).await;
    }
}
