//! Guests that use, and misuse, the system interfaces that plugins get.

use super::guests::{Called, component};
use super::*;

const STDOUT: Called = ("stdout", "wasi:cli/stdout", "get-stdout", "(result i32)");
const STDERR: Called = ("stderr", "wasi:cli/stderr", "get-stderr", "(result i32)");
const WRITE: Called = ("write", "wasi:io/streams", "[method]output-stream.write", "(param i32 i32 i32 i32)");
const SUBSCRIBE: Called =
    ("subscribe", "wasi:clocks/monotonic-clock", "subscribe-duration", "(param i64) (result i32)");
const BLOCK: Called = ("block", "wasi:io/poll", "[method]pollable.block", "(param i32)");
const POLL: Called = ("poll", "wasi:io/poll", "poll", "(param i32 i32 i32)");
const RANDOM: Called = ("random", "wasi:random/random", "get-random-bytes", "(param i64 i32)");
const EXIT: Called = ("exit", "wasi:cli/exit", "exit", "(param i32)");

/// What a guest that does this answers.
async fn answer(called: &[Called], body: &str) -> u64 {
    let lab = Lab::with_guest(&component(called, body));
    lab.act().await.unwrap()["n"].as_u64().unwrap()
}

/// Why a guest that does this is stopped.
async fn stopped(called: &[Called], body: &str) -> TrapClass {
    match Lab::with_guest(&component(called, body)).act().await {
        Err(CallError::Trap { class, .. }) => class,
        other => panic!("the guest was not stopped: {other:?}"),
    }
}

/// What the guest wrote into the log when its action ended.
async fn logged(called: &[Called], body: &str) -> String {
    let lab = Lab::with_guest(&component(called, body));
    let lines = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&lines);
    let (action, params) = ("act".to_owned(), "{}".to_owned());
    let run = ask(move |exports, store| {
        async move {
            let answer = exports.get::<actions::Guest>(store)?.call_run(&mut *store, &action, &params).await;
            *seen.lock().unwrap() = Some(store.data().lines.clone());
            answer
        }
        .boxed()
    });
    lab.run(run).await.unwrap();
    let lines = lines.lock().unwrap().take().unwrap();
    lines.text()
}

#[tokio::test]
async fn a_guest_without_system_interfaces_runs() {
    assert_eq!(answer(&[], "(i32.const 7)").await, 7);
}

#[tokio::test]
async fn the_environment_is_empty() {
    let called = [
        ("environment", "wasi:cli/environment", "get-environment", "(param i32)"),
        ("arguments", "wasi:cli/environment", "get-arguments", "(param i32)"),
        ("cwd", "wasi:cli/environment", "initial-cwd", "(param i32)"),
    ];
    let body =
        "(call $environment (i32.const 64)) (call $arguments (i32.const 72)) (call $cwd (i32.const 80))
        (i32.add (i32.add (i32.load (i32.const 68)) (i32.load (i32.const 76))) (i32.load8_u (i32.const 80)))";
    assert_eq!(answer(&called, body).await, 0);
}

#[tokio::test]
async fn there_is_no_directory_to_open_a_file_in() {
    let directories = ("directories", "wasi:filesystem/preopens", "get-directories", "(param i32)");
    let body = "(call $directories (i32.const 64)) (i32.load (i32.const 68))";
    assert_eq!(answer(&[directories], body).await, 0);
    let open = (
        "open",
        "wasi:filesystem/types",
        "[method]descriptor.open-at",
        "(param i32 i32 i32 i32 i32 i32 i32)",
    );
    // A descriptor that the guest made up; standard libraries do not come so far.
    for descriptor in ["0", "1", "3", "-1"] {
        let body = format!(
            "(call $open (i32.const {descriptor}) (i32.const 0) (i32.const 4096) (i32.const 1) (i32.const 0)
                (i32.const 1) (i32.const 64)) (i32.const 1)"
        );
        assert_eq!(stopped(&[open], &body).await, TrapClass::Abi);
    }
}

