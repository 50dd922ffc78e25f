//! Finds the account and the role of a person that a provider has authenticated.
//!
//! A person is identified by the provider's issuer and subject, never by an email alone. An email only finds the
//! account at the first sign-in, and only where the provider may link, within its own organization, and when the email
//! is verified. The provider sets the role of the accounts that it created, and of no other.

use heddle_core::name::{fold, normalize, without_hidden};
use heddle_core::{Role, UserId};
use heddle_identity::admission::{self, Admission, Way};
use heddle_kernel::app::App;
use heddle_kernel::hashing;
use heddle_kernel::http::error::Error;
use heddle_kernel::http::extract::Origin;
use heddle_kernel::names::{is_name_character, parse_email, parse_username};
use heddle_store::object::Object as _;
use heddle_store::sso::{self, Identity, NewIdentity, Provider};
use heddle_store::users::{self, NewUser, User, UserUpdate};
use heddle_store::{Organization, Scope, Tx, sessions};
use heddle_tenancy::quotas::{self, Resource};
use heddle_tenancy::users::rules;

use super::fault::ProviderFault;
use super::records::{self, Step};

/// How many names are tried for a new user.
const NAMES_MAX: u32 = 20;
/// Longest issuer or subject; a subject is a distinguished name where there is nothing better.
const NAME_BYTES_MAX: usize = 1_024;
const USERNAME_CHARS_MAX: usize = 64;
const FULL_NAME_CHARS_MAX: usize = 200;

/// A person, as the provider describes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) issuer: String,
    pub(super) subject: String,
    pub(super) username: Option<String>,
    pub(super) email: Option<String>,
    pub(super) email_is_verified: bool,
    pub(super) full_name: Option<String>,
    pub(super) groups: Vec<String>,
}

/// Which emails a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emails {
    Verified,
    Any,
}

/// Why an authenticated person is not admitted. The words are `error.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Removed,
    NoEmail,
    Unverified,
    Taken,
    NoRegistration,
}

impl Refusal {
    const fn kind(self) -> &'static str {
        match self {
            Self::Removed => "sso_account_removed",
            Self::NoEmail => "sso_email_missing",
            Self::Unverified => "sso_email_unverified",
            Self::Taken => "sso_not_linked",
            Self::NoRegistration => "sso_registration_disabled",
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::Removed => "the account was removed; ask an administrator",
            Self::NoEmail => "the identity provider gives no usable email address, which an account needs",
            Self::Unverified => "the identity provider has not verified the email address",
            Self::Taken => {
                "an account with this email address exists and is not linked with the identity provider; ask an \
                 administrator"
            }
            Self::NoRegistration => {
                "there is no account for this person, and the identity provider may not create one; ask an \
                 administrator"
            }
        }
    }
}

/// A refusal that is recorded, or an error.
enum Stop {
    Refused(Refusal),
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Admits a person as their user, or says why not.
pub(super) async fn admit(
    app: &App,
    origin: &Origin,
    provider: &Provider,
    person: Person,
    emails: Emails,
    way: Way,
) -> Result<Admission, Error> {
    let names = [&person.issuer, &person.subject];
    if names.into_iter().any(|name| name.len() > NAME_BYTES_MAX || name.contains('\0')) {
        let fault = ProviderFault::faulty("what names the person for ever is too long, or no text");
        return Err(fault.logged(provider.id).into());
    }
    match resolve(app, origin, provider, &person, emails).await {
        Ok((mut tx, user)) => {
            let login = users::find_login(&mut tx, user).await?.ok_or(Error::NotFound("user"))?;
            admission::admit(tx, app, origin, login, way).await
        }
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Refused(refusal)) => {
            records::record_refusal(app, origin, provider, refusal.kind()).await;
            Err(Error::Refused { kind: refusal.kind(), message: refusal.message().to_owned() })
        }
    }
}

