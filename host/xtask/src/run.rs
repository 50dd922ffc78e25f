//! `run` and `lab`: the server and a practice device on this machine.

use std::net::SocketAddr;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use crate::demo::{self, Device, Site};
use crate::phase::phase;
use crate::process::{self, Guarded, Stop, say};
use crate::settings::{Settings, given};
use crate::workspace::Workspace;
use crate::{package, plugins, registry};

const START_LIMIT: Duration = Duration::from_mins(1);
/// How often a vendor's sites are looked for, and how long between two looks.
const READINGS_MAX: usize = 50;
const READING_INTERVAL: Duration = Duration::from_millis(300);
const DEMO_USER: &str = "demo";
const DEMO_PASSWORD: &str = "Heddle-Trial-2026!";

/// `run`: the server alone.
pub(crate) fn serve(workspace: &Workspace, stop: &Stop) -> anyhow::Result<ExitCode> {
    let settings = Settings::new(&given, workspace.packages(), workspace.trusted_keys());
    let address = settings.bind_addr()?;
    build(workspace, stop)?;
    let mut server = Guarded::start("heddle", &mut server_command(workspace, &settings)?)?;
    let api = Api::at(address);
    api.wait_until_healthy(&mut server, stop)?;
    say(&format!("heddle is at {}", api.base));
    say_read_only(&settings);
    wait(&mut [&mut server], stop)
}

/// `run --demo`: server, practice devices, an organization that knows them, and a registry of plugins.
pub(crate) fn demo(workspace: &Workspace, stop: &Stop) -> anyhow::Result<ExitCode> {
    let settings = Settings::new(&given, workspace.packages(), workspace.trusted_keys());
    let address = settings.bind_addr()?;
    // Its password is public.
    ensure!(
        address.ip().is_loopback(),
        "BIND_ADDR '{address}' is open to others, and the demo's password is public: use a loopback address \
         such as 127.0.0.1:8080"
    );
    let known = demo::devices(workspace)?;
    build(workspace, stop)?;
    let registry = phase("plugins", || {
        let built = plugins::build_possible(workspace, stop)?;
        registry::prepare(workspace, stop, &built)
    })?;
    let mut devices = Vec::new();
    for device in &known {
        let name = format!("lab-{}", device.vendor);
        let mut command = program(workspace, &name)?;
        let (listen, control) = (device.listen.to_string(), device.control.to_string());
        command.args(["--listen", &listen, "--control", &control]).args(&device.args);
        devices.push(Guarded::start(&name, &mut command)?);
    }
    let mut server = server_command(workspace, &settings)?;
    server.env("EGRESS_EXTRA_NETWORKS", settings.demo_networks());
    server.envs(settings.catalogue(&registry.served, &registry.root));
    let mut server = Guarded::start("heddle", &mut server)?;
    let api = Api::at(address);
    api.wait_until_healthy(&mut server, stop)?;
    for device in &mut devices {
        device.expect_running()?;
    }
    let seeding = api.seed(&known)?;
    say(&format!("heddle is at {}", api.base));
    seeding.lines(&settings.data_dir(), known.len()).iter().for_each(|line| say(line));
    say_read_only(&settings);
    if settings.follows_own_catalogue() {
        say(&format!("plugins to install are listed at {}/api/v1/marketplace/plugins", api.base));
    }
    for device in &known {
        say(&device.line());
    }
    let mut all: Vec<&mut Guarded> = devices.iter_mut().collect();
    all.insert(0, &mut server);
    wait(&mut all, stop)
}

/// `lab`: the practice device of a vendor alone, with the caller's arguments.
pub(crate) fn lab(
    workspace: &Workspace,
    stop: &Stop,
    vendor: &str,
    args: &[String],
) -> anyhow::Result<ExitCode> {
    let labs = workspace.labs()?;
    ensure!(
        labs.iter().any(|lab| lab == vendor),
        "there is no practice device '{vendor}'; there are: {}",
        labs.join(", ")
    );
    phase("programs", || build_programs(workspace, stop))?;
    let name = format!("lab-{vendor}");
    let mut device = Guarded::start(&name, program(workspace, &name)?.args(args))?;
    wait(&mut [&mut device], stop)
}

/// Adapters and programs.
fn build(workspace: &Workspace, stop: &Stop) -> anyhow::Result<()> {
    phase("components", || package::components(workspace, stop))?;
    phase("programs", || build_programs(workspace, stop))
}

/// Builds every program of the workspace with one set of features.
pub(crate) fn build_programs(workspace: &Workspace, stop: &Stop) -> anyhow::Result<()> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--workspace", "--bins"]);
    process::run("building the programs", &mut cargo, stop)
}

