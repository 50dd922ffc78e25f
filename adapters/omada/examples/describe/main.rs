//! Makes `description.json` from `facts.json` and `overlay.json`.

mod actions;
mod facts;
mod fields;
mod grammar;
mod items;
mod overlay;
mod reads;
mod shown;

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
    let [facts, overlay] = ["facts.json", "overlay.json"].map(|name| folder().join(name));
    grammar::make(&heddle_adapter_kit::read(&facts)?, &heddle_adapter_kit::read(&overlay)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_in_description_is_what_the_facts_give() {
        heddle_adapter_kit::check(folder(), &made().unwrap()).unwrap();
    }

    #[test]
    fn same_facts_give_the_same_description() {
        let [one, other] = [(); 2].map(|()| made().unwrap());
        assert_eq!(one.description.to_string(), other.description.to_string());
        assert_eq!(one.coverage.to_string(), other.coverage.to_string());
    }
}
