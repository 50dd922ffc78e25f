//! A provider that lies: every lie is refused, and leaves nothing behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::SigningKey;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use url::Url;

use super::{Began, PAGE, add, audited, begin, begin_at, oidc_body, users, with};
use crate::support::{Answer, Api, Database, Server, on_both};

/// What is answered at a path.
#[derive(Debug, Clone)]
enum Reply {
    Json(Value),
    Status(u16, Value),
    Redirect(String),
    /// More than the service reads.
    Huge,
    /// Nothing, without end.
    Hang,
}

/// The key as PKCS#8 (RFC 8410 section 7).
fn signing(key: &SigningKey) -> EncodingKey {
    let head = hex::decode("302e020100300506032b657004220420").unwrap();
    EncodingKey::from_ed_der(&[head, key.as_bytes().to_vec()].concat())
}

type Replies = Arc<Mutex<BTreeMap<String, Reply>>>;

struct Hostile {
    issuer: String,
    key: SigningKey,
    replies: Replies,
    server: tokio::task::JoinHandle<()>,
}

async fn answer(State(replies): State<Replies>, request: Request) -> Response {
    let reply = replies.lock().unwrap().get(request.uri().path()).cloned();
    match reply {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(Reply::Json(value)) => axum::Json(value).into_response(),
        Some(Reply::Status(status, value)) => {
            (StatusCode::from_u16(status).unwrap(), axum::Json(value)).into_response()
        }
        Some(Reply::Redirect(to)) => (StatusCode::FOUND, [("location", to)]).into_response(),
        Some(Reply::Huge) => {
            let chunks = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 65_536]));
            Body::from_stream(chunks).into_response()
        }
        Some(Reply::Hang) => std::future::pending().await,
    }
}

impl Hostile {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let replies = Replies::default();
        let router = axum::Router::new().fallback(answer).with_state(replies.clone());
        #[expect(clippy::disallowed_methods, reason = "a test is the outside world")]
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let hostile = Self { issuer, key: SigningKey::from_bytes(&[7; 32]), replies, server };
        hostile.set("/.well-known/openid-configuration", Reply::Json(hostile.discovery()));
        hostile.set("/jwks", Reply::Json(hostile.published("k1")));
        hostile
    }

    fn set(&self, path: &str, reply: Reply) {
        self.replies.lock().unwrap().insert(path.to_owned(), reply);
    }

    fn discovery(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.issuer);
        json!({
            "issuer": self.issuer,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "jwks_uri": at("/jwks"),
            "userinfo_endpoint": at("/userinfo"),
        })
    }

    fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.key.verifying_key().as_bytes())
    }

    fn published(&self, kid: &str) -> Value {
        json!({ "keys": [
            { "kty": "something-new", "kid": "future" },
            { "kty": "OKP", "crv": "Ed25519", "x": self.public(), "kid": kid, "use": "sig" },
        ] })
    }

    /// What an honest provider would say, changed by this.
    fn claims(&self, began: &Began, changes: Value) -> Value {
        let url = Url::parse(&began.url).unwrap();
        let nonce = url.query_pairs().find(|(name, _)| name == "nonce").unwrap().1.into_owned();
        let now = heddle_core::Clock::default().now().timestamp();
        let honest = json!({
            "iss": self.issuer, "aud": "c", "sub": "mallory", "nonce": nonce, "iat": now, "exp": now + 300,
            "email": "mallory@example.test", "email_verified": true, "preferred_username": "mallory", "groups": [],
        });
        with(honest, changes)
    }

    fn signed(&self, kid: &str, claims: &Value) -> String {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(kid.to_owned());
        encode(&header, claims, &signing(&self.key)).unwrap()
    }

    /// Ends the sign-in with this token.
    async fn end(&self, began: &Began, token: &str) -> Answer {
        self.set(
            "/token",
            Reply::Json(json!({ "id_token": token, "access_token": "at", "token_type": "Bearer" })),
        );
        began.end("code", Some(&self.issuer)).await
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.server.abort();
    }
}

struct Place {
    server: Server,
    admin: Api,
    hostile: Hostile,
    provider: String,
}

