//! Runs each test on both databases, each time on a new one.

use std::path::Path;
use std::time::Duration;

use heddle_core::adapter::{DeviceStatus, SeenDevice};
use heddle_core::change::{Attempt, Danger, Operation, OutcomeState};
use heddle_core::page::{PageRequest, Place, WalkRequest};
use heddle_core::tls::TlsPolicy;
use heddle_core::{ChangeId, Clock, ControllerId, CredentialId, OrgId, ProcessId, Role, SiteId, UserId};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::changes::{NewChange, Planned};
use crate::controllers::NewController;
use crate::credentials::{NewCredential, SealedSecret};
use crate::db::{Db, PoolSettings, Tx};
use crate::organizations::NewOrganization;
use crate::select::Scope;
use crate::sites::NewSite;
use crate::users::NewUser;

/// The file of a database.
const FILE: &str = "test.db";
pub(crate) const POOL: PoolSettings =
    PoolSettings { connections_max: 4, acquire_timeout: Duration::from_secs(10) };

/// Declares tests that run on `SQLite`, and on `PostgreSQL` when `TEST_POSTGRES_URL` is set.
macro_rules! on_both {
    ($(async fn $name:ident($db:ident) $body:block)+) => {$(
        async fn $name($db: $crate::db::Db) $body

        mod $name {
            #[tokio::test]
            async fn sqlite() {
                let folder = tempfile::tempdir().unwrap();
                let db = $crate::testing::sqlite(folder.path()).await;
                super::$name(db.clone()).await;
                db.close().await;
            }

            #[tokio::test]
            async fn postgres() {
                if let Some((db, name)) = $crate::testing::postgres().await {
                    super::$name(db.clone()).await;
                    db.close().await;
                    $crate::testing::drop_postgres(&name).await;
                }
            }
        }
    )+};
}
pub(crate) use on_both;

/// A new file with all tables. It is a copy: hundreds of tests would wait for the same migrations.
pub(crate) async fn sqlite(folder: &Path) -> Db {
    static MIGRATED: OnceCell<Vec<u8>> = OnceCell::const_new();
    let migrated = MIGRATED.get_or_init(|| async {
        let folder = tempfile::tempdir().unwrap();
        open_file(folder.path()).await.close().await;
        std::fs::read(folder.path().join(FILE)).unwrap()
    });
    std::fs::write(folder.join(FILE), migrated.await).unwrap();
    open_file(folder).await
}

async fn open_file(folder: &Path) -> Db {
    Db::open(&format!("sqlite://{}?mode=rwc", folder.join(FILE).display()), &POOL).await.unwrap()
}

/// A file with the tables of the log lines.
pub(crate) async fn sqlite_logs(folder: &Path) -> Db {
    Db::open_logs(&format!("sqlite://{}?mode=rwc", folder.join("logs.db").display()), &POOL).await.unwrap()
}

/// A new database with all tables, copied like the file of [`sqlite`]; its template stays on the tests' server.
pub(crate) async fn postgres() -> Option<(Db, String)> {
    static MIGRATED: OnceCell<String> = OnceCell::const_new();
    postgres_url()?;
    let template = MIGRATED.get_or_init(|| async {
        let name = created("template1").await;
        Db::open(&postgres_address(&name), &POOL).await.unwrap().close().await;
        name
    });
    let name = created(template.await).await;
    Some((Db::open(&postgres_address(&name), &POOL).await.unwrap(), name))
}

/// Makes a database like another one on the tests' server, and gives its name.
async fn created(template: &str) -> String {
    let name = format!("store_{}", Clock::default().new_id::<Uuid>().simple());
    run_on_server(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
    name
}

/// Address of a database on the tests' server.
pub(crate) fn postgres_address(name: &str) -> String {
    let server = postgres_url().unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

pub(crate) async fn drop_postgres(name: &str) {
    run_on_server(&format!("DROP DATABASE {name} WITH (FORCE)")).await;
}

fn postgres_url() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the tests' own setting")]
    std::env::var("TEST_POSTGRES_URL").ok()
}

async fn run_on_server(sql: &str) {
    let mut server = sqlx::PgConnection::connect(&postgres_url().unwrap()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut server).await.unwrap();
}

/// Runs one statement, to put a table into a state that the functions do not make.
pub(crate) async fn tamper(db: &Db, sql: &'static str) {
    let mut tx = db.write().await.unwrap();
    on!(&mut tx, conn => sqlx::raw_sql(sql).execute(conn).await.map(|_| ())).unwrap();
    tx.commit().await.unwrap();
}

pub(crate) fn page() -> PageRequest {
    PageRequest { page: 1, per_page: 50 }
}

/// Asks for the first rows of a list that grows without end.
pub(crate) fn first(per_page: u32) -> WalkRequest {
    WalkRequest { per_page, place: Place::Page(1), is_ascending: false }
}

/// One organization with a user, a site, a credential and a controller.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) org: OrgId,
    pub(crate) user: UserId,
    pub(crate) site: SiteId,
    pub(crate) credential: CredentialId,
    pub(crate) controller: ControllerId,
    pub(crate) process: ProcessId,
}

