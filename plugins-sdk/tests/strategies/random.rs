//! Sets of changes put together at random: whatever can be planned can be applied, and taken back from where it stopped.

use heddle_sdk::testing::send_stage;
use heddle_sdk::{Adapter, Stage, Standing};
use serde_json::json;

use super::*;

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, max: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % max
    }
}

/// Paths that the device may refuse. A delete of a position that is refused must not be among them: the host would write the
/// object a second time.
const REFUSED: [&str; 7] =
    ["/zones", "/aliases", "/profiles", "/start", "/n2/guests", "/cards", "/snapshots"];

fn catalogue() -> Vec<Change> {
    let card = json!({ "node": "n1", "slot": "a", "bus": "00:1f.2", "mode": "hba" });
    vec![
        create("alias", &json!({ "name": "nas" })),
        update("alias", &json!({ "name": "nas", "note": "two" })),
        update("alias", &json!({ "name": "web", "note": "new" })),
        delete("alias", &json!({ "name": "nas" })),
        create("zone", &json!({ "name": "lan", "alias": "web" })),
        create("zone", &json!({ "name": "wan", "alias": "nas" })),
        delete("zone", &json!({ "name": "lan" })),
        create("rule", &json!({ "name": "smb", "target": "nas", "action": "pass" })),
        create("rule", &json!({ "name": "ftp", "target": "lan", "action": "pass" })),
        update("rule", &json!({ "name": "dns", "action": "block" })),
        update("rule", &json!({ "name": "smb", "action": "block" })),
        delete("rule", &json!({ "name": "ssh" })),
        delete("rule", &json!({ "name": "smb" })),
        create("block", &json!({ "name": "ssh" })),
        create("block", &json!({ "name": "smb" })),
        create("profile", &json!({ "name": "p", "settings": { "a": 1 } })),
        update("profile", &json!({ "name": "p", "settings": { "b": 2, "a": null } })),
        delete("profile", &json!({ "name": "p" })),
        create("guest", &json!({ "node": "n2", "vmid": 300, "name": "new" })),
        update("guest", &json!({ "vmid": 300, "cores": 4 })),
        update("guest", &json!({ "vmid": 100, "name": null, "net": { "tag": "30" } })),
        update("memo", &json!({ "vmid": 100, "memo": "x" })),
        update("memo", &json!({ "vmid": 300, "memo": "y" })),
        create("start", &json!({ "vmid": 100 })),
        create("stop", &json!({ "vmid": 100 })),
        create("start", &json!({ "vmid": 300 })),
        create("stop", &json!({ "vmid": 300 })),
        delete("guest", &json!({ "vmid": 300 })),
        create("destroy", &json!({ "vmid": 300 })),
        create("resize", &json!({ "vmid": 100, "memory": 1024 })),
        create("migrate", &json!({ "vmid": 300, "target": "n1" })),
        create("snapshot", &json!({ "vmid": 100, "snapname": "s1" })),
        create("snapshot", &json!({ "vmid": 300, "snapname": "s1" })),
        create("drop", &json!({ "vmid": 100, "snapname": "s1" })),
        delete("filter", &json!({ "vmid": 100, "name": "out" })),
        update("rule", &json!({ "name": "ssh", "target": "nas" })),
        create("filter", &json!({ "vmid": 100, "name": "out", "action": "pass" })),
        delete("filter", &json!({ "vmid": 100, "name": "in" })),
        update("card", &card),
        update("options", &json!({ "node": "n1", "motd": "hi" })),
    ]
}

/// The state without the order of positions, and without fields that are empty. A form has texts for numbers.
fn essence(device: &Device) -> Value {
    let text = |value: &Value| if value.is_number() { json!(value.to_string()) } else { value.clone() };
    let fields = |row: &device::Fields| {
        let known = row.iter().filter(|(_, value)| **value != "" && !value.is_null());
        heddle_sdk::json::canonical(&known.map(|(name, value)| (name.clone(), text(value))).collect())
            .to_string()
    };
    let state = device.state.borrow();
    let tables = state.tables.iter().map(|(path, table)| {
        let mut rows: Vec<String> = table.rows.iter().map(fields).collect();
        rows.retain(|row| !row.contains("intruder"));
        rows.sort();
        (path.clone(), json!(rows))
    });
    let settings = state.settings.iter().map(|(path, settings)| (path.clone(), json!(fields(settings))));
    tables.chain(settings).collect()
}

/// What goes wrong while a set is applied.
#[derive(Debug)]
enum Trouble {
    None,
    /// The answer to a write is lost.
    Lost(usize),
    /// The device refuses what is written below a path.
    Refused(&'static str),
    /// Somebody else puts a rule first, behind a write.
    Intruder(usize),
}

fn tried<A: Adapter>(changes: &[Change], trouble: &Trouble) -> bool {
    let (device, description) = (Device::new(), description());
    let before = essence(&device);
    let host = device.host(&description);
    let Ok(plan) = A::plan(&host, changes) else { return false };
    assert!(device.writes.borrow().is_empty(), "a plan writes nothing");
    check_holes(&plan);
    match trouble {
        Trouble::None => {}
        Trouble::Lost(at) => device.lost.set(Some(*at)),
        Trouble::Refused(path) => drop(device.refused.replace(Some((*path).to_owned()))),
        Trouble::Intruder(at) => device.intruder.set(Some(*at)),
    }
    let sent = send_stage::<A>(&host, Stage::Apply, changes, &plan);
    device.lost.set(None);
    device.refused.take();
    let after = standing::<A>(&host, changes, &plan);
    let says = || format!("{trouble:?} {sent:?} {after:?}\n{changes:#?}\n{:?}", device.writes);
    match (trouble, &sent) {
        (Trouble::None | Trouble::Intruder(_), Err(_)) => panic!("{}", says()),
        (_, Ok(_)) => assert!(matches!(after, Standing::After), "{}", says()),
        (_, Err(_)) => {}
    }
    if plan.native.iter().any(|call| call.stage == Stage::Restore) {
        let again = restarted(&device, &description, &host);
        let back = send_stage::<A>(&again, Stage::Restore, changes, &plan);
        assert!(back.is_ok(), "{back:?} {}", says());
        let found = essence(&device);
        let rows = found.as_object().unwrap().iter();
        let other: Vec<_> = rows.filter(|(path, rows)| before[path.as_str()] != **rows).collect();
        assert!(found == before, "{other:?} {}", says());
    }
    !plan.native.is_empty()
}

#[test]
fn sets_at_random_lead_there_and_back() {
    let (catalogue, mut dice, mut planned) = (catalogue(), Dice(7), 0);
    for _ in 0..1000 {
        let count = 1 + dice.below(6);
        let changes: Vec<Change> =
            (0..count).map(|_| catalogue[dice.below(catalogue.len())].clone()).collect();
        let trouble = match dice.below(4) {
            0 => Trouble::Lost(dice.below(count + 1)),
            1 => Trouble::Refused(REFUSED[dice.below(REFUSED.len())]),
            2 => Trouble::Intruder(dice.below(count + 1)),
            _ => Trouble::None,
        };
        // A form holds no objects.
        let is_form = dice.below(2) == 0 && changes.iter().all(|change| change.feature != "rig.profile");
        let is_planned =
            if is_form { tried::<Form>(&changes, &trouble) } else { tried::<Json>(&changes, &trouble) };
        planned += usize::from(is_planned);
    }
    assert!(planned > 200, "{planned}");
}
