//! A controller's address.

use url::Url;

/// Most bytes of a controller's address.
pub(crate) const URL_BYTES_MAX: usize = 2048;

/// The address in its normal form, without a slash at the end.
pub(crate) fn parse_url(text: &str) -> Result<String, String> {
    if text.len() > URL_BYTES_MAX {
        return Err(format!("must not exceed {URL_BYTES_MAX} bytes"));
    }
    let refused = |why: &str| Err(format!("{why}: give an address such as 'https://192.0.2.1:8443'"));
    let Ok(url) = Url::parse(text.trim()) else { return refused("is not a complete URL") };
    if !matches!(url.scheme(), "http" | "https") {
        return refused("must begin with http:// or https://");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return refused("must name a host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refused("must not hold a user name or password; they belong to the credential");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return refused("must not have a query or a fragment");
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_url(text: &str, expected: Option<&str>) {
        assert_eq!(parse_url(text).ok().as_deref(), expected, "{text}");
    }

    #[test]
    fn an_address_is_http_or_https_with_a_host_and_nothing_secret() {
        check_url("https://192.0.2.1", Some("https://192.0.2.1"));
        check_url(" https://Router.Example:8443/ ", Some("https://router.example:8443"));
        check_url("http://[2001:db8::1]:8080/base/", Some("http://[2001:db8::1]:8080/base"));
        check_url("ftp://192.0.2.1", None);
        check_url("file:///etc/passwd", None);
        check_url("192.0.2.1", None);
        check_url("/relative", None);
        check_url("https://", None);
        check_url("https://root:pw@192.0.2.1", None);
        check_url("https://root@192.0.2.1", None);
        check_url("https://192.0.2.1/?a=b", None);
        check_url("https://192.0.2.1/#top", None);
        check_url(&format!("https://192.0.2.1/{}", "x".repeat(2048)), None);
    }
}
