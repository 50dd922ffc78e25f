//! What differs between the facts of two releases: routes and fields that appeared, vanished or changed their type.

use std::collections::BTreeMap;
use std::fmt;

/// What facts say of an API: the types of fields, by route and name.
pub type Surface = BTreeMap<String, BTreeMap<String, String>>;

/// The differences between two surfaces, for people.
#[derive(Debug)]
pub struct Differences {
    lines: Vec<String>,
}

impl Differences {
    /// What `after` has otherwise than `before`.
    pub fn between(before: &Surface, after: &Surface) -> Self {
        let mut lines = Vec::new();
        for (route, fields) in after {
            match before.get(route) {
                None => lines.push(format!("appeared  {route}")),
                Some(known) => of_fields(route, known, fields, &mut lines),
            }
        }
        let gone = before.keys().filter(|route| !after.contains_key(*route));
        lines.extend(gone.map(|route| format!("vanished  {route}")));
        Self { lines }
    }
}

fn of_fields(
    route: &str,
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
    lines: &mut Vec<String>,
) {
    for (name, kind) in after {
        match before.get(name) {
            None => lines.push(format!("appeared  {route}  {name}: {kind}")),
            Some(known) if known != kind => {
                lines.push(format!("changed   {route}  {name}: {known} -> {kind}"));
            }
            Some(_) => {}
        }
    }
    let gone = before.iter().filter(|(name, _)| !after.contains_key(*name));
    lines.extend(gone.map(|(name, kind)| format!("vanished  {route}  {name}: {kind}")));
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        let of = |word: &str| self.lines.iter().filter(|line| line.starts_with(word)).count();
        let (appeared, vanished, changed) = (of("appeared"), of("vanished"), of("changed"));
        writeln!(f, "{appeared} appeared, {vanished} vanished, {changed} changed")
    }
}

/// The type of a field in words, with what it may hold.
pub fn kind(of: &str, is_required: bool, options: &[String]) -> String {
    let required = if is_required { ", required" } else { "" };
    let options = if options.is_empty() { String::new() } else { format!(" {}", options.join("|")) };
    format!("{of}{options}{required}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surface(routes: &[(&str, &[(&str, &str)])]) -> Surface {
        let fields = |all: &[(&str, &str)]| {
            all.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect()
        };
        routes.iter().map(|(route, all)| ((*route).to_owned(), fields(all))).collect()
    }

    #[test]
    fn what_appeared_vanished_and_changed_is_told_by_route_and_field() {
        let before =
            surface(&[("POST /vm", &[("name", "string"), ("cpu", "string")]), ("POST /groups", &[])]);
        let after = surface(&[
            ("POST /vm", &[("name", "string"), ("cpu", "integer"), ("tags", "string")]),
            ("POST /rules", &[]),
        ]);
        let expected = "appeared  POST /rules\nchanged   POST /vm  cpu: string -> integer\n\
                        appeared  POST /vm  tags: string\nvanished  POST /groups\n\
                        2 appeared, 1 vanished, 1 changed\n";
        assert_eq!(Differences::between(&before, &after).to_string(), expected);
        let back = Differences::between(&after, &before).to_string();
        assert!(back.contains("vanished  POST /vm  tags: string"), "{back}");
        assert_eq!(Differences::between(&after, &after).to_string(), "0 appeared, 0 vanished, 0 changed\n");
    }

    #[test]
    fn a_type_says_what_it_holds() {
        assert_eq!(kind("enum", true, &["a".to_owned(), "b".to_owned()]), "enum a|b, required");
        assert_eq!(kind("text", false, &[]), "text");
    }
}
