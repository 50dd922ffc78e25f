//! How many connections there may be, and for how long without a request.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use heddle_kernel::process::limits::raise_files;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{Database, Options, Process, Server, Socket};

/// Longer than any limit of these tests, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);
const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nhost: heddle\r\n\r\n";
const HALF: &[u8] = b"GET /health HTTP/1.1\r\nhost: hed";

async fn connect(address: SocketAddr) -> TcpStream {
    connect_from(Ipv4Addr::LOCALHOST, address).await
}

/// From another address of this machine.
async fn connect_from(source: Ipv4Addr, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((source, 0).into()).unwrap();
    socket.connect(address).await.expect("the kernel takes connections for the server")
}

/// What comes until the server closes, within the patience of a test. A reset is an end, too.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    drop(reading.expect("the server closes the connection"));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One answer without a body, or the head of one.
async fn head(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("\r\n\r\n") {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await;
        let length = read.expect("an answer comes").expect("the connection lives");
        assert!(length > 0, "the connection was closed: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    text
}

async fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(HEALTH).await.expect("the server reads");
    head(stream).await
}

async fn counted(server: &Server, series: &str) -> f64 {
    let text = server.nobody().get_root("/metrics").await.expect_status(200).text;
    let line = text.lines().find(|line| line.starts_with(series));
    line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok())
        .unwrap_or_else(|| panic!("no {series} in {text}"))
}

