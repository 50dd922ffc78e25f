//! Rules that need no port.

use super::*;

#[test]
fn a_path_meets_its_pattern() {
    for (pattern, path, expected) in [
        ("/a", "/a", true),
        ("/a", "/ab", false),
        ("/a*", "/ab/c", true),
        ("/nodes/*/vms", "/nodes/one/vms", true),
        ("/nodes/*/vms", "/nodes/one/vms/1", false),
        ("*/vms/*", "/nodes/one/vms/é", true),
        ("*", "/", true),
    ] {
        let fault = Fault::hang().on_path(pattern);
        assert_eq!(fault.meets(&Request::new("GET", path, "")), expected, "{pattern} {path}");
    }
}

#[test]
fn a_request_is_read_the_way_vendors_need_it() {
    let request = Request::new("PUT", "/api2/json/n%2Fode//x?a=1%202&b=&a=3", "c=%C3%A9&d=4")
        .with_header("authorization", "Basic a2V5OnNlOmNyZXQ=")
        .with_header("cookie", "one=1; two=2=2");
    assert_eq!(request.segments(), ["api2", "json", "n/ode", "x"]);
    assert_eq!((request.query("a").as_deref(), request.query("b").as_deref()), (Some("1 2"), Some("")));
    assert_eq!(request.query_pairs().len(), 3);
    assert_eq!(request.form()[0], ("c".to_owned(), "é".to_owned()));
    assert_eq!(request.basic_auth(), Some(("key".to_owned(), "se:cret".to_owned())));
    assert_eq!((request.cookie("two"), request.cookie("tw")), (Some("2=2"), None));
    assert_eq!(request.json(), None);
}

#[test]
fn secrets_of_forms_are_not_kept() {
    let mut record = record::Record::new(5);
    record.begin(&Request::new("POST", "/login", "username=root&password=hunter2&realm=pam"), 0);
    let bodies: Vec<&str> = record.exchanges().map(|exchange| exchange.body.as_str()).collect();
    assert_eq!(bodies, ["username=root&password=***&realm=pam"]);
}

#[test]
fn a_fault_of_all_requests_replaces_its_like() {
    let mut faults = Faults::default();
    let now = Instant::now();
    faults.add(Fault::slow(10), now);
    faults.add(Fault::slow(20), now);
    faults.add(Fault::slow(30).times(1), now);
    let plan = faults.plan(&Request::new("GET", "/", ""));
    assert_eq!((faults.in_force().count(), plan.delay), (1, Duration::from_millis(30)));
    assert_eq!(faults.plan(&Request::new("GET", "/", "")).delay, Duration::from_millis(20));
}

#[tokio::test]
async fn arguments_of_the_program_start_a_lab() {
    #[derive(clap::Parser)]
    struct Arguments {
        #[command(flatten)]
        lab: Options,
        #[arg(long, default_value_t = 1)]
        nodes: u32,
    }
    let parse = |arguments: &[&str]| <Arguments as clap::Parser>::try_parse_from(arguments).unwrap();
    let given = parse(&["toy", "--listen", "127.0.0.1:0", "--tls", "--username", "admin", "--nodes", "3"]);
    assert_eq!(
        (given.lab.username_or("root"), given.lab.password_or("usual"), given.nodes),
        ("admin", "usual", 3)
    );
    let lab = given.lab.builder(Toy::default()).start().await;
    assert!(lab.url().starts_with("https://127.0.0.1:"));
    let plain = parse(&["toy"]).lab.builder(Toy::default()).start().await;
    assert!(plain.url().starts_with("http://127.0.0.1:") && plain.certificate_sha256().is_none());
}
