//! The documentation pages.

use crate::support::{Answer, Database, Options, PASSWORD, Server, browser};

const PAGES: &[(&str, &str)] = &[("/docs", "swagger-ui"), ("/redoc", "redoc")];

/// What an answer is, but for what differs between any two.
fn shape(answer: &Answer) -> (u16, String, Vec<(String, String)>) {
    let own = ["x-request-id", "x-response-time", "date"];
    let headers = answer.headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    let headers = headers.map(|(name, value)| (name.to_string(), format!("{value:?}"))).collect();
    let text = answer.text.replace(answer.header("x-request-id"), "ID");
    (answer.status, text, headers)
}

/// Everything that a page loads.
fn loaded(html: &str) -> Vec<String> {
    let values = |attribute: &str| {
        html.split(&format!("{attribute}=\""))
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let mut all = values("src");
    all.extend(values("href"));
    all
}

#[tokio::test]
async fn both_pages_are_served_at_both_places_and_load_nothing_from_elsewhere() {
    let server = Server::start(Database::sqlite()).await;
    let nobody = server.nobody();
    for (page, element) in PAGES {
        let root = nobody.get_root(page).await.expect_status(200);
        let below = nobody.get(page).await.expect_status(200);
        assert_eq!(root.text, below.text, "{page}");
        assert_eq!(below.header("content-type"), "text/html; charset=utf-8");
        assert!(root.text.contains(&format!("<div id=\"{element}\">")), "{}", root.text);
        let policy = below.header("content-security-policy");
        for part in
            ["default-src 'none'", "script-src 'self';", "connect-src 'self'", "frame-ancestors 'none'"]
        {
            assert!(policy.contains(part), "{part} in {policy}");
        }
        assert!(!policy.contains("http") && !policy.contains("unsafe-eval"), "{policy}");
        assert_eq!(below.header("cache-control"), "no-store, no-cache, must-revalidate");
        assert!(!root.text.contains("<script>") && !root.text.contains("<style"), "no inline script");
        let assets = loaded(&root.text);
        assert!(assets.len() >= 3, "{assets:?}");
        for asset in assets {
            if asset == "data:," {
                continue;
            }
            assert!(asset.starts_with("/api/v1/docs/assets/"), "{asset}");
            let answer = nobody.get_root(&asset).await.expect_status(200);
            let kind = if asset.rsplit('.').next() == Some("css") {
                "text/css; charset=utf-8"
            } else {
                "text/javascript; charset=utf-8"
            };
            assert_eq!(answer.header("content-type"), kind, "{asset}");
            assert!(!answer.text.contains(".js.map") && !answer.text.contains(".css.map"), "{asset}");
            assert!(
                !answer.text.contains("cdn.redoc.ly") && !answer.text.contains("fonts.googleapis"),
                "{asset}"
            );
        }
    }
    assert_eq!(nobody.get("/docs/assets/other.js").await.expect_status(404).error_type(), "not_found");
    let root = nobody.get_root("/openapi.json").await.expect_status(200);
    assert_eq!(root.text, nobody.get("/openapi.json").await.expect_status(200).text);
    assert_eq!(nobody.get_root("/").await.body["docs"], "/api/v1/docs");
    let policy = root.header("content-security-policy");
    assert!(policy.starts_with("default-src 'self'"), "the policy of everything else stays: {policy}");
}

#[tokio::test]
async fn where_documentation_is_not_served_it_is_like_an_unknown_path() {
    let production = Options::default().with("ENVIRONMENT", "production").with("EGRESS_EXTRA_NETWORKS", "");
    let disabled = Options::default().with("ENABLE_DOCS", "false");
    for options in [production, disabled] {
        let server = Server::start_with(Database::sqlite(), options).await;
        let nobody = server.nobody();
        let unknown = shape(&nobody.get("/nowhere").await);
        assert_eq!(unknown.0, 404);
        for path in [
            "/docs",
            "/redoc",
            "/openapi.json",
            "/api/v1/docs",
            "/api/v1/redoc",
            "/api/v1/openapi.json",
            "/api/v1/docs/assets/docs.js",
        ] {
            assert_eq!(shape(&nobody.get_root(path).await), unknown, "{path}");
        }
        assert!(nobody.get_root("/").await.expect_status(200).body["docs"].is_null());
    }
}

#[tokio::test]
async fn a_service_that_is_not_told_where_it_is_tells_no_app() {
    let production = Options::default().with("ENVIRONMENT", "production").with("EGRESS_EXTRA_NETWORKS", "");
    let server = Server::start_with(Database::sqlite(), production).await;
    let told = server.nobody().get_root("/.well-known/oauth-authorization-server").await.expect_status(501);
    assert!(told.message().contains("PUBLIC_URL"), "{}", told.text);
}

#[test]
fn the_readme_of_the_assets_names_what_is_there() {
    let readme = include_str!("../../host/kernel/assets/README.md");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/kernel/assets");
    for licence in ["swagger-ui/LICENSE", "swagger-ui/NOTICE", "redoc/LICENSE"] {
        assert!(folder.join(licence).is_file(), "{licence}");
    }
    let folders = std::fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_dir());
    for entry in folders {
        let name = entry.file_name().into_string().unwrap();
        assert!(readme.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_writes_for_a_browser_that_has_signed_in_there() {
    let server = Server::start(Database::sqlite()).await;
    let admin = server.set_up().await;
    let page = format!("{}/api/v1/docs", admin.base());
    let variables = [("PAGE", page.as_str()), ("LOGIN", "ada"), ("PASSWORD", PASSWORD)];
    let shown = browser::drive("api/docs.mjs", &variables).await;
    assert_eq!(shown["signedIn"], 200, "{shown}");
    assert_eq!(shown["created"], 201, "{shown}");
    let sites = admin.get("/sites?search=Written").await.expect_status(200);
    assert_eq!(sites.body["total"], 1, "{}", sites.text);
}
