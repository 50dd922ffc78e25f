//! Answers that never end, unpack to anything, or point elsewhere.

use serde_json::Value;

use super::{Lab, device};

async fn outcome(behaviour: &'static str) -> Value {
    let lab = Lab::start().await;
    let outcome = lab.report(behaviour).await;
    assert_eq!(lab.device.seen().len(), 1, "{:?}", lab.device.seen());
    outcome
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gzip_bomb_is_cut_off_by_what_it_unpacks_to() {
    assert_eq!(outcome("gzip-bomb").await["code"], "response-too-large");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_without_an_end_is_cut_off() {
    assert_eq!(outcome("endless-body").await["code"], "response-too-large");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_drips_ends_at_the_time_limit_of_its_request() {
    assert_eq!(outcome("slow-body").await["fault"], "timeout");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let outcome = outcome("redirect").await;
    assert_eq!((&outcome["status"], &outcome["location"]), (&302.into(), &device::METADATA.into()));
}