async fn start(database: Database) -> Place {
    let server = Server::start(database).await;
    let admin = server.set_up().await;
    let hostile = Hostile::start().await;
    let provider = add(&admin, &oidc_body(&hostile.issuer, "c", None)).await;
    Place { server, admin, hostile, provider }
}

impl Place {
    async fn with_claims(&self, changes: Value) -> Answer {
        let began = begin(&self.server, &self.provider).await;
        let token = self.hostile.signed("k1", &self.hostile.claims(&began, changes));
        self.hostile.end(&began, &token).await
    }

    /// Why the last sign-in was refused.
    async fn reason(&self) -> String {
        let refused = audited(&self.admin, "sso.refused").await;
        refused[0]["detail"]["reason"].as_str().unwrap().to_owned()
    }
}

on_both! {
    async fn tokens_that_do_not_prove_who_signs_in_are_refused(database: Database) {
        let place = start(database).await;
        let now = heddle_core::Clock::default().now().timestamp();
        for (changes, reason) in [
            (json!({ "exp": now - 120, "iat": now - 300 }), "expired"),
            (json!({ "iat": now - 3600 }), "expired"),
            (json!({ "iat": now + 600 }), "not_yet_valid"),
            (json!({ "nbf": now + 600 }), "not_yet_valid"),
            (json!({ "aud": "another" }), "audience"),
            (json!({ "aud": ["c", "another"] }), "authorized_party"),
            (json!({ "azp": "another" }), "authorized_party"),
            (json!({ "nonce": "another" }), "nonce"),
            (json!({ "iss": "https://another.example" }), "issuer"),
            (json!({ "at_hash": "AAAAAAAAAAAAAAAAAAAAAA" }), "access_token"),
            (json!({ "sub": "" }), "subject"),
        ] {
            let shown = changes.to_string();
            let answer = place.with_claims(changes).await;
            assert_eq!(answer.status, 401, "{shown}: {}", answer.text);
            assert_eq!(place.reason().await, reason, "{shown}");
            assert!(!answer.text.contains(reason) || reason == "subject", "who signs in is not told: {}", answer.text);
        }
        assert_eq!(users(&place.admin).await, 1);
        place.with_claims(json!({})).await.expect_status(200);
        assert_eq!(users(&place.admin).await, 2);
    }
}

on_both! {
    async fn signatures_are_the_providers_or_nobodys(database: Database) {
        let place = start(database).await;
        let hostile = &place.hostile;
        let claims = |began: &Began| hostile.claims(began, json!({}));
        // Not signed.
        let began = begin(&place.server, &place.provider).await;
        let body = URL_SAFE_NO_PAD.encode(claims(&began).to_string());
        for header in [r#"{"alg":"none","kid":"k1"}"#, r#"{"alg":"nOnE"}"#] {
            let began = begin(&place.server, &place.provider).await;
            let body = URL_SAFE_NO_PAD.encode(claims(&began).to_string());
            let token = format!("{}.{body}.", URL_SAFE_NO_PAD.encode(header));
            hostile.end(&began, &token).await.expect_status(401);
            assert_eq!(place.reason().await, "algorithm");
        }
        // Signed with the public key as if it were a shared secret.
        for secret in [hostile.public().into_bytes(), hostile.key.verifying_key().as_bytes().to_vec()] {
            let began = begin(&place.server, &place.provider).await;
            let mut header = Header::new(Algorithm::HS256);
            header.kid = Some("k1".to_owned());
            let token = encode(&header, &claims(&began), &EncodingKey::from_secret(&secret)).unwrap();
            hostile.end(&began, &token).await.expect_status(401);
            assert_eq!(place.reason().await, "algorithm");
        }
        // Another's, under the provider's name for its key, and under a name that it does not have.
        for kid in ["k1", "k2"] {
            let began = begin(&place.server, &place.provider).await;
            let other = signing(&SigningKey::from_bytes(&[8; 32]));
            let mut header = Header::new(Algorithm::EdDSA);
            header.kid = Some(kid.to_owned());
            let token = encode(&header, &claims(&began), &other).unwrap();
            hostile.end(&began, &token).await.expect_status(401);
            assert_eq!(place.reason().await, "key");
        }
        // A signature of something else.
        let whole = hostile.signed("k1", &claims(&began));
        let (head, signature) = (whole.split('.').next().unwrap(), whole.rsplit('.').next().unwrap());
        let forged = format!("{body}IA");
        hostile.end(&began, &format!("{head}.{forged}.{signature}")).await.expect_status(401);
        assert_eq!(users(&place.admin).await, 1);
    }
}

