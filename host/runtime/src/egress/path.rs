//! Which paths may be asked for. What passes is sent byte for byte.

use heddle_core::fault::Fault;
use url::Url;

use super::request::denied;

pub(super) const BYTES_MAX: usize = 8 << 10;
/// How often a device might decode a path before it looks at its segments.
const DECODES: usize = 3;

/// Refuses paths that could name another host, or another path than they show.
pub(super) fn check(path: &str) -> Result<(), Fault> {
    match problem(path) {
        None => Ok(()),
        Some(problem) => Err(denied("path", format!("path '{}' is not accepted: {problem}", shown(path)))),
    }
}

fn problem(path: &str) -> Option<&'static str> {
    if path.len() > BYTES_MAX {
        return Some("it is longer than 8 KiB");
    }
    if !path.starts_with('/') || path.starts_with("//") {
        return Some("it starts with one '/' and names no host");
    }
    if !path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\' && b != b'#') {
        return Some("encode spaces, control characters, '\\', '#' and what is not ASCII");
    }
    let plain = path.split('?').next().unwrap_or(path);
    let mut decoded = plain.to_owned();
    for _ in 0..DECODES {
        if has_dots(&decoded) {
            return Some("'.' and '..' segments are refused, encoded or not");
        }
        let Some(next) = decode(&decoded) else { return Some("a '%' is followed by two hex digits") };
        if next.bytes().any(|b| b.is_ascii_control()) {
            return Some("encoded control characters are refused");
        }
        if next == decoded {
            return None;
        }
        decoded = next;
    }
    if has_dots(&decoded) { Some("'.' and '..' segments are refused, encoded or not") } else { None }
}

/// Some servers cut parameters (`;x`) off a segment, so `..;x` counts too.
fn has_dots(path: &str) -> bool {
    path.split(['/', '\\'])
        .map(|segment| segment.split(';').next().unwrap_or(segment))
        .any(|s| s == "." || s == "..")
}

/// Decodes once; `None` for an escape that is none. Bytes that are no UTF-8 stay visible.
fn decode(path: &str) -> Option<String> {
    let escapes = path.split('%').skip(1);
    let valid = escapes
        .into_iter()
        .all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|b| b.is_ascii_hexdigit()));
    valid.then(|| percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned())
}

fn shown(path: &str) -> String {
    path.split('?').next().unwrap_or(path).chars().filter(|c| !c.is_control()).take(80).collect()
}

/// The address of a path below the controller's, or a refusal when it would
/// not be sent as it was checked.
pub(super) fn join(base: &Url, path: &str) -> Result<Url, Fault> {
    let prefix = base.path().trim_end_matches('/');
    let wanted = format!("{prefix}{path}");
    let changed =
        || denied("path", format!("path '{}' is not accepted: encode what a URL does not hold", shown(path)));
    let mut url = base.clone();
    url.set_fragment(None);
    let (plain, query) = wanted.split_once('?').map_or((wanted.as_str(), None), |(p, q)| (p, Some(q)));
    url.set_path(plain);
    url.set_query(query);
    let sent = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    if sent == wanted && url.origin() == base.origin() { Ok(url) } else { Err(changed()) }
}

/// Whether a path fits a rule: exactly, with `*` standing for one segment, or with `**` at its end standing for one or
/// more. The query is not looked at.
pub(super) fn fits(rule: &str, path: &str) -> bool {
    let plain = path.split('?').next().unwrap_or(path);
    let (mut rule, mut plain) = (rule.split('/'), plain.split('/'));
    loop {
        match (rule.next(), plain.next()) {
            (None, None) => return true,
            (Some("**"), Some(segment)) if rule.clone().next().is_none() => return !segment.is_empty(),
            (Some("*"), Some(segment)) if is_one_segment(segment) => {}
            (Some(wanted), Some(segment)) if wanted == segment => {}
            _ => return false,
        }
    }
}

/// An encoded slash could be two segments to the device.
fn is_one_segment(segment: &str) -> bool {
    let lower = segment.to_ascii_lowercase();
    !segment.is_empty() && !lower.contains("%2f") && !lower.contains("%5c") && !lower.contains("%25")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_paths_pass() {
        for path in [
            "/",
            "/ubus",
            "/api/v2/sites?limit=5&x=%20",
            "/rest/interface/*1",
            "/a/b%2Fc",
            "/a/...",
            "/x?u=http://h/..",
            "/a//b",
        ] {
            assert!(check(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn tricks_are_refused() {
        let tricks = [
            "",
            "x",
            "http://evil/",
            "//evil/",
            "/\\evil",
            "/a b",
            "/a\r\nHost: x",
            "/a\tb",
            "/a#b",
            "/\u{e4}",
            "/a\0",
            "/..",
            "/a/../b",
            "/a/./b",
            "/a/%2e%2e/b",
            "/a/%2E./b",
            "/a/.%2e",
            "/a/..%2fb",
            "/a/..%5cb",
            "/a/%252e%252e/b",
            "/a/%25252e%25252e/b",
            "/a/..;/b",
            "/a/..;x=1/b",
            "/a%0d%0ab",
            "/a%00",
            "/a%",
            "/a%2",
            "/a%zz",
            "/a%2%65",
            "/a\u{7f}",
        ];
        for path in tricks {
            let fault = check(path).expect_err(path);
            assert_eq!(fault.code.as_deref(), Some("path"), "{path}");
        }
        assert!(check(&format!("/{}", "a".repeat(BYTES_MAX))).is_err());
    }

    #[test]
    fn what_was_checked_is_what_is_sent() {
        let base = Url::parse("https://router:8443/").unwrap();
        assert_eq!(join(&base, "/a/*1?x=%41").unwrap().as_str(), "https://router:8443/a/*1?x=%41");
        let below = Url::parse("https://router/base/").unwrap();
        assert_eq!(join(&below, "/a").unwrap().as_str(), "https://router/base/a");
        for changed in ["/a\"b", "/a<b>", "/a/../b", "/a`"] {
            assert!(join(&base, changed).is_err(), "{changed}");
        }
    }

    #[test]
    fn two_stars_at_the_end_are_one_segment_or_more() {
        for path in ["/api/x", "/api/x/y%2Fz", "/api/x/?q"] {
            assert!(fits("/api/**", path), "{path}");
        }
        for path in ["/api", "/api/", "/api//x", "/apix/y", "/other/x"] {
            assert!(!fits("/api/**", path), "{path}");
        }
        assert!(fits("/**", "/x") && !fits("/**", "/"));
    }

    #[test]
    fn a_star_is_exactly_one_segment() {
        assert!(fits("/api/*/list", "/api/x/list"));
        assert!(fits("/api/*", "/api/x?y=/z"));
        for path in [
            "/api//list",
            "/api/x/y/list",
            "/api/x%2Fy/list",
            "/api/x%252Fy/list",
            "/api/list",
            "/api/x/list/",
        ] {
            assert!(!fits("/api/*/list", path), "{path}");
        }
    }
}
