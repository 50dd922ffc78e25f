//! Organizations and their settings.

use axum::response::Response;
use heddle_core::organization_settings::{
    CHANGE_TTL_HOURS_MAX, EVENT_RETENTION_DAYS_MAX, OrganizationSettings,
};
use heddle_core::{OrgId, Role, Tier};
use heddle_kernel::app::App;
use heddle_kernel::caller::Caller;
use heddle_kernel::checks::{Checks, NAME_CHARS_MAX};
use heddle_kernel::http::access::Access;
use heddle_kernel::http::conditional::{IfMatch, One};
use heddle_kernel::http::creation::Creation;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::{At, Json};
use heddle_kernel::http::list_query::Listing;
use heddle_kernel::http::nulls::{given, nullable};
use heddle_kernel::http::routes::{Routes, doc};
use heddle_kernel::list_query;
use heddle_kernel::resource::{self, Actions, By, Listed, Resource, Rows, Unique, Verbs, actions};
use heddle_kernel::slug::{self, SLUG_CHARS_MAX, SLUG_PATTERN};
use heddle_store::organizations::{
    self, NewOrganization, Organization, OrganizationFilter, OrganizationUpdate,
};
use heddle_store::{Scope, Tx, changes, sessions, users};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{dashboard, quotas};
use crate::declarations::{ORGANIZATION_READ, ORGANIZATION_WRITE};

/// Index that keeps slugs unique.
pub(crate) const SLUG_INDEX: &str = "organization_slug";

/// The changes of the settings; absent fields stay as they are.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OrganizationSettingsBody")]
struct SettingsBody {
    /// Whether a user that staged a change may not apply it.
    #[serde(default, deserialize_with = "given")]
    require_second_person: Option<bool>,
    /// From 1 to 8760; `null` brings the service's default back.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(range(min = 1, max = CHANGE_TTL_HOURS_MAX), extend("x-nullable" = true))]
    change_ttl_hours: Option<Option<u32>>,
    /// Days that events are kept, from 1 to 3650; `null` brings the default of 90 back.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(range(min = 1, max = EVENT_RETENTION_DAYS_MAX), extend("x-nullable" = true))]
    event_retention_days: Option<Option<u32>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewOrganization")]
struct NewBody {
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: String,
    /// Made of the name when absent.
    #[schemars(length(min = 1, max = SLUG_CHARS_MAX), regex(pattern = SLUG_PATTERN))]
    slug: Option<String>,
    /// Quotas of the organization; `standard` when absent.
    #[serde(default, deserialize_with = "given")]
    tier: Option<Tier>,
    #[serde(default)]
    settings: SettingsBody,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OrganizationUpdate")]
struct UpdateBody {
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = NAME_CHARS_MAX))]
    name: Option<String>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(length(min = 1, max = SLUG_CHARS_MAX), regex(pattern = SLUG_PATTERN))]
    slug: Option<String>,
    /// Changed by `super_admin` alone. Objects beyond a lower tier's quotas stay.
    #[serde(default, deserialize_with = "given")]
    tier: Option<Tier>,
    #[serde(default, deserialize_with = "given")]
    settings: Option<SettingsBody>,
}

list_query! {
    /// Part of the name or the slug.
    pub(crate) struct ListQuery of Organization {
        tier: Option<Tier>,
    }
}

/// Organizations, each of which owns itself.
pub(crate) struct Organizations;

impl Resource for Organizations {
    type Row = Organization;
    const NOUN: &'static str = "organization";
    const PATH: &'static str = "/organizations";
    const ACTIONS: Actions = actions!("organization");
    const UNIQUE: &'static [Unique<Organization>] =
        &[Unique { index: SLUG_INDEX, field: "slug", value: |organization| &organization.slug }];
    type View = Organization;

    fn view(organization: Organization, _: &App) -> Result<Organization, Error> {
        Ok(organization)
    }

