//! A directory of a test's own, with TLS by a private authority, which can be stopped and frozen.

use std::fmt::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{free_port, variable};

pub(crate) const BASE_DN: &str = "dc=example,dc=test";
pub(crate) const BIND_DN: &str = "cn=search,dc=example,dc=test";
/// What must not be seen anywhere.
pub(crate) const BIND_PASSWORD: &str = "directory-canary-4Tz";
const ROOT_PASSWORD: &str = "root-secret";

/// How the directory takes what it is sent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manners {
    /// A name with an empty password is an anonymous bind, and succeeds: as in many directories.
    pub(crate) accepts_empty: bool,
    /// Binds in the clear are refused.
    pub(crate) requires_tls: bool,
}

pub(crate) struct Slapd {
    child: Child,
    port: u16,
    tls_port: u16,
    /// Certificate of the authority, in PEM.
    pub(crate) ca_pem: String,
    folder: TempDir,
}

impl Slapd {
    pub(crate) fn start() -> Self {
        Self::start_with(Manners::default())
    }

    pub(crate) fn start_with(manners: Manners) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let ca_pem = certify(folder.path());
        std::fs::create_dir(folder.path().join("db")).expect("a folder can be made");
        write(&folder, "slapd.conf", &configuration(folder.path(), manners));
        write(&folder, "tree.ldif", &tree());
        write(&folder, "groups.ldif", &groups());
        let conf = folder.path().join("slapd.conf");
        let mut add = Command::new(program("slapadd"));
        run(add.args(["-q", "-f"]).arg(&conf).arg("-l").arg(folder.path().join("tree.ldif")));
        let (port, tls_port) = (free_port(), free_port());
        let child = spawn(&folder, port, tls_port);
        let slapd = Self { child, port, tls_port, ca_pem, folder };
        slapd.wait_ready();
        // Over the wire, so that the entries of the members learn of it.
        let mut add = Command::new("ldapadd");
        add.env("LDAPTLS_CACERT", slapd.folder.path().join("ca.pem"))
            .args([
                "-H",
                &slapd.ldaps_url(),
                "-x",
                "-D",
                &format!("cn=root,{BASE_DN}"),
                "-w",
                ROOT_PASSWORD,
                "-f",
            ])
            .arg(slapd.folder.path().join("groups.ldif"));
        run(&mut add);
        slapd
    }

    pub(crate) fn ldap_url(&self) -> String {
        format!("ldap://127.0.0.1:{}", self.port)
    }

    pub(crate) fn ldaps_url(&self) -> String {
        format!("ldaps://127.0.0.1:{}", self.tls_port)
    }

    pub(crate) fn stop(&mut self) {
        self.child.kill().expect("the process runs");
        self.child.wait().expect("the process ends");
    }

    /// Takes connections, as the kernel does for it, and answers nothing.
    pub(crate) fn pause(&self) {
        let id = i32::try_from(self.child.id()).expect("ids are small");
        kill_process(Pid::from_raw(id).expect("ids are positive"), Signal::STOP).expect("the process runs");
    }

    fn wait_ready(&self) {
        let started = Instant::now();
        for port in [self.port, self.tls_port] {
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                assert!(started.elapsed() < super::PATIENCE, "the directory does not come up");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

impl Drop for Slapd {
    fn drop(&mut self) {
        // It may have been stopped already. A frozen process dies of this, too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of the package; Debian keeps it where only administrators look.
fn program(name: &str) -> PathBuf {
    let slapd = variable("TEST_SLAPD").map_or_else(|| PathBuf::from("/usr/sbin/slapd"), PathBuf::from);
    slapd.with_file_name(name)
}

fn spawn(folder: &TempDir, port: u16, tls_port: u16) -> Child {
    // Never without `-h`: it would listen on every address.
    let addresses = format!("ldap://127.0.0.1:{port} ldaps://127.0.0.1:{tls_port}");
    let spawned = Command::new(program("slapd"))
        .arg("-f")
        .arg(folder.path().join("slapd.conf"))
        .args(["-h", &addresses, "-d", "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    spawned.unwrap_or_else(|cause| {
        panic!(
            "'{}' cannot be started ({cause}): install the packages slapd and ldap-utils, or name the program in \
             TEST_SLAPD",
            program("slapd").display()
        )
    })
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("install the packages slapd and ldap-utils");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn write(folder: &TempDir, name: &str, text: &str) {
    std::fs::write(folder.path().join(name), text).expect("a file can be written");
}

/// Writes a private authority and a certificate of its; answers the authority's.
fn certify(folder: &Path) -> String {
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate().expect("a key can be made");
    let ca_pem = authority.self_signed(&authority_key).expect("it can be signed").pem();
    let issuer = Issuer::new(authority, authority_key);
    let names = ["localhost", "127.0.0.1"].map(str::to_owned);
    let server = CertificateParams::new(names).expect("names of a server");
    let key = KeyPair::generate().expect("a key can be made");
    let certificate = server.signed_by(&key, &issuer).expect("it can be signed").pem();
    for (name, text) in
        [("ca.pem", &ca_pem), ("server.pem", &certificate), ("server.key", &key.serialize_pem())]
    {
        std::fs::write(folder.join(name), text).expect("a file can be written");
    }
    ca_pem
}

fn configuration(folder: &Path, manners: Manners) -> String {
    let folder = folder.display();
    let mut text = format!(
        "include /etc/ldap/schema/core.schema\n\
         include /etc/ldap/schema/cosine.schema\n\
         include /etc/ldap/schema/inetorgperson.schema\n\
         modulepath /usr/lib/ldap\n\
         moduleload back_mdb\n\
         moduleload memberof\n\
         pidfile {folder}/slapd.pid\n\
         TLSCACertificateFile {folder}/ca.pem\n\
         TLSCertificateFile {folder}/server.pem\n\
         TLSCertificateKeyFile {folder}/server.key\n\
         TLSProtocolMin 3.3\n"
    );
    if manners.requires_tls {
        text.push_str("security simple_bind=128\n");
    }
    if manners.accepts_empty {
        text.push_str("allow bind_anon_dn\n");
    }
    write!(
        text,
        "database mdb\n\
         suffix {BASE_DN}\n\
         rootdn cn=root,{BASE_DN}\n\
         rootpw {ROOT_PASSWORD}\n\
         directory {folder}/db\n\
         maxsize 67108864\n\
         index objectClass,uid,mail,memberOf eq\n\
         overlay memberof\n\
         access to attrs=userPassword by self write by anonymous auth by * none\n\
         access to * by dn.exact={BIND_DN} read by self read by * none\n"
    )
    .expect("a text grows");
    text
}

fn tree() -> String {
    let person = |uid: &str, name: &str, password: &str| {
        format!(
            "dn: uid={uid},ou=people,{BASE_DN}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: {name}\nsn: Example\n\
             mail: {uid}@example.test\nuserPassword: {password}\n\n"
        )
    };
    let unit =
        |name: &str| format!("dn: ou={name},{BASE_DN}\nobjectClass: organizationalUnit\nou: {name}\n\n");
    [
        format!(
            "dn: {BASE_DN}\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: Example\n\n"
        ),
        format!(
            "dn: {BIND_DN}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: search\n\
             userPassword: {BIND_PASSWORD}\n\n"
        ),
        unit("people"),
        unit("groups"),
        person("alice", "Alice Example", "alice-secret"),
        person("bob", "Bob (Ops) Example*", "bob-secret"),
    ]
    .concat()
}

fn groups() -> String {
    format!(
        "dn: cn=admins,ou=groups,{BASE_DN}\nobjectClass: groupOfNames\ncn: admins\nmember: uid=alice,ou=people,{BASE_DN}\n"
    )
}
