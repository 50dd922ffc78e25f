//! A server process that is killed while a request is under way, and started again on the same data.
//!
//! What is found then must be the whole state before the request or the whole state after it. A request that was answered
//! before the kill must not be lost.

use std::fmt;
use std::time::{Duration, Instant};

use heddle_store::{Db, PoolSettings};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Answer, Api, Database, Options, Process};

/// A test begins no more kills after this time: a slow machine makes fewer of them.
const LIMIT: Duration = Duration::from_secs(40);
const POOL: PoolSettings = PoolSettings { connections_max: 2, acquire_timeout: Duration::from_secs(20) };

/// A request that can be sent several times.
#[derive(Clone)]
pub(crate) struct Request {
    method: &'static str,
    path: String,
    content_type: Option<&'static str>,
    body: Option<Vec<u8>>,
}

impl Request {
    pub(crate) fn json(method: &'static str, path: &str, body: &Value) -> Self {
        Self { method, path: path.to_owned(), content_type: None, body: Some(body.to_string().into_bytes()) }
    }

    /// A POST with an empty object.
    pub(crate) fn post(path: &str) -> Self {
        Self::json("POST", path, &json!({}))
    }

    pub(crate) fn delete(path: &str) -> Self {
        Self { method: "DELETE", path: path.to_owned(), content_type: None, body: None }
    }

    /// Sends a package.
    pub(crate) fn package(path: &str, archive: Vec<u8>) -> Self {
        Self {
            method: "POST",
            path: path.to_owned(),
            content_type: Some("application/zip"),
            body: Some(archive),
        }
    }

    async fn send(&self, api: &Api) -> reqwest::Result<Answer> {
        let api = self.content_type.map_or_else(|| api.clone(), |media| api.with("content-type", media));
        api.try_send(self.method, &self.path, self.body.clone()).await
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// A request that brings the service from one state into another one, both as [`Subject::look`] describes them.
pub(crate) struct Step {
    pub(crate) before: String,
    pub(crate) request: Request,
    pub(crate) after: String,
}

impl Step {
    /// Steps with the state that each leads to. Each begins where the one before it ends, and the first one where the last
    /// one ends.
    pub(crate) fn around(steps: &[(Request, &str)]) -> Vec<Self> {
        let ends = steps.iter().map(|(_, after)| *after);
        let begins = ends.clone().next_back().into_iter().chain(ends);
        let step = |((request, after), before): (&(Request, &str), &str)| Self {
            before: before.to_owned(),
            request: request.clone(),
            after: (*after).to_owned(),
        };
        steps.iter().zip(begins).map(step).collect()
    }
}

/// What is looked at after a kill.
pub(crate) trait Subject {
    /// Checks what the database says while no process runs.
    fn check_stored(&self, _: &Rig) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Waits until everything that follows from the state agrees with it, and describes the state.
    async fn look(&self, rig: &Rig) -> String;
}

/// When the process is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// As soon as the request is answered.
    Answered,
    /// So long after the request was sent.
    After(Duration),
}

/// How often the process is killed in a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kills {
    count: u32,
    /// How long work goes on that the answer does not wait for.
    beyond: Duration,
}

impl Kills {
    /// Once when the request was answered, and at so many moments that are spread evenly over the time that it took.
    pub(crate) fn of(count: u32) -> Self {
        assert!(count >= 2, "the first kill is at the beginning and the last one at the end");
        Self { count, beyond: Duration::ZERO }
    }

    /// Spreads the kills over this time after the answer, too.
    pub(crate) fn beyond(self, beyond: Duration) -> Self {
        Self { beyond, ..self }
    }

    fn at(self, n: u32, span: Duration) -> Moment {
        Moment::After((span + self.beyond) * n / (self.count - 1))
    }
}

/// A process with a folder and a database of its own.
pub(crate) struct Rig {
    process: Process,
    token: String,
    database: Database,
    options: Options,
    began: Instant,
    folder: TempDir,
}

impl Rig {
    /// Starts the process and completes its setup.
    pub(crate) async fn start(database: Database, options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (process, token) = Process::start(folder.path(), &database, &options).await.set_up().await;
        Self { process, token, database, options, began: Instant::now(), folder }
    }

    /// The client of the first administrator.
    pub(crate) fn api(&self) -> &Api {
        &self.process.api
    }