/// Returns the person's user, in a transaction that may have created or linked it or changed its role.
async fn resolve(
    app: &App,
    origin: &Origin,
    provider: &Provider,
    person: &Person,
    emails: Emails,
) -> Result<(Tx, UserId), Stop> {
    let mut tx = app.db.write().await?;
    let scope = Scope::organization(provider.org_id);
    // Of two first sign-ins at once, the second finds the account that the first created.
    Organization::lock(&mut tx, &scope, provider.org_id)
        .await?
        .ok_or(Error::NotFound("identity provider"))?;
    // The provider may have been disabled, or its settings or roles changed, during the sign-in.
    let now = sso::find_usable(&mut tx, provider.id, provider.kind).await?;
    let now = now.ok_or(Error::NotFound("identity provider"))?.provider;
    if now.updated_at != provider.updated_at {
        return Err(Error::conflict("the identity provider was changed meanwhile; sign in again").into());
    }
    let found = sso::find_identity(&mut tx, provider.id, &person.issuer, &person.subject).await?;
    if let Some(identity) = found {
        let user = User::lock(&mut tx, &scope, identity.user_id).await?;
        let user = user.ok_or(Stop::Refused(Refusal::Removed))?;
        follow_role(&mut tx, app, origin, provider, person, &identity, &user).await?;
        sso::record_identity_login(&mut tx, identity.id, app.clock.now()).await?;
        return Ok((tx, user.id));
    }
    let email = person.email.as_deref().and_then(|email| parse_email(email).ok());
    let email = email.ok_or(Stop::Refused(Refusal::NoEmail))?;
    let known = users::find_by_login(&mut tx, &email).await?;
    let (user, created_user) = match known {
        Some(login) => {
            let user = login.user;
            // An administrator that manages providers must not get another administrator's account through one:
            // administrators are never linked by an email.
            let is_theirs = user.org_id == provider.org_id && !user.role.is_at_least(Role::OrgAdmin);
            // An email would replace one of two factors: the link is permanent, whether the second factor follows or
            // not.
            if !provider.allow_linking || !is_theirs || user.mfa_enabled {
                return Err(Stop::Refused(Refusal::Taken));
            }
            if !person.email_is_verified {
                return Err(Stop::Refused(Refusal::Unverified));
            }
            records::record(&mut tx, app, origin, provider, &user, Step::Linked).await?;
            (user, false)
        }
        None => (register(&mut tx, app, origin, provider, person, email, emails).await?, true),
    };
    let new = NewIdentity {
        id: app.clock.new_id(),
        provider_id: provider.id,
        issuer: person.issuer.clone(),
        subject: person.subject.clone(),
        user_id: user.id,
        created_user,
        now: app.clock.now(),
    };
    sso::insert_identity(&mut tx, &new).await?;
    Ok((tx, user.id))
}

async fn register(
    tx: &mut Tx,
    app: &App,
    origin: &Origin,
    provider: &Provider,
    person: &Person,
    email: String,
    emails: Emails,
) -> Result<User, Stop> {
    if !provider.allow_registration {
        return Err(Stop::Refused(Refusal::NoRegistration));
    }
    if emails == Emails::Verified && !person.email_is_verified {
        return Err(Stop::Refused(Refusal::Unverified));
    }
    let new = NewUser {
        id: app.clock.new_id(),
        org_id: provider.org_id,
        username: free_name(tx, person, &email).await?,
        full_name: person.full_name.as_deref().and_then(clean_name),
        email,
        // No password matches until one is set.
        password_hash: hashing::NONE.to_owned(),
        role: role_of(provider, &person.groups),
        now: app.clock.now(),
    };
    let user = users::insert(tx, &new).await.map_err(taken_meanwhile)?;
    quotas::check(tx, app, provider.org_id, Resource::Users).await?;
    records::record(tx, app, origin, provider, &user, Step::Created).await?;
    Ok(user)
}

fn taken_meanwhile(error: heddle_store::Error) -> Error {
    if error.is_unique("app_user_username") || error.is_unique("app_user_email") {
        Error::conflict("the account's name was taken meanwhile; sign in again")
    } else {
        error.into()
    }
}

/// Gives an account that the provider created the provider's current role.
async fn follow_role(
    tx: &mut Tx,
    app: &App,
    origin: &Origin,
    provider: &Provider,
    person: &Person,
    identity: &Identity,
    user: &User,
) -> Result<(), Error> {
    let is_managed = identity.created_user && maps_roles(provider) && user.role != Role::SuperAdmin;
    let role = role_of(provider, &person.groups);
    if !is_managed || role == user.role {
        return Ok(());
    }
    let now = app.clock.now();
    if !role.is_at_least(Role::OrgAdmin)
        && let Err(refused) = rules::keep_an_admin(tx, user).await
    {
        let Error::Conflict { kind: "last_admin", .. } = refused else { return Err(refused) };
        tracing::warn!(user.id = %user.id, "kept the role of user {}: nobody else administers the organization", user.id);
        return records::record(tx, app, origin, provider, user, Step::RoleKept(role)).await;
    }
    users::bump_token_version(tx, user.id, now).await?.ok_or(Error::NotFound("user"))?;
    sessions::revoke_all(tx, user.id, now).await?;
    let change = UserUpdate { role: Some(role), ..UserUpdate::default() };
    let scope = Scope::organization(user.org_id);
    let changed = users::update(tx, &scope, user.id, &change, now).await?.ok_or(Error::NotFound("user"))?;
    records::record(tx, app, origin, provider, &changed, Step::RoleChanged(user.role)).await
}

