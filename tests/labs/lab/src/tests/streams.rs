//! Answers that do not end: what the controller sends in them, and when they end.

use super::*;

async fn open(peer: &Peer) -> Response {
    peer.send("GET", "/stream").await.unwrap()
}

async fn next(stream: &mut Response) -> Option<String> {
    let chunk = stream.chunk().await.ok()??;
    Some(String::from_utf8(chunk.to_vec()).unwrap())
}

#[tokio::test]
async fn a_stream_tells_what_happens_until_the_controller_ends_it() {
    let peer = Peer::new().await;
    let mut stream = open(&peer).await;
    assert_eq!(
        (stream.status().as_u16(), &stream.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    assert_eq!(next(&mut stream).await.as_deref(), Some("0"));
    peer.lab.lock().parts().0.count = 5;
    assert_eq!(next(&mut stream).await.as_deref(), Some("5"));
    peer.lab.lock().parts().0.is_over = true;
    assert_eq!(next(&mut stream).await, None);
    assert!(peer.lab.lock().socket.is_none(), "the controller knows");
}

#[tokio::test]
async fn a_cut_ends_streams_and_so_does_a_client_that_leaves() {
    let peer = Peer::new().await;
    let mut stream = open(&peer).await;
    assert_eq!(next(&mut stream).await.as_deref(), Some("0"));
    peer.lab.fault(Fault::cut());
    assert_eq!(next(&mut stream).await, None);
    peer.lab.clear_faults();
    let mut stream = open(&peer).await;
    assert_eq!(next(&mut stream).await.as_deref(), Some("0"));
    drop(stream);
    while peer.lab.lock().socket.is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
