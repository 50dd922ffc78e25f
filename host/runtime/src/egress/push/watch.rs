//! A cheap request that is repeated, and whose answers are compared: the channel of controllers that tell nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use heddle_marketplace::push::Watch;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::answer::Wanted;
use super::ended::Ended;
use super::incoming::{Incoming, Messages};
use super::limits::{FAILURES_MAX, KEYS_MAX};
use super::open::{Got, Opener};
use super::rules::Memory;

/// About how many bytes an element of an answer has, for the place where it is compared.
const ELEMENT_BYTES: usize = 256;

/// What the last answer was: digests of its elements, by those of their keys.
#[derive(Debug, Default)]
struct Seen {
    memory: Memory,
    elements: HashMap<u64, u64>,
    /// A digest of all elements for which there is no room.
    rest: Option<u64>,
    /// There was an answer.
    has_begun: bool,
}

/// What an answer says when it is compared with the one before.
#[derive(Debug, PartialEq)]
enum Compared {
    Same,
    /// Elements that are new or have changed.
    Changed(Vec<Value>),
    /// It cannot be told what has changed.
    Gap,
}

impl Seen {
    /// Compares an answer with the one before, and remembers it. `None` where it is no list.
    fn compare(&mut self, watch: &Watch, mut answer: Value) -> Option<Compared> {
        let items = std::mem::take(answer.pointer_mut(&watch.items)?.as_array_mut()?);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let (mut elements, mut changed, mut rest) = (HashMap::new(), Vec::new(), Vec::new());
        let mut overlaps = false;
        for item in items {
            // Without a key it cannot be told from others.
            let Some(key) = item.pointer(&watch.key) else { continue };
            let key = self.memory.digest([Some(key)]);
            let values = self.memory.digest(watch.of.iter().map(|pointer| item.pointer(pointer)));
            // Of two with one key the first counts.
            if elements.contains_key(&key) {
                continue;
            }
            if elements.len() >= KEYS_MAX {
                rest.push(Value::from(vec![key, values]));
                continue;
            }
            let before = self.elements.get(&key);
            overlaps |= before.is_some();
            if before != Some(&values) {
                changed.push(item);
            }
            elements.insert(key, values);
        }
        let rest = (!rest.is_empty()).then(|| self.memory.digest([Some(&Value::from(rest))]));
        let is_gap = !self.elements.is_empty() && !overlaps || rest != self.rest;
        (self.elements, self.rest) = (elements, rest);
        Some(match changed {
            _ if is_first => Compared::Same,
            _ if is_gap => Compared::Gap,
            changed if changed.is_empty() => Compared::Same,
            changed => Compared::Changed(changed),
        })
    }
}

struct Watching {
    opener: Arc<Opener>,
    declared: Watch,
    path: String,
    /// `None` while an answer is compared with it.
    seen: Option<Seen>,
    failures: u32,
    next_at: Instant,
}

/// Asks for the first answer, with which later ones are compared.
pub(super) async fn messages(opener: Arc<Opener>, declared: Watch, path: String) -> Result<Messages, Ended> {
    let next_at = Instant::now() + Duration::from_millis(declared.every_ms.into());
    let mut watching = Watching { opener, declared, path, seen: Some(Seen::default()), failures: 0, next_at };
    watching.ask().await?;
    let next = |watching: Option<Watching>| async {
        let mut watching = watching?;
        match watching.next().await {
            Ok(incoming) => Some((Ok(incoming), Some(watching))),
            Err(ended) => Some((Err(ended), None)),
        }
    };
    Ok(stream::unfold(Some(watching), next).boxed())
}

impl Watching {
    async fn next(&mut self) -> Result<Incoming, Ended> {
        loop {
            sleep_until(self.next_at).await;
            self.next_at = Instant::now() + Duration::from_millis(self.declared.every_ms.into());
            match self.ask().await {
                Ok(compared) => {
                    self.failures = 0;
                    match compared {
                        Compared::Same => {}
                        Compared::Changed(elements) => return Ok(Incoming::Elements(elements)),
                        Compared::Gap => return Ok(Incoming::Gap),
                    }
                }
                // The next answer is compared with the last one that came: nothing is missed.
                Err(ended) if ended.may_pass() && self.failures + 1 < FAILURES_MAX => self.failures += 1,
                Err(ended) => return Err(ended),
            }
        }
    }

