//! How the API document speaks of a feature: names of its groups and objects, examples, and the meaning of its fields.

/// The words of one feature. [`crate::feature::Feature::glossary`] gives it.
#[derive(Debug)]
pub struct Glossary {
    /// Groups of operations: first segment of their paths, name, and subject in a sentence.
    pub groups: &'static [(&'static str, &'static str, &'static str)],
    /// Collections by their paths, with the names of one object and of several: `("/sites", "site", "sites")`. Names of
    /// operations are made of them.
    pub nouns: &'static [(&'static str, &'static str, &'static str)],
    /// A JSON object of bodies by the names of operations. A test sends each.
    pub examples: &'static str,
    /// Lines of `name: Text.` or `Schema.name: Text.`: meanings of properties and parameters that no doc comment tells.
    /// A name means the same in every schema.
    pub vocabulary: &'static str,
}

impl Glossary {
    /// Says nothing; the base of others.
    pub const EMPTY: Glossary = Glossary { groups: &[], nouns: &[], examples: "{}", vocabulary: "" };
}
