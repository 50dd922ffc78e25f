//! What stops a plugin that uses too much, and what that means for others.

use heddle_core::fault::Effect;
use heddle_runtime::{CallError, TrapClass};
use serde_json::{Value, json};

use super::Lab;

fn burn(how: &str) -> Value {
    json!({ "do": "burn", "how": how })
}

#[track_caller]
fn trap(ended: Result<Value, CallError>) -> TrapClass {
    match ended {
        Err(error @ CallError::Trap { class, .. }) => {
            assert!(error.to_string().starts_with("plugin scripted 1.0.0 stopped"), "{error}");
            class
        }
        other => panic!("the guest was not stopped: {other:?}"),
    }
}

#[tokio::test]
async fn a_plugin_has_the_limits_of_an_adapter() {
    let lab = Lab::start_with(|manifest| {
        manifest["limits"] = json!({ "cpu-ms": 300, "memory-mib": 32 });
    })
    .await;
    assert_eq!(trap(lab.run("look", burn("spin")).await), TrapClass::Cpu);
    assert_eq!(trap(lab.run("look", burn("memory")).await), TrapClass::Resource);
    assert_eq!(trap(lab.run("look", burn("panic")).await), TrapClass::Panic);
    let huge = trap(lab.run("look", burn("huge-output")).await);
    assert!(matches!(huge, TrapClass::TooLarge | TrapClass::Resource), "{huge:?}");
    let calm = json!({ "do": "echo", "value": 1 });
    assert_eq!(lab.works("look", calm).await["value"], 1);
}

#[tokio::test]
async fn a_stop_says_whether_something_may_have_changed() {
    let lab = Lab::start().await;
    let burn = |method: &str| {
        let request = json!({ "target": "api", "method": method, "path": "/v1/a" });
        json!({ "do": "send-and-burn", "request": request, "how": "panic" })
    };
    for (method, expected) in [("GET", Effect::None), ("POST", Effect::Possible)] {
        let error = lab.run("act", burn(method)).await.unwrap_err();
        assert!(matches!(error, CallError::Trap { class: TrapClass::Panic, .. }), "{error:?}");
        assert_eq!(error.effect(), expected, "{method}");
    }
    assert_eq!(lab.device.seen().len(), 2);
}

#[tokio::test]
async fn a_flood_of_log_lines_is_dropped() {
    let lab = Lab::start().await;
    assert_eq!(lab.works("look", burn("log-flood")).await["logged"], 10_000);
}

#[tokio::test]
async fn a_plugin_that_keeps_failing_is_suspended_for_one_organization() {
    let lab = Lab::start().await;
    while let Err(CallError::Trap { .. }) = lab.run("look", burn("panic")).await {}
    let calm = json!({ "do": "echo", "value": 1 });
    let ended = lab.run("look", calm.clone()).await.unwrap_err();
    assert!(ended.to_string().starts_with("plugin scripted is suspended"), "{ended}");
    lab.plugin
        .run(&lab.call_of(lab.other_org), "look", &calm)
        .await
        .expect("the other one has its own circuit");
    assert!(!lab.plugin.is_quarantined());
    lab.plugin.release();
    lab.works("look", calm).await;
}

#[tokio::test]
async fn what_a_call_uses_is_counted() {
    let lab = Lab::start().await;
    let often = |target: &str| json!({ "do": "http", "target": target, "path": "/v1/a", "times": 17 });
    assert_eq!(lab.refused("look", often("api")).await, "request-budget");
    assert_eq!(lab.device.seen().len(), 16);
    let get = json!({ "do": "kv", "use": "get-often", "times": 257 });
    assert_eq!(lab.refused("look", get).await, "kv-budget");
    assert_eq!(lab.services.asked(), 256);
    let emit = json!({ "do": "emit", "event-type": "plugin.scripted.done", "payload": {}, "times": 101 });
    assert_eq!(lab.refused("look", emit).await, "event-budget");
    assert_eq!(lab.services.asked(), 256);
}

#[tokio::test]
async fn sizes_are_bounded_before_the_server_is_asked() {
    let lab = Lab::start().await;
    let large = "x".repeat(300_000);
    for (step, expected) in [
        (json!({ "do": "kv", "use": "set", "key": "a", "bytes": 65_537 }), "kv-value"),
        (json!({ "do": "kv", "use": "set", "key": "", "text": "a" }), "kv-key"),
        (
            json!({ "do": "call", "operation": "network.vlan.create", "params": { "a": large } }),
            "request-too-large",
        ),
        (
            json!({ "do": "emit", "event-type": "plugin.scripted.done", "payload": { "a": large } }),
            "request-too-large",
        ),
        (json!({ "do": "echo", "value": "x".repeat(2 << 20) }), "request-too-large"),
    ] {
        assert_eq!(lab.refused("look", step).await, expected);
    }
    assert_eq!(lab.services.asked(), 0);
}
