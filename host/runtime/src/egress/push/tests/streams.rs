//! Streams, and answers that are compared.

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn events_of_a_stream_are_told_until_it_ends() {
    let events = answered(|| {
        let texts = [
            ": hello\n\n",
            "event: up\ndata: {\"a\":",
            " 1}\n\nevent: up\ndata: no JSON\n\n",
            "event: down\ndata: 1\n\n",
        ];
        streamed("text/event-stream; charset=utf-8", stream::iter(texts.map(str::to_owned)))
    });
    let lab = lab(sse(), events).await;
    let mut listening = lab.open().await;
    assert_eq!(listening.next().await.unwrap().rule, Some(1));
    assert_eq!(listening.next().await, Err(Ended::Closed));
    assert_eq!(listening.counts(), MessageCounts { read: 1, ignored: 1, dropped: 1 });
}

#[tokio::test]
async fn lines_are_messages_where_the_head_does_not_say_otherwise() {
    let channel = || {
        let mut channel = json!({ "stream": { "format": "json-lines", "silence-s": 1 } });
        channel["unsupported"] = json!({ "content-type": "text/html" });
        channel
    };
    let lines = answered(|| streamed("application/json", and_open(&["{\"kind\": \"device:up\"}\n{\"ki"])));
    let open = lab(channel(), lines).await;
    let mut listening = open.open().await;
    assert_eq!(listening.next().await.unwrap().rule, Some(0));
    assert_eq!(listening.next().await, Err(Ended::Silent { secs: 1 }));
    let page = answered(|| streamed("text/html", and_open(&["{\"kind\": \"device:up\"}\n"])));
    assert_eq!(lab(channel(), page).await.refused().await, Ended::Unsupported { status: 200 });
}

/// Tells when it is dropped.
struct Dropped(UnboundedSender<usize>, usize);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send(self.1).ok();
    }
}

#[tokio::test]
async fn the_next_stream_is_open_before_the_old_one_is_closed() {
    let (tell, mut dropped) = unbounded_channel();
    let count = Arc::new(AtomicUsize::new(0));
    let inner = Arc::clone(&count);
    let events = answered(move || {
        let number = inner.fetch_add(1, Ordering::SeqCst);
        let held = Dropped(tell.clone(), number);
        let texts = and_open(&["event: up\ndata: 1\n\n"]).inspect(move |_| {
            // The stream owns it.
            let _ = &held;
        });
        streamed("text/event-stream", texts)
    });
    let lab = lab(json!({ "stream": { "format": "sse", "renew-s": 1 } }), events).await;
    let mut listening = lab.open().await;
    for _ in 0..3 {
        assert_eq!(listening.next().await.unwrap().rule, Some(1), "no gap");
    }
    let closed = tokio::select! {
        closed = dropped.recv() => closed.unwrap(),
        ended = listening.next() => panic!("{ended:?}"),
    };
    assert_eq!(closed, 0, "the oldest one");
    assert!(count.load(Ordering::SeqCst) >= 3);
    drop(listening);
    while let Some(number) = dropped.recv().await {
        if number + 1 == count.load(Ordering::SeqCst) {
            break;
        }
    }
}

#[tokio::test]
async fn a_stream_is_renewed_without_a_turn() {
    let events = answered(|| streamed("text/event-stream", and_open(&["event: up\ndata: 1\n\n"])));
    let lab = lab(json!({ "stream": { "format": "sse", "renew-s": 1 } }), events).await;
    let mut listening = lab.open().await;
    let mut turns = Vec::new();
    for _ in 0..limits::OPENINGS_PER_ORGANIZATION_MAX {
        turns.push(lab.bench.egress.channels.opening(lab.bench.target.org_id).await.unwrap());
    }
    let renewed = async {
        for _ in 0..3 {
            assert_eq!(listening.next().await.unwrap().rule, Some(1), "no gap");
        }
    };
    timeout(Duration::from_secs(20), renewed).await.expect("no stream waits for channels that are opened");
}

