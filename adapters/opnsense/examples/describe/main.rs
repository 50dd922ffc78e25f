//! Makes `description.json` from `facts.json` and `overlay.json`.

mod actions;
mod fields;
mod grammar;
mod items;
mod judged;
mod overlay;
mod reads;
mod routes;

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use heddle_adapter_kit::Made;
use routes::Shares;

fn main() -> anyhow::Result<()> {
    let (made, shares) = made()?;
    heddle_adapter_kit::write(folder(), &made)?;
    write!(std::io::stdout(), "{shares}").context("the classes cannot be shown")?;
    ensure!(shares.reads.is_judged() && shares.writes.is_judged(), "routes are open: nobody judged them");
    Ok(())
}

/// The folder of the adapter.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn made() -> anyhow::Result<(Made, Shares)> {
    let [facts, overlay] = ["facts.json", "overlay.json"].map(|name| folder().join(name));
    grammar::make(&heddle_adapter_kit::read(&facts)?, &heddle_adapter_kit::read(&overlay)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_in_description_is_what_the_facts_give() {
        heddle_adapter_kit::check(folder(), &made().unwrap().0).unwrap();
    }

    #[test]
    fn same_facts_give_the_same_description() {
        let [one, other] = [(); 2].map(|()| made().unwrap());
        assert_eq!(one.0.description.to_string(), other.0.description.to_string());
        assert_eq!(one.0.coverage.to_string(), other.0.coverage.to_string());
        assert_eq!(one.1.to_string(), other.1.to_string());
    }

    #[test]
    fn nearly_all_routes_are_covered_and_every_other_has_a_reason() {
        let shares = made().unwrap().1;
        // Reads that answer no JSON are left out: the host hands none of them on.
        for (share, least) in [(shares.writes, 950), (shares.reads, 930)] {
            assert!(share.covered() >= least && share.is_judged(), "{shares}");
        }
    }
}
