//! Every address that a user may try, under both rule sets; and what happens between judging and connecting.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use heddle_core::fault::Fault;
use heddle_core::tls::TlsPolicy;
use http::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::{Host, Url};

use super::super::own::{Excess, Names, OwnAnswer, OwnRequest, Reach, ask, resolve};
use super::*;

const TABLE: &str = include_str!("hostile.txt");

/// Names of the table, and literals as they are.
struct TableNames;

impl Names for TableNames {
    fn look_up<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        let literal = host.trim_end_matches('.').parse::<IpAddr>();
        let addresses: Vec<&str> = match host.trim_end_matches('.') {
            "localhost" | "a.localhost" | "loopback.example" => vec!["127.0.0.1"],
            "loopback6.example" => vec!["::1"],
            "mapped-loopback.example" => vec!["::ffff:127.0.0.1"],
            "linklocal.example" => vec!["169.254.1.1"],
            "metadata-by-address.example" => vec!["169.254.169.254"],
            "multicast.example" => vec!["224.0.0.251"],
            "private.example" => vec!["10.0.0.1"],
            "private6.example" => vec!["fd12:3456::1"],
            "shared.example" => vec!["100.64.0.1"],
            "public-and-loopback.example" => vec!["8.8.8.8", "127.0.0.1"],
            "loopback-and-public.example" => vec!["127.0.0.1", "8.8.8.8"],
            "public-and-metadata.example" => vec!["8.8.8.8", "169.254.169.254"],
            "public-and-private.example" => vec!["8.8.8.8", "10.0.0.1"],
            "private-and-public.example" => vec!["10.0.0.1", "8.8.8.8"],
            name if literal.is_ok() => vec![name],
            _ => vec!["93.184.216.34"],
        };
        let found = addresses.into_iter().map(|text| SocketAddr::new(text.parse().unwrap(), port)).collect();
        Box::pin(std::future::ready(Ok(found)))
    }
}

async fn verdict(target: &str, rules: &Rules, reach: Reach) -> String {
    let host = if target.contains(':') && target.starts_with("http") {
        let Ok(url) = Url::parse(target) else { return "unreadable".to_owned() };
        match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return "unreadable".to_owned(),
        }
    } else {
        target.to_owned()
    };
    match resolve(&host, 80, rules, reach, &TableNames).await {
        Ok(_) => "yes".to_owned(),
        Err(fault) if fault.code.as_deref() == Some("address") => "no".to_owned(),
        Err(fault) => format!("{fault}"),
    }
}

fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    TABLE.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

#[tokio::test]
async fn every_address_is_judged_as_the_table_says() {
    let rules = Rules::default();
    let mut wrong = Vec::new();
    let mut hostile = 0;
    for row in rows() {
        let [target, expected @ ..] = row.as_slice() else { unreachable!("a line has a target") };
        let mut found = Vec::new();
        for reach in [Reach::Premises, Reach::Outward, Reach::OutwardListed] {
            found.push(verdict(target, &rules, reach).await);
        }
        hostile += usize::from(expected[1] != "yes");
        if found != expected {
            wrong.push(format!("{target}: {found:?} instead of {expected:?}"));
        }
    }
    assert!(hostile >= 200, "{hostile} hostile addresses");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the operator opens for controllers opens nothing else to the world, and this machine only for a listed host.
#[tokio::test]
async fn opened_networks_lift_only_the_loopback_of_listed_hosts() {
    let rules = Rules::new(vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()], Vec::new());
    for row in rows() {
        let [target, _, outward, listed] = row.as_slice() else { unreachable!("a line has four words") };
        assert_eq!(&verdict(target, &rules, Reach::Outward).await, outward, "{target}");
        let found = verdict(target, &rules, Reach::OutwardListed).await;
        if &found != listed {
            let url = if target.starts_with("http") { (*target).to_owned() } else { String::new() };
            let host = Url::parse(&url).ok().and_then(|url| url.host_str().map(str::to_owned));
            let host = host.unwrap_or_else(|| (*target).to_owned());
            let resolved = TableNames.look_up(host.trim_matches(['[', ']']), 80).await.unwrap();
            let is_loopback = resolved.iter().any(|address| address.ip().to_canonical().is_loopback());
            assert!(found == "yes" && is_loopback, "{target}: {found}");
        }
    }
    let some = Rules::new(vec!["127.0.0.2/32".parse().unwrap()], Vec::new());
    assert_eq!(verdict("127.0.0.1", &some, Reach::OutwardListed).await, "no");
    assert_eq!(verdict("127.0.0.2", &some, Reach::OutwardListed).await, "yes");
    assert_eq!(verdict("127.0.0.2", &some, Reach::Outward).await, "no");
}

/// Answers with each of these addresses in turn, as a name server of an attacker does.
struct Changing {
    answers: Vec<SocketAddr>,
    asked: AtomicUsize,
}

impl Names for Changing {
    fn look_up<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        let at = self.asked.fetch_add(1, Ordering::SeqCst).min(self.answers.len() - 1);
        Box::pin(std::future::ready(Ok(vec![self.answers[at]])))
    }
}

/// A server that gives every client the same answer, and counts the clients.
async fn server(answer: String) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let work = async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = socket.read(&mut [0; 4096]).await;
            let _ = socket.write_all(answer.as_bytes()).await;
            let _ = socket.shutdown().await;
        }
    };
    #[expect(clippy::disallowed_methods, reason = "the server lives as long as the test")]
    tokio::spawn(work);
    (address, count)
}