#[tokio::test]
async fn exiting_ends_the_call_and_not_the_host() {
    for status in ["0", "1"] {
        let exits = component(&[EXIT], &format!("(call $exit (i32.const {status})) (i32.const 1)"));
        let lab = Lab::with_guest(&exits);
        let error = lab.act().await.unwrap_err();
        assert!(matches!(error, CallError::Trap { class: TrapClass::Exit, .. }), "{error:?}");
        assert!(error.to_string().contains("exit"), "{error}");
    }
}

#[tokio::test]
async fn standard_input_is_closed() {
    let called = [
        ("stdin", "wasi:cli/stdin", "get-stdin", "(result i32)"),
        ("read", "wasi:io/streams", "[method]input-stream.blocking-read", "(param i32 i64 i32)"),
    ];
    // An error, which is `closed`: 1 and 1.
    let body = "(call $read (call $stdin) (i64.const 10) (i32.const 64))
        (i32.add (i32.load8_u (i32.const 64)) (i32.load8_u (i32.const 68)))";
    assert_eq!(answer(&called, body).await, 2);
}

#[tokio::test]
async fn there_is_no_terminal() {
    let terminal = ("terminal", "wasi:cli/terminal-stdout", "get-terminal-stdout", "(param i32)");
    let body = "(i32.store (i32.const 64) (i32.const 1))
        (call $terminal (i32.const 64)) (i32.load8_u (i32.const 64))";
    assert_eq!(answer(&[terminal], body).await, 0);
}

#[tokio::test]
async fn what_a_guest_prints_is_logged_without_control_characters() {
    // "a", escape, "b", line feed, "c"
    let body =
        "(i32.store (i32.const 64) (i32.const 0x0a621b61)) (i32.store8 (i32.const 68) (i32.const 0x63))
        (call $write (call $stderr) (i32.const 64) (i32.const 5) (i32.const 80))
        (call $write (call $stdout) (i32.const 64) (i32.const 4) (i32.const 84))
        (i32.add (i32.load8_u (i32.const 80)) (i32.load8_u (i32.const 84)))";
    assert_eq!(logged(&[STDOUT, STDERR, WRITE], body).await, "a b | a b | c");
}

#[tokio::test]
async fn a_flood_of_output_is_dropped_and_the_guest_goes_on() {
    // 64 KiB of line feeds and of one line, each a thousand times.
    let body = "(memory.fill (i32.const 65536) (i32.const 10) (i32.const 65536))
        (local.set $j (call $stdout))
        (loop $again
            (call $write (local.get $j) (i32.const 65536) (i32.const 65536) (i32.const 64))
            (memory.fill (i32.const 65536) (i32.const 120) (i32.const 65535))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $i) (i32.const 1000))))
        (i32.load8_u (i32.const 64))";
    let text = logged(&[STDOUT, WRITE], body).await;
    let longest = "x".repeat(crate::limits::LOG_BYTES_MAX);
    // Of the bytes that are searched, the first write has line feeds alone.
    let lines = crate::limits::STDIO_BYTES_MAX / (64 << 10) - 1;
    assert_eq!(text, vec![longest; lines].join(" | "));
}

#[tokio::test]
async fn a_write_is_no_larger_than_the_host_offered() {
    let body = "(call $write (call $stdout) (i32.const 0) (i32.const 65537) (i32.const 64)) (i32.const 1)";
    assert_eq!(stopped(&[STDOUT, WRITE], body).await, TrapClass::Bug);
}

#[tokio::test]
async fn randomness_comes_in_bounded_pieces() {
    // Whether two pieces differ.
    let body = "(call $random (i64.const 65536) (i32.const 64)) (call $random (i64.const 8) (i32.const 72))
        (i64.ne (i64.load (i32.load (i32.const 64))) (i64.load (i32.load (i32.const 72))))";
    assert_eq!(answer(&[RANDOM], body).await, 1);
    for asked in ["65537", "0x40000000", "-1"] {
        let body = format!("(call $random (i64.const {asked}) (i32.const 64)) (i32.const 1)");
        assert_eq!(stopped(&[RANDOM], &body).await, TrapClass::Bug, "{asked}");
    }
    let insecure = ("insecure", "wasi:random/insecure", "get-insecure-random-bytes", "(param i64 i32)");
    let body = "(call $insecure (i64.const 0x40000000) (i32.const 64)) (i32.const 1)";
    assert_eq!(stopped(&[insecure], body).await, TrapClass::Bug);
}

