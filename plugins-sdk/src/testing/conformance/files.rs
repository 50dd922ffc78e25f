//! Kinds that are files.

use serde_json::Value;

use crate::testing::{Package, Practice};
use crate::{Adapter as _, Attribute, FaultExt as _, Fetching};

/// What a person gives to fetch a file.
#[derive(Debug, Default)]
pub struct Wanted {
    pub site: Option<String>,
    pub key: Option<String>,
    pub filter: Vec<Attribute>,
}

impl Wanted {
    /// The file of this key.
    #[must_use]
    pub fn of(key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..Self::default() }
    }

    /// The same with a filter.
    #[must_use]
    pub fn by(mut self, name: &str, value: &str) -> Self {
        self.filter.push(Attribute { key: name.to_owned(), value: value.to_owned() });
        self
    }
}

/// Fetches each file that the package describes from a practice device, and returns how many there are. `wanted` says what
/// people give for a kind.
///
/// # Panics
///
/// Where one cannot be fetched, is empty, or is of another type than the description says.
pub fn every_file<P: Practice>(device: &P, package: &Package, wanted: impl Fn(&str) -> Wanted) -> usize {
    let kinds = package.description()["kinds"].as_array();
    let files = kinds.into_iter().flatten().filter(|kind| kind["file"].is_object());
    let (mut count, mut problems) = (0, Vec::new());
    for kind in files {
        count += 1;
        if let Some(problem) = problem(device, kind, &wanted(kind["id"].as_str().unwrap_or_default())) {
            problems.push(format!("{}: {problem}", kind["id"]));
        }
    }
    assert!(problems.is_empty(), "{} of {count}:\n{}", problems.len(), problems.join("\n"));
    count
}

fn problem<P: Practice>(device: &P, kind: &Value, wanted: &Wanted) -> Option<String> {
    let fetching = Fetching {
        kind: kind["id"].as_str().unwrap_or_default(),
        site: wanted.site.as_deref(),
        key: wanted.key.as_deref(),
        filter: &wanted.filter,
    };
    match P::Adapter::fetch_file(&device.host(), &fetching) {
        Err(fault) => Some(fault.info().message.clone()),
        Ok(file) if file.size_bytes == 0 => Some("it is empty".to_owned()),
        Ok(file) => {
            let told = kind["file"]["content-type"].as_str()?;
            // Many devices say only that it is bytes.
            let is_told =
                [Some(told), Some("application/octet-stream")].contains(&file.content_type.as_deref());
            (!is_told).then(|| format!("it is {:?} instead of {told}", file.content_type))
        }
    }
}