/// Until a signal comes, which is how it should end, or one of them ends by itself.
fn wait(children: &mut [&mut Guarded], stop: &Stop) -> anyhow::Result<ExitCode> {
    say("stop with Ctrl-C");
    while !stop.is_set() {
        for child in children.iter_mut() {
            if let Some(status) = child.finished()? {
                if stop.is_set() || status.success() {
                    return Ok(ExitCode::SUCCESS);
                }
                bail!("a program ended early ({status})");
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(ExitCode::SUCCESS)
}

fn server_command(workspace: &Workspace, settings: &Settings) -> anyhow::Result<Command> {
    let mut command = program(workspace, "heddle")?;
    command.arg("serve").envs(settings.defaults());
    Ok(command)
}

fn say_read_only(settings: &Settings) {
    if settings.is_read_only() {
        say("ADAPTER_READ_ONLY is true: changes are staged, and nothing is applied");
    }
}

fn program(workspace: &Workspace, name: &str) -> anyhow::Result<Command> {
    let path = workspace.bin(name);
    ensure!(path.is_file(), "no program '{name}' was built");
    Ok(Command::new(path))
}

/// What `--demo` found in the data folder, or put there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seeding {
    /// The folder was empty: organization, login and practice devices are there now.
    Done,
    /// The folder was set up before, and the demo's login is good.
    DoneBefore,
    /// The folder was set up before, and the demo's login is not accepted.
    Foreign,
}

impl Seeding {
    /// What the person at the terminal should know.
    fn lines(self, data_dir: &str, devices: usize) -> Vec<String> {
        let sign_in = format!("sign in as '{DEMO_USER}' with the password '{DEMO_PASSWORD}'");
        match self {
            Self::Done => vec![
                format!("set up the organization 'Demo' with two sites and {devices} practice devices"),
                sign_in,
            ],
            Self::DoneBefore => {
                vec![format!("the demo was set up in '{data_dir}' before"), sign_in]
            }
            Self::Foreign => vec![format!(
                "'{data_dir}' was set up before, and not by this demo: sign in with a login of its own. The demo's \
                 login is not accepted, and nothing was added. For a demo beside it: \
                 DATA_DIR=./demo-data cargo xtask run --demo"
            )],
        }
    }
}

/// The server's REST interface, as far as seeding needs it.
struct Api {
    base: String,
    agent: ureq::Agent,
}

impl Api {
    fn at(mut address: SocketAddr) -> Self {
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(Duration::from_secs(20)))
            .build();
        Self { base: format!("http://{address}"), agent: config.into() }
    }

    fn wait_until_healthy(&self, server: &mut Guarded, stop: &Stop) -> anyhow::Result<()> {
        let end = Instant::now() + START_LIMIT;
        let url = format!("{}/health", self.base);
        while Instant::now() < end {
            server.expect_running()?;
            if self.agent.get(&url).call().is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            stop.sleep(Duration::from_millis(200))?;
        }
        bail!("the server did not answer at {url} within {} s", START_LIMIT.as_secs())
    }

    /// Sets up an organization that knows the practice devices, unless the server was set up before.
    fn seed(&self, devices: &[Device]) -> anyhow::Result<Seeding> {
        let url = format!("{}/api/v1/setup/status", self.base);
        let status = read("/setup/status", self.agent.get(&url).call()?)?;
        if status["completed"] == true {
            return self.known_before(devices);
        }
        let setup = self.post(
            "/setup/complete",
            None,
            &json!({
                "organization": { "name": "Demo" },
                "admin": { "username": DEMO_USER, "email": "demo@example.net", "password": DEMO_PASSWORD },
                "site": { "name": "Lab" },
            }),
        )?;
        self.complete(text(&setup, "/access_token")?, devices)?;
        Ok(Seeding::Done)
    }

    /// Returns the id of the device's controller.
    fn register(&self, device: &Device, token: &str, site: &str) -> anyhow::Result<String> {
        let mut credential = device.credential();
        credential["name"] = json!(device.name);
        let credential = self.post("/credentials", Some(token), &credential)?;
        let controller = self.post(
            "/controllers",
            Some(token),
            &json!({
                "name": device.name,
                "site_id": site,
                "vendor": device.vendor,
                "url": format!("http://{}", device.listen),
                "credential_id": text(&credential, "/id")?,
                "settings": device.settings,
            }),
        )?;
        Ok(text(&controller, "/id")?.to_owned())
    }

    /// Adds the sites and devices of the demo that the organization does not have yet: an earlier start may have ended
    /// between two of them, or have known fewer.
    fn complete(&self, token: &str, devices: &[Device]) -> anyhow::Result<()> {
        let sites = self.get("/sites?per_page=100", token)?;
        let named = |name: &str| found(&sites, name);
        let lab = named("Lab").context("the demo's organization has no site 'Lab'")?;
        let branch = match named("Branch") {
            Some(id) => id,
            None => text(&self.post("/sites", Some(token), &json!({ "name": "Branch" }))?, "/id")?.to_owned(),
        };
        let known = self.get("/controllers?per_page=100", token)?;
        for device in devices.iter().filter(|device| found(&known, &device.name).is_none()) {
            let site = match device.site {
                Site::Lab => &lab,
                Site::Branch => &branch,
            };
            let controller = self.register(device, token, site)?;
            if let Some(name) = &device.branch {
                self.map(&controller, name, &branch, token)?;
            }
        }
        Ok(())
    }

    /// Says that a site of the vendor's is the branch, once the controller was read. Where that takes too long, all of it
    /// stays at the controller's site.
    fn map(&self, controller: &str, name: &str, branch: &str, token: &str) -> anyhow::Result<()> {
        let path = format!("/controllers/{controller}/vendor-sites");
        for _ in 0..READINGS_MAX {
            let sites = self.get(&path, token)?;
            let site = sites.as_array().into_iter().flatten().find(|site| site["name"] == name);
            if let Some(site) = site {
                let site_ref = text(site, "/site_ref")?;
                self.post(&format!("{path}/{site_ref}"), Some(token), &json!({ "site_id": branch }))?;
                return Ok(());
            }
            std::thread::sleep(READING_INTERVAL);
        }
        Ok(())
    }

    /// Tries the demo's login. A login that wants a second factor is known, too, and nothing is added then.
    fn known_before(&self, devices: &[Device]) -> anyhow::Result<Seeding> {
        let url = format!("{}/api/v1/auth/login", self.base);
        let login = json!({ "login": DEMO_USER, "password": DEMO_PASSWORD });
        let mut answer = self.agent.post(url).send_json(login)?;
        if !answer.status().is_success() {
            return Ok(Seeding::Foreign);
        }
        let body: Value = answer.body_mut().read_json().unwrap_or_default();
        if let Some(token) = body["access_token"].as_str() {
            self.complete(token, devices)?;
        }
        Ok(Seeding::DoneBefore)
    }

    fn get(&self, path: &str, token: &str) -> anyhow::Result<Value> {
        let request = self.agent.get(format!("{}/api/v1{path}", self.base));
        read(path, request.header("Authorization", format!("Bearer {token}")).call()?)
    }

    fn post(&self, path: &str, token: Option<&str>, body: &Value) -> anyhow::Result<Value> {
        let mut request = self.agent.post(format!("{}/api/v1{path}", self.base));
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        read(path, request.send_json(body)?)
    }
}

fn read(path: &str, mut answer: ureq::http::Response<ureq::Body>) -> anyhow::Result<Value> {
    let body: Value = answer.body_mut().read_json().with_context(|| format!("{path} did not answer JSON"))?;
    ensure!(answer.status().is_success(), "{path} answered {}: {body}", answer.status());
    Ok(body)
}

/// The id of the object of this name in a list.
fn found(list: &Value, name: &str) -> Option<String> {
    let mut items = list["items"].as_array().into_iter().flatten();
    items.find(|item| item["name"] == name).and_then(|item| item["id"].as_str()).map(str::to_owned)
}

fn text<'a>(answer: &'a Value, pointer: &str) -> anyhow::Result<&'a str> {
    answer.pointer(pointer).and_then(Value::as_str).with_context(|| format!("the answer has no '{pointer}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_works_with_what_the_demo_starts() {
        let readme = include_str!("../../../README.md");
        let settings = Settings::new(&|_| None, "packages".into(), "keys.json".into());
        let devices = demo::devices(&Workspace::locate().expect("cargo knows the workspace"));
        let router = &devices.expect("every file can be read")[0];
        for part in [
            format!("api=http://{}/api/v1\n", settings.bind_addr().unwrap()),
            format!(r#"-d '{{"login":"{DEMO_USER}","password":"{DEMO_PASSWORD}"}}'"#),
            format!(r#"select(.vendor == "{}")"#, router.vendor),
            format!("http://{}/configs/firewall", router.control),
            format!("http://{}/faults", router.control),
        ] {
            assert!(readme.contains(&part), "'{part}' is in the README");
        }
    }

    #[test]
    fn the_demo_names_no_login_that_does_not_exist() {
        let text = |seeding: Seeding| seeding.lines("./data", 4).join("\n");
        assert!(text(Seeding::Done).contains(DEMO_PASSWORD));
        assert!(text(Seeding::DoneBefore).contains(DEMO_PASSWORD));
        let foreign = text(Seeding::Foreign);
        assert!(!foreign.contains(DEMO_PASSWORD), "{foreign}");
        assert!(foreign.contains("'./data' was set up before"), "{foreign}");
    }
}