#[tokio::test]
async fn an_old_stream_that_was_not_read_to_its_end_makes_a_gap() {
    let count = Arc::new(AtomicUsize::new(0));
    let events = answered(move || {
        if count.fetch_add(1, Ordering::SeqCst) > 0 {
            return streamed("text/event-stream", and_open(&[]));
        }
        // Comments without an end: more than is read of a channel in a second.
        let comment = format!(": {}\n\n", "a".repeat(60_000));
        streamed("text/event-stream", stream::repeat(comment))
    });
    let lab = lab(json!({ "stream": { "format": "sse", "renew-s": 1 } }), events).await;
    let mut listening = lab.open().await;
    let told = timeout(Duration::from_secs(20), listening.next()).await.expect("it makes a gap");
    assert_eq!(told.unwrap().rule, None);
}

/// The time of the test passes at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn all_connections_of_a_channel_are_opened_within_one_time() {
    let (tell, mut asked) = unbounded_channel();
    let any = move |uri: Uri| async move {
        if uri.path() == "/list" {
            return axum::Json(json!({"a": {}, "b": {}})).into_response();
        }
        let (answer, may_answer) = oneshot::channel::<()>();
        tell.send(answer).unwrap();
        may_answer.await.ok();
        streamed("text/event-stream", and_open(&[]))
    };
    let channel = json!({
        "stream": { "format": "sse" }, "each": { "path": "/list", "from": "" },
        "ways": [{ "session": "main", "path": "/subscribe/{each}" }]
    });
    let lab = lab(channel, Router::new().fallback(any)).await;
    let mut opening = std::pin::pin!(lab.refused());
    let mut next = async || {
        tokio::select! {
            answer = asked.recv() => answer.unwrap(),
            ended = &mut opening => panic!("{ended:?}"),
        }
    };
    let first = next().await;
    pass(limits::OPENING_MAX * 2 / 3).await;
    first.send(()).unwrap();
    let _second = next().await;
    pass(limits::OPENING_MAX * 2 / 3).await;
    let ended = timeout(Duration::from_secs(5), opening).await.expect("each has less than its own time");
    assert_eq!(ended, Ended::late());
}

#[tokio::test]
async fn each_object_has_a_connection_and_a_site_its_own_path() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let inner = Arc::clone(&seen);
    let any = move |uri: Uri| async move {
        if uri.path() == "/list" {
            return axum::Json(json!({"hostapd.b/1": {}, "hostapd.a": {}, "network": {}})).into_response();
        }
        inner.lock().unwrap().push(uri.path().to_owned());
        streamed("text/event-stream", and_open(&["event: up\ndata: 1\n\n"]))
    };
    let channel = json!({
        "stream": { "format": "sse" }, "per": "site",
        "each": { "path": "/list", "from": "", "like": "hostapd.*" },
        "ways": [{ "session": "main", "path": "/subscribe/{site}/{each}" }]
    });
    let lab = lab(channel, Router::new().fallback(any)).await;
    let site = "a {each}?".to_owned();
    let mut listening = lab.listen(Place::Site(site.clone())).await.unwrap();
    for _ in 0..2 {
        assert_eq!(listening.next().await.unwrap().site, ToldSite::Id(site.clone()));
    }
    let expected =
        ["/subscribe/a%20%7Beach%7D%3F/hostapd%2Ea", "/subscribe/a%20%7Beach%7D%3F/hostapd%2Eb%2F1"];
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(lab.refused().await, Ended::Undeclared("events".to_owned()), "it is for a site");
}