fn with_body(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

async fn asked(url: String, names: &dyn Names, excess: Excess) -> Result<OwnAnswer, Fault> {
    let rules = Rules::new(vec!["127.0.0.0/8".parse().unwrap()], Vec::new());
    let request = OwnRequest {
        method: Method::POST,
        url: url.parse().unwrap(),
        tls: TlsPolicy::default(),
        headers: Vec::new(),
        body: Vec::new(),
        timeout: Duration::from_secs(5),
        body_bytes_max: 16,
        excess,
        reach: Reach::OutwardListed,
    };
    ask(&rules, names, request).await
}

#[tokio::test]
async fn a_name_is_looked_up_once_and_what_was_judged_is_what_is_reached() {
    let (good, good_count) = server(with_body("good")).await;
    let (evil, evil_count) = server(with_body("evil")).await;
    for host in ["rebind.example", "REBIND.example.", "localhost"] {
        let names = Changing { answers: vec![good, evil], asked: AtomicUsize::new(0) };
        let answer = asked(format!("http://{host}:{}/", good.port()), &names, Excess::Cut).await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"good".as_slice()), "{host}");
        assert_eq!(answer.peer, Some(good));
        assert_eq!(names.asked.load(Ordering::SeqCst), 1, "{host} is looked up once");
    }
    assert_eq!((good_count.load(Ordering::SeqCst), evil_count.load(Ordering::SeqCst)), (3, 0));
    // The other way round it is refused, although the next answer would do.
    let names =
        Changing { answers: vec!["169.254.169.254:80".parse().unwrap(), good], asked: AtomicUsize::new(0) };
    let fault =
        asked(format!("http://rebind.example:{}/", good.port()), &names, Excess::Cut).await.err().unwrap();
    assert_eq!(fault.code.as_deref(), Some("address"));
    assert_eq!((names.asked.load(Ordering::SeqCst), good_count.load(Ordering::SeqCst)), (1, 3));
}

#[tokio::test]
async fn redirects_are_answers_and_nobody_goes_there() {
    let (inner, inner_count) = server(with_body("secret")).await;
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        for location in [
            format!("http://{inner}/"),
            format!("//{inner}/"),
            "http://169.254.169.254/".to_owned(),
            "/again".to_owned(),
        ] {
            let text = format!(
                "HTTP/1.1 {status}\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            let (address, count) = server(text).await;
            let names = Changing { answers: vec![address], asked: AtomicUsize::new(0) };
            let answer =
                asked(format!("http://hook.example:{}/", address.port()), &names, Excess::Cut).await.unwrap();
            assert_eq!(answer.status.to_string(), status[..3]);
            assert_eq!(count.load(Ordering::SeqCst), 1, "{status} to {location}");
        }
    }
    assert_eq!(inner_count.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_large_answer_is_cut_or_refused_as_was_asked() {
    let (address, _) = server(with_body(&"x".repeat(1_000_000))).await;
    let names = Changing { answers: vec![address], asked: AtomicUsize::new(0) };
    let url = format!("http://hook.example:{}/", address.port());
    let answer = asked(url.clone(), &names, Excess::Cut).await.unwrap();
    assert_eq!((answer.status, answer.body.len(), answer.is_cut), (200, 16, true));
    let fault = asked(url, &names, Excess::Refused).await.err().unwrap();
    assert_eq!(fault.code.as_deref(), Some("response-too-large"));
    let (address, _) = server(with_body(&"x".repeat(16))).await;
    let names = Changing { answers: vec![address], asked: AtomicUsize::new(0) };
    let answer =
        asked(format!("http://hook.example:{}/", address.port()), &names, Excess::Cut).await.unwrap();
    assert_eq!((answer.body.len(), answer.is_cut), (16, false));
}

#[test]
fn a_plugin_reaches_private_networks_that_it_asks_for_and_the_operator_lists() {
    let networks = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpNet>>();
    let rules =
        Rules::new(networks(&["127.0.0.0/8"]), networks(&["10.7.0.0/16"])).with_plugin_networks(networks(&[
            "10.7.0.0/16",
            "10.8.0.0/16",
            "127.0.0.0/8",
            "fd12::/16",
            "169.254.0.0/16",
        ]));
    let judged = |address: &str, is_private, is_encrypted| {
        rules.judge_for_plugin(address.parse().unwrap(), is_private, is_encrypted)
    };
    for listed in ["10.8.1.1", "::ffff:10.8.1.1", "fd12:3456::1", "127.0.0.1"] {
        assert_eq!(judged(listed, true, true), Ok(()), "{listed}");
        assert_eq!(judged(listed, true, false), Ok(()), "{listed}");
        assert_eq!(judged(listed, false, true), Err(NOT_ASKED), "{listed}");
    }
    for unlisted in ["10.9.1.1", "192.168.1.1", "fd13::1", "100.64.0.1"] {
        assert_eq!(judged(unlisted, true, true), Err(NOT_LISTED), "{unlisted}");
        assert_eq!(judged(unlisted, false, true), Err(NOT_ASKED), "{unlisted}");
    }
    assert_eq!(judged("10.7.1.1", true, true), Err(DENIED));
    assert_eq!(judged("169.254.169.254", true, true), Err(METADATA));
    assert!(judged("169.254.1.1", true, true).is_err());
    // Public ones need encryption, whatever is listed.
    let everything = Rules::default().with_plugin_networks(networks(&["0.0.0.0/0", "::/0"]));
    for public in ["8.8.8.8", "2a00:1450::1"] {
        for is_private in [false, true] {
            assert_eq!(judged(public, is_private, true), Ok(()));
            assert_eq!(judged(public, is_private, false), Err(UNENCRYPTED));
            let address = public.parse().unwrap();
            assert_eq!(everything.judge_for_plugin(address, is_private, false), Err(UNENCRYPTED));
        }
    }
}
