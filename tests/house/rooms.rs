//! The rooms of the host are crates: their order, their size, and the figure of ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::paths::files;
use crate::support::variable;

/// Most lines of a room above the kernel.
const ROOM_LINES_MAX: usize = 9_000;
/// The rooms that features stand on.
const BASE: [&str; 4] = ["core", "store", "runtime", "kernel"];
/// The rooms that may name the database library: one has the drivers, one only derives for its words.
const NAME_DATABASE: [&str; 2] = ["core", "store"];
/// Where the figure of the rooms begins and ends in ARCHITECTURE.md.
const FIGURE: [&str; 2] = ["```mermaid\n", "```\n"];

/// The folder of the host's rooms.
pub(super) fn host() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../host")
}

fn architecture() -> PathBuf {
    host().join("../ARCHITECTURE.md")
}

/// What each room of the product depends on, by the names of their folders: other rooms, and packages of others.
pub(super) fn members() -> BTreeMap<String, BTreeSet<String>> {
    let program = variable("CARGO").unwrap_or_else(|| "cargo".to_owned());
    let asked = Command::new(program)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(host())
        .output()
        .expect("cargo runs");
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let metadata: Value = serde_json::from_slice(&asked.stdout).expect("cargo answers JSON");
    let folder_of_host = format!("{}/host/", metadata["workspace_root"].as_str().expect("the root is named"));
    let of_host = metadata["packages"].as_array().unwrap().iter().filter_map(|package| {
        let manifest = package["manifest_path"].as_str()?;
        let folder = manifest.strip_prefix(&folder_of_host)?.strip_suffix("/Cargo.toml")?;
        let needed = package["dependencies"].as_array()?.iter().filter(|one| one["kind"].is_null());
        let names = needed.filter_map(|one| one["name"].as_str());
        Some((folder.to_owned(), names.map(|name| name.trim_start_matches("heddle-").to_owned()).collect()))
    });
    // The commands of the project are no part of the product.
    of_host.filter(|(folder, _)| folder != "xtask").collect()
}

/// The rooms as ARCHITECTURE.md lists them, from the bottom to the top.
fn listed() -> Vec<String> {
    let text = fs::read_to_string(architecture()).unwrap();
    let (_, table) =
        text.split_once("| Room | What it holds |\n|---|---|\n").expect("the table of rooms is there");
    let rows = table.lines().take_while(|line| line.starts_with("| `host/"));
    let mut rooms: Vec<String> =
        rows.filter_map(|row| row.strip_prefix("| `host/")?.split('`').next().map(str::to_owned)).collect();
    rooms.reverse();
    rooms
}

#[test]
fn no_room_needs_one_above_it() {
    let (members, listed) = (members(), listed());
    let there: BTreeSet<&String> = members.keys().collect();
    assert_eq!(listed.iter().collect::<BTreeSet<_>>(), there, "ARCHITECTURE.md lists each room");
    assert_eq!(listed.len(), there.len(), "once");
    let height = |room: &String| listed.iter().position(|one| one == room);
    for (room, needed) in &members {
        for below in needed.iter().filter_map(height) {
            assert!(Some(below) < height(room), "{room} needs {}, which stands above it", listed[below]);
        }
    }
}

#[test]
fn a_room_above_the_kernel_stays_small() {
    for room in members().keys().filter(|room| !BASE.contains(&room.as_str())) {
        let mut found = Vec::new();
        files(&host().join(room).join("src"), &mut found);
        let lines: usize = found.iter().map(|file| fs::read_to_string(file).unwrap().lines().count()).sum();
        assert!(lines > 0 && lines <= ROOM_LINES_MAX, "{room} has {lines} lines");
    }
}

#[test]
fn one_room_has_the_database_drivers() {
    let members = members();
    let naming = members.iter().filter(|(_, needed)| needed.contains("sqlx")).map(|(room, _)| room.as_str());
    assert_eq!(naming.collect::<Vec<_>>(), NAME_DATABASE);
}

/// An arrow for each need that does not follow from the others.
fn figure(members: &BTreeMap<String, BTreeSet<String>>) -> String {
    let rooms_below = |room: &str| members[room].iter().filter(|one| members.contains_key(*one));
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for room in members.keys() {
        let (mut found, mut left) = (BTreeSet::new(), vec![room.as_str()]);
        while let Some(next) = left.pop() {
            left.extend(rooms_below(next).map(String::as_str).filter(|below| found.insert(*below)));
        }
        reached.insert(room, found);
    }
    let mut text = "flowchart TD\n".to_owned();
    for room in members.keys() {
        for below in rooms_below(room) {
            let mut others = rooms_below(room).filter(|other| *other != below);
            if !others.any(|other| reached[other.as_str()].contains(below.as_str())) {
                writeln!(text, "    {room} --> {below}").expect("a text takes all");
            }
        }
    }
    text
}

/// `UPDATE_SNAPSHOTS=1` draws it anew.
#[test]
fn the_figure_of_the_rooms_is_what_cargo_knows() {
    let text = fs::read_to_string(architecture()).unwrap();
    let (before, rest) = text.split_once(FIGURE[0]).expect("ARCHITECTURE.md has a figure");
    let (drawn, after) = rest.split_once(FIGURE[1]).expect("the figure ends");
    let figure = figure(&members());
    if variable("UPDATE_SNAPSHOTS").is_some() {
        fs::write(architecture(), format!("{before}{}{figure}{}{after}", FIGURE[0], FIGURE[1])).unwrap();
        return;
    }
    assert_eq!(drawn, figure, "draw it anew with UPDATE_SNAPSHOTS=1");
}

#[test]
fn an_arrow_that_follows_from_others_is_not_drawn() {
    let members = [("a", vec!["b", "c", "serde"]), ("b", vec!["c"]), ("c", vec![])]
        .map(|(room, needed)| (room.to_owned(), needed.into_iter().map(str::to_owned).collect()));
    assert_eq!(figure(&members.into()), "flowchart TD\n    a --> b\n    b --> c\n");
}
