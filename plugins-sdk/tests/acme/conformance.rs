//! The check of conformance at the invented device, and at devices and samples that do not keep its rules.

use std::panic::{self, AssertUnwindSafe};

use heddle_sdk::testing::conformance::{self, Checked, Exception, Rule, Sample, World};
use heddle_sdk::testing::{FakeHost, Package, Practice, json_response};
use heddle_sdk::{Method, Request, Response};
use serde_json::{Value, json};

use super::acme::Acme;
use super::device::Device;

const MANIFEST: &str = include_str!("../../examples/acme/manifest.json");
const DESCRIPTION: &str = include_str!("../../examples/acme/description.json");

/// Answers a request instead of the device.
type Instead = fn(&Device, &Request) -> Option<Response>;

/// The adapter of the guide, and what is wrong with its surroundings.
struct Example {
    package: Package,
    instead: Instead,
    exceptions: fn() -> Vec<Exception>,
}

struct Router<'e> {
    device: Device,
    example: &'e Example,
}

impl Practice for Router<'_> {
    type Adapter = Acme;

    fn host(&self) -> FakeHost<'_> {
        let answer = |request: &Request, auth: &heddle_sdk::Auth| {
            let instead = (self.example.instead)(&self.device, request);
            Ok(instead.unwrap_or_else(|| self.device.answer(request, auth)))
        };
        FakeHost::new(answer).with_package(&self.example.package)
    }

    fn state(&self) -> Value {
        let stored = self.device.stored.borrow();
        json!({ "hosts": stored.hosts, "dns": stored.dns })
    }

    fn inactive(&self) -> Vec<String> {
        let (stored, running) = (self.device.stored.borrow(), self.device.running.borrow());
        if *stored == *running { Vec::new() } else { vec!["configuration".to_owned()] }
    }

    fn wait_ms(&self, _ms: u64) {}
}

impl Example {
    fn new(instead: Instead) -> Self {
        let package = Package::parse(MANIFEST, DESCRIPTION).unwrap();
        Self { package, instead, exceptions: Vec::new }
    }

    /// With a description that was edited.
    fn edited(edit: impl FnOnce(&mut Value)) -> Self {
        let mut description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        edit(&mut description);
        let package = Package::parse(MANIFEST, &description.to_string()).unwrap();
        Self { package, ..Self::new(|_, _| None) }
    }
}

// The device of a world lives as long as its check.
impl World for &'static Example {
    type Device = Router<'static>;

    fn package(&self) -> &Package {
        &self.package
    }

    fn device(&self, _feature: &Value) -> Router<'static> {
        Router { device: Device::new(), example: self }
    }

    fn sample(&self, _device: &Router<'static>, feature: &Value) -> Checked<Sample> {
        match feature["id"].as_str() {
            Some("acme.network.host") => Ok(Sample {
                create: json!({ "name": "nas", "address": "10.0.0.7" }),
                update: Some(json!({ "name": "nas", "note": "rack 1" })),
                other: Some(json!({ "name": "nas", "enabled": false })),
                delete: json!({ "name": "nas" }),
            }),
            Some("acme.network.dns") => Ok(Sample {
                update: Some(json!({ "dnssec": false })),
                other: Some(json!({ "forwarders": ["10.0.0.7"] })),
                ..Sample::default()
            }),
            other => Err(format!("there is no sample of {other:?}")),
        }
    }

    fn exceptions(&self) -> Vec<Exception> {
        (self.exceptions)()
    }
}

/// What the check says of an example that does not conform.
#[track_caller]
fn told(example: Example) -> String {
    let example: &'static Example = Box::leak(Box::new(example));
    let checked = panic::catch_unwind(AssertUnwindSafe(|| conformance::every_feature(&example)));
    *checked.expect_err("it is taken for conforming").downcast::<String>().unwrap()
}

fn is_write(request: &Request) -> bool {
    request.method != Method::Get
}

#[test]
fn every_feature_of_the_guide_conforms() {
    let example: &'static Example = Box::leak(Box::new(Example::new(|_, _| None)));
    conformance::every_feature(&example);
}

#[test]
fn package_of_the_guide_is_sound() {
    conformance::package(MANIFEST, DESCRIPTION);
}

