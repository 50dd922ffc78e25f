//! Which routes have their own limit, and which have none, as the routes themselves declare.

use std::collections::HashMap;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;

use crate::feature::Pages;
use crate::http::prefix::PREFIX;
use crate::http::routes::{Mark, Routes};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Unlimited,
    Login,
    General,
}

/// The classes of the routes that are not general, by template and method; of the method `None` for all.
#[derive(Debug)]
pub(crate) struct Classes(HashMap<String, Vec<(Option<Method>, Class)>>);

impl Classes {
    pub(crate) fn of(table: &Routes, pages: &[Pages]) -> Self {
        let mut classes: HashMap<String, Vec<(Option<Method>, Class)>> = HashMap::new();
        for route in table.iter() {
            let template = || format!("{PREFIX}{}", route.path);
            if route.doc.has(Mark::Unlimited) {
                classes.entry(template()).or_default().push((None, Class::Unlimited));
            } else if route.doc.has(Mark::LimitedAsLogin) {
                classes.entry(template()).or_default().push((Some(route.method.clone()), Class::Login));
            }
        }
        for template in pages.iter().flat_map(|pages| pages.unlimited) {
            classes.entry((*template).to_owned()).or_default().push((None, Class::Unlimited));
        }
        Self(classes)
    }

    /// Returns the class of the matched route. It does not depend on the text of the path, so no other spelling evades
    /// it.
    pub(super) fn class(&self, request: &Request) -> Class {
        let template = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        self.at(request.method(), template)
    }

    fn at(&self, method: &Method, template: &str) -> Class {
        let Some(classes) = self.0.get(template) else { return Class::General };
        // The handler of GET answers HEAD as well.
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let of = |wanted: Option<&Method>| classes.iter().find(|(of, _)| of.as_ref() == wanted);
        of(Some(method)).or_else(|| of(None)).map_or(Class::General, |(_, class)| *class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::access::Access;
    use crate::http::routes::doc;

    #[test]
    fn a_route_has_the_limit_that_it_says_on_its_own_method() {
        let answer = || async {};
        let table = Routes::default()
            .get("/health/live", Access::Public, answer, doc("").unlimited())
            .post("/login", Access::Public, answer, doc("").limited_as_login())
            .get("/login", Access::Public, answer, doc(""))
            .get("/code", Access::Public, answer, doc("").limited_as_login())
            .get("/sites", Access::Public, answer, doc(""));
        let pages = [Pages::default().unlimited(&["/health"])];
        let classes = Classes::of(&table, &pages);
        for (method, template, class) in [
            (Method::GET, "/health", Class::Unlimited),
            (Method::GET, "/api/v1/health/live", Class::Unlimited),
            (Method::POST, "/api/v1/health/live", Class::Unlimited),
            (Method::POST, "/api/v1/login", Class::Login),
            (Method::GET, "/api/v1/login", Class::General),
            (Method::HEAD, "/api/v1/code", Class::Login),
            (Method::GET, "/api/v1/sites", Class::General),
            (Method::GET, "/health/live", Class::General),
            (Method::GET, "", Class::General),
        ] {
            assert_eq!(classes.at(&method, template), class, "{method} {template}");
        }
    }
}
