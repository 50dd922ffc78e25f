//! How the API document speaks of what is managed.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const DEVICES: Glossary = Glossary {
    groups: &[(
        "devices",
        "Devices",
        "What controllers report: routers, switches, access points and the clients of the network.",
    )],
    nouns: &[("/devices", "device", "devices")],
    examples: include_str!("../assets/examples.json"),
    vocabulary: include_str!("../assets/vocabulary.txt"),
};

pub(crate) const INVENTORY: Glossary = Glossary {
    groups: &[(
        "inventory",
        "Inventory",
        "What controllers have, such as ports, VLANs and rules, in words that all vendors share.",
    )],
    nouns: &[("/inventory", "object", "objects")],
    ..Glossary::EMPTY
};

pub(crate) const CONTROLLERS: Glossary = Glossary {
    groups: &[(
        "controllers",
        "Controllers",
        "The systems of vendors that devices are managed through: how they are reached, tested and read.",
    )],
    nouns: &[("/controllers", "controller", "controllers")],
    ..Glossary::EMPTY
};

pub(crate) const CREDENTIALS: Glossary = Glossary {
    groups: &[(
        "credentials",
        "Credentials",
        "Logins at controllers. They are stored encrypted and never shown again.",
    )],
    nouns: &[("/credentials", "credential", "credentials")],
    ..Glossary::EMPTY
};

pub(crate) const ADAPTERS: Glossary = Glossary {
    groups: &[(
        "adapters",
        "Adapters",
        "The vendors' components that serve, and the packages that they are of.",
    )],
    nouns: &[("/adapters", "adapter", "adapters")],
    ..Glossary::EMPTY
};