#[test]
fn package_whose_parts_do_not_fit_together_is_told() {
    let mut manifest: Value = serde_json::from_str(MANIFEST).unwrap();
    manifest["reads"] = json!([{ "method": "PATCH", "path": "/hosts/*", "only-reads": true }]);
    let mut description: Value = serde_json::from_str(DESCRIPTION).unwrap();
    description["kinds"][0]["binding"]["list"]["method"] = json!("POST");
    description["kinds"][0]["binding"]["fields"]["note"] = json!("secret");
    description["features"][1]["operations"][0]["danger"] = json!("destructive");
    let (manifest, description) = (manifest.to_string(), description.to_string());
    let checked = panic::catch_unwind(|| conformance::package(&manifest, &description));
    let text = *checked.expect_err("it is taken for sound").downcast::<String>().unwrap();
    for part in [
        "POST /hosts is read, and no rule",
        "update /hosts/{id} passes as the read /hosts/*",
        "shows the secret 'note'",
        "update of 'acme.network.dns' is \"destructive\" to people and normal to its plan",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn device_that_drops_writes_does_not_conform() {
    let text = told(Example::new(|_, request| is_write(request).then(|| json_response(200, &json!({})))));
    assert!(text.contains("After: ") && text.contains("stands 'before'"), "{text}");
}

#[test]
fn device_that_does_not_run_what_it_stored_does_not_conform() {
    let text =
        told(Example::new(|_, request| (request.path == "/apply").then(|| json_response(200, &json!({})))));
    assert!(text.contains("not in effect: configuration"), "{text}");
}

#[test]
fn device_that_keeps_something_behind_the_way_back_does_not_conform() {
    let text = told(Example::new(|device, request| {
        if is_write(request) {
            device.stored.borrow_mut().dns.insert("writes".to_owned(), json!(device.writes.borrow().len()));
        }
        None
    }));
    assert!(text.contains("Restored: create restored: dns.writes"), "{text}");
}

#[test]
fn apply_over_what_another_person_wrote_does_not_conform() {
    // The adapter's look before the apply finds what the plan saw, whatever was written since.
    let text = told(Example::new(|device, request| {
        let is_settings = request.path == "/dns" && !is_write(request);
        let is_moved = device.stored.borrow().dns["forwarders"] == json!(["10.0.0.7"]);
        (is_settings && is_moved)
            .then(|| json_response(200, &json!({ "forwarders": ["9.9.9.9"], "dnssec": true })))
    }));
    assert!(text.contains("Moved: a moved state is not told"), "{text}");
}

#[test]
fn sample_that_the_schema_refuses_does_not_conform() {
    let text = told(Example::edited(|description| {
        let schema = "/features/0/operations/0/payload-schema/properties/address/maxLength";
        let (parent, name) = schema.rsplit_once('/').unwrap();
        description.pointer_mut(parent).unwrap()[name] = json!(3);
    }));
    assert!(text.contains("does not fit"), "{text}");
}

#[test]
fn plan_that_is_less_dangerous_than_described_does_not_conform() {
    let text = told(Example::edited(|description| {
        description["features"][1]["operations"][0]["danger"] = json!("catastrophic");
    }));
    assert!(text.contains("described as"), "{text}");
}

#[test]
fn write_that_is_declared_as_a_read_does_not_conform() {
    let mut manifest: Value = serde_json::from_str(MANIFEST).unwrap();
    manifest["reads"] = json!([{ "method": "PUT", "path": "/dns", "only-reads": true }]);
    let package = Package::parse(&manifest.to_string(), DESCRIPTION).unwrap();
    let text = told(Example { package, ..Example::new(|_, _| None) });
    assert!(text.contains("/dns is a read, and a plan sends it"), "{text}");
}

#[test]
fn session_that_the_manifest_does_not_declare_does_not_conform() {
    let mut manifest: Value = serde_json::from_str(MANIFEST).unwrap();
    manifest["auth"] = json!({});
    let package = Package::parse(&manifest.to_string(), DESCRIPTION).unwrap();
    let text = told(Example { package, ..Example::new(|_, _| None) });
    assert!(text.contains("declares no session 'api'"), "{text}");
}

#[test]
fn exception_that_no_feature_needs_and_one_without_a_reason_are_refused() {
    fn exceptions() -> Vec<Exception> {
        vec![
            Exception::new(Rule::Again, "its second plan differs", |_| true),
            Exception::new(Rule::Moved, " ", |_| false),
        ]
    }
    let text = told(Example { exceptions, ..Example::new(|_, _| None) });
    assert!(text.contains("nothing needs the exception: its second plan differs"), "{text}");
    assert!(text.contains("an exception to Moved has no reason"), "{text}");
}

#[test]
fn exception_lifts_its_rule_and_no_other() {
    fn exceptions() -> Vec<Exception> {
        vec![Exception::new(Rule::After, "its writes are dropped", |feature| {
            feature["id"] == "acme.network.dns"
        })]
    }
    let dropped = Example::new(|_, request| is_write(request).then(|| json_response(200, &json!({}))));
    let text = told(Example { exceptions, ..dropped });
    assert!(text.contains("acme.network.host") && !text.contains("acme.network.dns"), "{text}");
}
