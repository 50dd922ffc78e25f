//! Queries to a directory: the search account's bind, one person, their password, their groups.

use heddle_core::secret::Secret;
use heddle_identity::password::PASSWORD_BYTES_MAX;
use heddle_kernel::app::App;
use heddle_store::sso::IdentityProviderId;
use ldap3::{
    DerefAliases, Ldap as Handle, LdapError, LdapResult, ResultEntry, Scope, SearchEntry, SearchOptions,
    SearchResult, ldap_escape,
};

use super::super::account::Person;
use super::super::fault::ProviderFault;
use super::super::providers::Steps;
use super::super::settings::{DN, LOGIN, Ldap};
use super::{Stop, connection};

/// Seconds that the directory may search.
const SEARCH_SECS: i32 = 5;
const GROUPS_MAX: i32 = 1_000;

const SUCCESS: u32 = 0;
const SIZE_LIMIT: u32 = 4;
const REFERRAL: u32 = 10;
const NO_SUCH_OBJECT: u32 = 32;
const INVALID_CREDENTIALS: u32 = 49;

/// Attributes that name an entry permanently, in common directories.
const IDS: [&str; 2] = ["entryUUID", "objectGUID"];

/// The account that searches.
pub(in crate::sso) struct Account<'a> {
    pub(super) dn: &'a str,
    pub(super) password: Secret,
}

/// Returns the person with this name and this password. Neither is sent to the directory when it is empty, or when the
/// password is too long.
pub(super) async fn person(
    app: &App,
    provider: IdentityProviderId,
    settings: &Ldap,
    account: Option<&Account<'_>>,
    login: &str,
    password: &Secret,
) -> Result<Person, Stop> {
    if password.is_empty() || login.is_empty() {
        return Err(Stop::Wrong("empty"));
    }
    if password.expose().len() > PASSWORD_BYTES_MAX {
        return Err(Stop::Wrong("too_long"));
    }
    connection::in_time(async {
        let dialled = connection::dial(app, settings).await?;
        let dialled = connection::secure(dialled, settings).await?;
        let (mut ldap, mut traffic) = connection::speak(dialled).await?;
        traffic.carry(prove((app, provider), &mut ldap, settings, account, login, password)).await?
    })
    .await
}

async fn prove(
    (app, provider): (&App, IdentityProviderId),
    ldap: &mut Handle,
    settings: &Ldap,
    account: Option<&Account<'_>>,
    login: &str,
    password: &Secret,
) -> Result<Person, Stop> {
    bind_account(ldap, account).await?;
    let entry = find_one(ldap, settings, login).await?;
    // The same error as for a wrong password: otherwise the answer would show which names belong to one person.
    if !super::may_try(app, provider, "entry", &entry.dn).await.map_err(Stop::Refused)? {
        return Err(Stop::Wrong("too_many_tries"));
    }
    let bound = ldap.simple_bind(&entry.dn, password.expose()).await.map_err(broken)?;
    match bound.rc {
        SUCCESS => {}
        // Busy, unavailable, unwilling, a referral: these say nothing about the password.
        code @ (1..=3 | 8 | REFERRAL | 13 | 51 | 52 | 80..) => {
            return Err(refused("the bind of a person", code).into());
        }
        _ => return Err(Stop::Wrong("password")),
    }
    let mut groups = settings.group_attribute.as_deref().map(|name| texts(&entry, name)).unwrap_or_default();
    if let Some(filter) = &settings.group_filter {
        bind_account(ldap, account).await?;
        groups.extend(find_groups(ldap, settings, filter, &entry.dn, login).await?);
    }
    describe(settings, &entry, groups)
}