#[tokio::test]
async fn the_seed_is_another_one_in_each_call() {
    let seed = ("seed", "wasi:random/insecure-seed", "insecure-seed", "(param i32)");
    let body = "(call $seed (i32.const 64)) (call $seed (i32.const 80))
        (i64.ne (i64.load (i32.const 64)) (i64.load (i32.const 80)))";
    assert_eq!(answer(&[seed], body).await, 1);
}

#[tokio::test]
async fn the_clocks_are_those_of_the_host() {
    let called = [
        ("wall", "wasi:clocks/wall-clock", "now", "(param i32)"),
        ("monotonic", "wasi:clocks/monotonic-clock", "now", "(result i64)"),
        SUBSCRIBE,
        BLOCK,
    ];
    // After the year 2020, and at least 5 ms pass while it sleeps for as long.
    let body = "(local $before i64)
        (call $wall (i32.const 64)) (local.set $before (call $monotonic))
        (call $block (call $subscribe (i64.const 5000000)))
        (i32.add
            (i64.gt_u (i64.load (i32.const 64)) (i64.const 1577836800))
            (i64.ge_u (i64.sub (call $monotonic) (local.get $before)) (i64.const 5000000)))";
    assert_eq!(answer(&called, body).await, 2);
}

const HOUR: &str = "(call $block (call $subscribe (i64.const 3600000000000))) (i32.const 1)";

#[tokio::test]
async fn a_guest_that_oversleeps_is_cut_and_to_blame() {
    for (called, body) in [
        ([SUBSCRIBE, BLOCK], HOUR),
        ([SUBSCRIBE, BLOCK], "(call $block (call $subscribe (i64.const -1))) (i32.const 1)"),
        (
            [SUBSCRIBE, POLL],
            "(i32.store (i32.const 64) (call $subscribe (i64.const 3600000000000)))
             (call $poll (i32.const 64) (i32.const 1) (i32.const 72)) (i32.const 1)",
        ),
    ] {
        let lab = Lab::with_guest(&component(&called, body));
        let started = Instant::now();
        let ended = lab.act_within(Duration::from_millis(200)).await;
        assert!(matches!(ended, Err(CallError::Trap { class: TrapClass::Wall, .. })), "{ended:?}");
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        // It waited for nothing but itself.
        while let Err(CallError::Trap { .. }) = lab.act_within(Duration::from_millis(20)).await {}
        let ended = lab.act_within(Duration::from_millis(20)).await;
        assert!(matches!(ended, Err(CallError::Suspended { .. })), "{ended:?}");
    }
}

/// It computes for so long that it needs a turn, and then sleeps.
#[tokio::test]
async fn a_guest_that_computes_and_oversleeps_is_to_blame_too() {
    let body = format!(
        "(loop $again
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $i) (i32.const 100000000))))
        {HOUR}"
    );
    let lab = Lab::with_guest(&component(&[SUBSCRIBE, BLOCK], &body));
    for _ in 0..40 {
        match lab.act_within(Duration::from_millis(400)).await {
            Err(CallError::Trap { .. }) => {}
            Err(CallError::Suspended { .. }) => return,
            other => panic!("{other:?}"),
        }
    }
    panic!("it is never suspended");
}

#[tokio::test]
async fn a_time_that_is_over_is_ready_at_once() {
    const READY: Called = ("ready", "wasi:io/poll", "[method]pollable.ready", "(param i32) (result i32)");
    assert_eq!(answer(&[SUBSCRIBE, READY], "(call $ready (call $subscribe (i64.const 0)))").await, 1);
    assert_eq!(
        answer(&[SUBSCRIBE, READY], "(call $ready (call $subscribe (i64.const 3600000000000)))").await,
        0
    );
}

#[tokio::test]
async fn random_bytes_of_a_call_are_bounded() {
    let body = "(loop $again (call $random (i64.const 65536) (i32.const 64)) (br $again)) (unreachable)";
    let class = stopped(&[RANDOM], body).await;
    // Its memory may end first.
    assert!(matches!(class, TrapClass::Bug | TrapClass::Panic | TrapClass::Resource), "{class:?}");
}