on_both! {
    async fn new_keys_are_fetched_once_in_a_while(database: Database) {
        let mut place = start(database).await;
        place.with_claims(json!({})).await.expect_status(200);
        place.hostile.key = SigningKey::from_bytes(&[9; 32]);
        place.hostile.set("/jwks", Reply::Json(place.hostile.published("k1")));
        place.with_claims(json!({})).await.expect_status(200);
        place.with_claims(json!({})).await.expect_status(200);
        // At once again: not asked, so not known.
        place.hostile.key = SigningKey::from_bytes(&[10; 32]);
        place.hostile.set("/jwks", Reply::Json(place.hostile.published("k1")));
        place.with_claims(json!({})).await.expect_status(401);
        assert_eq!(place.reason().await, "key");
    }
}

on_both! {
    async fn documents_that_no_provider_has_are_refused(database: Database) {
        let place = start(database).await;
        let hostile = &place.hostile;
        let at = |path: &str| format!("{}{path}", hostile.issuer);
        for (reply, kind) in [
            (Reply::Huge, "identity_provider_error"),
            (Reply::Json(json!({})), "identity_provider_error"),
            (Reply::Json(json!([1])), "identity_provider_error"),
            (Reply::Status(500, json!({})), "identity_provider_error"),
            (Reply::Redirect("http://169.254.169.254/".to_owned()), "identity_provider_error"),
            (Reply::Json(with(hostile.discovery(), json!({ "issuer": "https://another.example" }))), "identity_provider_error"),
            (Reply::Json(with(hostile.discovery(), json!({ "token_endpoint": "http://169.254.169.254/token" }))), "identity_provider_error"),
            (Reply::Json(with(hostile.discovery(), json!({ "jwks_uri": "file:///etc/passwd" }))), "identity_provider_error"),
        ] {
            let shown = format!("{reply:?}");
            hostile.set("/.well-known/openid-configuration", reply);
            let body = json!({ "provider_id": place.provider, "redirect_uri": PAGE });
            let answer = place.server.nobody().post("/auth/sso/oidc/authorize", &body).await;
            assert_eq!((answer.status, answer.error_type()), (502, kind), "{shown}: {}", answer.text);
            assert!(answer.header("set-cookie").is_empty());
        }
        hostile.set("/.well-known/openid-configuration", Reply::Json(hostile.discovery()));
        for (path, reply) in [
            ("/jwks", Reply::Huge),
            ("/jwks", Reply::Json(json!({ "keys": [] }))),
            ("/jwks", Reply::Json(json!({ "keys": [{ "kty": "oct", "k": "c2VjcmV0", "alg": "HS256" }] }))),
            ("/token", Reply::Huge),
            ("/token", Reply::Json(json!({ "access_token": "at" }))),
            ("/token", Reply::Redirect(at("/elsewhere"))),
            ("/token", Reply::Status(503, json!({}))),
        ] {
            let shown = format!("{path} {reply:?}");
            let began = begin(&place.server, &place.provider).await;
            let token = hostile.signed("k1", &hostile.claims(&began, json!({})));
            hostile.set("/token", Reply::Json(json!({ "id_token": token, "access_token": "at" })));
            hostile.set(path, reply);
            let answer = began.end("code", Some(&hostile.issuer)).await;
            assert_eq!((answer.status, answer.error_type()), (502, "identity_provider_error"), "{shown}: {}", answer.text);
            hostile.set("/jwks", Reply::Json(hostile.published("k1")));
        }
        assert_eq!(users(&place.admin).await, 1);
    }
}