async fn bind_account(ldap: &mut Handle, account: Option<&Account<'_>>) -> Result<(), ProviderFault> {
    let (dn, password) = account.map_or(("", ""), |account| (account.dn, account.password.expose()));
    let bound = ldap.simple_bind(dn, password).await.map_err(broken)?;
    match bound.rc {
        SUCCESS => Ok(()),
        INVALID_CREDENTIALS => Err(ProviderFault::credentials(
            "the directory does not accept the search account's name and password",
        )),
        code => Err(refused("the bind of the search account", code)),
    }
}

/// Returns the one entry that the filter finds for this name.
async fn find_one(ldap: &mut Handle, settings: &Ldap, login: &str) -> Result<SearchEntry, Stop> {
    let filter = settings.user_filter.replace(LOGIN, &ldap_escape(login));
    let attributes = &settings.attributes;
    let mut wanted = vec![&*attributes.username, &*attributes.email, &*attributes.full_name];
    match &attributes.id {
        Some(id) => wanted.push(id),
        None => wanted.extend(IDS),
    }
    wanted.extend(settings.group_attribute.as_deref());
    let (entries, end) = search(ldap, &settings.base_dn, &filter, wanted, 2).await?;
    if !matches!(end.rc, SUCCESS | SIZE_LIMIT | NO_SUCH_OBJECT) {
        return Err(refused("the search for a person", end.rc).into());
    }
    let mut entries = entries.into_iter();
    match (entries.next(), entries.next(), end.rc) {
        // A bind with an empty name would be anonymous.
        (Some(entry), None, SUCCESS) if !entry.dn.is_empty() => Ok(entry),
        (None, ..) => Err(Stop::Wrong("name")),
        _ => Err(Stop::Wrong("ambiguous_name")),
    }
}

/// Returns the distinguished names of the groups that the filter finds.
async fn find_groups(
    ldap: &mut Handle,
    settings: &Ldap,
    filter: &str,
    dn: &str,
    login: &str,
) -> Result<Vec<String>, ProviderFault> {
    let filter = filter.replace(LOGIN, &ldap_escape(login)).replace(DN, &ldap_escape(dn));
    let base = settings.group_base_dn.as_ref().unwrap_or(&settings.base_dn);
    let (entries, end) = search(ldap, base, &filter, vec!["1.1"], GROUPS_MAX).await?;
    if !matches!(end.rc, SUCCESS | SIZE_LIMIT) {
        return Err(refused("the search for groups", end.rc));
    }
    Ok(entries.into_iter().map(|entry| entry.dn).collect())
}

/// Returns entries only: references to other directories are not followed.
async fn search(
    ldap: &mut Handle,
    base: &str,
    filter: &str,
    attributes: Vec<&str>,
    limit: i32,
) -> Result<(Vec<SearchEntry>, LdapResult), ProviderFault> {
    let options = SearchOptions::new().deref(DerefAliases::Never).sizelimit(limit).timelimit(SEARCH_SECS);
    let found = ldap.with_search_options(options).search(base, Scope::Subtree, filter, attributes).await;
    let SearchResult(entries, end) = found.map_err(broken)?;
    let is_entry = |entry: &ResultEntry| !entry.is_ref() && !entry.is_intermediate();
    Ok((entries.into_iter().filter(is_entry).map(SearchEntry::construct).collect(), end))
}

fn describe(settings: &Ldap, entry: &SearchEntry, groups: Vec<String>) -> Result<Person, Stop> {
    let attributes = &settings.attributes;
    let subject = match &attributes.id {
        Some(name) => identity(entry, name).ok_or_else(|| {
            ProviderFault::faulty(format!(
                "the person's entry has no attribute '{name}', which names it for ever"
            ))
        })?,
        None => IDS.iter().find_map(|name| identity(entry, name)).unwrap_or_else(|| entry.dn.to_lowercase()),
    };
    let one = |name: &str| texts(entry, name).into_iter().find(|text| !text.is_empty());
    Ok(Person {
        issuer: settings.base_dn.to_lowercase(),
        subject,
        username: one(&attributes.username),
        email: one(&attributes.email),
        // The directory's administrators vouch for the owner.
        email_is_verified: true,
        full_name: one(&attributes.full_name),
        groups: groups.into_iter().flat_map(|name| [short_name(&name), Some(name)]).flatten().collect(),
    })
}