#[tokio::test]
async fn a_listener_that_lets_go_closes_the_connection() {
    let (tell, mut dropped) = unbounded_channel();
    let events = answered(move || {
        let held = Dropped(tell.clone(), 0);
        let texts = and_open(&["event: up\ndata: 1\n\n"]).inspect(move |_| {
            let _ = &held;
        });
        streamed("text/event-stream", texts)
    });
    let lab = lab(sse(), events).await;
    let mut listening = lab.open().await;
    listening.next().await.unwrap();
    drop(listening);
    assert_eq!(dropped.recv().await, Some(0));
    // Its place is given back, too, a moment later.
    let (org, controller) = (lab.bench.target.org_id, lab.bench.target.controller_id);
    let all =
        || (0..limits::CHANNELS_PER_CONTROLLER_MAX).map(|_| lab.bench.egress.channels.take(org, controller));
    while all().collect::<Result<Vec<_>, _>>().is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_watch_compares_its_answers() {
    let state: Arc<std::sync::Mutex<Value>> =
        Arc::new(std::sync::Mutex::new(json!([{"id": "1", "status": "run"}])));
    let inner = Arc::clone(&state);
    let tasks = move |State(device): State<Arc<Device>>, headers: HeaderMap| async move {
        if !device.accepts(&headers) {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        let data = inner.lock().unwrap().clone();
        if data.is_null() {
            StatusCode::BAD_GATEWAY.into_response()
        } else {
            axum::Json(json!({"data": data})).into_response()
        }
    };
    let channel = json!({ "watch": { "every-ms": 20, "items": "/data", "key": "/id", "of": ["/status"] } });
    let lab = lab(channel, Router::new().route("/events", get(tasks))).await;
    let mut listening = lab.open().await;
    let set = |value: Value| *state.lock().unwrap() = value;
    set(json!([{"id": "1", "status": "ok"}]));
    assert_eq!(listening.next().await.unwrap().rule, Some(2));
    // The session is lost meanwhile.
    lab.device.accepts_from.store(2, Ordering::SeqCst);
    set(json!([{"id": "1", "status": "ok"}, {"id": "2", "status": "run"}]));
    assert_eq!(listening.next().await.unwrap().rule, Some(2));
    assert_eq!(lab.logins(), 2);
    set(json!([{"id": "3", "status": "run"}]));
    assert_eq!(listening.next().await.unwrap().rule, None, "nothing of the last list is left");
    set(Value::Null);
    assert_eq!(listening.next().await, Err(Ended::Unexpected { status: 502 }));
    lab.device.accepts_from.store(usize::MAX, Ordering::SeqCst);
    assert!(matches!(lab.refused().await, Ended::Refused(_)));
}

#[tokio::test]
async fn a_stream_that_ends_before_the_next_one_is_open_makes_a_gap() {
    let count = Arc::new(AtomicUsize::new(0));
    let events = move || async move {
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            // It ends when the host has asked for the next one, which is not answered yet.
            let end = stream::once(async {
                tokio::time::sleep(Duration::from_millis(1_300)).await;
                ": end\n\n".to_owned()
            });
            return streamed("text/event-stream", end);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        streamed("text/event-stream", and_open(&["event: up\ndata: 1\n\n"]))
    };
    let channel = json!({ "stream": { "format": "sse", "renew-s": 1 } });
    let lab = lab(channel, Router::new().route("/events", get(events))).await;
    let mut listening = lab.open().await;
    assert_eq!(listening.next().await.unwrap().rule, None);
    assert_eq!(listening.next().await.unwrap().rule, Some(1));
}

#[tokio::test]
async fn a_stream_that_is_cut_or_too_large_ends() {
    let cut = answered(|| {
        let cut = stream::once(async {
            // What came before leaves while it waits.
            tokio::time::sleep(Duration::from_millis(100)).await;
            Err(std::io::Error::other("cut"))
        });
        let texts = stream::iter([Ok("event: up\ndata: {}\n\ndata: ".to_owned())]).chain(cut);
        ([("content-type", "text/event-stream")], Body::from_stream(texts)).into_response()
    });
    let cut = lab(sse(), cut).await;
    let mut listening = cut.open().await;
    assert_eq!(listening.next().await.unwrap().rule, Some(1));
    assert_eq!(listening.next().await, Err(Ended::Broken));
    let line = || format!("data: {}\n", "a".repeat(1_000));
    let large = answered(move || streamed("text/event-stream", stream::repeat_with(line)));
    assert_eq!(lab(sse(), large).await.open().await.next().await, Err(Ended::TooLarge));
}
