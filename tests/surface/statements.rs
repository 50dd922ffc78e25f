//! A list asks the database as often for a thousand rows as for ten.

use chrono::TimeDelta;
use heddle_core::adapter::{Completeness, DeviceStatus, SeenDevice};
use heddle_core::change::{Danger, Operation as ChangeOperation};
use heddle_core::condition::Conditions;
use heddle_core::event::NewEvent;
use heddle_core::notification::{Audience, ChannelKind, Severity};
use heddle_core::oauth2::ClientType;
use heddle_core::operation::{ConnectionKind, ConnectionState, RunKind, RunState};
use heddle_core::tls::TlsPolicy;
use heddle_core::{
    ConnectionId, ControllerId, CredentialId, LogLevel, OrgId, ProviderKind, Role, SiteId, SiteLevel,
    SubscriptionId, UserId,
};
use heddle_kernel::app::App;
use heddle_store::api_keys::NewApiKey;
use heddle_store::audit::NewAudit;
use heddle_store::changes::{self, NewChange, Planned};
use heddle_store::channels::NewChannel;
use heddle_store::connections::ConnectionRow;
use heddle_store::controllers::NewController;
use heddle_store::credentials::{NewCredential, SealedSecret};
use heddle_store::devices::Seen;
use heddle_store::grants::NewGrant;
use heddle_store::logs::LogLine;
use heddle_store::notices::NewNotice;
use heddle_store::oauth2::{NewApp, NewGrant as NewAppGrant};
use heddle_store::organizations::NewOrganization;
use heddle_store::roles::NewRole;
use heddle_store::runs::RunRow;
use heddle_store::sessions::NewSession;
use heddle_store::sites::NewSite;
use heddle_store::sso::{NewIdentity, NewProvider};
use heddle_store::webhooks::deliveries::NewDelivery;
use heddle_store::webhooks::templates::NewTemplate;
use heddle_store::webhooks::{self, NewSubscription};
use heddle_store::{
    Db, PoolSettings, Tx, api_keys, audit, channels, connections, controllers, credentials, devices, events,
    grants, logs, notices, oauth2, organizations, roles, runs, sessions, sites, sso, users,
};
use serde_json::json;

use crate::support::trace::{counted_request, statements};
use crate::support::{Api, Contract, Operation, Server, event_type, on_both};

const FEW: usize = 10;
const MANY: usize = 1000;
/// Most rows of a list without pages.
const UNPAGED: usize = 200;

/// A controller has one site.
const SHORT: &[&str] = &["/controllers/{controller_id}/sites"];

/// What rows hang on.
struct Roots {
    org: OrgId,
    user: UserId,
    site: SiteId,
    credential: CredentialId,
    controller: ControllerId,
    /// A Connection, a rule and a schedule, of which there are runs.
    started: [ConnectionId; 3],
    subscription: SubscriptionId,
}

/// The lists: operations that answer a page of items.
fn lists(contract: &Contract) -> Vec<&Operation> {
    let is_list = |operation: &&Operation| {
        let schema = &operation.definition["responses"]["200"]["content"]["application/json"]["schema"];
        let fields = &contract.resolve(schema)["properties"];
        operation.method == "GET" && fields["items"].is_object() && fields["pages"].is_object()
    };
    contract.operations().iter().filter(is_list).collect()
}

/// The most rows that a page of this list can have.
fn per_page_max(operation: &Operation) -> Option<u64> {
    let parameters = operation.definition["parameters"].as_array()?;
    let parameter = parameters.iter().find(|parameter| parameter["name"] == "per_page")?;
    Some(parameter["schema"]["maximum"].as_u64().expect("per_page says its maximum"))
}

