//! Requests that a controller sends by itself.

use super::*;

fn to(lab: &Lab<Toy>, path: &str, retries: u32) -> Outgoing {
    let url = format!("{}{path}", lab.url());
    Outgoing { url, content_type: "application/json".to_owned(), body: b"{}".to_vec(), retries }
}

async fn answers(lab: &Lab<Toy>, count: usize) -> Vec<Option<u16>> {
    loop {
        let answers = lab.lock().answers.clone();
        if answers.len() >= count {
            return answers;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_a_controller_has_to_send_arrives_and_is_sent_again_when_it_is_not_taken() {
    let (teller, told) = (Lab::builder(Toy::default()).start().await, Peer::new().await);
    teller.lock().outgoing.push(to(&told.lab, "/count", 3));
    assert_eq!(answers(&teller, 1).await, [Some(200)]);
    let heard = told.lab.record().remove(0);
    assert_eq!((heard.method.as_str(), heard.path.as_str()), ("POST", "/count"));
    assert_eq!(told.lab.lock().count, 1);
    teller.lock().outgoing.push(to(&told.lab, "/nowhere", 1));
    assert_eq!(answers(&teller, 3).await[1..], [Some(404), Some(404)]);
    for url in ["http://127.0.0.1:1/x", "https://127.0.0.1/x", "no address"] {
        let before = teller.lock().answers.len();
        let request = Outgoing { url: url.to_owned(), retries: 0, ..to(&told.lab, "", 0) };
        teller.lock().outgoing.push(request);
        assert_eq!(answers(&teller, before + 1).await.pop(), Some(None), "{url}");
    }
}

#[tokio::test]
async fn a_controller_that_is_off_the_network_sends_nothing() {
    let (teller, told) = (Lab::builder(Toy::default()).start().await, Peer::new().await);
    teller.fault(Fault::cut());
    teller.lock().outgoing.push(to(&told.lab, "/count", 0));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(told.lab.record().is_empty());
    teller.clear_faults();
    assert_eq!(answers(&teller, 1).await, [Some(200)]);
}
