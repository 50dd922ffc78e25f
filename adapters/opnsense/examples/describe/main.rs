//! Makes `description.json` from `facts.json` and `overlay.json`.

mod actions;
mod fields;
mod grammar;
mod items;
mod judged;
mod overlay;
mod reads;
mod routes;

use std::path::Path;

use heddle_adapter_kit::Made;

fn main() -> anyhow::Result<()> {
    heddle_adapter_kit::write(folder(), &made()?)
}

/// The folder of the adapter.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn made() -> anyhow::Result<Made> {
    heddle_adapter_kit::made(folder(), grammar::make)
}

#[cfg(test)]
mod tests {
    use heddle_adapter_kit::{Least, check, check_same};

    use super::*;

    #[test]
    fn checked_in_description_is_what_the_facts_give() {
        check(folder(), &made().unwrap()).unwrap();
    }

    #[test]
    fn same_facts_give_the_same_description() {
        check_same(&made().unwrap(), &made().unwrap()).unwrap();
    }

    #[test]
    fn nearly_all_routes_are_covered_and_every_other_has_a_reason() {
        // Reads that answer no JSON are left out: the host hands none of them on.
        made().unwrap().coverage.require(Least { writes: 950, reads: 930 }).unwrap();
    }
}
