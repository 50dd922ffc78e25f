//! A server in this process, on port 0, with a data folder of its own.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use heddle_kernel::config::Config;
use heddle_kernel::hashing::Cost as HashCost;
use heddle_kernel::opening::Surroundings;
use heddle_kernel::running::Running;
use heddle_runtime::{Compiler, Tap};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::conformance::Known;
use super::database::place_file;
use super::{Api, Database, variable};

/// One key for most tests: compiled components are kept between them.
pub(crate) const ENCRYPTION_KEY: &str = "it-4d0a1f7c9b2e8365aa71cc09-encrypt-XyZ";
/// The key that takes its place where a test rotates.
pub(crate) const NEXT_ENCRYPTION_KEY: &str = "new-6e2b8c1d9f3a7045cc93ee21-encrypt-AbC";
const SECRET_KEY: &str = "it-9c2e8365aa71cc094d0a1f7b-signing-XyZ";
pub(crate) const PASSWORD: &str = "Correct-Horse-7-Battery";

/// A tenth of what hashing costs a service: nothing is protected here.
const HASH_COST: HashCost = HashCost { memory_kib: 4_096, passes: 2, lanes: 1 };

/// Settings beyond the defaults of a test.
#[derive(Default, Clone)]
pub(crate) struct Options {
    settings: Vec<(&'static str, String)>,
    tap: Option<Tap>,
    hash_cost: Option<HashCost>,
    compiler: Option<Compiler>,
    adapters: Adapters,
}

/// Which of the adapters that were built a server reads.
#[derive(Debug, Default, Clone)]
pub(crate) enum Adapters {
    /// One, which is enough for what does not depend on the vendor: each package costs every start.
    #[default]
    OpenWrt,
    /// These.
    Of(Vec<String>),
    All,
}

impl Options {
    /// Reads other packages than usual.
    pub(crate) fn serving(mut self, adapters: Adapters) -> Self {
        self.adapters = adapters;
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.settings.push((name, value.into()));
        self
    }

    /// Passwords cost what they cost a service.
    pub(crate) fn hashing_as_served(mut self) -> Self {
        self.hash_cost = Some(HashCost::default());
        self
    }

    /// Compiles components in another way than usual. A server in a process of its own does not.
    pub(crate) fn compiling(mut self, compiler: Compiler) -> Self {
        self.compiler = Some(compiler);
        self
    }

    /// Sees all that enters a component's memory.
    pub(crate) fn tapped(mut self, tap: Tap) -> Self {
        self.tap = Some(tap);
        self
    }
}

pub(crate) struct Server {
    running: Option<Running>,
    contract: Known,
    environment: BTreeMap<String, String>,
    tap: Option<Tap>,
    hash_cost: HashCost,
    compiler: Compiler,
    folder: TempDir,
}

/// Folder of what cargo builds.
pub(crate) fn target_folder() -> PathBuf {
    let exe = std::env::current_exe().expect("a test knows its path");
    // target/debug/deps/it-… -> target
    exe.ancestors().nth(3).expect("the test lies below the target folder").to_owned()
}

pub(crate) fn heddle_binary() -> PathBuf {
    variable("HEDDLE_BIN").map_or_else(|| target_folder().join("debug/heddle"), PathBuf::from)
}

pub(crate) fn packages() -> PathBuf {
    variable("HEDDLE_PACKAGES").map_or_else(|| target_folder().join("packages"), PathBuf::from)
}

/// The ids of the adapters that were built.
pub(crate) fn adapters() -> Vec<String> {
    let entries = std::fs::read_dir(packages()).expect("packages are built");
    let folders =
        entries.map(|entry| entry.expect("a folder can be read")).filter(|entry| entry.path().is_dir());
    let mut ids: Vec<String> =
        folders.map(|folder| folder.file_name().into_string().expect("an id is text")).collect();
    ids.sort();
    ids
}

/// A folder that has only these packages.
fn packages_of(adapters: &Adapters) -> PathBuf {
    let ids: &[String] = match adapters {
        Adapters::All => return packages(),
        Adapters::OpenWrt => &["openwrt".to_owned()],
        Adapters::Of(ids) => ids,
    };
    let all = packages().canonicalize().expect("packages are built");
    // Another build folder has folders of its own: nothing is ever removed that another process reads.
    let mark = all.display().to_string().replace(['/', '.'], "-");
    let folder = target_folder().join("packages-of-tests").join(mark).join(ids.join("+"));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    for id in ids {
        let made = std::os::unix::fs::symlink(all.join(id), folder.join(id));
        // Tests run at the same time, and another one may have made it.
        let is_there = made.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists);
        assert!(made.is_ok() || is_there, "{id}: {made:?}");
    }
    folder
}

pub(crate) fn compiler() -> Compiler {
    Compiler { program: heddle_binary(), args: vec!["plugin-compile".to_owned()], is_awaited: false }
}