impl World {
    pub(crate) async fn new(db: &Db, slug: &str) -> Self {
        let clock = Clock::default();
        let world = World {
            org: clock.new_id(),
            user: clock.new_id(),
            site: clock.new_id(),
            credential: clock.new_id(),
            controller: clock.new_id(),
            process: clock.new_id(),
            clock,
        };
        let mut tx = db.write().await.unwrap();
        let now = world.clock.now();
        let org = NewOrganization {
            id: world.org,
            name: slug.to_owned(),
            slug: slug.to_owned(),
            settings: json!({}),
            now,
        };
        crate::organizations::insert(&mut tx, &org).await.unwrap();
        crate::users::insert(&mut tx, &world.new_user(world.user, slug)).await.unwrap();
        crate::sites::insert(&mut tx, &world.new_site(world.site, "hq")).await.unwrap();
        crate::credentials::insert(&mut tx, &world.new_credential(world.credential, "login")).await.unwrap();
        crate::controllers::insert(&mut tx, &world.new_controller(world.controller, "edge")).await.unwrap();
        tx.commit().await.unwrap();
        world
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope::organization(self.org)
    }

    pub(crate) fn new_user(&self, id: UserId, name: &str) -> NewUser {
        NewUser {
            id,
            org_id: self.org,
            username: name.to_owned(),
            email: format!("{name}@example.com"),
            full_name: Some("A Person".to_owned()),
            password_hash: "$hash".to_owned(),
            role: Role::OrgAdmin,
            now: self.clock.now(),
        }
    }

    pub(crate) fn new_site(&self, id: SiteId, slug: &str) -> NewSite {
        let now = self.clock.now();
        NewSite {
            id,
            org_id: self.org,
            name: slug.to_owned(),
            slug: slug.to_owned(),
            settings: json!({}),
            now,
        }
    }

    pub(crate) fn new_credential(&self, id: CredentialId, name: &str) -> NewCredential {
        NewCredential {
            id,
            org_id: self.org,
            name: name.to_owned(),
            host: None,
            port: None,
            tls: None,
            sealed: SealedSecret {
                username: Some("root".to_owned()),
                has_password: true,
                has_api_key: false,
                field_names: Vec::new(),
                key_id: "k1".to_owned(),
                secret: vec![0, 1, 255],
            },
            now: self.clock.now(),
        }
    }

    pub(crate) fn new_controller(&self, id: ControllerId, name: &str) -> NewController {
        NewController {
            id,
            org_id: self.org,
            site_id: self.site,
            credential_id: self.credential,
            name: name.to_owned(),
            vendor: "acme".to_owned(),
            url: "https://192.0.2.1".to_owned(),
            tls: TlsPolicy::default(),
            settings: json!({"b": 1, "a": 2}),
            sync_interval_secs: 60,
            next_sync_at: None,
            push_enabled: true,
            now: self.clock.now(),
        }
    }

    pub(crate) fn new_change(&self, id: ChangeId) -> NewChange {
        let now = self.clock.now();
        NewChange {
            id,
            org_id: self.org,
            site_id: self.site,
            site_ref: None,
            controller_id: self.controller,
            vendor: "acme".to_owned(),
            area: "firewall".to_owned(),
            feature: "acme.firewall.rule".to_owned(),
            operation: Operation::Create,
            payload: json!({"name": "allow"}),
            notes: None,
            staged_by: self.user,
            expires_at: now + chrono::TimeDelta::hours(1),
            also: Vec::new(),
            reverts: None,
            planned: self.planned(),
            run: None,
            is_set: false,
            now,
        }
    }

    #[expect(clippy::unused_self, reason = "reads as the others of a world")]
    pub(crate) fn planned(&self) -> Planned {
        Planned {
            expressed_as: None,
            plan: None,
            error: Some(json!({"message": "no answer"})),
            token: Some(vec![1, 2]),
            inverse: Some(Vec::new()),
            secret: Some(vec![9]),
            danger: Danger::Normal,
        }
    }

    pub(crate) fn attempt(&self) -> Attempt {
        Attempt {
            number: 0,
            plan_hash: "h".to_owned(),
            started_at: self.clock.now(),
            started_by: self.user,
            via: None,
            ended_at: None,
            state: OutcomeState::Applying,
            message: None,
            cancellations: Vec::new(),
        }
    }

    /// A staged change, committed.
    pub(crate) async fn staged(&self, db: &Db) -> ChangeId {
        let id = self.clock.new_id();
        let mut tx = db.write().await.unwrap();
        crate::changes::insert(&mut tx, &self.new_change(id)).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    pub(crate) async fn see(&self, tx: &mut Tx, devices: &[SeenDevice]) -> Vec<crate::devices::Sighting> {
        let seen = crate::devices::Seen {
            org_id: self.org,
            site_id: self.site,
            controller_id: self.controller,
            devices,
            sites: &std::collections::HashMap::new(),
            unread: &std::collections::HashSet::new(),
            complete: heddle_core::adapter::Completeness::Complete,
        };
        crate::devices::upsert_seen(tx, &seen, &self.clock).await.unwrap()
    }
}

pub(crate) fn seen(identity: &str) -> SeenDevice {
    SeenDevice {
        identity: identity.to_owned(),
        name: format!("ap {identity}"),
        kind: "access_point".to_owned(),
        status: DeviceStatus::Online,
        model: None,
        serial: None,
        firmware: Some("1".to_owned()),
        mac: None,
        addresses: vec!["192.0.2.7".to_owned()],
        site: None,
        attributes: json!({"zoom": 1e5, "a": 1.0}),
        measurements: json!({"uptime_secs": 1}),
    }
}
