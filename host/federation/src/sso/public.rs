//! The public data of a login page before a sign-in: the buttons of an organization's providers.

use axum::Json as Answer;
use axum::extract::State;
use heddle_core::ProviderKind;
use heddle_kernel::app::SharedApp;
use heddle_kernel::http::access::Access;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Params;
use heddle_kernel::http::routes::{Routes, doc};
use heddle_store::sso;
use heddle_store::sso::IdentityProviderId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PublicQuery {
    organization_slug: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ProviderButton")]
struct Button {
    id: IdentityProviderId,
    kind: ProviderKind,
    label: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ProviderButtons")]
struct Buttons {
    items: Vec<Button>,
}

pub(super) fn routes() -> Routes {
    Routes::default().get(
        "/auth/sso/providers/public",
        Access::Public,
        list,
        doc("Buttons of an organization's login page; none for an organization that does not exist")
            .named("list_login_providers")
            .query::<PublicQuery>()
            .answers::<Buttons>(200),
    )
}

async fn list(
    State(app): State<SharedApp>,
    Params(query): Params<PublicQuery>,
) -> Result<Answer<Buttons>, Error> {
    let mut tx = app.db.read().await?;
    let found = sso::list_public(&mut tx, query.organization_slug.trim()).await?;
    let button =
        |provider: sso::Provider| Button { id: provider.id, kind: provider.kind, label: provider.label };
    Ok(Answer(Buttons { items: found.into_iter().map(button).collect() }))
}
