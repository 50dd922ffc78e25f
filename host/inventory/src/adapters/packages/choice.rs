//! Which of the packages of an id may serve, and which of them comes first. Pure: the facts are given.

use heddle_kernel::modules::RefusedPackages;
use heddle_packages::{Ground, check};
use heddle_store::packages::Binding;
use semver::Version;

use super::{Candidate, Origin};

/// Leaves out packages that an installed one stands before, or that stand before it. They are not refused: a folder keeps
/// what a server was shipped with.
///
/// The newest of both serves. A pinned package gives way only to one that is newer than all that ever served.
pub(super) fn without_outdone(
    candidates: Vec<Candidate>,
    is_pinned: bool,
    binding: Option<&Binding>,
) -> Vec<Candidate> {
    let version = |candidate: &Candidate| candidate.package.manifest().version.clone();
    let Some(installed) = candidates.iter().find(|one| one.origin == Origin::Installed).map(version) else {
        return candidates;
    };
    let highest = binding.and_then(|binding| Version::parse(&binding.version).ok());
    let least = match &highest {
        Some(highest) if is_pinned => highest.max(&installed).clone(),
        _ => installed.clone(),
    };
    let is_newer = |candidate: &Candidate| candidate.origin == Origin::Folder && version(candidate) > least;
    // An installed package that is older than one that served cannot stand in for the newer one.
    let is_past = !is_pinned && highest.is_some_and(|highest| installed < highest);
    let is_outdone = is_past && candidates.iter().any(is_newer);
    candidates
        .into_iter()
        .filter(|candidate| match candidate.origin {
            Origin::Installed => !is_outdone,
            Origin::Folder => is_newer(candidate),
        })
        .collect()
}

/// Returns the packages of an id that may serve, the one to serve first, and refuses the others.
pub(super) fn in_order(
    id: &str,
    candidates: Vec<Candidate>,
    binding: Option<&Binding>,
    ground: &Ground,
    refused: &mut RefusedPackages,
) -> Vec<Candidate> {
    let mut fit = Vec::new();
    for candidate in candidates {
        match binding.map_or(Ok(()), |binding| check(&candidate.package, binding, ground)) {
            Ok(()) => fit.push(candidate),
            Err(reason) => refused.add(candidate.name, reason),
        }
    }
    // Of equal versions, the package that served before comes first.
    let served = |c: &Candidate| binding.is_some_and(|b| b.manifest_sha256 == c.package.manifest_sha256());
    fit.sort_by_key(|c| std::cmp::Reverse((c.package.manifest().version.clone(), served(c))));
    let Some(problem) = undecided(id, &fit, binding.is_some(), served) else { return fit };
    for candidate in fit {
        refused.add(candidate.name, problem.clone());
    }
    Vec::new()
}

/// Returns why no package can be chosen: they come from different keys and nothing has served yet, or they differ and
/// have the same version.
fn undecided(
    id: &str,
    fit: &[Candidate],
    is_bound: bool,
    served: impl Fn(&Candidate) -> bool,
) -> Option<String> {
    let [first, others @ ..] = fit else { return None };
    let shown = |c: &Candidate| {
        let manifest = c.package.manifest();
        format!("'{}' ({} {})", c.name, manifest.publisher, manifest.version)
    };
    let rival = others.iter().find(|other| {
        let (a, b) = (&first.package, &other.package);
        let keys_differ = !is_bound && !b.signers().iter().any(|key| a.signers().contains(key));
        let versions_are_equal = a.manifest().version == b.manifest().version;
        keys_differ || (versions_are_equal && !served(first) && a.manifest_sha256() != b.manifest_sha256())
    })?;
    Some(format!("two packages have the id '{id}': {} and {}; keep one", shown(first), shown(rival)))
}
