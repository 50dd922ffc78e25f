//! Finds the route of a method and a path.

use std::collections::BTreeMap;

use crate::facts::{Route, facts};

/// Routes by method and path: the trees of parts, literal parts before parameters.
#[derive(Default)]
pub(crate) struct Router {
    roots: BTreeMap<&'static str, Branch>,
}

#[derive(Default)]
struct Branch {
    literal: BTreeMap<&'static str, Branch>,
    parameter: Option<Box<Branch>>,
    route: Option<&'static Route>,
}

/// What a method and a path lead to.
pub(crate) enum Match {
    Found(&'static Route, BTreeMap<&'static str, String>),
    OtherMethod,
    Nothing,
}

impl Router {
    pub(crate) fn new() -> Self {
        let mut router = Self::default();
        for route in &facts().routes {
            let mut branch = router.roots.entry(&route.method).or_default();
            for part in &route.parts {
                branch = if part.starts_with('{') {
                    branch.parameter.get_or_insert_default()
                } else {
                    branch.literal.entry(part).or_default()
                };
            }
            branch.route = Some(route);
        }
        router
    }

    pub(crate) fn find(&self, method: &str, parts: &[&str]) -> Match {
        if let Some(route) = self.roots.get(method).and_then(|root| root.walk(parts)) {
            let pairs = route.parts.iter().zip(parts);
            let parameters = pairs.filter_map(|(name, part)| {
                let name = name.strip_prefix('{')?.strip_suffix('}')?;
                Some((name, (*part).to_owned()))
            });
            return Match::Found(route, parameters.collect());
        }
        if self.roots.values().any(|root| root.walk(parts).is_some()) {
            Match::OtherMethod
        } else {
            Match::Nothing
        }
    }
}

impl Branch {
    fn walk(&self, parts: &[&str]) -> Option<&'static Route> {
        let Some((first, rest)) = parts.split_first() else { return self.route };
        let literal = self.literal.get(first).and_then(|branch| branch.walk(rest));
        literal.or_else(|| self.parameter.as_ref().filter(|_| !first.is_empty())?.walk(rest))
    }
}
