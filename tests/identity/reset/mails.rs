//! The mail itself, the ways to the mail server, and what becomes of mails that cannot be sent.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{NEW, add_user, ask, reset};
use crate::support::smtp::{FROM, Mode, Smtp};
use crate::support::trace::Log;
use crate::support::{Api, Database, Options, PASSWORD, Process, Server, on_both};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mail_says_what_it_is_for_and_repeats_nothing_that_somebody_typed() {
    let smtp = Smtp::start(Mode::Plain);
    let server = Server::start_with(Database::sqlite(), smtp.options()).await;
    let admin = server.set_up().await;
    let user = json!({
        "username": "grace", "email": "grace@acme.test", "password": PASSWORD, "role": "viewer",
        "full_name": "Grace <Bcc: all@acme.test>",
    });
    admin.post("/users", &user).await.expect_status(201);
    // Wherever the request claims to have been sent.
    let liar = server
        .nobody()
        .with("host", "evil.test")
        .with("x-forwarded-host", "evil.test")
        .with("origin", "https://evil.test");
    ask(&liar, "Grace@ACME.test").await.expect_status(202);
    let mail = smtp.mail(1).await;
    assert_eq!((mail.from.as_str(), mail.to.as_slice()), (FROM, &["grace@acme.test".to_owned()][..]));
    assert_eq!(mail.hello, "heddle.acme.test");
    assert_eq!(mail.header("subject"), "Reset your Heddle password");
    assert_eq!(mail.header("from"), "Heddle <heddle@acme.test>");
    assert_eq!(mail.header("to"), "grace@acme.test");
    assert_eq!(mail.header("auto-submitted"), "auto-generated");
    assert!(mail.header("content-type").starts_with("text/plain"), "{}", mail.content);
    assert_eq!(mail.header("content-transfer-encoding"), "7bit");
    assert!(mail.header("message-id").ends_with("@acme.test>") && !mail.header("date").is_empty());
    let (base, token) = mail.link().split_once("#token=").unwrap();
    assert_eq!(base, "https://heddle.acme.test/reset-password");
    assert_eq!(token.len(), 43, "256 bits");
    for words in ["Heddle", "within 60 minutes", "once", "https://heddle.acme.test"] {
        assert!(mail.text().contains(words), "{words}: {}", mail.text());
    }
    for words in ["Grace", "evil.test", "all@acme.test", "bcc"] {
        assert!(!mail.content.contains(words), "{words}: {}", mail.content);
    }
}