fn quick() -> Options {
    Options::default().with("HTTP_HEADER_TIMEOUT_SECS", "1")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_half_requests_keep_nobody_from_being_answered() {
    assert!(raise_files() > 4_096, "this test needs more open files than 'ulimit -Hn' allows");
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), &Database::Sqlite, &Options::default()).await;
    let address: SocketAddr = process.api.base().strip_prefix("http://").unwrap().parse().unwrap();
    let mut halves = Vec::new();
    for n in 0..2_000 {
        let mut half = connect(address).await;
        half.write_all(&HALF[..n % HALF.len()]).await.unwrap();
        halves.push(half);
        if n % 50 == 0 {
            assert!(ask(&mut connect(address).await).await.starts_with("HTTP/1.1 200 "), "after {n}");
        }
    }
    for _ in 0..50 {
        process.api.get_root("/health").await.expect_status(200);
    }
    // All of them are closed, and their places are free again.
    for half in &mut halves {
        assert_eq!(rest(half).await, "");
    }
    process.api.get_root("/health").await.expect_status(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_does_not_come_to_its_end_closes_the_connection() {
    let server = Server::start_with(Database::sqlite(), quick()).await;
    let address = server.running().addr;
    // Nothing at all, a part, the beginning of HTTP/2, and a second request after a good one.
    for (is_second, part) in [(false, &b""[..]), (false, HALF), (false, b"PRI * HTTP/2.0\r\n"), (true, HALF)]
    {
        let mut stream = connect(address).await;
        if is_second {
            assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200 "));
            // The body of that answer.
            tokio::time::timeout(Duration::from_millis(200), stream.read(&mut [0; 4096])).await.ok();
        }
        let started = Instant::now();
        stream.write_all(part).await.unwrap();
        rest(&mut stream).await;
        assert!(started.elapsed() >= Duration::from_millis(700), "{part:?}: it has its time");
    }
    // Each byte comes in time, the head does not.
    let mut stream = connect(address).await;
    let started = Instant::now();
    while stream.write_all(b"x").await.is_ok() {
        assert!(started.elapsed() < PATIENCE, "the server closes the connection");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(counted(&server, "http_connections_timed_out_total{reason=\"head\"}").await >= 5.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_connection_is_closed_and_one_that_is_a_stream_is_not() {
    let options = quick().with("HTTP_IDLE_TIMEOUT_SECS", "1");
    let server = Server::start_with(Database::sqlite(), options).await;
    let api = server.set_up().await;
    let mut socket = Socket::authenticated(&api).await;
    let mut stream = connect(server.running().addr).await;
    assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200 "));
    rest(&mut stream).await;
    assert!(counted(&server, "http_connections_timed_out_total{reason=\"idle\"}").await >= 1.0);
    tokio::time::sleep(Duration::from_secs(3)).await;
    socket.send(&json!({ "type": "ping" })).await;
    assert_eq!(socket.next().await["type"], "pong");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let options = Options::default().with("HTTP_BODY_TIMEOUT_SECS", "1");
    let server = Server::start_with(Database::sqlite(), options).await;
    let mut stream = connect(server.running().addr).await;
    let request = b"POST /api/v1/auth/login HTTP/1.1\r\nhost: heddle\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"login\"";
    stream.write_all(request).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("request body did not arrive within 1 s"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_is_too_large_is_refused() {
    let server = Server::start(Database::sqlite()).await;
    let mut stream = connect(server.running().addr).await;
    let large = [b"GET /health HTTP/1.1\r\nhost: heddle\r\nx: ".as_slice(), &vec![b'x'; 40_000], b"\r\n\r\n"]
        .concat();
    stream.write_all(&large).await.ok();
    let answer = rest(&mut stream).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let mut stream = connect(server.running().addr).await;
    let many = (0..150).map(|n| format!("x-{n}: 1\r\n")).collect::<String>();
    stream.write_all(format!("GET /health HTTP/1.1\r\nhost: heddle\r\n{many}\r\n").as_bytes()).await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_has_so_many_connections_and_others_have_theirs() {
    let options = Options::default().with("TRUSTED_PROXIES", "").with("HTTP_CONNECTIONS_PER_ADDRESS", "3");
    let server = Server::start_with(Database::sqlite(), options).await;
    let address = server.running().addr;
    let crowd = Ipv4Addr::new(127, 0, 0, 66);
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = connect_from(crowd, address).await;
        assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200 "));
        held.push(stream);
    }
    let refused = rest(&mut connect_from(crowd, address).await).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(
        ask(&mut connect_from(Ipv4Addr::new(127, 0, 0, 67), address).await)
            .await
            .starts_with("HTTP/1.1 200 ")
    );
    assert!(counted(&server, "http_connections_refused_total{reason=\"address\"}").await >= 1.0);
    drop(held);
    // Their places come back.
    let started = Instant::now();
    loop {
        let mut stream = connect_from(crowd, address).await;
        stream.write_all(HEALTH).await.ok();
        // A refusal may be lost in the reset that follows it.
        let mut begin = [0; 13];
        let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut begin)).await;
        if read.is_ok_and(|read| read.is_ok()) && &begin == b"HTTP/1.1 200 " {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "places are given back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_the_total_a_connection_is_refused_and_the_others_live() {
    let options = Options::default().with("HTTP_CONNECTIONS_MAX", "8");
    let server = Server::start_with(Database::sqlite(), options).await;
    let address = server.running().addr;
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut stream = connect(address).await;
        if !ask(&mut stream).await.starts_with("HTTP/1.1 200 ") {
            // The test's own client has one open.
            break;
        }
        held.push(stream);
    }
    assert!(held.len() >= 6);
    let refused = rest(&mut connect(address).await).await;
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after"), "{refused}");
    assert!(ask(&mut held[0]).await.contains("HTTP/1.1 200 "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_2_is_spoken_without_tls_too() {
    let server = Server::start(Database::sqlite()).await;
    #[expect(clippy::disallowed_methods, reason = "a test is the outside world")]
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let url = format!("http://{}/health", server.running().addr);
    for _ in 0..3 {
        let answer = client.get(&url).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_2));
    }
}

/// User time and system time that a process has taken, in ticks of 10 ms.
fn ticks(process: &Process) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_free_file_it_waits_and_accepts_when_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), &Database::Sqlite, &Options::default()).await;
    let address: SocketAddr = process.api.base().strip_prefix("http://").unwrap().parse().unwrap();
    let pid = Pid::from_raw(i32::try_from(process.id()).unwrap());
    // As it is while all files are in use: none more can be opened.
    let before = rustix::process::getrlimit(Resource::Nofile);
    let old = prlimit(pid, Resource::Nofile, Rlimit { current: Some(1), maximum: before.maximum }).unwrap();
    assert_eq!(old.current, old.maximum, "the process has raised its limit");
    let mut waiting = connect(address).await;
    waiting.write_all(HEALTH).await.unwrap();
    let used = ticks(&process);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(ticks(&process) - used < 150, "it does not spin");
    prlimit(pid, Resource::Nofile, old).unwrap();
    assert!(head(&mut waiting).await.starts_with("HTTP/1.1 200 "));
    process.api.get_root("/health").await.expect_status(200);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log.matches("connections cannot be accepted").count(), 1, "said once: {log}");
}