#[test]
fn passive_segments_are_bounded() {
    let module =
        |items: usize| format!("(component (core module (func $f) (elem func {})))", "$f ".repeat(items));
    let judge = |items: usize| crate::load::validate(&wat::parse_str(module(items)).unwrap());
    assert!(judge(10_000).is_ok());
    let refused = judge(10_001).unwrap_err().to_string();
    assert!(refused.contains("10000 are the most"), "{refused}");
}

/// More guests sleep than there are threads, and another call is made all the same.
#[tokio::test]
async fn a_guest_that_sleeps_holds_no_thread() {
    let sleeping = Lab::with_guest(&component(&[SUBSCRIBE, BLOCK], HOUR));
    let awake = sleeping.plugin_of(&component(&[], "(i32.const 3)"), |_| ()).unwrap();
    // Each is stopped at its deadline only. If they held the threads, the other call would come after the first of them.
    let sleepers = futures::future::select_all((0..6).map(|_| Box::pin(sleeping.act())));
    let (params, call) = (json!({}), call_of(sleeping.org));
    let other = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        awake.run(&call, "act", &params).await.unwrap()
    };
    let answer = tokio::select! {
        answer = other => answer,
        (ended, ..) = sleepers => panic!("a sleeper came first: {ended:?}"),
    };
    assert_eq!(answer["n"], 3);
}

#[tokio::test]
async fn floods_of_handles_end_at_their_limit() {
    let forever = |call: &str| format!("(loop $again (drop {call}) (br $again)) (unreachable)");
    let pollables = forever("(call $subscribe (i64.const 1))");
    assert_eq!(stopped(&[SUBSCRIBE], &pollables).await, TrapClass::Abi);
    assert_eq!(stopped(&[STDOUT], &forever("(call $stdout)")).await, TrapClass::Abi);
}

#[tokio::test]
async fn a_list_of_pollables_is_bounded() {
    // The same one, so often.
    let often = |times: usize| {
        format!(
            "(local.set $j (call $subscribe (i64.const 0)))
            (loop $again
                (i32.store (i32.add (i32.const 65536) (i32.mul (local.get $i) (i32.const 4))) (local.get $j))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $again (i32.lt_u (local.get $i) (i32.const {times}))))
            (global.set $next (i32.const 131072))
            (call $poll (i32.const 65536) (i32.const {times}) (i32.const 64))
            (i32.eq (i32.load (i32.const 68)) (i32.const {times}))"
        )
    };
    assert_eq!(answer(&[SUBSCRIBE, POLL], &often(900)).await, 1);
    // Each is a handle while the host waits.
    for times in [1_001, 10_000] {
        assert_eq!(stopped(&[SUBSCRIBE, POLL], &often(times)).await, TrapClass::Abi);
    }
}

#[tokio::test]
async fn polling_without_a_pause_costs_the_guest_its_own_time() {
    let body = "(local.set $j (call $subscribe (i64.const 0)))
        (loop $again (call $block (local.get $j)) (br $again)) (unreachable)";
    let lab = Lab::with_guest(&component(&[SUBSCRIBE, BLOCK], body));
    let ended = lab.act_within(Duration::from_secs(3)).await;
    let Err(CallError::Trap { class, .. }) = ended else { panic!("{ended:?}") };
    assert!(matches!(class, TrapClass::Cpu | TrapClass::Wall), "{class}");
}

#[tokio::test]
async fn interfaces_with_reach_are_refused_by_their_names() {
    let lab = Lab::start();
    for interface in
        ["wasi:sockets/tcp@0.2.6", "wasi:sockets/network@0.2.6", "wasi:http/outgoing-handler@0.2.6"]
    {
        let text = format!(r#"(component (import "{interface}" (instance)))"#);
        let refused = lab.plugin_of(&wat::parse_str(text).unwrap(), |_| ()).unwrap_err();
        assert!(refused.contains(interface) && refused.contains("--stub-wasi"), "{refused}");
    }
}

#[tokio::test]
async fn adapters_get_no_system_interfaces() {
    let lab = Lab::start();
    let exits = component(&[EXIT], "(i32.const 1)");
    let refused = lab.plugin_of(&exits, |manifest| manifest.kind = Kind::Adapter).unwrap_err();
    assert!(refused.contains("wasi:cli/exit") && refused.contains("adapters get no"), "{refused}");
}