    /// The database, to be changed as another process of it would.
    pub(crate) async fn db(&self) -> Db {
        Db::open(&self.url(), &POOL).await.unwrap()
    }

    /// The database as it is, to be read.
    pub(crate) async fn stored(&self) -> Db {
        Db::open_as_is(&self.url(), &POOL).await.unwrap().unwrap()
    }

    fn url(&self) -> String {
        match &self.database {
            Database::Sqlite => format!("sqlite://{}", self.folder.path().join("data/heddle.db").display()),
            Database::Postgres(url) => url.clone(),
        }
    }

    /// Goes through these steps again and again, and kills the process in each of them.
    pub(crate) async fn kill_around(&mut self, subject: &impl Subject, steps: &[Step], kills: Kills) {
        // A request of a process that has just started takes longer than a later one: this one is measured.
        let mut spans = Vec::new();
        for step in steps {
            spans.push(self.kill(subject, step, Moment::Answered).await);
        }
        for n in 0..kills.count {
            if self.began.elapsed() > LIMIT {
                return;
            }
            for (step, span) in steps.iter().zip(&spans) {
                self.kill(subject, step, kills.at(n, *span)).await;
            }
        }
    }

    /// Kills the process in one step again and again. `prepare` brings the service to where the step begins.
    pub(crate) async fn kill_in(
        &mut self,
        subject: &impl Subject,
        kills: Kills,
        mut prepare: impl AsyncFnMut(&Rig) -> Step,
    ) {
        let step = prepare(&*self).await;
        let span = self.kill(subject, &step, Moment::Answered).await;
        for n in 0..kills.count {
            if self.began.elapsed() > LIMIT {
                return;
            }
            let step = prepare(&*self).await;
            self.kill(subject, &step, kills.at(n, span)).await;
        }
    }

    /// Kills the process in a step, starts it again, and requires one of the two states. A step that was not carried out
    /// is then carried out to its end. Returns the time from the request to the kill.
    async fn kill(&mut self, subject: &impl Subject, step: &Step, at: Moment) -> Duration {
        let (answer, took) = self.kill_at(&step.request, at).await;
        subject.check_stored(self).await;
        self.start_again().await;
        let found = subject.look(self).await;
        let Step { before, request, after } = step;
        let what = format!("{request}, killed {at:?} ({took:?})");
        assert!(found == *before || found == *after, "{what}: '{found}' is neither '{before}' nor '{after}'");
        let is_done = found == *after;
        if let Some(answer) = answer {
            assert!((200..300).contains(&answer.status), "{what}: {}", answer.text);
            assert!(is_done, "{what}: it was answered, and is lost: {found}");
        }
        if !is_done {
            let answer = request.send(self.api()).await.unwrap();
            assert!((200..300).contains(&answer.status), "{what}, sent again: {}", answer.text);
            assert_eq!(subject.look(self).await, *after, "{what}, sent again");
        }
        took
    }

    /// Kills the process now, does this while none runs, and starts it again.
    pub(crate) async fn kill_now(&mut self, meanwhile: impl AsyncFn(&Rig)) {
        self.process.kill();
        meanwhile(&*self).await;
        self.start_again().await;
    }

    async fn start_again(&mut self) {
        let stored = self.stored().await;
        assert_eq!(stored.integrity_faults().await.unwrap(), Vec::<String>::new());
        stored.close().await;
        let started = Process::start(self.folder.path(), &self.database, &self.options).await;
        self.process = started.with_token(&self.token);
    }

    /// Sends a request and kills the process at this moment. Returns the answer, where there was one before.
    async fn kill_at(&mut self, request: &Request, at: Moment) -> (Option<Answer>, Duration) {
        let api = self.process.api.clone();
        let began = Instant::now();
        // It is not dropped before the kill: a client that goes away is another case.
        let mut sending = std::pin::pin!(request.send(&api));
        let answer = match at {
            Moment::Answered => Some(sending.await),
            Moment::After(delay) => {
                let mut killing = std::pin::pin!(tokio::time::sleep(delay));
                tokio::select! {
                    () = &mut killing => None,
                    answer = &mut sending => {
                        killing.await;
                        Some(answer)
                    }
                }
            }
        };
        let took = began.elapsed();
        self.process.kill();
        (answer.map(|answer| answer.expect("the server answers")), took)
    }
}
