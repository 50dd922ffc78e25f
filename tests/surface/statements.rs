//! A list asks the database as often for a thousand rows as for ten.

use heddle_kernel::app::App;

use super::walk::filled;
use crate::fixtures::{FIXTURES, Roots, text};
use crate::support::trace::{counted_request, statements};
use crate::support::{Api, Contract, Operation, Server, on_both};

const FEW: usize = 10;
const MANY: usize = 1000;
/// Most rows of a list without pages.
const UNPAGED: usize = 200;

/// A controller has one site; an organization rates a plugin once.
const SHORT: &[&str] = &["/controllers/{controller_id}/sites", "/marketplace/plugins/{plugin}/ratings"];
/// What a marketplace offers is in memory.
const IN_MEMORY: &str = "/marketplace/plugins";

/// The lists: operations that answer a page of items.
fn lists(contract: &Contract) -> Vec<&Operation> {
    let is_list = |operation: &&Operation| {
        let schema = &operation.definition["responses"]["200"]["content"]["application/json"]["schema"];
        let fields = &contract.resolve(schema)["properties"];
        let is_list = operation.method == "GET" && fields["items"].is_object() && fields["pages"].is_object();
        is_list && operation.path != IN_MEMORY
    };
    contract.operations().iter().filter(is_list).collect()
}

/// Beginning of the statement that loads the caller.
const CALLER: &str = "SELECT u.id AS user_id";

/// The most rows that a page of this list can have.
fn per_page_max(operation: &Operation) -> Option<u64> {
    let parameters = operation.definition["parameters"].as_array()?;
    let parameter = parameters.iter().find(|parameter| parameter["name"] == "per_page")?;
    Some(parameter["schema"]["maximum"].as_u64().expect("per_page says its maximum"))
}

/// The statements of one reading of a list that has at least so many rows.
async fn read(api: &Api, roots: &Roots, operation: &Operation, rows: usize) -> Vec<String> {
    let path = filled(operation, &|name| {
        let known = roots.ids.get(name);
        let taught = "teach the fixture of its feature (tests/fixtures) to keep it among the roots";
        known.unwrap_or_else(|| panic!("{name} of {}: {taught}", operation.path)).clone()
    });
    let path = match per_page_max(operation) {
        Some(max) => format!("{path}{}per_page={max}", if path.contains('?') { '&' } else { '?' }),
        None => path,
    };
    let request = counted_request();
    let answer = api.with_request_id(&request).get(&path).await.expect_status(200);
    let total = answer.body["total"].as_u64().expect("a page has a total");
    // A list that answers all its rows at once keeps fewer of them.
    let is_short = SHORT.contains(&operation.path.as_str());
    let kept = if is_short {
        0
    } else if per_page_max(operation).is_some() {
        rows
    } else {
        rows.min(UNPAGED)
    };
    assert!(
        total >= kept as u64,
        "{path} has {total} rows: teach the fixture of its feature (tests/fixtures) to make {rows} of them"
    );
    // What SQLite's own thread logs can come after the answer.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let mut seen = statements(&request);
    // The caller is loaded once, twice or not at all: that goes by the time, and not by the rows.
    seen.retain(|statement| !statement.starts_with(CALLER));
    seen
}

on_both! {
    async fn a_list_of_a_thousand_rows_asks_no_more_than_one_of_ten(database: Database) {
        let server = Server::start_with(database, crate::surface::unlimited()).await;
        let api = server.set_up().await;
        let contract = server.contract();
        let lists = lists(&contract);
        assert!(lists.len() >= 7, "the document has lists: {}", lists.len());
        let app = &server.running().app;
        let roots = roots(app, &api).await;
        add(app, &roots, 0..FEW).await;
        let mut few = Vec::new();
        for operation in &lists {
            few.push(read(&api, &roots, operation, FEW).await);
        }
        add(app, &roots, FEW..MANY).await;
        for (operation, few) in lists.iter().zip(few) {
            let many = read(&api, &roots, operation, MANY).await;
            assert!(!many.is_empty(), "{}: its statements are seen: {many:?}", operation.path);
            assert_eq!(few.len(), many.len(), "{}: {few:#?} and {many:#?}", operation.path);
        }
    }
}

async fn roots(app: &App, api: &Api) -> Roots {
    let me = api.get("/auth/me").await.expect_status(200).body;
    let mut tx = app.db.write().await.unwrap();
    let ids = [("organization_id", text(&me["organization_id"])), ("user_id", text(&me["id"]))];
    let mut roots = Roots {
        org: ids[0].1.parse().unwrap(),
        user: ids[1].1.parse().unwrap(),
        site: app.clock.new_id(),
        credential: app.clock.new_id(),
        controller: app.clock.new_id(),
        ids: ids.into(),
    };
    for fixture in FIXTURES {
        fixture.root(&mut tx, app, &mut roots).await;
    }
    tx.commit().await.unwrap();
    roots
}

/// So many rows for every list.
async fn add(app: &App, roots: &Roots, numbers: std::ops::Range<usize>) {
    let mut tx = app.db.write().await.unwrap();
    for number in numbers.clone() {
        for fixture in FIXTURES {
            fixture.row(&mut tx, app, roots, &format!("row-{number:04}")).await;
        }
    }
    tx.commit().await.unwrap();
    for fixture in FIXTURES {
        fixture.rows(app, roots, numbers.clone()).await;
    }
}
