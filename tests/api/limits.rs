//! How much may be asked, of one server and of several that share a Redis.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use heddle_kernel::cache::{Cache, CacheError};
use heddle_kernel::config::Config;
use heddle_kernel::http::rate_limit::{Limit, Limiter, Rate, Verdict};
use serde_json::{Value, json};

use crate::support::{Answer, Api, Database, Options, PASSWORD, Random, Redis, Server, on_both, until};

const ADDRESS: &str = "203.0.113.7";
/// Only something that hangs takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

fn minute(requests: u32) -> Options {
    Options::default().with("RATE_LIMIT_RPM", requests.to_string())
}

fn shared(redis: &Redis) -> Options {
    Options::default().with("CACHE_URL", redis.url())
}

/// Too short for a login, but a request to its route.
async fn try_login(api: &Api) -> Answer {
    api.post("/auth/login", &json!({})).await
}

#[track_caller]
fn is_refused_for_a_minute(answer: &Answer) {
    assert_eq!(answer.status, 429, "{}", answer.text);
    assert_eq!(answer.body, json!({ "detail": "Rate limit exceeded", "retry_after": 60 }));
    assert_eq!(answer.header("retry-after"), "60");
    assert_eq!(answer.header("x-ratelimit-limit"), "", "only a success tells the limit");
    assert_eq!(answer.header("x-ratelimit-remaining"), "");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert!(!answer.header("x-request-id").is_empty());
}

#[track_caller]
fn tells(answer: &Answer, limit: &str, remaining: &str) {
    let told = (answer.header("x-ratelimit-limit"), answer.header("x-ratelimit-remaining"));
    assert_eq!((answer.status, told), (200, (limit, remaining)), "{}", answer.text);
}

on_both! {
    async fn a_success_tells_what_is_left_and_the_next_request_waits_for_the_minute(database: Database) {
        let server = Server::start_with(database, minute(3)).await;
        let api = server.nobody().at_ip(ADDRESS);
        for remaining in ["2", "1"] {
            tells(&api.get("/setup/status").await, "3", remaining);
        }
        // What fails counts as well and tells nothing.
        let absent = api.get("/nowhere").await.expect_status(404);
        assert_eq!(absent.header("x-ratelimit-limit"), "");
        is_refused_for_a_minute(&api.get("/setup/status").await);
        is_refused_for_a_minute(&api.get("/nowhere").await);
        is_refused_for_a_minute(&api.post("/setup/complete", &json!({})).await);
        server.nobody().at_ip("203.0.113.8").get("/setup/status").await.expect_status(200);
        server.running().app.clock.advance(TimeDelta::minutes(2));
        tells(&api.get("/setup/status").await, "3", "2");
    }
}

