//! The objects of a controller that have a connection each.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use heddle_marketplace::push::{Each, Way};
use serde_json::Value;
use tokio::time::sleep;

use super::answer::Wanted;
use super::ended::Ended;
use super::incoming::{Incoming, Messages};
use super::limits::{EACH_AGAIN, EACH_MAX};
use super::open::{Got, Opener};
use super::rules::like;

/// Lists the objects, in the order of their names.
pub(super) async fn objects(opener: &Opener, way: &Way, each: &Each) -> Result<BTreeSet<String>, Ended> {
    let path = opener.path(&each.path, None);
    match opener.ask(way, Wanted::Document, &path).await? {
        Got::Document(answer) => found(each, &answer).ok_or(Ended::NotThat),
        Got::Open(_) => Err(Ended::NotThat),
    }
}

fn found(each: &Each, answer: &Value) -> Option<BTreeSet<String>> {
    let names: Vec<&str> = match answer.pointer(&each.from)? {
        Value::Object(fields) => fields.keys().map(String::as_str).collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let is_one =
        |name: &&str| !name.is_empty() && each.like.as_ref().is_none_or(|pattern| like(pattern, name));
    let all: BTreeSet<String> = names.into_iter().filter(is_one).map(str::to_owned).collect();
    Some(all.into_iter().take(EACH_MAX).collect())
}

/// Ends the channel when the objects are others than these. It has no messages.
pub(super) fn changes(opener: Arc<Opener>, each: Each, known: BTreeSet<String>) -> Messages {
    let ended = async move {
        loop {
            sleep(EACH_AGAIN).await;
            let listed = async {
                let way = opener.way().await?;
                objects(&opener, way, &each).await
            };
            // A list that is not answered says nothing; the connections tell whether the controller is there.
            if listed.await.is_ok_and(|listed| listed != known) {
                return Err::<Incoming, Ended>(Ended::Changed);
            }
        }
    };
    stream::once(ended).boxed()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_keys_or_texts_that_are_like_a_pattern() {
        let each = |from: &str, like: Option<&str>| Each {
            path: "/list".to_owned(),
            from: from.to_owned(),
            like: like.map(str::to_owned),
        };
        let names = |each: &Each, answer: Value| {
            found(each, &answer).map(|found| found.into_iter().collect::<Vec<_>>())
        };
        let listed = json!({"hostapd.b": {}, "hostapd.a": {}, "network": {}, "": {}});
        let expected = Some(vec!["hostapd.a".to_owned(), "hostapd.b".to_owned()]);
        assert_eq!(names(&each("", Some("hostapd.*")), listed), expected);
        let listed = json!({"data": ["b", 7, "a", "b"]});
        assert_eq!(names(&each("/data", None), listed.clone()), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(names(&each("/other", None), listed), None);
        assert_eq!(names(&each("", None), json!("a")), None);
        let many: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
        assert_eq!(names(&each("", None), json!(many)).unwrap(), many[..EACH_MAX]);
    }
}