    /// Each route declares its role.
    fn admit(_: &Caller) -> Result<(), Error> {
        Ok(())
    }

    fn detail(organization: &Organization) -> Value {
        json!({ "name": organization.name, "slug": organization.slug, "tier": organization.tier })
    }

    async fn may_remove(organization: &Organization, tx: &mut Tx, by: &By) -> Result<(), Error> {
        if organization.id == by.caller.org_id {
            return Err(Error::conflict(
                "own organization cannot be removed: nobody could log in to restore it",
            ));
        }
        // Taking a change back needs its controller, which is removed with the organization.
        if changes::is_any_under_way(tx, &Scope::organization(organization.id), None).await? {
            return Err(Error::conflict(
                "a change of the organization is being applied; try again when it has ended",
            ));
        }
        Ok(())
    }

    /// Users that were signed in must sign in again when the organization is restored.
    async fn end_with(organization: &Organization, tx: &mut Tx, by: &By) -> Result<Value, Error> {
        let now = by.app.clock.now();
        users::bump_token_versions(tx, organization.id, now).await?;
        let revoked = sessions::revoke_all_of(tx, organization.id, now).await?;
        Ok(json!({ "sessions_revoked": revoked }))
    }
}

impl Listed for Organizations {
    type Query = ListQuery;

    async fn page(
        tx: &mut Tx,
        caller: &Caller,
        query: ListQuery,
        asked: Listing<Organization>,
    ) -> Rows<Organization> {
        let filter = OrganizationFilter { tier: query.tier, search: asked.search };
        Ok(organizations::list(tx, &caller.scope(), &filter, asked.order).await?)
    }
}

pub(super) fn routes() -> Routes {
    let one = "/organizations/{organization_id}";
    let read = Access::RoleWith(Role::OrgAdmin, ORGANIZATION_READ);
    let write = Access::RoleWith(Role::OrgAdmin, ORGANIZATION_WRITE);
    Verbs::<Organizations>::of("organization_id", read, Access::SuperAdmin)
        .listed("Organizations that the caller may see")
        .create::<NewBody, _, _>(create, "Create an organization")
        .get(resource::get::<Organizations>, "One organization")
        .writing(write)
        .update::<UpdateBody, _, _>(update, "Change an organization")
        .writing(Access::SuperAdmin)
        .remove(resource::remove::<Organizations>, "Remove an organization other than the own one")
        .restore(resource::restore::<Organizations>, "Bring a removed organization back")
        .routes()
        .get(
            &format!("{one}/dashboard"),
            read,
            dashboard::show,
            doc("An organization at a glance").answers::<dashboard::Dashboard>(200),
        )
        .get(
            &format!("{one}/quotas"),
            read,
            quotas::show,
            doc("What an organization may have and has, enforced or not").answers::<quotas::Quotas>(200),
        )
}

impl SettingsBody {
    /// Returns these settings with the values of this body.
    fn over(&self, mut settings: OrganizationSettings, checks: &mut Checks) -> Value {
        if let Some(required) = self.require_second_person {
            settings.require_second_person = required;
        }
        if let Some(hours) = self.change_ttl_hours {
            let fits = hours.is_none_or(|hours| (1..=CHANGE_TTL_HOURS_MAX).contains(&hours));
            checks.require(
                fits,
                "settings.change_ttl_hours",
                &format!("must be from 1 to {CHANGE_TTL_HOURS_MAX}"),
            );
            settings.change_ttl_hours = hours;
        }
        if let Some(days) = self.event_retention_days {
            let fits = days.is_none_or(|days| (1..=EVENT_RETENTION_DAYS_MAX).contains(&days));
            let message = format!("must be from 1 to {EVENT_RETENTION_DAYS_MAX}");
            checks.require(fits, "settings.event_retention_days", &message);
            settings.event_retention_days = days;
        }
        json!(settings)
    }
}

