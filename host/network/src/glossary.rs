//! How the API document speaks of networks.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const NETWORK: Glossary = Glossary {
    groups: &[(
        "network",
        "Network",
        "VLANs of a site over all of its controllers: side by side, compared, aligned, and distributed from the firewall that \
         holds the intent.",
    )],
    nouns: &[("/network/canonical-vlans", "canonical_vlan", "canonical_vlans")],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
};