/// Returns a value that identifies the entry; bytes in hex.
fn identity(entry: &SearchEntry, name: &str) -> Option<String> {
    let text = texts(entry, name).into_iter().next();
    text.filter(|text| !text.is_empty()).or_else(|| {
        let (_, values) = entry.bin_attrs.iter().find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        values.first().filter(|bytes| !bytes.is_empty()).map(hex::encode)
    })
}

/// Returns the values of an attribute; its name is case-insensitive.
fn texts(entry: &SearchEntry, name: &str) -> Vec<String> {
    let found = entry.attrs.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    found.map(|(_, values)| values.clone()).unwrap_or_default()
}

/// Returns `admins` for `cn=admins,ou=groups,dc=example`. A name with escapes has no short form.
fn short_name(dn: &str) -> Option<String> {
    let first = dn.split(',').next()?;
    let (_, value) = first.split_once('=').filter(|_| !first.contains(['\\', '+']))?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn refused(what: &str, code: u32) -> ProviderFault {
    match code {
        REFERRAL => {
            ProviderFault::faulty(format!("{what} is answered with a referral, which is not followed"))
        }
        3 => ProviderFault::silent(format!("{what} takes the directory too long")),
        8 | 13 => ProviderFault::faulty(format!("{what} is refused without TLS (LDAP result {code})")),
        code => ProviderFault::faulty(format!("{what} is answered with LDAP result {code}")),
    }
}

/// In our own words: the library's message can quote a filter.
fn broken(error: LdapError) -> ProviderFault {
    match error {
        LdapError::FilterParsing => ProviderFault::faulty("the filter cannot be used"),
        _ => ProviderFault::faulty("the directory closed the connection, or does not speak LDAP"),
    }
}

/// Performs a sign-in as far as the search, and records each step.
pub(in crate::sso) async fn try_directory(
    app: &App,
    settings: &Ldap,
    account: Option<&Account<'_>>,
    steps: &mut Steps,
) -> Result<(), ProviderFault> {
    let dialled = steps.take("connect", connection::dial(app, settings)).await?;
    steps.reached(dialled.peer);
    let dialled = if connection::wants_tls(settings) {
        steps.take("tls", connection::in_time(Box::pin(connection::secure(dialled, settings)))).await?
    } else {
        connection::secure(dialled, settings).await?
    };
    let (mut ldap, mut traffic) = connection::speak(dialled).await?;
    let bind = async { traffic.carry(bind_account(&mut ldap, account)).await? };
    steps.take("bind", connection::in_time(Box::pin(bind))).await?;
    let look = async {
        let filter = settings.user_filter.replace(LOGIN, &ldap_escape("connection-test"));
        let (_, end) = traffic.carry(search(&mut ldap, &settings.base_dn, &filter, vec!["1.1"], 1)).await??;
        match end.rc {
            SUCCESS | SIZE_LIMIT => Ok(()),
            NO_SUCH_OBJECT => Err(ProviderFault::faulty(
                "'base_dn' does not exist there, or the search account may not see it",
            )),
            code => Err(refused("the search", code)),
        }
    };
    steps.take("search", connection::in_time(Box::pin(look))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(dn: &str, short: Option<&str>) {
        assert_eq!(short_name(dn).as_deref(), short, "{dn}");
    }

    #[test]
    fn a_group_is_known_by_its_first_name() {
        check("cn=admins,ou=groups,dc=example", Some("admins"));
        check("CN=Domain Admins,DC=example", Some("Domain Admins"));
        check("admins", None);
        check("cn=", None);
        check(r"cn=a\,b,dc=example", None);
        check("cn=a+ou=b,dc=example", None);
        check("", None);
    }
}
