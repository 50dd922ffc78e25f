//! What the surface is, as text under review: the author of a change sees it in the diff.
//!
//! `UPDATE_SNAPSHOTS=1` writes the files anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use heddle_core::Role;
use heddle_core::declared::{ReadingAccess, SubscriptionAccess};
use heddle_kernel::config::Config;
use heddle_kernel::http::routes::Mark;

use crate::support::{Database, Server, variable};

/// Lines of a difference that are shown.
const SHOWN_LINES: usize = 60;

/// Compares a text with its file.
pub(super) fn check(name: &str, text: &str) {
    check_file(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("surface/snapshots").join(name), text);
}

pub(super) fn check_file(path: &Path, text: &str) {
    let name = path.display();
    if variable("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, text).expect("the snapshot can be written");
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == text,
        "{name} is not what it was; when that is intended: UPDATE_SNAPSHOTS=1\n{}",
        difference(&kept, text)
    );
}

/// The lines between what both have at the beginning and at the end.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    if before > 0 {
        writeln!(text, "  {} (line {before})", old[before - 1]).expect("a text takes all");
    }
    for (sign, lines) in [('-', &old[before..old.len() - after]), ('+', &new[before..new.len() - after])] {
        for line in lines.iter().take(SHOWN_LINES) {
            writeln!(text, "{sign} {line}").expect("a text takes all");
        }
        if lines.len() > SHOWN_LINES {
            writeln!(text, "{sign} … {} lines more", lines.len() - SHOWN_LINES).expect("a text takes all");
        }
    }
    text
}

/// Columns, each as wide as its widest cell.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widest = |column| rows.iter().filter_map(|row: &Vec<String>| row.get(column)).map(String::len).max();
    let widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or_default()).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// What routes say of themselves that decides about a request.
const MARKS: &[(Mark, &str)] = &[
    (Mark::ChangesCallers, "changes callers"),
    (Mark::Personal, "personal"),
    (Mark::LimitedAsLogin, "limited as login"),
    (Mark::Unlimited, "unlimited"),
    (Mark::OwnProof, "own proof"),
];

#[tokio::test]
async fn routes_and_who_may_call_them() {
    let server = Server::start_with(Database::sqlite(), super::described()).await;
    let routes = heddle_kernel::http::routes(&server.running().app);
    let mut rows: Vec<Vec<String>> = routes
        .iter()
        .map(|route| {
            let marks = MARKS.iter().filter(|(mark, _)| route.doc.has(*mark)).map(|(_, word)| *word);
            let marks: Vec<&str> = marks.collect();
            vec![route.method.to_string(), route.path.clone(), route.access.to_string(), marks.join(", ")]
        })
        .collect();
    rows.sort_by(|a, b| (&a[1], &a[0]).cmp(&(&b[1], &b[0])));
    check("routes.txt", &table(&rows));
}

#[test]
fn roles_and_their_permissions() {
    let mut roles = Role::ALL.to_vec();
    roles.sort_by_key(|role| std::cmp::Reverse(role.level()));
    let mut rows = vec![vec!["permission".to_owned()]];
    rows[0].extend(roles.iter().map(ToString::to_string));
    for permission in crate::support::declared().permissions.iter() {
        let mut row = vec![permission.to_string()];
        row.extend(roles.iter().map(|role| if role.holds(permission) { "yes" } else { "-" }.to_owned()));
        rows.push(row);
    }
    check("permissions.txt", &table(&rows));
}

#[test]
fn what_subscribing_and_reading_need() {
    let declared = crate::support::declared();
    let stream = |access| match access {
        SubscriptionAccess::Permission(permission) => permission.to_string(),
        SubscriptionAccess::SuperAdmin => "super_admin".to_owned(),
        SubscriptionAccess::Denied => "-".to_owned(),
    };
    let types = declared.events.iter().map(|event| event.as_str().split('.').next().unwrap_or_default());
    let segments: BTreeSet<&str> =
        declared.subscriptions().map(|(segment, _)| segment).chain(types).collect();
    let mut rows = vec![["events", "to subscribe", "to read"].map(str::to_owned).to_vec()];
    for segment in segments {
        let read = match declared.for_reading(segment) {
            ReadingAccess::Permission(permission) => permission.to_string(),
            ReadingAccess::Role(role) => format!("role {role}"),
        };
        rows.push(vec![segment.to_owned(), stream(declared.for_subscription(segment)), read]);
    }
    check("subscriptions.txt", &table(&rows));
}

#[tokio::test]
async fn the_document() {
    let server = Server::start_with(Database::sqlite(), super::described()).await;
    let contract = server.contract();
    let mut document = contract.document().clone();
    document.sort_all_objects();
    let mut text = serde_json::to_string_pretty(&document).expect("the document is JSON");
    text.push('\n');
    check("openapi.json", &text);
}

#[test]
fn the_catalogue_of_events() {
    let mut text = String::new();
    for event in crate::support::declared().events.iter() {
        writeln!(text, "{event} ({}, {})", event.category(), event.priority()).expect("a text takes all");
        let schema = event.payload_schema();
        for (name, field) in schema["properties"].as_object().expect("a payload has fields") {
            let kind = field["type"].to_string().replace('"', "");
            let format = field["format"].as_str().map(|format| format!(" {format}")).unwrap_or_default();
            writeln!(text, "    {name}: {kind}{format}").expect("a text takes all");
        }
    }
    check("events.txt", &text);
}

#[test]
fn the_settings() {
    let rows: Vec<Vec<String>> = Config::table(&heddle_server::FEATURES.settings())
        .map(|setting| {
            vec![setting.name.to_owned(), format!("[{}]", setting.default), setting.about.trim().to_owned()]
        })
        .collect();
    check("settings.txt", &table(&rows));
}

#[test]
fn a_difference_shows_the_lines_that_differ() {
    assert_eq!(difference("a\nb\nc\n", "a\nx\ny\nc\n"), "  a (line 1)\n- b\n+ x\n+ y\n");
    assert_eq!(difference("", "a\n"), "+ a\n");
}
