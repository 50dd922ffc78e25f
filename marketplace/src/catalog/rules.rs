//! What a catalogue must hold to beyond its types. Every check names what it refuses.

use std::collections::{HashMap, HashSet};

use semver::{BuildMetadata, Version};
use serde_json::value::RawValue;
use url::Url;

use super::bounds::{
    CAPABILITIES_BYTES_MAX, DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX, PLUGIN_VERSION_BYTES_MAX,
    SUMMARY_BYTES_MAX, URL_BYTES_MAX,
};
use super::listing::{Archive, Catalog, ListedKey, Plugin, PluginVersion, Publisher};
use super::strict;
use crate::archive::ARCHIVE_BYTES_MAX;
use crate::{keys, names, rules, signature};

/// Says what is wrong with a catalogue.
pub(crate) fn check(catalog: &Catalog) -> Result<(), String> {
    strict::version(catalog.version)?;
    let (mut publishers, mut keys) = (HashMap::new(), HashSet::new());
    for publisher in &catalog.publishers {
        check_publisher(publisher)?;
        if publishers.insert(publisher.id.as_str(), publisher).is_some() {
            return Err(format!("publisher '{}' is listed twice", publisher.id));
        }
        if let Some(key) = publisher.keys.iter().find(|key| !keys.insert(key.keyid.as_str())) {
            return Err(format!("key '{}' is listed twice", key.keyid));
        }
    }
    let mut ids = HashSet::new();
    for plugin in &catalog.plugins {
        check_plugin(plugin)
            .map_err(|problem| format!("plugin '{}': {problem}", strict::shown(&plugin.id)))?;
        if !ids.insert(plugin.id.as_str()) {
            return Err(format!("plugin '{}' is listed twice", plugin.id));
        }
        let publisher = publishers.get(plugin.publisher.as_str());
        if !publisher.is_some_and(|publisher| keys::covers(&publisher.ids, &plugin.id)) {
            let publisher = strict::shown(&plugin.publisher);
            return Err(format!(
                "plugin '{}' is by '{publisher}', which is not listed for this id",
                plugin.id
            ));
        }
    }
    Ok(())
}

fn check_publisher(publisher: &Publisher) -> Result<(), String> {
    let id = strict::shown(&publisher.id);
    if !keys::is_publisher(&publisher.id) {
        return Err(format!(
            "'{id}' is no id of a publisher: a-z, 0-9 and '-', starting with a letter, 2 to 41 characters"
        ));
    }
    strict::line("the name of a publisher", &publisher.name, NAME_BYTES_MAX)?;
    if let Some(pattern) = publisher.ids.iter().find(|pattern| !keys::is_pattern(pattern)) {
        let pattern = strict::shown(pattern);
        return Err(format!(
            "'{pattern}' of the publisher '{id}' is neither an id nor a beginning such as 'acme-*'"
        ));
    }
    publisher.keys.iter().try_for_each(check_key)
}

fn check_key(key: &ListedKey) -> Result<(), String> {
    let id = strict::shown(&key.keyid);
    let public = keys::decode(&key.public).filter(keys::is_sound);
    if public.is_none_or(|public| signature::key_id(&public) != key.keyid) {
        return Err(format!("key '{id}' is no Ed25519 public key as 64 hex digits under its own id"));
    }
    if key.not_after <= key.not_before {
        return Err(format!("key '{id}' ends before it begins"));
    }
    Ok(())
}