/// The environment of a test's server; the binary understands the same.
pub(crate) fn environment(folder: &Path, database: &Database, options: &Options) -> BTreeMap<String, String> {
    let data = folder.join("data");
    std::fs::create_dir_all(&data).expect("a data folder can be made");
    let mut environment: BTreeMap<String, String> = [
        ("DATA_DIR", data.display().to_string()),
        ("BIND_ADDR", "127.0.0.1:0".to_owned()),
        ("ENCRYPTION_KEY", ENCRYPTION_KEY.to_owned()),
        ("SECRET_KEY", SECRET_KEY.to_owned()),
        ("ADAPTER_READ_ONLY", "false".to_owned()),
        ("ADAPTER_PACKAGES", packages_of(&options.adapters).display().to_string()),
        ("ADAPTER_TRUSTED_KEYS", packages().join("trusted-keys.json").display().to_string()),
        ("EGRESS_EXTRA_NETWORKS", "127.0.0.0/8".to_owned()),
        ("COMPONENT_INSTANCES", "80".to_owned()),
        ("APPLY_SETTLE_MS", "400".to_owned()),
        // A device that tells what changes is read when a test does not expect it: those about messages say that they want it.
        ("PUSH_ENABLED", "false".to_owned()),
        // Tests are many clients behind one address: they say which, and are limited where it is tested.
        ("TRUSTED_PROXIES", "127.0.0.0/8".to_owned()),
        ("RATE_LIMIT_RPM", "1000000".to_owned()),
        ("RATE_LIMIT_BURST", "1000000".to_owned()),
        ("DB_POOL_SIZE", "4".to_owned()),
        ("DB_MAX_OVERFLOW", "0".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if let Database::Postgres(url) = database {
        environment.insert("DATABASE_URL".to_owned(), url.clone());
    }
    for (name, value) in &options.settings {
        environment.insert((*name).to_owned(), value.clone());
    }
    share_code(&data, &environment);
    environment
}

/// Links the folder of compiled code to one that all servers with the same keys share: each of them would delete what a
/// server with other keys compiled. A server that generates its keys shares with none.
fn share_code(data: &Path, environment: &BTreeMap<String, String>) {
    let keys = [&environment["ENCRYPTION_KEY"], &environment["SECRET_KEY"]];
    let link = data.join("code");
    // A server that starts again may have other keys.
    if link.is_symlink() {
        let _ = std::fs::remove_file(&link);
    }
    if keys.iter().any(|key| key.is_empty()) {
        return;
    }
    let mut hasher = DefaultHasher::new();
    keys.hash(&mut hasher);
    let code = target_folder().join("it-code").join(format!("{:016x}", hasher.finish()));
    std::fs::create_dir_all(&code).expect("a code folder can be made");
    // A folder of its own stays what it is.
    let _ = std::os::unix::fs::symlink(&code, &link);
}

impl Server {
    pub(crate) async fn start(database: Database) -> Self {
        Self::start_with(database, Options::default()).await
    }

    pub(crate) async fn start_with(database: Database, options: Options) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = tempfile::tempdir().expect("a folder can be made");
        let environment = environment(folder.path(), &database, &options);
        if !environment.contains_key("DATABASE_URL") {
            place_file(Path::new(&environment["DATA_DIR"])).await;
        }
        let mut server = Self {
            running: None,
            contract: Known::default(),
            environment,
            tap: options.tap,
            hash_cost: options.hash_cost.unwrap_or(HASH_COST),
            compiler: options.compiler.unwrap_or_else(compiler),
            folder,
        };
        server.run().await;
        server
    }

    async fn run(&mut self) {
        let config =
            Config::from_maps(&self.environment, &BTreeMap::new(), &heddle_server::FEATURES.settings())
                .expect("test settings are accepted");
        let surroundings =
            Surroundings { tap: self.tap.clone(), hash_cost: self.hash_cost, ..self.compiler.clone().into() };
        let running = heddle_server::start(config, surroundings).await.expect("the server starts");
        self.contract = Known::of_app(&running.app);
        self.running = Some(running);
    }

    /// Ends the server and starts it again on the same data.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.run().await;
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await.expect("the server stops");
        }
    }

    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().expect("the server runs")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The document that this server's answers are held against.
    pub(crate) fn contract(&self) -> std::sync::Arc<super::Contract> {
        self.contract.get().expect("the server runs")
    }

    /// A client without a token.
    pub(crate) fn nobody(&self) -> Api {
        Api::new(&format!("http://{}", self.running().addr)).knowing(&self.contract)
    }

    /// A new session of the user with this name and the tests' password.
    pub(crate) async fn log_in(&self, name: &str) -> Api {
        let login = json!({ "login": name, "password": PASSWORD });
        let tokens = self.nobody().post("/auth/login", &login).await.expect_status(200).body;
        self.nobody().with_token(tokens["access_token"].as_str().expect("a login answers a token"))
    }

    /// Completes the setup and answers the first admin's client.
    pub(crate) async fn set_up(&self) -> Api {
        let nobody = self.nobody();
        let answer = nobody
            .post(
                "/setup/complete",
                &json!({
                    "organization": { "name": "Acme" },
                    "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
                    "site": { "name": "Head office" },
                }),
            )
            .await
            .expect_status(201);
        nobody.with_token(answer.body["access_token"].as_str().expect("setup answers a token"))
    }
}

/// A controller for a router, registered by its API.
pub(crate) async fn register(api: &Api, url: &str, password: &str) -> Value {
    let credential = api
        .post("/credentials", &json!({ "name": "router", "username": "root", "password": password }))
        .await
        .expect_status(201);
    let sites = api.get("/sites").await.expect_status(200);
    api.post(
        "/controllers",
        &json!({
            "name": "edge",
            "site_id": sites.body["items"][0]["id"],
            "vendor": "openwrt",
            "url": url,
            "credential_id": credential.body["id"],
        }),
    )
    .await
    .expect_status(201)
    .body
}
