//! What every adapter needs to make its `description.json` from facts about its vendor's API and judgements about them.
//!
//! `facts.json` has routes and fields, `overlay.json` what no contract says: natural keys, dangers, what an apply
//! reaches, and what is left out and why. Both stand beside the adapter. Its example `describe-<vendor>` turns them
//! into the description: the same files always give the same one. `model.json` has what is filled of the model, and
//! `releases.json` which releases all of this was tested with, and what only some of them have.

mod coverage;
mod diff;
mod filled;
mod parent;
mod releases;
mod routes;
mod rows;
pub mod schema;
mod written;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use coverage::{Access, Coverage, Least, State};
pub use diff::{Differences, Surface, kind};
pub use filled::filled_problems;
pub use parent::Parent;
pub use routes::{Class, Routes};
pub use rows::{Feature, Operation, Rows, say};

/// What comes of a vendor's facts.
#[derive(Debug)]
pub struct Made {
    /// The content of `description.json`.
    pub description: Value,
    /// How much of the vendor's API it covers; empty where the description is not made from a contract.
    pub coverage: Coverage,
}

/// What the adapter fills of the model, as `model.json` beside it says: an array, which becomes the key `model` of the
/// description. An adapter without the file fills nothing.
const MODEL: &str = "model.json";

/// The program of an adapter's example: writes the description beside the adapter and shows what it covers.
pub fn write(folder: &Path, made: &Made) -> anyhow::Result<()> {
    let path = folder.join(DESCRIPTION);
    fs::write(&path, text(folder, &made.description)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    write!(std::io::stdout(), "{}", made.coverage).context("the coverage cannot be shown")
}

/// Fails where the description beside the adapter is another one.
pub fn check(folder: &Path, made: &Made) -> anyhow::Result<()> {
    let path = folder.join(DESCRIPTION);
    let kept = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let made = text(folder, &made.description)?;
    if kept == made {
        return Ok(());
    }
    let same = kept.lines().zip(made.lines()).take_while(|(kept, made)| kept == made).count();
    bail!(
        "{} differs from line {} on; `cargo xtask vendor {}` makes it again",
        path.display(),
        same + 1,
        folder.file_name().unwrap_or_default().to_string_lossy()
    )
}

/// The file of facts that stands behind `--diff` among the arguments of an adapter's example, if there is one.
pub fn compared() -> anyhow::Result<Option<PathBuf>> {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next(), arguments.next()) {
        (None, ..) => Ok(None),
        (Some(word), Some(path), None) if word == "--diff" => Ok(Some(path.into())),
        _ => bail!("the only argument is --diff, with a file of the facts of another release"),
    }
}

/// Shows what the facts beside the adapter have otherwise than those of another release.
pub fn show_differences<F: DeserializeOwned>(
    folder: &Path,
    before: &Path,
    surface: impl Fn(&F) -> Surface,
) -> anyhow::Result<()> {
    let (before, after) = (surface(&read(before)?), surface(&read(&folder.join(FACTS))?));
    write!(std::io::stdout(), "{}", Differences::between(&before, &after))
        .context("the differences cannot be shown")
}