    async fn ask(&mut self) -> Result<Compared, Ended> {
        let way = self.opener.way().await?;
        let Got::Document(answer) = self.opener.ask(way, Wanted::Document, &self.path).await? else {
            return Err(Ended::NotThat);
        };
        let mut seen = self.seen.take().unwrap_or_default();
        let declared = self.declared.clone();
        let count = answer.pointer(&declared.items).and_then(Value::as_array).map_or(0, Vec::len);
        let work = move || {
            let compared = seen.compare(&declared, answer);
            (seen, compared)
        };
        let org = self.opener.target.org_id;
        let done = self.opener.egress.apart.run(org, count * ELEMENT_BYTES, work).await;
        let (seen, compared) = done.map_err(|_| Ended::OutOfService)?;
        self.seen = Some(seen);
        compared.ok_or(Ended::NotThat)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn watch() -> Watch {
        let watch = json!({"every-ms": 1000, "items": "/data", "key": "/id", "of": ["/status", "/node"]});
        serde_json::from_value(watch).unwrap()
    }

    fn task(id: usize, status: &str) -> Value {
        json!({"id": id, "status": status, "at": status.len() * id})
    }

    #[test]
    fn an_element_counts_where_it_is_new_or_one_of_its_values_has_changed() {
        let mut seen = Seen::default();
        let mut compare = |items: Vec<Value>| seen.compare(&watch(), json!({"data": items})).unwrap();
        assert_eq!(
            compare(vec![task(1, "run"), task(2, "ok")]),
            Compared::Same,
            "the first is compared with"
        );
        assert_eq!(compare(vec![task(2, "ok"), task(1, "run")]), Compared::Same, "in any order");
        let mut other = task(2, "ok");
        other["at"] = json!(99);
        assert_eq!(compare(vec![other, task(1, "run")]), Compared::Same, "the rest may move");
        assert_eq!(compare(vec![task(2, "ok"), task(1, "ok")]), Compared::Changed(vec![task(1, "ok")]));
        assert_eq!(compare(vec![task(2, "ok"), task(3, "run")]), Compared::Changed(vec![task(3, "run")]));
        assert_eq!(compare(vec![task(2, "ok")]), Compared::Same, "one that is gone");
    }

    #[test]
    fn the_first_element_of_an_empty_list_counts() {
        let mut seen = Seen::default();
        let mut compare = |items: Vec<Value>| seen.compare(&watch(), json!({"data": items})).unwrap();
        assert_eq!(compare(Vec::new()), Compared::Same);
        let strange = json!({"status": "ok"});
        assert_eq!(
            compare(vec![strange, task(1, "run"), task(1, "ok")]),
            Compared::Changed(vec![task(1, "run")])
        );
        assert_eq!(compare(vec![task(1, "run"), task(1, "ok")]), Compared::Same);
    }

    #[test]
    fn a_list_that_does_not_overlap_is_a_gap() {
        let mut seen = Seen::default();
        let mut compare = |answer: Value| seen.compare(&watch(), answer);
        assert_eq!(compare(json!({"data": [task(1, "ok")]})), Some(Compared::Same));
        assert_eq!(compare(json!({"data": [task(2, "ok"), task(3, "ok")]})), Some(Compared::Gap));
        assert_eq!(compare(json!({"data": []})), Some(Compared::Gap));
        assert_eq!(compare(json!({"other": []})), None);
        assert_eq!(compare(json!({"data": {}})), None);
    }

    #[test]
    fn elements_without_room_are_seen_together() {
        let mut seen = Seen::default();
        let answer = |last: &str| {
            let mut items: Vec<Value> = (0..KEYS_MAX + 5).map(|id| task(id, "ok")).collect();
            items[KEYS_MAX + 4] = task(KEYS_MAX + 4, last);
            json!({ "data": items })
        };
        assert_eq!(seen.compare(&watch(), answer("run")), Some(Compared::Same));
        assert_eq!(seen.compare(&watch(), answer("run")), Some(Compared::Same));
        assert_eq!(seen.compare(&watch(), answer("ok")), Some(Compared::Gap));
        assert_eq!(seen.elements.len(), KEYS_MAX);
    }
}