/// Asks once, and waits for the mail.
async fn one_mail(options: Options, smtp: &Smtp) -> (Server, crate::support::smtp::Received) {
    let server = Server::start_with(Database::sqlite(), options).await;
    add_user(&server.set_up().await, "grace").await;
    ask(&server.nobody(), "grace@acme.test").await.expect_status(202);
    let mail = smtp.mail(1).await;
    (server, mail)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_to_the_mail_server_is_encrypted_and_logged_in() {
    for mode in [Mode::StartTls, Mode::Tls] {
        let smtp = Smtp::start(mode);
        let (server, mail) = one_mail(smtp.options(), &smtp).await;
        assert!(mail.over_tls || mode == Mode::Tls, "{mode:?}");
        assert!(mail.with_login, "{mode:?}");
        reset(&server.nobody(), mail.token(), NEW).await.expect_status(204);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starttls_is_used_wherever_it_is_offered() {
    let smtp = Smtp::start(Mode::StartTls);
    let url = smtp.url().replace("tls=required", "tls=opportunistic");
    let (_server, mail) = one_mail(smtp.options_with(&url), &smtp).await;
    assert!(mail.over_tls && mail.with_login);
}

/// The value of one sample of the metrics.
async fn mails(api: &Api, outcome: &str) -> u64 {
    let text = api.get_root("/metrics").await.expect_status(200).text;
    let name = format!("heddle_mails_total{{outcome=\"{outcome}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name)).expect("mails are counted");
    line.parse().expect("a number")
}

/// Asks for a user who cannot be reached by mail, and waits until the service has given up; answers
/// what its log says of them.
async fn undelivered(server: &Server, log: &Log, name: &str) -> String {
    let id = add_user(&server.set_up().await, name).await;
    let started = Instant::now();
    ask(&server.nobody(), &format!("{name}@acme.test")).await.expect_status(202);
    while mails(&server.nobody(), "failed").await == 0 {
        assert!(started.elapsed() < Duration::from_mins(1), "the service gives up");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let log = String::from_utf8_lossy(&log.bytes()).into_owned();
    assert!(!log.contains(&format!("{name}@acme.test")), "no address is logged");
    let own: Vec<&str> = log.lines().filter(|line| line.contains(&id)).collect();
    let own = own.join("\n");
    assert!(!own.contains("#token="), "no link is logged: {own}");
    assert!(own.contains("mail to reset a password was not sent"), "{own}");
    own
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_server_that_fails_is_tried_three_times() {
    let smtp = Smtp::start(Mode::Broken);
    let log = Log::listen();
    let server = Server::start_with(Database::sqlite(), smtp.options()).await;
    let log = undelivered(&server, &log, "canary-broken").await;
    assert!(log.contains("refuses with status 451"), "the log says why");
    assert_eq!(smtp.tries(), 3);
    assert_eq!(mails(&server.nobody(), "sent").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_server_that_recovers_gets_the_mail() {
    let smtp = Smtp::start(Mode::Flaky);
    let (server, mail) = one_mail(smtp.options(), &smtp).await;
    assert_eq!(smtp.tries(), 3);
    reset(&server.nobody(), mail.token(), NEW).await.expect_status(204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_refused_is_not_tried_again_and_not_logged() {
    let smtp = Smtp::start(Mode::Refusing);
    let log = Log::listen();
    let server = Server::start_with(Database::sqlite(), smtp.options()).await;
    let log = undelivered(&server, &log, "canary-refused").await;
    assert!(log.contains("refuses with status 550"), "the log says why");
    assert_eq!(smtp.tries(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_mail_server_listens_the_service_goes_on() {
    let smtp = Smtp::absent();
    let log = Log::listen();
    let server = Server::start_with(Database::sqlite(), smtp.options()).await;
    let log = undelivered(&server, &log, "canary-absent").await;
    assert!(log.contains("mail server cannot be reached"), "the log says why");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_server_that_hangs_holds_up_nobody_and_no_stop() {
    let smtp = Smtp::start(Mode::Plain);
    let mut server = Server::start_with(Database::sqlite(), smtp.options()).await;
    let admin = server.set_up().await;
    smtp.pause();
    for (asked, name) in (1..).zip(["grace", "hedy", "joan", "mary", "radia", "edith"]) {
        add_user(&admin, name).await;
        ask(&server.nobody(), &format!("{name}@acme.test")).await.expect_status(202);
        admin.get("/auth/me").await.expect_status(200);
        // A mail ends when it is given up, after half a minute. An answer that waited for it would come after that.
        let nobody = server.nobody();
        let ended = mails(&nobody, "sent").await + mails(&nobody, "failed").await;
        assert!(ended < asked, "{name} waited for the mail server: {ended} of {asked} mails have ended");
    }
    // The mail server never answers. One attempt to send ends after ten seconds.
    let stopped = tokio::time::timeout(Duration::from_secs(30), server.stop()).await;
    stopped.expect("a stop waits for one try");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_server_that_does_not_prove_who_it_is_gets_nothing() {
    let smtp = Smtp::start(Mode::StartTls);
    let other = Smtp::absent();
    let log = Log::listen();
    // The authority of another server.
    let options = other.options_with(&smtp.url());
    let server = Server::start_with(Database::sqlite(), options).await;
    let log = undelivered(&server, &log, "canary-impostor").await;
    assert!(log.contains("TLS with the mail server fails"), "the log says why");
    assert_eq!(smtp.tries(), 0);
    assert!(!log.contains(Smtp::password()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_server_without_starttls_gets_nothing() {
    let smtp = Smtp::start(Mode::Plain);
    let log = Log::listen();
    let url = format!("smtp://127.0.0.1:{}", smtp.port());
    let server = Server::start_with(Database::sqlite(), smtp.options_with(&url)).await;
    let log = undelivered(&server, &log, "canary-stripped").await;
    assert!(log.contains("STARTTLS is not supported"), "the log says why");
    assert_eq!(smtp.tries(), 0);
}

on_both! {
    async fn without_a_mail_server_a_developer_finds_the_link_in_the_log(database: Database) {
        let log = Log::listen();
        let options = Options::default().with("PUBLIC_URL", "http://localhost:9999");
        let server = Server::start_with(database, options).await;
        let id = add_user(&server.set_up().await, "grace").await;
        ask(&server.nobody(), "grace@acme.test").await.expect_status(202);
        let mark = format!("reset the password of user {id}: http://localhost:9999/reset-password#token=");
        let started = Instant::now();
        let token = loop {
            let text = String::from_utf8_lossy(&log.bytes()).into_owned();
            if let Some((_, rest)) = text.split_once(&mark) {
                break rest[..43].to_owned();
            }
            assert!(started.elapsed() < crate::support::PATIENCE, "the link is in the log");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        reset(&server.nobody(), &token, NEW).await.expect_status(204);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_mail_server_there_is_no_link_in_production() {
    let folder = tempfile::tempdir().unwrap();
    for environment in ["staging", "production"] {
        let folder = folder.path().join(environment);
        std::fs::create_dir_all(&folder).unwrap();
        let options = Options::default().with("ENVIRONMENT", environment).with("EGRESS_EXTRA_NETWORKS", "");
        let mut process = Process::start(&folder, &Database::sqlite(), &options).await;
        let setup = json!({
            "organization": { "name": "Acme" },
            "admin": { "username": "ada", "email": "ada@acme.test", "password": PASSWORD },
        });
        process.api.post("/setup/complete", &setup).await.expect_status(201);
        ask(&process.api, "ada@acme.test").await.expect_status(202);
        process.terminate().await;
        let log = std::fs::read_to_string(folder.join("log")).unwrap();
        assert!(log.contains("SMTP_URL is not set: nobody can reset a password by mail"), "{log}");
        assert!(!log.contains("token=") && !log.contains("reset-password"), "{log}");
    }
}
