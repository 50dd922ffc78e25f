//! How the API document speaks of channels.

use heddle_kernel::http::glossary::Glossary;

pub(crate) const PUSH: Glossary =
    Glossary { vocabulary: include_str!("../assets/vocabulary.txt"), ..Glossary::EMPTY };
