//! What `/health` notices of two thousand connections whose request does not come to its end: first without them, then
//! with them, over a new connection each time as a load balancer asks.

use std::net::SocketAddr;
use std::time::Instant;

use heddle_kernel::process::limits::raise_files;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::measure::{Report, Samples, ratio};
use crate::support::{Database, Options, Process};

const HALF_OPEN: usize = 2_000;
const READS: usize = if cfg!(debug_assertions) { 50 } else { 1_000 };
const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nhost: heddle\r\nconnection: close\r\n\r\n";
const HALF: &[u8] = b"GET /health HTTP/1.1\r\nhost: hed";

pub(crate) fn measure(runtime: &Runtime, report: &mut Report) {
    assert!(raise_files() > 4_096, "this bench needs more open files than 'ulimit -Hn' allows");
    runtime.block_on(half_open(report));
}

async fn half_open(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let process = Process::start(folder.path(), &Database::Sqlite, &Options::default()).await;
    let address = process.api.base().strip_prefix("http://").and_then(|address| address.parse().ok());
    let address: SocketAddr = address.expect("the server has an address");
    ask(address, READS / 4).await;
    let (alone, failed_alone) = ask(address, READS).await;
    let mut halves = Vec::new();
    for n in 0..HALF_OPEN {
        let mut half = TcpStream::connect(address).await.expect("the kernel takes connections");
        half.write_all(&HALF[..n % HALF.len()]).await.ok();
        halves.push(half);
    }
    let (beside, failed) = ask(address, READS).await;
    report.row("/health, alone", &alone, format!("{failed_alone} of {READS} failed"), "");
    let told = format!("{failed} of {READS} failed");
    report.row(format!("/health, beside {HALF_OPEN} half requests"), &beside, told, "0 failed");
    let times = format!("x {:.2}", ratio(beside.p99(), alone.p99()));
    report.value("the same, p99 beside / alone", times, "");
}

/// How long so many answers take, each over a connection of its own, and how many did not come.
async fn ask(address: SocketAddr, count: usize) -> (Samples, usize) {
    let (mut times, mut failed) = (Vec::new(), 0);
    for _ in 0..count {
        let started = Instant::now();
        let answered = async {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(HEALTH).await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            Ok::<_, std::io::Error>(answer.starts_with(b"HTTP/1.1 200 "))
        };
        failed += usize::from(!answered.await.unwrap_or_default());
        times.push(started.elapsed());
    }
    (Samples::of(times), failed)
}
