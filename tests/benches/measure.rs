//! Samples, the machine's noise, and the table that is printed.
//!
//! Asserts nothing about time: another machine has other figures. What holds is
//! the ratio of a pair, both sides of which ran in turns in the same minutes.

use std::fmt::Display;
use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Durations of one thing, in order of size.
#[derive(Debug)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn of(mut durations: Vec<Duration>) -> Self {
        assert!(!durations.is_empty(), "something was measured");
        durations.sort_unstable();
        Self(durations)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn median(&self) -> Duration {
        self.at_percent(50)
    }

    pub(crate) fn p99(&self) -> Duration {
        self.at_percent(99)
    }

    fn at_percent(&self, percent: usize) -> Duration {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
    }
}

/// Threads that stand for other machines: what runs here takes only processor time that nothing else wants.
pub(crate) fn elsewhere() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_start(|| {
            rustix::process::nice(19).expect("a thread may give way");
        })
        .enable_all()
        .build()
        .expect("threads can be started")
}

/// How long this takes, and what it gives.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let result = black_box(work());
    (started.elapsed(), result)
}

/// Calls both sides in turns, so that what disturbs one disturbs the other.
pub(crate) fn in_turns<A, B>(
    warm_up: usize,
    count: usize,
    mut ours: impl FnMut() -> A,
    mut baseline: impl FnMut() -> B,
) -> (Samples, Samples) {
    for _ in 0..warm_up {
        black_box(ours());
        black_box(baseline());
    }
    let pairs = (0..count).map(|_| (timed(&mut ours).0, timed(&mut baseline).0));
    let (ours, baselines): (Vec<_>, Vec<_>) = pairs.unzip();
    (Samples::of(ours), Samples::of(baselines))
}

/// A fixed loop of arithmetic, timed again and again between the measurements.
#[derive(Debug, Default)]
pub(crate) struct Noise(Vec<Duration>);

impl Noise {
    /// Takes about 50 ms.
    pub(crate) fn sample(&mut self) {
        for _ in 0..25 {
            self.0.push(timed(|| (0..1_000_000_u64).fold(1, |sum, at| black_box(sum ^ at).rotate_left(5))).0);
        }
    }
}

/// What is printed at the end.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<[String; 5]>,
    pub(crate) noise: Noise,
}

impl Report {
    /// A row of the table; `result` is the ratio or the difference that counts.
    pub(crate) fn row(&mut self, what: impl Display, samples: &Samples, result: impl Display, aim: &str) {
        let (median, p99) = (show(samples.median()), show(samples.p99()));
        self.line([what.to_string(), median, p99, result.to_string(), aim.to_owned()]);
    }

    /// A row without durations.
    pub(crate) fn value(&mut self, what: impl Display, result: impl Display, aim: &str) {
        self.line([what.to_string(), String::new(), String::new(), result.to_string(), aim.to_owned()]);
    }

    /// Each line is also shown when it is known: the whole takes minutes.
    fn line(&mut self, line: [String; 5]) {
        say(&format!("measured: {}", line.join("  ").trim_end()));
        self.lines.push(line);
    }

    pub(crate) fn print(mut self) {
        let noise = Samples::of(std::mem::take(&mut self.noise.0));
        let spread = 100.0 * (ratio(noise.at_percent(95), noise.at_percent(5)) - 1.0);
        let result = format!("p5 to p95 {spread:.0} %");
        self.row("noise: a fixed loop", &noise, result, "");
        let head = ["", "median", "p99", "result", "aim"].map(str::to_owned);
        let lines: Vec<[String; 5]> = std::iter::once(head).chain(self.lines).collect();
        let widths: [usize; 5] =
            std::array::from_fn(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0));
        say("");
        for [what, median, p99, result, aim] in &lines {
            let [first, second, third, fourth, _] = widths;
            say(format!("{what:<first$}  {median:>second$}  {p99:>third$}  {result:>fourth$}  {aim}")
                .trim_end());
        }
    }
}

/// The first as a multiple of the second.
pub(crate) fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

pub(crate) fn show(duration: Duration) -> String {
    let us = duration.as_secs_f64() * 1e6;
    match us {
        us if us < 10.0 => format!("{us:.2} us"),
        us if us < 1_000.0 => format!("{us:.0} us"),
        us if us < 100_000.0 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.0} ms", us / 1e3),
    }
}

fn say(line: &str) {
    // When standard output is closed, there is no place left to report to.
    let _ = writeln!(std::io::stdout(), "{line}");
}
