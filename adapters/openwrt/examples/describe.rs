//! Makes `description.json` from the adapter's own tables.

use std::path::Path;

use heddle_adapter_kit::{Coverage, Made};

fn main() -> anyhow::Result<()> {
    heddle_adapter_kit::write(Path::new(env!("CARGO_MANIFEST_DIR")), &made())
}

fn made() -> Made {
    Made { description: heddle_adapter_openwrt::description(), coverage: Coverage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_in_description_is_what_the_tables_say() {
        heddle_adapter_kit::check(Path::new(env!("CARGO_MANIFEST_DIR")), &made()).unwrap();
    }
}