/// Without a mapping the provider does not set roles: administrators do.
fn maps_roles(provider: &Provider) -> bool {
    provider.role_mapping.as_object().is_some_and(|mapping| !mapping.is_empty())
}

/// Returns the highest role that one of the groups gives, else the provider's default; never above `org_admin`.
fn role_of(provider: &Provider, groups: &[String]) -> Role {
    // Names in a directory are case-insensitive.
    let folds = provider.kind == heddle_core::ProviderKind::Ldap;
    let is_same = |one: &str, two: &str| if folds { fold(one) == fold(two) } else { one == two };
    let mapping = provider.role_mapping.as_object().into_iter().flatten();
    let given = mapping
        .filter(|(group, _)| groups.iter().any(|own| is_same(own, group)))
        .filter_map(|(_, role)| role.as_str()?.parse::<Role>().ok())
        .filter(|role| *role != Role::SuperAdmin);
    given.max_by_key(|role| role.level()).unwrap_or(match provider.default_role {
        Role::SuperAdmin => Role::Viewer,
        other => other,
    })
}

/// Returns a free user name, as close to the person's own as possible.
async fn free_name(tx: &mut Tx, person: &Person, email: &str) -> Result<String, Error> {
    let wanted = person.username.as_deref().filter(|name| !name.is_empty());
    let local = |text: &str| text.split('@').next().unwrap_or_default().to_owned();
    let base = as_username(&local(wanted.unwrap_or(email)));
    for number in 1..=NAMES_MAX {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let kept: String = base.chars().take(USERNAME_CHARS_MAX - suffix.len()).collect();
        let name = format!("{kept}{suffix}");
        if users::find_by_login(tx, &name).await?.is_none() {
            return Ok(name);
        }
    }
    Err(Error::conflict(format!(
        "user name '{base}' is taken in every spelling that was tried; ask an administrator"
    )))
}

/// Returns the text with characters replaced that a user name cannot have.
fn as_username(text: &str) -> String {
    let kept: String = text.chars().take(USERNAME_CHARS_MAX).collect();
    let name: String = normalize(&kept)
        .chars()
        .map(|c| if is_name_character(c) { c } else { '-' })
        .take(USERNAME_CHARS_MAX)
        .collect();
    let name = name.trim_matches('-');
    parse_username(name).unwrap_or_else(|_| "user".to_owned())
}

/// Returns a full name as it may be stored; `None` when nothing is left of it.
fn clean_name(text: &str) -> Option<String> {
    let plain = without_hidden(text);
    let name: String = plain.trim().chars().take(FULL_NAME_CHARS_MAX).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use heddle_core::{Clock, ProviderKind};
    use serde_json::{Value, json};

    use super::*;

    fn provider(kind: ProviderKind, mapping: Value) -> Provider {
        let clock = Clock::default();
        Provider {
            revision: 1,
            id: clock.new_id(),
            org_id: clock.new_id(),
            kind,
            label: "Sign in".to_owned(),
            is_enabled: true,
            allow_registration: true,
            allow_linking: false,
            default_role: Role::Guest,
            role_mapping: mapping,
            settings: json!({}),
            has_secret: false,
            created_at: clock.now(),
            updated_at: clock.now(),
            deleted_at: None,
        }
    }

    #[track_caller]
    fn check_role(kind: ProviderKind, groups: &[&str], expected: Role) {
        let mapping = json!({ "admins": "org_admin", "Ops": "operator", "root": "super_admin" });
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        assert_eq!(role_of(&provider(kind, mapping), &groups), expected, "{groups:?}");
    }

    #[test]
    fn the_highest_role_of_the_groups_counts_and_none_is_above_org_admin() {
        check_role(ProviderKind::Oidc, &[], Role::Guest);
        check_role(ProviderKind::Oidc, &["staff"], Role::Guest);
        check_role(ProviderKind::Oidc, &["Ops", "admins"], Role::OrgAdmin);
        check_role(ProviderKind::Oidc, &["Ops"], Role::Operator);
        check_role(ProviderKind::Oidc, &["ops"], Role::Guest);
        check_role(ProviderKind::Ldap, &["ops"], Role::Operator);
        check_role(ProviderKind::Oidc, &["root"], Role::Guest);
        check_role(ProviderKind::Oidc, &["root", "Ops"], Role::Operator);
    }

    #[test]
    fn a_user_name_is_made_of_what_there_is() {
        assert_eq!(as_username("alice"), "alice");
        assert_eq!(as_username("Bob (Ops) Example*"), "Bob--Ops--Example");
        assert_eq!(as_username("***"), "user");
        assert_eq!(as_username(&"x".repeat(90)).len(), 64);
        assert_eq!(clean_name(" A\u{0}da \n"), Some("Ada".to_owned()));
        assert_eq!(clean_name("\t"), None);
    }
}