/// The statements of one reading of a list that has at least so many rows.
async fn read(app: &App, api: &Api, roots: &Roots, operation: &Operation, rows: usize) -> Vec<String> {
    let path = match per_page_max(operation) {
        Some(max) => format!("{}?per_page={max}", operation.path),
        None => operation.path.clone(),
    };
    let path = path
        .replace("{organization_id}", &roots.org.to_string())
        .replace("{user_id}", &roots.user.to_string())
        .replace("{controller_id}", &roots.controller.to_string())
        .replace("{connection_id}", &roots.started[0].to_string())
        .replace("{rule_id}", &roots.started[1].to_string())
        .replace("{schedule_id}", &roots.started[2].to_string())
        .replace("{subscription_id}", &roots.subscription.to_string());
    assert!(!path.contains('{'), "teach tests/surface/statements.rs to fill {path}");
    // The caller is loaded anew each time, however long the test takes in between.
    app.callers.forget();
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
        "{path} has {total} rows: teach tests/surface/statements.rs to make {rows} of them"
    );
    // What SQLite's own thread logs can come after the answer.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    statements(&request)
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
            few.push(read(app, &api, &roots, operation, FEW).await);
        }
        add(app, &roots, FEW..MANY).await;
        for (operation, few) in lists.iter().zip(few) {
            let many = read(app, &api, &roots, operation, MANY).await;
            assert!(many.len() > 1, "{}: its statements are seen: {many:?}", operation.path);
            assert_eq!(few.len(), many.len(), "{}: {few:#?} and {many:#?}", operation.path);
        }
    }
}

async fn roots(app: &App, api: &Api) -> Roots {
    let me = api.get("/auth/me").await.expect_status(200).body;
    let mut tx = app.db.write().await.unwrap();
    let mut roots = Roots {
        org: me["organization_id"].as_str().unwrap().parse().unwrap(),
        user: me["id"].as_str().unwrap().parse().unwrap(),
        site: app.clock.new_id(),
        credential: app.clock.new_id(),
        controller: app.clock.new_id(),
        started: std::array::from_fn(|_| app.clock.new_id()),
        subscription: app.clock.new_id(),
    };
    roots.site = add_site(&mut tx, app, &roots, "root").await;
    roots.credential = add_credential(&mut tx, app, &roots, "root").await;
    roots.controller = add_controller(&mut tx, app, &roots, "root").await;
    for (kind, id) in ConnectionKind::ALL.iter().zip(roots.started) {
        add_connection(&mut tx, app, &roots, *kind, id).await;
    }
    roots.subscription = add_webhook(&mut tx, app, &roots, "root").await;
    tx.commit().await.unwrap();
    roots
}

/// So many rows for every list.
async fn add(app: &App, roots: &Roots, numbers: std::ops::Range<usize>) {
    let mut tx = app.db.write().await.unwrap();
    for number in numbers.clone() {
        let name = format!("row-{number:04}");
        add_site(&mut tx, app, roots, &name).await;
        add_credential(&mut tx, app, roots, &name).await;
        add_controller(&mut tx, app, roots, &name).await;
        add_organization(&mut tx, app, &name).await;
        add_user(&mut tx, app, roots, &name).await;
        add_role(&mut tx, app, roots, &name).await;
        add_provider(&mut tx, app, roots, &name).await;
        add_notification(&mut tx, app, roots, &name).await;
        add_api_key(&mut tx, app, roots, &name).await;
        add_event(&mut tx, app, roots).await;
        add_webhook(&mut tx, app, roots, &name).await;
        add_oauth2(&mut tx, app, roots, &name).await;
        add_session(&mut tx, app, roots, &name).await;
        add_audit(&mut tx, app, roots, &name).await;
        add_runs(&mut tx, app, roots).await;
        add_change(&mut tx, app, roots).await;
    }
    add_devices(&mut tx, app, roots, numbers.clone()).await;
    tx.commit().await.unwrap();
    add_log_lines(app, roots.org, numbers).await;
}

