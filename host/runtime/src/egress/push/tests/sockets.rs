//! Sockets of a controller that keeps to the protocol, and of one that does not.

use super::*;

fn rules_of(told: &Told) -> (Option<usize>, &[String]) {
    (told.rule, &told.reads)
}

#[tokio::test]
async fn messages_of_a_socket_say_what_has_to_be_read() {
    let lab = lab(
        socket(),
        served(|mut socket| async move {
            for text in ["hello", "{\"kind\": \"other\"}", "{\"kind\": \"device:add\", \"peer\": 1}"] {
                socket.send(Message::text(text)).await.unwrap();
            }
            let binary = Message::binary(b"{\"id\": \"7\"}".to_vec());
            socket.send(binary).await.unwrap();
            // A ping of the client comes, and is answered here.
            while let Some(Ok(message)) = socket.recv().await {
                assert!(matches!(message, Message::Ping(_) | Message::Close(_)), "nothing else is sent");
                socket.send(Message::text("{\"event\": \"up\"}")).await.unwrap();
            }
        }),
    )
    .await;
    let mut listening = lab.open().await;
    let told = listening.next().await.unwrap();
    let expected = Told {
        reads: vec!["device".to_owned()],
        site: ToldSite::All,
        again_s: Some(5),
        every_s: None,
        rule: Some(0),
    };
    assert_eq!(told, expected);
    assert_eq!(listening.next().await.unwrap().rule, Some(2));
    assert_eq!(listening.next().await.unwrap().rule, Some(1), "after a ping");
    assert_eq!(listening.counts(), MessageCounts { read: 3, ignored: 1, dropped: 1 });
    assert_eq!(lab.logins(), 1);
}

#[tokio::test]
async fn an_upgrade_proves_that_it_was_meant() {
    for (name, value) in [
        ("sec-websocket-accept", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
        ("sec-websocket-extensions", "permessage-deflate"),
    ] {
        let routes = answered(move || {
            let parts = [("connection", "upgrade"), ("upgrade", "websocket"), (name, value)];
            (StatusCode::SWITCHING_PROTOCOLS, parts, "").into_response()
        });
        assert_eq!(lab(socket(), routes).await.refused().await, Ended::NotThat, "{name}");
    }
}

#[tokio::test]
async fn a_socket_ends_where_a_message_is_too_large_or_nothing_comes() {
    let large = lab(
        socket(),
        served(|mut socket| async move {
            let most = format!("{{\"id\": \"{}\"}}", "a".repeat(MESSAGE_BYTES_MAX - 10));
            socket.send(Message::text(most)).await.ok();
            socket.send(Message::text("a".repeat(MESSAGE_BYTES_MAX + 1))).await.ok();
            std::future::pending::<()>().await;
        }),
    )
    .await;
    let mut listening = large.open().await;
    assert_eq!(listening.next().await.unwrap().rule, Some(2), "the largest one is read");
    assert_eq!(listening.next().await, Err(Ended::TooLarge));
    assert_eq!(listening.next().await, Err(Ended::TooLarge), "it stays ended");
    let silent = json!({ "socket": { "ping-s": 60, "silence-s": 1 } });
    let silent = lab(
        silent,
        served(|socket| async move {
            let _open = socket;
            std::future::pending::<()>().await;
        }),
    )
    .await;
    assert_eq!(silent.open().await.next().await, Err(Ended::Silent { secs: 1 }));
    let closed = lab(socket(), served(|socket| async move { drop(socket) })).await;
    let ended = closed.open().await.next().await.unwrap_err();
    assert!(matches!(ended, Ended::Closed | Ended::Broken), "{ended:?}");
}

#[tokio::test]
async fn messages_beyond_the_rate_are_dropped_and_make_a_gap() {
    let flood = served(|mut socket| async move {
        for _ in 0..1_500 {
            if socket.send(Message::text("{\"id\": \"1\"}")).await.is_err() {
                return;
            }
        }
        std::future::pending::<()>().await;
    });
    let lab = lab(socket(), flood).await;
    let mut listening = lab.open().await;
    let mut read = 0;
    let gap = loop {
        let told = listening.next().await.unwrap();
        if told.rule.is_none() {
            break told;
        }
        read += 1;
    };
    assert!(read >= limits::MESSAGES_BURST, "{read}");
    assert_eq!(rules_of(&gap), (None, &["client", "device", "guest"].map(str::to_owned)[..]));
    assert!(listening.counts().dropped > 0);
}

#[tokio::test]
async fn json_that_is_too_deep_is_not_read_and_makes_a_gap() {
    let deep = served(|mut socket| async move {
        let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
        socket.send(Message::text(deep)).await.unwrap();
        std::future::pending::<()>().await;
    });
    let lab = lab(socket(), deep).await;
    let mut listening = lab.open().await;
    assert_eq!(listening.next().await.unwrap().rule, None);
    assert_eq!(listening.counts(), MessageCounts { dropped: 1, ..MessageCounts::default() });
}