fn check_plugin(plugin: &Plugin) -> Result<(), String> {
    if !rules::is_id(&plugin.id) || rules::RESERVED.contains(&plugin.id.as_str()) {
        return Err("the id is reserved or not of its form: a-z, 0-9 and '-', 3 to 41 characters".to_owned());
    }
    strict::line("the name", &plugin.name, NAME_BYTES_MAX)?;
    strict::line("the summary", &plugin.summary, SUMMARY_BYTES_MAX)?;
    strict::lines("the description", &plugin.description, DESCRIPTION_BYTES_MAX)?;
    strict::line("the license", &plugin.license, NAME_BYTES_MAX)?;
    if let Some(category) = plugin.categories.iter().find(|category| !is_category(category)) {
        return Err(format!("the category '{}' is no word of a-z, 0-9 and '-'", strict::shown(category)));
    }
    if let Some(homepage) = plugin.homepage.as_deref().filter(|homepage| !is_address(homepage)) {
        return Err(format!(
            "the homepage '{}' is no address of 'https:' or 'http:'",
            strict::shown(homepage)
        ));
    }
    if let Some(icon) = plugin.icon.as_deref().filter(|icon| !is_icon(icon)) {
        return Err(format!("the icon '{}' is not 'icons/<sha256>.svg' or '.png'", strict::shown(icon)));
    }
    let mut versions = HashSet::new();
    for version in &plugin.versions {
        check_version(version).map_err(|problem| {
            format!("version {}: {problem}", strict::shown(&version.version.to_string()))
        })?;
        // Which of two that differ in build metadata alone is newer, no reader could tell.
        let bare = Version { build: BuildMetadata::EMPTY, ..version.version.clone() };
        if !versions.insert(bare) {
            return Err(format!("version {} is listed twice", version.version));
        }
    }
    Ok(())
}

fn check_version(version: &PluginVersion) -> Result<(), String> {
    if version.version.to_string().len() > PLUGIN_VERSION_BYTES_MAX {
        return Err(format!("a version has at most {PLUGIN_VERSION_BYTES_MAX} bytes"));
    }
    check_archive(&version.package)?;
    let hashes = [&version.manifest_sha256, &version.component_sha256];
    if let Some(hash) = hashes.into_iter().chain(&version.signed_by).find(|hash| !signature::is_sha256(hash))
    {
        return Err(format!("'{}' is no SHA-256 as 64 lower-case hex digits", strict::shown(hash)));
    }
    let is_api = |text: &str| {
        let is_number =
            |part: &str| (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        text.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
    };
    if !is_api(&version.api) {
        return Err(format!("the interface version '{}' is not 'major.minor'", strict::shown(&version.api)));
    }
    check_opaque("capabilities", version.capabilities.as_deref(), '{')?;
    check_opaque("permissions", version.permissions.as_deref(), '[')
}

fn check_archive(archive: &Archive) -> Result<(), String> {
    let url = &archive.url;
    let is_path = names::check_name(url).is_ok();
    if url.len() > URL_BYTES_MAX || !(is_path || is_address(url)) {
        let url = strict::shown(url);
        return Err(format!(
            "'{url}' is neither a path beside the catalogue nor an address of 'https:' or 'http:'"
        ));
    }
    let bytes_max = u64::try_from(ARCHIVE_BYTES_MAX).unwrap_or(u64::MAX);
    if !(1..=bytes_max).contains(&archive.length) {
        return Err(format!("a package has 1 to {bytes_max} bytes, not {}", archive.length));
    }
    if !signature::is_sha256(&archive.sha256) {
        return Err("'sha256' of a package must be 64 lower-case hex digits".to_owned());
    }
    Ok(())
}

/// Whether a text is an address of the web that names no user.
fn is_address(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic()) && text.len() <= URL_BYTES_MAX;
    is_plain
        && Url::parse(text).is_ok_and(|url| {
            matches!(url.scheme(), "https" | "http") && url.username().is_empty() && url.password().is_none()
        })
}

fn is_icon(text: &str) -> bool {
    let name =
        text.strip_prefix("icons/").and_then(|name| name.strip_suffix(".svg").or(name.strip_suffix(".png")));
    name.is_some_and(signature::is_sha256)
}

fn is_category(text: &str) -> bool {
    (1..=40).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn check_opaque(what: &str, json: Option<&RawValue>, begins: char) -> Result<(), String> {
    let Some(json) = json.map(RawValue::get) else { return Ok(()) };
    if json.len() > CAPABILITIES_BYTES_MAX || !json.starts_with(begins) {
        return Err(format!(
            "'{what}' begins with '{begins}' and has at most {CAPABILITIES_BYTES_MAX} bytes"
        ));
    }
    Ok(())
}