async fn add_connection(tx: &mut Tx, app: &App, roots: &Roots, kind: ConnectionKind, id: ConnectionId) {
    let now = app.clock.now();
    let row = ConnectionRow {
        id,
        org_id: roots.org,
        kind,
        name: "row".to_owned(),
        description: None,
        source_event: "device.offline".to_owned(),
        conditions: Conditions::default(),
        steps: Vec::new(),
        secret: app.keys.seal(&format!("connection:{id}"), b"[]"),
        cooldown_secs: 0,
        cooldown_key: None,
        state: ConnectionState::Paused,
        state_reason: None,
        author_id: roots.user,
        revision: 1,
        after_seq: 0,
        last_fired_at: None,
        cron: None,
        time_zone: None,
        missed: None,
        next_due_at: None,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    connections::insert(tx, &row).await.unwrap();
}

/// One of everything that starts steps, a run of each that there is from the start, and an action.
async fn add_runs(tx: &mut Tx, app: &App, roots: &Roots) {
    for kind in ConnectionKind::ALL {
        add_connection(tx, app, roots, *kind, app.clock.new_id()).await;
    }
    let now = app.clock.now();
    let run = |kind: RunKind, connection_id: Option<ConnectionId>| RunRow {
        id: app.clock.new_id(),
        org_id: roots.org,
        kind,
        connection_id,
        event_id: None,
        event_type: None,
        event_seq: 0,
        due_at: None,
        author_id: roots.user,
        chain: Vec::new(),
        payload: json!({}),
        state: RunState::Success,
        reason: None,
        owner: None,
        steps: Vec::new(),
        secret: None,
        run_key: None,
        cooldown_key: None,
        rerun_of: None,
        resume_at: None,
        wait: None,
        created_at: now,
        started_at: None,
        ended_at: Some(now),
    };
    let mut rows: Vec<RunRow> = roots.started.iter().map(|id| run(RunKind::Test, Some(*id))).collect();
    rows.push(run(RunKind::Action, None));
    runs::insert_all(tx, &rows).await.unwrap();
}

/// A change whose controller gave no answer.
async fn add_change(tx: &mut Tx, app: &App, roots: &Roots) {
    let now = app.clock.now();
    let new = NewChange {
        id: app.clock.new_id(),
        org_id: roots.org,
        site_id: roots.site,
        controller_id: roots.controller,
        vendor: "openwrt".to_owned(),
        area: "firewall".to_owned(),
        feature: "openwrt.firewall.rule".to_owned(),
        operation: ChangeOperation::Create,
        payload: json!({ "name": "allow" }),
        also: Vec::new(),
        notes: None,
        staged_by: roots.user,
        expires_at: now + TimeDelta::hours(1),
        reverts: None,
        planned: Planned {
            plan: None,
            error: Some(json!({ "type": "adapter_connection_error", "message": "no answer" })),
            token: None,
            inverse: None,
            secret: None,
            danger: Danger::Normal,
        },
        run: None,
        is_set: false,
        now,
    };
    changes::insert(tx, &new).await.unwrap();
}

async fn add_log_lines(app: &App, org: OrgId, numbers: std::ops::Range<usize>) {
    let line = |number: usize| LogLine {
        id: app.clock.new_id(),
        at: app.clock.now(),
        level: LogLevel::Info,
        target: "row".to_owned(),
        message: format!("row-{number}"),
        fields: json!({}),
        request_id: None,
        span: None,
        org_id: Some(org),
    };
    let lines: Vec<LogLine> = numbers.map(line).collect();
    let pool = PoolSettings { connections_max: 1, acquire_timeout: std::time::Duration::from_secs(10) };
    let db = Db::open_logs(&app.config.log_database(), &pool).await.unwrap();
    let mut tx = db.write().await.unwrap();
    logs::insert(&mut tx, &lines).await.unwrap();
    tx.commit().await.unwrap();
    db.close().await;
}

async fn add_site(tx: &mut Tx, app: &App, roots: &Roots, name: &str) -> SiteId {
    let new = NewSite {
        id: app.clock.new_id(),
        org_id: roots.org,
        name: name.to_owned(),
        slug: name.to_owned(),
        settings: json!({}),
        now: app.clock.now(),
    };
    sites::insert(tx, &new).await.unwrap().id
}

async fn add_credential(tx: &mut Tx, app: &App, roots: &Roots, name: &str) -> CredentialId {
    let sealed = SealedSecret {
        username: None,
        has_password: true,
        has_api_key: false,
        key_id: "none".to_owned(),
        secret: vec![0],
    };
    let (id, name) = (app.clock.new_id(), name.to_owned());
    let new = NewCredential {
        id,
        org_id: roots.org,
        name,
        host: None,
        port: None,
        tls: None,
        sealed,
        now: app.clock.now(),
    };
    credentials::insert(tx, &new).await.unwrap().id
}

async fn add_controller(tx: &mut Tx, app: &App, roots: &Roots, name: &str) -> ControllerId {
    let new = NewController {
        id: app.clock.new_id(),
        org_id: roots.org,
        site_id: roots.site,
        credential_id: roots.credential,
        name: name.to_owned(),
        vendor: "openwrt".to_owned(),
        url: "http://127.0.0.1:9".to_owned(),
        tls: TlsPolicy::default(),
        settings: json!({}),
        sync_interval_secs: 60,
        // Never read: this test is about rows.
        next_sync_at: None,
        now: app.clock.now(),
    };
    controllers::insert(tx, &new).await.unwrap().id
}

/// A template, a subscription, and a delivery to that of the roots.
async fn add_webhook(tx: &mut Tx, app: &App, roots: &Roots, name: &str) -> SubscriptionId {
    let template = NewTemplate {
        id: app.clock.new_id(),
        org_id: roots.org,
        name: name.to_owned(),
        payload: json!({}),
        now: app.clock.now(),
    };
    webhooks::templates::insert(tx, &template).await.unwrap();
    let new = NewSubscription {
        id: app.clock.new_id(),
        org_id: roots.org,
        name: name.to_owned(),
        url: "https://hook.example/".to_owned(),
        events: vec!["device.*".to_owned()],
        site_id: None,
        template_id: None,
        header_names: Vec::new(),
        secret: vec![0],
        // Nothing is sent: this test is about rows.
        is_enabled: false,
        after_seq: 0,
        author_id: roots.user,
        now: app.clock.now(),
    };
    let made = webhooks::insert(tx, &new).await.unwrap().id;
    let delivery = NewDelivery {
        id: app.clock.new_id(),
        org_id: roots.org,
        subscription_id: if name == "root" { made } else { roots.subscription },
        event_id: app.clock.new_id(),
        event_type: "device.offline".to_owned(),
        seq: 1,
        site_id: None,
        device_id: None,
        event: json!({}),
        now: app.clock.now(),
    };
    webhooks::deliveries::insert(tx, &[delivery]).await.unwrap();
    made
}

async fn add_organization(tx: &mut Tx, app: &App, name: &str) {
    let new = NewOrganization {
        id: app.clock.new_id(),
        name: name.to_owned(),
        slug: name.to_owned(),
        settings: json!({}),
        now: app.clock.now(),
    };
    organizations::insert(tx, &new).await.unwrap();
}

async fn add_user(tx: &mut Tx, app: &App, roots: &Roots, name: &str) {
    let new = users::NewUser {
        id: app.clock.new_id(),
        org_id: roots.org,
        username: name.to_owned(),
        email: format!("{name}@acme.test"),
        full_name: None,
        password_hash: String::new(),
        role: Role::Viewer,
        now: app.clock.now(),
    };
    let user = users::insert(tx, &new).await.unwrap();
    let grant = NewGrant {
        user_id: user.id,
        site_id: roots.site,
        level: SiteLevel::Read,
        granted_by: roots.user,
        now: app.clock.now(),
    };
    grants::insert(tx, &grant).await.unwrap();
}

async fn add_role(tx: &mut Tx, app: &App, roots: &Roots, name: &str) {
    let new = NewRole {
        id: app.clock.new_id(),
        org_id: roots.org,
        name: name.to_owned(),
        description: None,
        permissions: vec!["device:read".to_owned()],
        created_by: roots.user,
        now: app.clock.now(),
    };
    roles::insert(tx, &new).await.unwrap();
}

async fn add_provider(tx: &mut Tx, app: &App, roots: &Roots, name: &str) {
    let new = NewProvider {
        id: app.clock.new_id(),
        org_id: roots.org,
        kind: ProviderKind::Saml,
        label: name.to_owned(),
        is_enabled: false,
        allow_registration: false,
        allow_linking: false,
        default_role: Role::Viewer,
        role_mapping: json!({}),
        settings: json!({ "entry_point": "https://id.example", "entity_id": "heddle" }),
        secret: None,
        now: app.clock.now(),
    };
    sso::insert(tx, &new).await.unwrap();
    let identity = NewIdentity {
        id: app.clock.new_id(),
        provider_id: new.id,
        issuer: "https://id.example".to_owned(),
        subject: name.to_owned(),
        user_id: roots.user,
        created_user: false,
        now: new.now,
    };
    sso::insert_identity(tx, &identity).await.unwrap();
}

/// A channel, and a notice for all users.
async fn add_notification(tx: &mut Tx, app: &App, roots: &Roots, name: &str) {
    let channel = NewChannel {
        id: app.clock.new_id(),
        org_id: roots.org,
        kind: ChannelKind::Slack,
        label: name.to_owned(),
        is_enabled: false,
        settings: json!({}),
        secret: None,
        now: app.clock.now(),
    };
    channels::insert(tx, &channel).await.unwrap();
    let notice = NewNotice {
        id: app.clock.new_id(),
        org_id: roots.org,
        audience: Audience::Organization,
        user_id: None,
        severity: Severity::Info,
        subject: name.to_owned(),
        body: String::new(),
        source: "test".to_owned(),
        origin: None,
        now: app.clock.now(),
    };
    notices::insert(tx, &notice).await.unwrap();
}

async fn add_api_key(tx: &mut Tx, app: &App, roots: &Roots, name: &str) {
    let new = NewApiKey {
        id: app.clock.new_id(),
        user_id: roots.user,
        prefix: name.to_owned(),
        secret_hash: name.to_owned(),
        name: name.to_owned(),
        description: None,
        scopes: Vec::new(),
        expires_at: None,
        now: app.clock.now(),
    };
    api_keys::insert(tx, &new).await.unwrap();
}

/// An app, and what the user allowed it.
async fn add_oauth2(tx: &mut Tx, app: &App, roots: &Roots, name: &str) {
    let now = app.clock.now();
    let new = NewApp {
        id: app.clock.new_id(),
        org_id: roots.org,
        owner_id: roots.user,
        name: name.to_owned(),
        description: None,
        client_type: ClientType::Public,
        secret_hash: None,
        redirect_uris: vec!["https://app.example/cb".to_owned()],
        scopes: vec!["device:read".to_owned()],
        now,
    };
    let registered = oauth2::insert(tx, &new).await.unwrap();
    let grant = NewAppGrant {
        id: app.clock.new_id(),
        app_id: registered.id,
        user_id: roots.user,
        scopes: registered.scopes,
        token_version: 0,
        code_hash: name.to_owned(),
        code_challenge: "challenge".to_owned(),
        redirect_uri: "https://app.example/cb".to_owned(),
        code_expires_at: now + chrono::TimeDelta::days(1),
        now,
    };
    oauth2::insert_grant(tx, &grant).await.unwrap();
    assert!(oauth2::spend_code(tx, grant.id, now + chrono::TimeDelta::days(1), now).await.unwrap());
}

async fn add_event(tx: &mut Tx, app: &App, roots: &Roots) {
    let new = NewEvent {
        event_type: event_type("user.updated"),
        org_id: roots.org,
        site_id: None,
        controller_id: None,
        device_id: None,
        causation_id: None,
        run_id: None,
        payload: json!({
            "user_id": roots.user, "username": "ada", "role": "super_admin", "actor_id": roots.user, "changed": ["email"],
        }),
    };
    events::append(tx, &new, &app.clock).await.unwrap();
}

async fn add_session(tx: &mut Tx, app: &App, roots: &Roots, name: &str) {
    let now = app.clock.now();
    let new = NewSession {
        id: app.clock.new_id(),
        user_id: roots.user,
        refresh_hash: name.to_owned(),
        token_version: 0,
        ip: String::new(),
        user_agent: String::new(),
        expires_at: now + chrono::TimeDelta::days(1),
        now,
    };
    sessions::insert(tx, &new).await.unwrap();
}

async fn add_audit(tx: &mut Tx, app: &App, roots: &Roots, name: &str) {
    let new = NewAudit {
        org_id: roots.org,
        actor_id: None,
        actor_name: name.to_owned(),
        action: "row.added".to_owned(),
        target_type: "row".to_owned(),
        target_id: None,
        detail: json!({}),
        request_id: None,
        ip: None,
    };
    audit::append(tx, &new, &app.clock, &app.audit_key).await.unwrap();
}

async fn add_devices(tx: &mut Tx, app: &App, roots: &Roots, numbers: std::ops::Range<usize>) {
    let device = |number: usize| SeenDevice {
        identity: format!("row-{number}"),
        name: format!("row-{number}"),
        kind: "client".to_owned(),
        status: DeviceStatus::Online,
        model: None,
        serial: None,
        firmware: None,
        mac: None,
        addresses: Vec::new(),
        site: None,
        attributes: json!({}),
        measurements: json!({}),
    };
    let rows: Vec<SeenDevice> = numbers.map(device).collect();
    let seen = Seen {
        org_id: roots.org,
        site_id: roots.site,
        controller_id: roots.controller,
        devices: &rows,
        complete: Completeness::Partial,
    };
    devices::upsert_seen(tx, &seen, &app.clock).await.unwrap();
}
