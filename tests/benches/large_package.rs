//! A package with thousands of features, at the start of the release program: what the features add to the time until it
//! serves and to its memory. The baseline is the same package with none. The code of both is compiled before.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use heddle_marketplace::{PublisherKey, pack, write_dir, write_trusted_keys};
use serde_json::{Value, json};

use crate::measure::{Report, Samples, show, timed};
use crate::start::{Memory, Served};
use crate::support::{Options, packages};

const FEATURES: usize = 2_000;
const RUNS: usize = 10;
const IDLE: Duration = Duration::from_secs(3);
/// The package that is grown: the one of our own with the most kinds of features.
const VENDOR: &str = "opnsense";

pub(crate) fn measure(_: &tokio::runtime::Runtime, report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let [small, large] =
        [0, FEATURES].map(|features| Place::new(&folder.path().join(features.to_string()), features));
    drop((small.start(), large.start()));
    let (mut few, mut many) = (Vec::new(), Vec::new());
    let (mut few_memory, mut many_memory) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let both = [(&small, &mut few, &mut few_memory), (&large, &mut many, &mut many_memory)];
        for (place, starts, memories) in both {
            let (elapsed, served) = timed(|| place.start());
            std::thread::sleep(IDLE);
            starts.push(elapsed);
            memories.push(served.memory());
        }
    }
    let (few, many) = (Samples::of(few), Samples::of(many));
    report.row("start, a package without features", &few, "", "");
    let more = format!("+ {}", show(many.median().saturating_sub(few.median())));
    report.row(format!("start, the same with {FEATURES} features"), &many, more, "< + 100 ms");
    let [few, many] = [few_memory, many_memory].map(|memories| Memory::median(&memories));
    report.value("memory after 3 s idle, without features", &few, "");
    let more = many.resident_kib.saturating_sub(few.resident_kib) >> 10;
    let own = many.own_kib.saturating_sub(few.own_kib) >> 10;
    report.value(format!("memory after 3 s idle, with {FEATURES} features"), &many, "");
    report.value("the difference", format!("+ {more} MiB, + {own} without files"), "< + 10 MiB");
}

/// A server's folder, with the package that it loads.
struct Place {
    folder: std::path::PathBuf,
    options: Options,
}

impl Place {
    fn new(folder: &Path, features: usize) -> Self {
        let own = packages().join(VENDOR);
        let read = |name: &str| std::fs::read(own.join(name)).expect("packages are built");
        let mut manifest: Value = serde_json::from_slice(&read("manifest.json")).expect("a manifest is JSON");
        let map = manifest.as_object_mut().expect("a manifest is an object");
        map.remove("files");
        map.remove("publisher");
        let description: Value =
            serde_json::from_slice(&read("description.json")).expect("a description is JSON");
        let files: BTreeMap<String, Vec<u8>> = [
            ("component.wasm".to_owned(), read("component.wasm")),
            ("description.json".to_owned(), grown(description, features).to_string().into_bytes()),
        ]
        .into();
        // A key may sign what has the publisher's name.
        let key = PublisherKey::generate(VENDOR).expect("the system has random numbers");
        let files = pack(manifest.to_string().as_bytes(), files, &key).expect("a package can be made");
        let (packages, keys) = (folder.join("packages"), folder.join("trusted-keys.json"));
        write_dir(&files, &packages.join(VENDOR)).expect("a package can be written");
        std::fs::write(&keys, write_trusted_keys(&[key.trusted()])).expect("keys can be written");
        let options = Options::default()
            .with("ADAPTER_PACKAGES", packages.display().to_string())
            .with("ADAPTER_TRUSTED_KEYS", keys.display().to_string());
        Self { folder: folder.to_owned(), options }
    }

    fn start(&self) -> Served {
        Served::start(&self.folder, self.options.clone())
    }
}

/// The description with so many features, each a copy of one of its own under another id.
fn grown(mut description: Value, features: usize) -> Value {
    let own = description["features"].as_array().expect("there are features").clone();
    let copies = own.iter().cycle().take(features).enumerate().map(|(number, feature)| {
        let mut copy = feature.clone();
        let id = feature["id"].as_str().and_then(|id| id.strip_prefix(VENDOR)).expect("an id of the vendor");
        copy["id"] = json!(format!("{VENDOR}.copy-{}{id}", number / own.len()));
        copy
    });
    description["features"] = copies.collect();
    // Its verbs name features by their ids.
    description["model"] = json!([]);
    description
}
