//! A mail server of a test's own, which keeps what it gets and can be broken in every way.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::{Options, free_port, tool};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/support/smtp_sink.py");
const USER: &str = "heddle@acme.test";
/// With characters that a URL must write otherwise.
const PASSWORD: &str = "smtp/canary@9x";
pub(crate) const FROM: &str = "heddle@acme.test";

/// How the server behaves; `smtp_sink.py` says what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Plain,
    StartTls,
    Tls,
    Broken,
    Flaky,
    Refusing,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::StartTls => "starttls",
            Mode::Tls => "tls",
            Mode::Broken => "broken",
            Mode::Flaky => "flaky",
            Mode::Refusing => "refusing",
        }
    }
}

/// A mail as the server got it.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) to: Vec<String>,
    pub(crate) from: String,
    /// As what the client greeted.
    pub(crate) hello: String,
    pub(crate) over_tls: bool,
    pub(crate) with_login: bool,
    /// Its lines as they came, headers first.
    pub(crate) content: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        let (head, _) = self.content.split_once("\r\n\r\n").expect("a mail has a head");
        let lines = head.split("\r\n").filter_map(|line| line.split_once(": "));
        lines
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .next()
            .unwrap_or("")
    }

    pub(crate) fn text(&self) -> &str {
        self.content.split_once("\r\n\r\n").expect("a mail has a head").1
    }

    /// The link in it.
    pub(crate) fn link(&self) -> &str {
        let mut words = self.text().split_whitespace();
        words.find(|word| word.contains("#token=")).expect("the mail has a link")
    }

    pub(crate) fn token(&self) -> &str {
        self.link().split_once("#token=").expect("a link has a token").1
    }
}

/// A mail server that ends with this value.
pub(crate) struct Smtp {
    child: Option<Child>,
    port: u16,
    mode: Mode,
    folder: TempDir,
}

impl Smtp {
    pub(crate) fn start(mode: Mode) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        certify(folder.path());
        let port = free_port();
        let child = spawn(folder.path(), port, mode);
        let smtp = Self { child: Some(child), port, mode, folder };
        smtp.wait_ready();
        smtp
    }

    /// Where nothing listens.
    pub(crate) fn absent() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        certify(folder.path());
        Self { child: None, port: free_port(), mode: Mode::Plain, folder }
    }

    pub(crate) fn url(&self) -> String {
        let login =
            format!("{}:{}", USER.replace('@', "%40"), PASSWORD.replace('/', "%2F").replace('@', "%40"));
        match self.mode {
            Mode::StartTls => format!("smtp://{login}@127.0.0.1:{}?tls=required", self.port),
            Mode::Tls => format!("smtps://{login}@127.0.0.1:{}", self.port),
            _ => format!("smtp://127.0.0.1:{}?tls=opportunistic", self.port),
        }
    }

    /// Settings of a server that sends its mails here.
    pub(crate) fn options(&self) -> Options {
        self.options_with(&self.url())
    }

    pub(crate) fn options_with(&self, url: &str) -> Options {
        Options::default()
            .with("SMTP_URL", url)
            .with("SMTP_FROM", format!("Heddle <{FROM}>"))
            .with("SMTP_CA_FILE", self.folder.path().join("ca.pem").display().to_string())
            .with("PUBLIC_URL", "https://heddle.acme.test")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What must not be seen anywhere.
    pub(crate) fn password() -> &'static str {
        PASSWORD
    }

    /// All mails, in the order in which they came.
    pub(crate) fn mails(&self) -> Vec<Received> {
        let mut paths: Vec<_> = std::fs::read_dir(self.folder.path())
            .expect("the folder is there")
            .map(|entry| entry.expect("it can be read").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .collect();
        paths.sort();
        paths.iter().map(|path| received(path)).collect()
    }

    /// How often a mail was offered.
    pub(crate) fn tries(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("tries")).unwrap_or_default().lines().count()
    }

    /// Waits until there are as many mails, and answers the last.
    pub(crate) async fn mail(&self, number: usize) -> Received {
        let started = Instant::now();
        loop {
            let mut mails = self.mails();
            if mails.len() >= number {
                assert_eq!(mails.len(), number, "no more mails came than were expected");
                return mails.pop().expect("one was expected");
            }
            assert!(started.elapsed() < super::PATIENCE, "{} of {number} mails came", mails.len());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Takes connections, as the kernel does for it, and answers nothing.
    pub(crate) fn pause(&self) {
        let id = i32::try_from(self.child.as_ref().expect("it runs").id()).expect("ids are small");
        kill_process(Pid::from_raw(id).expect("ids are positive"), Signal::STOP).expect("the process runs");
    }

    fn wait_ready(&self) {
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(started.elapsed() < super::PATIENCE, "the mail server does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Smtp {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // A frozen process dies of this, too.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn received(path: &Path) -> Received {
    let text = std::fs::read_to_string(path).expect("a mail can be read");
    let mail: Value = serde_json::from_str(&text).expect("a mail is kept as JSON");
    let text = |name: &str| mail[name].as_str().unwrap_or_default().to_owned();
    let to = mail["to"].as_array().expect("a mail has recipients");
    Received {
        to: to.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        from: text("from"),
        hello: text("hello"),
        over_tls: mail["tls"] == true,
        with_login: mail["login"] == true,
        content: text("content"),
    }
}

fn spawn(folder: &Path, port: u16, mode: Mode) -> Child {
    let python = tool("TEST_PYTHON", "Python with the packages of tests/surface/client/requirements.txt");
    let log = std::fs::File::create(folder.join("log")).expect("a log can be written");
    Command::new(python)
        .arg(SCRIPT)
        .arg(folder)
        .args([&port.to_string(), mode.word(), USER, PASSWORD])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("Python starts")
}

/// An authority, and a certificate of it for this host.
fn certify(folder: &Path) {
    let write =
        |name: &str, text: String| std::fs::write(folder.join(name), text).expect("a file can be written");
    let [authority, certificate, key] = certificates().expect("certificates can be made");
    write("ca.pem", authority);
    write("server.pem", certificate);
    write("server.key", key);
}

fn certificates() -> Result<[String; 3], rcgen::Error> {
    let (authority_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "Authority of a test");
    let root = authority.self_signed(&authority_key)?;
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate =
        CertificateParams::new(names)?.signed_by(&key, &Issuer::new(authority, authority_key))?;
    Ok([root.pem(), certificate.pem(), key.serialize_pem()])
}