on_both! {
    async fn a_burst_waits_for_the_second(database: Database) {
        let server = Server::start_with(database, Options::default().with("RATE_LIMIT_BURST", "3")).await;
        let api = server.nobody().at_ip(ADDRESS);
        let answers = futures::future::join_all((0..40).map(|_| api.get("/setup/status"))).await;
        let (granted, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
        assert!(granted.len() >= 3 && !refused.is_empty(), "{} of 40", granted.len());
        for answer in refused {
            assert_eq!(answer.status, 429, "{}", answer.text);
            assert_eq!(answer.body, json!({ "detail": "Rate limit exceeded (burst)", "retry_after": 1 }));
            assert_eq!(answer.header("retry-after"), "1");
        }
        server.running().app.clock.advance(TimeDelta::seconds(2));
        api.get("/setup/status").await.expect_status(200);
    }
}

on_both! {
    async fn probes_are_not_limited(database: Database) {
        let server = Server::start_with(database, minute(1).with("RATE_LIMIT_BURST", "1")).await;
        let api = server.nobody().at_ip(ADDRESS);
        for _ in 0..5 {
            for path in ["/health", "/health/", "/health/live", "/health/ready", "/health/db"] {
                let answer = api.get(path).await.expect_status(200);
                assert_eq!(answer.header("x-ratelimit-limit"), "", "{path}");
            }
            api.get_root("/health").await.expect_status(200);
        }
        api.get("/setup/status").await.expect_status(200);
        api.get("/setup/status").await.expect_status(429);
        api.get_root("/health").await.expect_status(200);
    }
}

on_both! {
    async fn five_logins_a_minute_from_one_address_whatever_the_spelling(database: Database) {
        let server = Server::start(database).await;
        server.set_up().await;
        let api = server.nobody().at_ip(ADDRESS);
        let login = json!({ "login": "ada", "password": PASSWORD });
        tells(&api.post("/auth/login", &login).await, "5", "4");
        for path in ["/auth/login/", "/auth/login//", "/auth/login?x=1", "/auth/login"] {
            api.post(path, &json!({})).await.expect_status(422);
        }
        for path in ["/auth/login", "/auth/login/", "/auth/login///", "/auth/login?y=2", "/auth/login/?y=2"] {
            is_refused_for_a_minute(&api.post(path, &login).await);
        }
        for path in ["//auth/login", "/auth//login", "/Auth/login", "/auth/LOGIN", "/auth/%6cogin"] {
            api.post(path, &login).await.expect_status(404);
        }
        // Reading and refreshing are not guessing.
        api.get("/auth/login").await.expect_status(405);
        api.post("/auth/refresh", &json!({ "refresh_token": "none" })).await.expect_status(401);
        server.nobody().at_ip("203.0.113.8").post("/auth/login", &login).await.expect_status(200);
        server.running().app.clock.advance(TimeDelta::minutes(2));
        api.post("/auth/login", &login).await.expect_status(200);
    }
}

on_both! {
    async fn another_token_or_cookie_gives_no_new_tries_at_passwords(database: Database) {
        let server = Server::start(database).await;
        let admin = server.set_up().await.at_ip(ADDRESS);
        let cookie = admin.with("cookie", &format!("svc_access={}", admin.token()));
        for _ in 0..5 {
            try_login(&server.nobody().at_ip(ADDRESS)).await.expect_status(422);
        }
        is_refused_for_a_minute(&try_login(&admin).await);
        is_refused_for_a_minute(&try_login(&cookie).await);
    }
}

on_both! {
    async fn the_user_of_a_good_access_cookie_is_counted_and_else_the_address(database: Database) {
        let server = Server::start_with(database, minute(4)).await;
        let admin = server.set_up().await;
        let cookie = format!("theme=dark; svc_access={}", admin.token());
        // From wherever it comes.
        for (ip, remaining) in [("203.0.113.1", "3"), ("203.0.113.2", "2"), ("203.0.113.3", "1"), ("203.0.113.4", "0")] {
            let api = server.nobody().at_ip(ip).with("cookie", &cookie);
            tells(&api.get("/setup/status").await, "4", remaining);
        }
        let user = server.nobody().at_ip("203.0.113.5").with("cookie", &cookie);
        is_refused_for_a_minute(&user.get("/setup/status").await);
        // The same address without the cookie, or with one that we did not sign.
        let stranger = server.nobody().at_ip("203.0.113.5");
        tells(&stranger.get("/setup/status").await, "4", "3");
        let forged = format!("{cookie}x");
        for (cookie, remaining) in [("svc_access=none", "2"), (forged.as_str(), "1")] {
            tells(&stranger.with("cookie", cookie).get("/setup/status").await, "4", remaining);
        }
        // A bearer token does not make a principal.
        let bearer = stranger.with_token(admin.token());
        tells(&bearer.get("/auth/me").await, "4", "0");
    }
}

#[tokio::test]
async fn a_network_of_ipv6_counts_as_one_client() {
    let server = Server::start_with(Database::sqlite(), minute(2)).await;
    for ip in ["2001:db8:1:2::1", "2001:db8:1:2:ffff::2"] {
        server.nobody().at_ip(ip).get("/setup/status").await.expect_status(200);
    }
    is_refused_for_a_minute(&server.nobody().at_ip("2001:db8:1:2::3").get("/setup/status").await);
    server.nobody().at_ip("2001:db8:1:3::1").get("/setup/status").await.expect_status(200);
}

on_both! {
    async fn what_is_refused_costs_no_query(database: Database) {
        let server = Server::start_with(database, minute(6)).await;
        let admin = server.set_up().await.at_ip(ADDRESS);
        let cookie = admin.with("cookie", &format!("svc_access={}", admin.token()));
        for _ in 0..6 {
            cookie.get("/auth/me").await.expect_status(200);
        }
        for _ in 0..5 {
            try_login(&server.nobody().at_ip(ADDRESS)).await.expect_status(422);
        }
        server.running().app.db.close().await;
        is_refused_for_a_minute(&cookie.get("/auth/me").await);
        is_refused_for_a_minute(&try_login(&admin).await);
        // A request that is let through does need the database.
        admin.at_ip("203.0.113.8").get("/auth/me").await.expect_status(503);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_one_window() {
    let redis = Redis::start();
    let options = shared(&redis).with("RATE_LIMIT_RPM", "4");
    let one = Server::start_with(Database::sqlite(), options.clone()).await;
    let two = Server::start_with(Database::sqlite(), options).await;
    let (one, two) = (one.nobody().at_ip(ADDRESS), two.nobody().at_ip(ADDRESS));
    tells(&one.get("/setup/status").await, "4", "3");
    tells(&two.get("/setup/status").await, "4", "2");
    tells(&one.get("/setup/status").await, "4", "1");
    tells(&two.get("/setup/status").await, "4", "0");
    is_refused_for_a_minute(&one.get("/setup/status").await);
    is_refused_for_a_minute(&two.get("/setup/status").await);
    let (one, two) = (one.at_ip("203.0.113.8"), two.at_ip("203.0.113.8"));
    for api in [&one, &two, &one, &two] {
        try_login(api).await.expect_status(422);
    }
    assert!(redis.command("KEYS *").contains("heddle:window:auth:ip:203.0.113.8/32"));
    let life = redis.command("PTTL heddle:window:auth:ip:203.0.113.8/32");
    let life_ms: i64 = life.trim().trim_start_matches(':').parse().expect("a number");
    assert!((1..=60_000).contains(&life_ms), "a log ends by itself: {life_ms}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_redis_a_server_refuses_logins_and_serves_the_rest() {
    let mut redis = Redis::start();
    let server = Server::start_with(Database::sqlite(), shared(&redis).with("RATE_LIMIT_RPM", "3")).await;
    let api = server.nobody().at_ip(ADDRESS);
    tells(&api.get("/setup/status").await, "3", "2");
    server.running().app.cache.ping().await.expect("the cache answers");

    redis.kill();
    for _ in 0..10 {
        let refused = try_login(&api).await.expect_status(503);
        assert_eq!(refused.error_type(), "unavailable");
        assert!(refused.message().contains("sign-in"), "{}", refused.text);
        assert_eq!(refused.body["error"]["code"], 503);
        let answered = api.get("/setup/status").await.expect_status(200);
        assert_eq!(answered.header("x-ratelimit-limit"), "", "nothing was counted");
    }
    let error = server.running().app.cache.ping().await.expect_err("nobody answers").to_string();
    assert!(error.contains("127.0.0.1:") && !error.contains(Redis::password()), "{error}");

    redis.restart();
    until("logins are possible again", async || try_login(&api).await.status == 422).await;
    for remaining in ["1", "0"] {
        tells(&api.get("/setup/status").await, "3", remaining);
    }
    is_refused_for_a_minute(&api.get("/setup/status").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_redis_holds_up_nobody() {
    let redis = Redis::start();
    let server = Server::start_with(Database::sqlite(), shared(&redis)).await;
    let api = server.nobody().at_ip(ADDRESS);
    api.get("/setup/status").await.expect_status(200);

    redis.pause();
    let frozen = futures::future::join_all((0..100).map(|_| api.get("/setup/status")));
    let frozen = tokio::time::timeout(PATIENCE, frozen).await.expect("no request waits for the cache");
    assert!(frozen.iter().all(|answer| answer.status == 200));
    // One of them waited in vain, and that gave the connection up: all later ones have nothing to wait for.
    let is_given_up = async || {
        let error = server.running().app.cache.ping().await.expect_err("nobody answers");
        assert!(matches!(error, CacheError::NotConnected(_)), "{error}");
    };
    for _ in 0..20 {
        is_given_up().await;
        api.get("/setup/status").await.expect_status(200);
        try_login(&api).await.expect_status(503);
    }
    is_given_up().await;

    redis.resume();
    until("logins are possible again", async || try_login(&api).await.status == 422).await;
    let counted = api.get("/setup/status").await.expect_status(200);
    assert_eq!(counted.header("x-ratelimit-limit"), "1000000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_forgot_everything_starts_anew() {
    let redis = Redis::start();
    let server = Server::start_with(Database::sqlite(), shared(&redis).with("RATE_LIMIT_RPM", "2")).await;
    let api = server.nobody().at_ip(ADDRESS);
    for forget in ["SCRIPT FLUSH", "FLUSHALL", "CLIENT KILL TYPE normal"] {
        redis.command("FLUSHALL");
        tells(&api.get("/setup/status").await, "2", "1");
        redis.command(forget);
        // A killed connection is replaced, and a request may fall into the gap.
        until(forget, async || !api.get("/health/live").await.text.is_empty()).await;
        until(forget, async || server.running().app.cache.ping().await.is_ok()).await;
        let left = if forget == "FLUSHALL" { "1" } else { "0" };
        tells(&api.get("/setup/status").await, "2", left);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_without_its_redis_and_uses_it_when_it_comes() {
    let mut redis = Redis::not_yet_started();
    let server = Server::start_with(Database::sqlite(), shared(&redis)).await;
    let api = server.nobody().at_ip(ADDRESS);
    api.get("/setup/status").await.expect_status(200);
    try_login(&api).await.expect_status(503);
    redis.restart();
    until("the cache is used", async || {
        !api.get("/setup/status").await.header("x-ratelimit-limit").is_empty()
    })
    .await;
    try_login(&api).await.expect_status(422);
}

async fn cache(settings: &[(&str, &str)]) -> anyhow::Result<Cache> {
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Cache::open(&Config::from_maps(&settings, &std::collections::BTreeMap::new(), &[])?).await
}

#[tokio::test]
async fn a_malformed_address_of_the_cache_is_refused_and_its_password_not_shown() {
    for url in ["http://user:hunter2@cache", "redis://user:hunter2@", "user:hunter2@cache:6379"] {
        let error = format!("{:#}", cache(&[("CACHE_URL", url)]).await.expect_err(url));
        assert!(
            error.contains("CACHE_URL")
                && error.to_ascii_lowercase().contains("redis://user:password@host:port"),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_of_the_cache_is_told_and_serves_on() {
    let redis = Redis::start();
    let url = redis.url().replace("redis%2Fsecret%40it", "hunter2");
    let server = Server::start_with(Database::sqlite(), Options::default().with("CACHE_URL", url)).await;
    server.nobody().get("/setup/status").await.expect_status(200);
    let error = server.running().app.cache.ping().await.expect_err("the password is wrong").to_string();
    assert!(!error.contains("hunter2"), "{error}");
}

/// The script of the shared cache, with the time as its last two arguments.
fn timed_script() -> String {
    let script = include_str!("../../host/kernel/src/http/rate_limit/take.lua");
    assert_eq!(script.matches("redis.call('TIME')").count(), 1);
    script.replace("redis.call('TIME')", "{ARGV[#ARGV - 1], ARGV[#ARGV]}")
}

/// What the script says: `*3 :0 :4 :5` or `*1 :2`.
fn verdict(answer: &str) -> Verdict {
    let numbers = answer.lines().skip(1).map(|line| line.trim_start_matches(':').parse::<u32>());
    let numbers: Vec<u32> = numbers.collect::<Result<_, _>>().expect(answer);
    match numbers.split_first().expect(answer) {
        (0, left) => Verdict::Granted(left.to_vec()),
        (exceeded, _) => Verdict::Exceeded(usize::try_from(exceeded - 1).unwrap()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_and_redis_count_alike() {
    let redis = Redis::start();
    let own = Limiter::new(&Cache::Process);
    let script = timed_script();
    // Long windows: the keys must not expire in the time of this test, which is not theirs.
    let rates = [Rate { requests: 90, window_ms: 70_000 }, Rate { requests: 30, window_ms: 20_000 }];
    let limits = ["wide", "narrow"].into_iter().zip(rates);
    let limits: Vec<_> = limits.map(|(key, rate)| Limit { key: key.to_owned(), rate }).collect();
    let mut now_ms = 1_800_000_000_123_i64;
    let (mut granted, mut refused) = (0, [0, 0]);
    for step in 0_usize..3_000 {
        // Floods, slow times, pauses of more than a window, and a clock that goes back.
        now_ms += match (step / 100 % 5, step % 50) {
            (_, 49) => [33_301, 150_007, 13_702, -9_001][step / 50 % 4],
            (0, _) => 0,
            (1, _) => 100,
            (2, odd) => i64::from(odd % 2 == 1) * 97,
            (3, _) => 701,
            _ => 1_203,
        };
        let (seconds, micros) = ((now_ms / 1_000).to_string(), (now_ms % 1_000 * 1_000 + 999).to_string());
        // Requests of one entry of the log, as the service says.
        let group = |rate: Rate| if rate.requests <= 64 { 1 } else { rate.requests / 20 };
        let numbers =
            rates.map(|rate| [rate.requests, rate.window_ms, group(rate)].map(|n| n.to_string())).concat();
        let mut arguments = vec!["EVAL", &script, "2", "wide", "narrow"];
        arguments.extend(numbers.iter().chain([&seconds, &micros]).map(String::as_str));
        let shared = verdict(&redis.call(&arguments));
        let now = chrono::DateTime::from_timestamp_millis(now_ms).expect("a time");
        let own = own.take(&limits, now).await.unwrap();
        assert_eq!(own, shared, "step {step} at {now_ms} ms");
        match own {
            Verdict::Granted(_) => granted += 1,
            Verdict::Exceeded(index) => refused[index] += 1,
        }
    }
    assert!(
        granted > 300 && refused.iter().all(|count| *count > 20),
        "{granted} granted, {refused:?} refused"
    );
}

/// The real defaults are for people who use the service, and stop who floods it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_defaults_let_a_hundred_at_once_through_and_not_a_thousand() {
    let options = Options::default().with("RATE_LIMIT_RPM", "600").with("RATE_LIMIT_BURST", "120");
    let server = Server::start_with(Database::sqlite(), options).await;
    let api = server.nobody().at_ip(ADDRESS);
    let answers = futures::future::join_all((0..100).map(|_| api.get("/setup/status"))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    let answers = futures::future::join_all((0..900).map(|_| api.get("/setup/status"))).await;
    let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(refused.len() >= 390, "{} of 900", refused.len());
    let words: Vec<&Value> = refused.iter().map(|answer| &answer.body["detail"]).collect();
    assert!(words.iter().all(|word| word.as_str().unwrap().starts_with("Rate limit exceeded")));
}

/// What one request was answered, and between which instants.
struct Asked {
    before: Duration,
    after: Duration,
    is_granted: bool,
}

/// Asks in bursts and pauses from a seeded sequence, until there are grants of several windows and a refusal.
async fn asked(limiter: &Limiter, rate: Rate, random: &mut Random) -> Vec<Asked> {
    let window = Duration::from_millis(u64::from(rate.window_ms));
    let limit = [Limit { key: format!("model:{}", rate.requests), rate }];
    let (started, mut asked) = (Instant::now(), Vec::<Asked>::new());
    let is_granted = |one: &&Asked| one.is_granted;
    while asked.iter().filter(is_granted).count() <= 4 * rate.requests as usize
        || asked.iter().all(|one| one.is_granted)
    {
        assert!(started.elapsed() < Duration::from_mins(1), "{rate:?}: too few grants");
        for _ in 0..=random.next(u64::from(2 * rate.requests)) {
            let before = started.elapsed();
            let verdict =
                limiter.take(&limit, heddle_core::Clock::default().now()).await.expect("the store answers");
            let is_granted = matches!(verdict, Verdict::Granted(_));
            asked.push(Asked { before, after: started.elapsed(), is_granted });
        }
        let tenths = u32::try_from(random.next(8)).expect("it is small");
        tokio::time::sleep(window * tenths / 10).await;
    }
    asked
}

/// Holds the answers against an exact window, as far as the instants tell.
fn check_model(asked: &[Asked], rate: Rate, beyond: usize) {
    // The shared store counts in whole milliseconds.
    let (window, tick) = (Duration::from_millis(u64::from(rate.window_ms)), Duration::from_millis(2));
    let most = rate.requests as usize + beyond;
    let granted: Vec<&Asked> = asked.iter().filter(|one| one.is_granted).collect();
    for (first, last) in granted.iter().zip(granted.iter().skip(most)) {
        assert!(last.after + tick >= first.before + window, "{rate:?}: {} granted within a window", most + 1);
    }
    for refused in asked.iter().filter(|one| !one.is_granted) {
        let held = granted
            .iter()
            .filter(|one| one.before <= refused.after && one.after + window + tick > refused.before);
        assert!(held.count() >= rate.requests as usize, "{rate:?}: refused below the limit");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_holds_the_limit_and_no_more_in_process_and_over_redis() {
    let redis = Redis::start();
    let shared = cache(&[("CACHE_URL", &redis.url())]).await.expect("the address is good");
    let mut random = Random::of(0x5EED);
    for cache in [Cache::Process, shared] {
        let limiter = Limiter::new(&cache);
        for (requests, beyond) in [(1, 0), (5, 0), (20, 0), (64, 0), (100, 5), (400, 20)] {
            let rate = Rate { requests, window_ms: 500 };
            check_model(&asked(&limiter, rate, &mut random).await, rate, beyond);
        }
    }
}
