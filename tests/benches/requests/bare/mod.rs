//! Bare handlers in the same process: the same statements on as many
//! connections of their own, the same types, the same bytes in the answer.
//!
//! They do not ask who is calling, take page and filters as given, read without
//! a transaction, and add no header. Staging is in [`staging`].

pub(super) mod staging;

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use heddle_core::page::PageRequest;
use heddle_core::{DeviceId, OrgId};
use heddle_store::model_objects::ModelObject;
use heddle_store::{Device, Site};
use sqlx::{PgPool, SqlitePool};
use tokio::runtime::Runtime;

use super::POOL_SIZE;

/// What the lists are asked for.
const PAGE: PageRequest = PageRequest { page: 1, per_page: 100 };

const DEVICES: &str =
    "SELECT d.id, d.revision, d.org_id, d.site_id, NULLIF(d.site_ref, '') AS site_ref, d.controller_id, d.identity, d.name, d.display_name, d.kind, d.status,
    d.state, d.tags, d.notes,
    d.model, d.serial, d.firmware, d.mac, d.addresses, d.attributes, d.measurements,
    d.first_seen_at, d.last_seen_at, d.updated_at, d.deleted_at FROM device d
    WHERE d.org_id = $1 AND d.deleted_at IS NULL ORDER BY d.first_seen_at, d.id LIMIT CAST($2 AS BIGINT) OFFSET CAST($3 AS BIGINT)";
const DEVICE_COUNT: &str = "SELECT COUNT(*) FROM device d WHERE d.org_id = $1 AND d.deleted_at IS NULL";
const DEVICE: &str =
    "SELECT d.id, d.revision, d.org_id, d.site_id, NULLIF(d.site_ref, '') AS site_ref, d.controller_id, d.identity, d.name, d.display_name, d.kind, d.status,
    d.state, d.tags, d.notes,
    d.model, d.serial, d.firmware, d.mac, d.addresses, d.attributes, d.measurements,
    d.first_seen_at, d.last_seen_at, d.updated_at, d.deleted_at FROM device d
    WHERE d.org_id = $1 AND d.deleted_at IS NULL AND d.id = $2";
const SITES: &str =
    "SELECT s.id, s.revision, s.org_id, s.name, s.slug, s.settings, s.created_at, s.updated_at, s.deleted_at,
    (SELECT COUNT(*) FROM controller c
        WHERE c.site_id = s.id AND c.deleted_at IS NULL) AS controller_count,
    (SELECT COUNT(*) FROM device d
        WHERE d.org_id = s.org_id AND d.site_id = s.id AND d.deleted_at IS NULL) AS device_count
    FROM site s
    WHERE s.org_id = $1 AND s.deleted_at IS NULL ORDER BY s.created_at, s.id LIMIT CAST($2 AS BIGINT) OFFSET CAST($3 AS BIGINT)";
const SITE_COUNT: &str = "SELECT COUNT(*) FROM site s WHERE s.org_id = $1 AND s.deleted_at IS NULL";

const OBJECTS: &str =
    "SELECT model_object.id, model_object.org_id, model_object.site_id,
    NULLIF(model_object.site_ref, '') AS site_ref, model_object.controller_id, model_object.kind, model_object.key,
    model_object.label, model_object.origin, model_object.device_key, d.id AS device_id, model_object.native,
    model_object.fields, model_object.first_seen_at, model_object.changed_at, model_object.observed_at
    FROM model_object JOIN controller c ON c.id = model_object.controller_id AND c.deleted_at IS NULL
    LEFT JOIN device d ON d.controller_id = model_object.controller_id AND d.identity = model_object.device_key
        AND d.deleted_at IS NULL
    WHERE model_object.org_id = $1 AND model_object.kind = 'vlan'
    ORDER BY model_object.label, model_object.id LIMIT CAST($2 AS BIGINT) OFFSET CAST($3 AS BIGINT)";
const OBJECT_COUNT: &str =
    "SELECT COUNT(*) FROM model_object JOIN controller c ON c.id = model_object.controller_id AND c.deleted_at IS NULL
    WHERE model_object.org_id = $1 AND model_object.kind = 'vlan'";

macro_rules! handlers {
    ($database:ident, $pool:ty) => {
        mod $database {
            use super::*;

            pub(super) fn router(pool: $pool, org: OrgId) -> Router {
                Router::new()
                    .route("/api/v1/devices", get(devices))
                    .route("/api/v1/devices/{device_id}", get(device))
                    .route("/api/v1/sites", get(sites))
                    .route("/api/v1/inventory/vlan", get(objects))
                    .with_state((pool, org))
            }

            async fn devices(State((pool, org)): State<($pool, OrgId)>) -> Response {
                let total: i64 =
                    sqlx::query_scalar(DEVICE_COUNT).bind(org).fetch_one(&pool).await.expect("devices");
                let select = sqlx::query_as(DEVICES).bind(org).bind(PAGE.limit()).bind(0_i64);
                let items: Vec<Device> = select.fetch_all(&pool).await.expect("devices can be read");
                axum::Json(PAGE.of(items, total)).into_response()
            }

            async fn objects(State((pool, org)): State<($pool, OrgId)>) -> Response {
                let total: i64 =
                    sqlx::query_scalar(OBJECT_COUNT).bind(org).fetch_one(&pool).await.expect("objects");
                let select = sqlx::query_as(OBJECTS).bind(org).bind(PAGE.limit()).bind(0_i64);
                let items: Vec<ModelObject> = select.fetch_all(&pool).await.expect("objects can be read");
                axum::Json(PAGE.of(items, total)).into_response()
            }

            async fn device(State((pool, org)): State<($pool, OrgId)>, Path(id): Path<DeviceId>) -> Response {
                let select = sqlx::query_as(DEVICE).bind(org).bind(id);
                let device: Device = select.fetch_one(&pool).await.expect("the device can be read");
                axum::Json(device).into_response()
            }

            async fn sites(State((pool, org)): State<($pool, OrgId)>) -> Response {
                let total: i64 =
                    sqlx::query_scalar(SITE_COUNT).bind(org).fetch_one(&pool).await.expect("sites");
                let select = sqlx::query_as(SITES).bind(org).bind(PAGE.limit()).bind(0_i64);
                let items: Vec<Site> = select.fetch_all(&pool).await.expect("sites can be read");
                axum::Json(PAGE.of(items, total)).into_response()
            }
        }
    };
}
handlers!(sqlite, SqlitePool);
handlers!(postgres, PgPool);

/// Serves what an organization may read, until the process ends.
pub(super) async fn serve(runtime: &Runtime, url: &str, org: OrgId) -> SocketAddr {
    let router = if url.starts_with("sqlite:") {
        let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(POOL_SIZE).connect(url).await;
        sqlite::router(pool.expect("the database opens"), org)
    } else {
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(POOL_SIZE).connect(url).await;
        postgres::router(pool.expect("the database opens"), org)
    };
    listen(runtime, router).await
}

async fn listen(runtime: &Runtime, router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    runtime.spawn(async move { axum::serve(listener, router).await });
    address
}