/// The whole `main.rs` of an adapter's example, with its tests: `$make` turns facts and overlay into [`Made`], `$surface`
/// says which fields the facts know, and the numbers say how many parts of a thousand of the routes are covered at least.
#[macro_export]
macro_rules! program {
    ($make:path, $surface:path, writes: $writes:literal, reads: $reads:literal) => {
        fn main() -> $crate::Ended {
            match $crate::compared()? {
                Some(before) => $crate::show_differences(folder(), &before, $surface),
                None => $crate::write(folder(), &made()?),
            }
        }

        /// The folder of the adapter.
        fn folder() -> &'static std::path::Path {
            std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        }

        fn made() -> $crate::Ended<$crate::Made> {
            $crate::made(folder(), $make)
        }

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn checked_in_description_is_what_the_facts_give() {
                $crate::check(folder(), &made().unwrap()).unwrap();
            }

            #[test]
            fn facts_differ_in_nothing_from_themselves_and_in_everything_from_none() {
                let surface = $surface(&$crate::read(&folder().join($crate::FACTS)).unwrap());
                let shown = |before: &$crate::Surface, after: &$crate::Surface| {
                    $crate::Differences::between(before, after).to_string()
                };
                assert_eq!(shown(&surface, &surface), "0 appeared, 0 vanished, 0 changed\n");
                let routes = surface.len();
                assert!(routes > 100 && surface.values().any(|fields| fields.len() > 3), "{routes} routes");
                let all = shown(&$crate::Surface::new(), &surface);
                assert!(all.ends_with(&format!("{routes} appeared, 0 vanished, 0 changed\n")));
            }

            #[test]
            fn same_facts_give_the_same_description() {
                $crate::check_same(&made().unwrap(), &made().unwrap()).unwrap();
            }

            #[test]
            fn nearly_all_routes_are_covered_and_every_other_has_a_reason() {
                let least = $crate::Least { writes: $writes, reads: $reads };
                made().unwrap().coverage.require(least).unwrap();
            }
        }
    };
}

/// How such a program ends.
pub type Ended<T = ()> = anyhow::Result<T>;

/// Makes a description from the two files beside the adapter.
pub fn made<F: DeserializeOwned, O: DeserializeOwned>(
    folder: &Path,
    make: impl FnOnce(&F, &O) -> anyhow::Result<Made>,
) -> anyhow::Result<Made> {
    make(&read(&folder.join(FACTS))?, &read(&folder.join("overlay.json"))?)
}

/// Fails where another run gives another description.
pub fn check_same(one: &Made, other: &Made) -> anyhow::Result<()> {
    let shown = |made: &Made| format!("{}\n{}", made.description, made.coverage);
    ensure!(shown(one) == shown(other), "the same facts give two descriptions");
    Ok(())
}

/// Reads a file of facts or of judgements.
pub fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not as expected", path.display()))
}

/// The judgements of an overlay's section in their order; an error names the one that is not as expected.
pub fn parsed<T: DeserializeOwned>(section: &Map<String, Value>) -> anyhow::Result<Vec<(String, T)>> {
    let one = |(id, value): (&String, &Value)| {
        let judged = T::deserialize(value).with_context(|| format!("'{id}' of the overlay"))?;
        Ok((id.clone(), judged))
    };
    section.iter().map(one).collect()
}

/// A title within a sentence: `Port forward` is `port forward`; names such as `DNS zone` and `OpenVPN` stay.
pub fn noun(title: &str) -> String {
    let first = title.split(' ').next().unwrap_or_default();
    let mut rest = title.chars();
    match rest.next() {
        Some(initial) if !first.chars().skip(1).any(char::is_uppercase) => {
            initial.to_lowercase().chain(rest).collect()
        }
        _ => title.to_owned(),
    }
}

const DESCRIPTION: &str = "description.json";

/// Stands beside the adapter, for what the vendor's contract says.
pub const FACTS: &str = "facts.json";

/// The description as the file has it.
fn text(folder: &Path, description: &Value) -> anyhow::Result<String> {
    let (mut description, model) = (description.clone(), folder.join(MODEL));
    if model.exists() {
        let mut filled: Value = read(&model)?;
        written::add(&mut filled, &description["features"]);
        description["model"] = filled;
    }
    releases::add(folder, &mut description)?;
    Ok(serde_json::to_string_pretty(&description)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::noun;

    #[test]
    fn titles_begin_with_a_small_letter_and_names_stay() {
        for (title, expected) in [
            ("Port forward", "port forward"),
            ("DNS zone", "DNS zone"),
            ("OpenVPN instance", "OpenVPN instance"),
            ("A record", "a record"),
            ("", ""),
        ] {
            assert_eq!(noun(title), expected);
        }
    }
}
