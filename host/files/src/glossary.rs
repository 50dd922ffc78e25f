//! How the API document speaks of files.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const FILES: Glossary = Glossary {
    groups: &[("files", "Files", "Files that people upload for changes, and files that devices gave.")],
    nouns: &[("/files", "file", "files")],
    ..Glossary::EMPTY
};
