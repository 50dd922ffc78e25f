use heddle_marketplace::{PublisherKey, pack};
use heddle_store::packages::Binding;
use serde_json::json;

use super::*;

struct Lab {
    acme: PublisherKey,
    globex: PublisherKey,
}

impl Lab {
    fn new() -> Self {
        let key = |name: &str| PublisherKey::generate(name).unwrap();
        Self { acme: key("acme"), globex: key("globex") }
    }

    /// Every key may sign every id: the binding alone decides.
    fn trusted(&self) -> Vec<TrustedKey> {
        vec![self.acme.trusted(), self.globex.trusted()]
    }
}

fn candidate(folder: &str, key: &PublisherKey, version: &str, name: &str) -> Candidate {
    candidate_of(folder, key, key.trusted(), (version, name))
}

/// Returns the package, verified with this entry of the trusted keys.
fn candidate_of(
    folder: &str,
    key: &PublisherKey,
    trusted: TrustedKey,
    (version, name): (&str, &str),
) -> Candidate {
    let manifest = json!({
        "schema": 1, "id": "switch", "version": version, "kind": "adapter", "api": "1.0", "name": name,
        "license": "Apache-2.0", "component": "component.wasm",
    });
    let files = BTreeMap::from([
        ("component.wasm".to_owned(), b"\0asm\x0d\0\x01\0".to_vec()),
        ("description.json".to_owned(), br#"{"areas": []}"#.to_vec()),
    ]);
    let files = pack(manifest.to_string().as_bytes(), files, key).unwrap();
    let package = Verified::from_files(files, &[trusted]).unwrap();
    Candidate { name: folder.to_owned(), origin: Origin::Folder, package }
}

fn bound(candidate: &Candidate) -> Binding {
    let package = &candidate.package;
    Binding {
        adapter_id: package.manifest().id.clone(),
        publisher: package.manifest().publisher.clone(),
        key_id: package.signers()[0].key_id(),
        version: package.manifest().version.to_string(),
        manifest_sha256: package.manifest_sha256().to_owned(),
    }
}

/// Returns the folders that may serve, in order, and the reasons for refusing the others.
fn decide(
    candidates: Vec<Candidate>,
    binding: Option<&Binding>,
    trusted: &[TrustedKey],
    downgrades: &[String],
) -> (Vec<String>, Vec<String>) {
    let mut refused = RefusedPackages::default();
    let ground = Ground { trusted: trusted.to_vec(), downgrades: downgrades.to_vec(), ..Ground::default() };
    let fit = in_order("switch", candidates, binding, &ground, &mut refused);
    let reasons = refused.0.into_iter().map(|refused| format!("{}: {}", refused.package, refused.reason));
    (fit.into_iter().map(|candidate| candidate.name).collect(), reasons.collect())
}

#[test]
fn an_id_stays_with_the_key_that_served_it_first() {
    let lab = Lab::new();
    let good = || candidate("good", &lab.acme, "1.0.0", "Switch");
    let binding = bound(&good());
    for version in ["0.9.0", "1.0.0", "9.0.0"] {
        let rival = candidate("rival", &lab.globex, version, "Switch");
        let (fit, reasons) = decide(vec![rival, good()], Some(&binding), &lab.trusted(), &[]);
        assert_eq!(fit, ["good"]);
        assert!(reasons[0].contains("'acme'") && reasons[0].contains("'globex'"), "{reasons:?}");
    }
}

#[test]
fn of_two_strangers_none_serves() {
    let lab = Lab::new();
    let both = vec![
        candidate("one", &lab.acme, "1.0.0", "Switch"),
        candidate("two", &lab.globex, "2.0.0", "Switch"),
    ];
    let (fit, reasons) = decide(both, None, &lab.trusted(), &[]);
    assert!(fit.is_empty() && reasons.len() == 2);
    for reason in reasons {
        assert!(reason.contains("'one' (acme 1.0.0)") && reason.contains("'two' (globex 2.0.0)"), "{reason}");
    }
}

#[test]
fn of_one_publishers_versions_the_newest_comes_first() {
    let lab = Lab::new();
    let two = || {
        vec![candidate("old", &lab.acme, "1.9.0", "Switch"), candidate("new", &lab.acme, "1.10.0", "Switch")]
    };
    assert_eq!(decide(two(), None, &lab.trusted(), &[]).0, ["new", "old"]);
    let twins = || {
        vec![
            candidate("one", &lab.acme, "1.0.0", "Switch"),
            candidate("two", &lab.acme, "1.0.0", "Another switch"),
        ]
    };
    assert_eq!(decide(twins(), None, &lab.trusted(), &[]).1.len(), 2, "nothing tells which");
    let served = bound(&twins()[1]);
    assert_eq!(decide(twins(), Some(&served), &lab.trusted(), &[]).0, ["two", "one"]);
}

#[test]
fn an_older_version_than_served_is_refused_unless_it_is_named() {
    let lab = Lab::new();
    let binding = bound(&candidate("x", &lab.acme, "1.10.0", "Switch"));
    let old = || vec![candidate("old", &lab.acme, "1.9.0", "Switch")];
    let (fit, reasons) = decide(old(), Some(&binding), &lab.trusted(), &[]);
    assert!(fit.is_empty());
    assert!(reasons[0].contains("1.9.0") && reasons[0].contains("1.10.0"), "{reasons:?}");
    assert!(reasons[0].contains("ADAPTER_DOWNGRADES=switch@1.9.0"), "{reasons:?}");
    assert_eq!(decide(old(), Some(&binding), &lab.trusted(), &["switch@1.9.0".to_owned()]).0, ["old"]);
    let same = vec![candidate("again", &lab.acme, "1.10.0", "Built again")];
    assert_eq!(decide(same, Some(&binding), &lab.trusted(), &[]).0, ["again"]);
}

#[test]
fn an_id_is_handed_over_by_the_operator_only() {
    let lab = Lab::new();
    let binding = bound(&candidate("x", &lab.acme, "1.0.0", "Switch"));
    let decide_with = |key: &PublisherKey, trusted: &[TrustedKey], ids: &[&str]| {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        let listed = key.trusted_for(ids);
        let candidate = candidate_of("new", key, listed.clone(), ("1.0.1", "Switch"));
        let trusted: Vec<TrustedKey> = trusted.iter().cloned().chain([listed]).collect();
        decide(vec![candidate], Some(&binding), &trusted, &[]).0.len()
    };
    let old = [lab.acme.trusted()];
    assert_eq!(decide_with(&lab.globex, &old, &["switch"]), 0, "the old key is still trusted");
    assert_eq!(decide_with(&lab.globex, &[], &["*"]), 0, "the id is not named");
    assert_eq!(decide_with(&lab.globex, &[], &["switch"]), 1);
    let second = PublisherKey::generate("acme").unwrap();
    assert_eq!(decide_with(&second, &old, &["switch"]), 1, "the publisher's second key");
    assert_eq!(decide_with(&second, &old, &["switch*"]), 0);
}

/// The same package, as it was installed over the API.
fn installed(candidate: Candidate) -> Candidate {
    Candidate { origin: Origin::Installed, ..candidate }
}

/// Returns the packages that are left, in order.
fn left(candidates: Vec<Candidate>, is_pinned: bool, served: &str) -> Vec<String> {
    let lab = Lab::new();
    let binding = bound(&candidate("x", &lab.acme, served, "Switch"));
    let left = choice::without_outdone(candidates, is_pinned, Some(&binding));
    left.into_iter().map(|candidate| candidate.name).collect()
}

#[test]
fn the_newest_of_folder_and_database_comes_first() {
    let lab = Lab::new();
    let of = |name: &str, version: &str| candidate(name, &lab.acme, version, "Switch");
    let both = |folder: &str| vec![of("folder", folder), installed(of("installed", "1.1.0"))];
    assert_eq!(left(both("1.0.0"), false, "1.1.0"), ["installed"]);
    assert_eq!(left(both("1.1.0"), false, "1.1.0"), ["installed"]);
    assert_eq!(left(both("1.2.0"), false, "1.1.0"), ["folder", "installed"], "the other one stands in");
    assert_eq!(left(both("1.2.0"), false, "1.2.0"), ["folder"], "what is older than served cannot stand in");
    let folders = vec![of("one", "1.0.0"), of("two", "1.1.0")];
    assert_eq!(left(folders, false, "1.1.0"), ["one", "two"], "the other rules decide between folders");
    assert_eq!(left(vec![installed(of("installed", "1.0.0"))], false, "1.2.0"), ["installed"]);
}

#[test]
fn a_pinned_package_gives_way_only_to_one_newer_than_all_that_served() {
    let lab = Lab::new();
    let of = |name: &str, version: &str| candidate(name, &lab.acme, version, "Switch");
    let both = |folder: &str| vec![of("folder", folder), installed(of("installed", "1.0.0"))];
    for older in ["0.9.0", "1.0.0", "1.0.1", "1.1.0"] {
        assert_eq!(left(both(older), true, "1.1.0"), ["installed"], "{older}");
    }
    assert_eq!(left(both("1.1.1"), true, "1.1.0"), ["folder", "installed"]);
}