async fn create(by: By, creation: Creation, Json(body): Json<NewBody>) -> Result<Response, Error> {
    let By { app, caller, .. } = &by;
    let mut checks = Checks::default();
    let name = checks.name("name", &body.name);
    let slug = checks.keep("slug", slug::given_or_derived(body.slug.as_deref(), &name));
    let settings = body.settings.over(OrganizationSettings::default(), &mut checks);
    checks.done()?;
    let new = NewOrganization { id: app.clock.new_id(), name, slug, settings, now: app.clock.now() };
    let mut tx = app.db.write().await?;
    let made = organizations::insert(&mut tx, &new).await;
    let mut organization = made.map_err(|error| resource::taken::<Organizations>(error, &[&new.slug]))?;
    if let Some(tier) = body.tier.filter(|tier| *tier != organization.tier) {
        let change = OrganizationUpdate { tier: Some(tier), ..OrganizationUpdate::default() };
        let updated = organizations::update(&mut tx, &caller.scope(), new.id, &change, new.now).await?;
        organization = updated.ok_or(Error::NotFound("organization"))?;
    }
    let detail = Organizations::detail(&organization);
    resource::created::<Organizations>(tx, &by, creation, organization, detail).await
}

async fn update(
    by: By,
    At(id): At<OrgId>,
    if_match: IfMatch,
    Json(body): Json<UpdateBody>,
) -> Result<One<Organization>, Error> {
    let By { app, caller, .. } = &by;
    caller.require_all_sites()?;
    if body.tier.is_some() {
        caller.require_unscoped_role(Role::SuperAdmin)?;
    }
    let mut tx = app.db.write().await?;
    let current = resource::locked::<Organizations>(&mut tx, &by, id, &if_match).await?;
    let mut checks = Checks::default();
    let name = body.name.as_deref().map(|name| checks.name("name", name));
    if let Some(slug) = &body.slug {
        checks.keep("slug", slug::check(slug));
    }
    let stored = OrganizationSettings::read(&current.settings);
    let settings = body.settings.as_ref().map(|given| given.over(stored, &mut checks));
    checks.done()?;
    let change = OrganizationUpdate { name, slug: body.slug, tier: body.tier, settings };
    let detail =
        json!({ "name": change.name, "slug": change.slug, "tier": change.tier, "settings": change.settings });
    let updated = organizations::update(&mut tx, &caller.scope(), id, &change, app.clock.now()).await;
    let slug = change.slug.as_deref().unwrap_or_default();
    let updated = updated.map_err(|error| resource::taken::<Organizations>(error, &[slug]))?;
    resource::updated::<Organizations>(tx, &by, (current, updated), detail).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stored: Value, body: Value, expected: Option<Value>) {
        let stored = OrganizationSettings::read(&stored);
        let body: SettingsBody = serde_json::from_value(body).unwrap();
        let mut checks = Checks::default();
        let settings = body.over(stored, &mut checks);
        assert_eq!(checks.done().ok().map(|()| settings), expected);
    }

    #[test]
    fn settings_keep_what_is_absent_and_null_clears() {
        let stored = json!({"require_second_person": true, "change_ttl_hours": 24});
        check(stored.clone(), json!({}), Some(stored.clone()));
        check(
            stored.clone(),
            json!({"require_second_person": false}),
            Some(json!({"require_second_person": false, "change_ttl_hours": 24})),
        );
        check(stored, json!({"change_ttl_hours": null}), Some(json!({"require_second_person": true})));
        check(json!({}), json!({"change_ttl_hours": 0}), None);
        check(json!({}), json!({"change_ttl_hours": 8761}), None);
    }

    #[test]
    fn an_unknown_setting_is_refused() {
        assert!(serde_json::from_value::<SettingsBody>(json!({"second_person": true})).is_err());
        assert!(serde_json::from_value::<SettingsBody>(json!({"require_second_person": null})).is_err());
    }
}