on_both! {
    async fn another_persons_user_info_is_refused(database: Database) {
        let place = start(database).await;
        let less = json!({ "email": null, "email_verified": null });
        for (info, status) in [
            (json!({ "sub": "another", "email": "ada@acme.test", "email_verified": true }), 401),
            (json!({ "email": "ada@acme.test", "email_verified": true }), 401),
            (json!({ "sub": "mallory" }), 403),
            (json!({ "sub": "mallory", "email": "mallory@example.test" }), 403),
            (json!({ "sub": "mallory", "email": "mallory@example.test", "email_verified": true }), 200),
        ] {
            place.hostile.set("/userinfo", Reply::Json(info.clone()));
            let began = begin(&place.server, &place.provider).await;
            let mut claims = place.hostile.claims(&began, less.clone());
            claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            let token = place.hostile.signed("k1", &claims);
            let answer = place.hostile.end(&began, &token).await;
            assert_eq!(answer.status, status, "{info}: {}", answer.text);
            assert_eq!(users(&place.admin).await, if status == 200 { 2 } else { 1 });
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_says_nothing_is_not_waited_for_long() {
    let place = start(Database::sqlite()).await;
    let began = begin(&place.server, &place.provider).await;
    place.hostile.set("/token", Reply::Hang);
    let started = Instant::now();
    let answer = began.end("code", Some(&place.hostile.issuer)).await.expect_status(504);
    assert_eq!(answer.error_type(), "identity_provider_timeout");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(users(&place.admin).await, 1);
}

on_both! {
    async fn nothing_of_this_machine_is_reached_unless_it_was_opened(database: Database) {
        let options = crate::support::Options::default().with("EGRESS_EXTRA_NETWORKS", "");
        let server = Server::start_with(database, options).await;
        let admin = server.set_up().await;
        let hostile = Hostile::start().await;
        let id = add(&admin, &oidc_body(&hostile.issuer, "c", None)).await;
        let body = json!({ "provider_id": id, "redirect_uri": PAGE });
        let answer = server.nobody().post("/auth/sso/oidc/authorize", &body).await.expect_status(502);
        assert_eq!(answer.error_type(), "identity_provider_unreachable");
        let tested = admin.post(&format!("/auth/sso/providers/{id}/test"), &json!({})).await.expect_status(200).body;
        let message = tested["steps"][0]["error"]["message"].as_str().unwrap();
        assert!(message.contains("may not be reached: it is this machine"), "{tested}");
        let ldap = json!({
            "kind": "ldap", "label": "Directory",
            "ldap": { "url": "ldaps://localhost:1", "base_dn": "dc=x", "user_filter": "(uid={login})" },
        });
        let id = add(&admin, &ldap).await;
        let body = json!({ "provider_id": id, "login": "alice", "password": "x" });
        let answer = server.nobody().post("/auth/sso/ldap/authenticate", &body).await.expect_status(502);
        assert_eq!(answer.error_type(), "identity_provider_unreachable");
    }
}

on_both! {
    /// Where the provider does not say who it is, the address that it comes back to must.
    async fn an_answer_that_names_no_provider_is_refused(database: Database) {
        let place = start(database).await;
        let path = format!("/auth/sso/providers/{}", place.provider);
        let own_page = format!("{PAGE}/{}", place.provider);
        let oidc = json!({ "issuer": place.hostile.issuer, "client_id": "c", "redirect_uris": [PAGE, own_page] });
        place.admin.patch(&path, &json!({ "oidc": oidc })).await.expect_status(200);
        for (page, named, status) in [
            (PAGE, None, 401),
            (PAGE, Some(place.provider.as_str()), 401),
            (own_page.as_str(), None, 401),
            (own_page.as_str(), Some("01a1ffba-c072-7662-a691-927e95be59d3"), 401),
            (own_page.as_str(), Some(place.provider.as_str()), 200),
        ] {
            let began = begin_at(&place.server, &place.provider, page).await;
            let token = place.hostile.signed("k1", &place.hostile.claims(&began, json!({})));
            place.hostile.set("/token", Reply::Json(json!({ "id_token": token, "access_token": "at" })));
            let mut body = json!({ "code": "code", "state": began.state });
            if let Some(named) = named {
                body["provider_id"] = json!(named);
            }
            let answer = began.browser.post("/auth/sso/oidc/callback", &body).await;
            assert_eq!(answer.status, status, "{page} {named:?}: {}", answer.text);
        }
    }
}
