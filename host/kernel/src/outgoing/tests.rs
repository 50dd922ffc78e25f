use super::*;

#[test]
fn a_url_is_whole_and_says_one_thing() {
    for url in [
        "https://hooks.example.org/a?b=c",
        "http://hooks.example.org:8080",
        "HTTPS://EXAMPLE.ORG/@user",
        "https://bücher.example/",
        "http://[2a00::1]/",
    ] {
        assert!(check_url(url).is_ok(), "{url}: {:?}", check_url(url));
    }
    for url in [
        "",
        "hooks.example.org",
        "//hooks.example.org",
        "ftp://hooks.example.org",
        "file:///etc/passwd",
        "gopher://x.example:70/",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "https://user@x.example/",
        "https://user:pass@x.example/",
        "https://@x.example/",
        "https://:@x.example/",
        "https://8.8.8.8@127.0.0.1/",
        "https://x.example\\@127.0.0.1/",
        "https://x.example\\.evil/",
        "https://x.example/a b",
        "https://x.example/a\r\nHost: y",
        "https://x.exa\tmple/",
        " https://x.example/",
        "http://[fe80::1%25eth0]/",
        "http://[fe80::1%eth0]/",
        "http://256.256.256.256/",
        "http://1.2.3.4.5/",
        "http://0x100000000/",
        "http://x.example:99999/",
        "http://exa mple/",
        "http://a%00b/",
        "http://%2f/",
        "http://./",
        "http://../",
    ] {
        assert!(check_url(url).is_err(), "{url:?}");
    }
    assert!(check_url(&format!("https://x.example/{}", "a".repeat(URL_BYTES_MAX))).is_err());
}

#[test]
fn a_host_is_listed_by_its_exact_name_or_address() {
    let listed: Vec<String> =
        ["Hooks.Example.org", "10.1.2.3", "fd00::7", "dot.example."].map(str::to_owned).into();
    for url in [
        "https://hooks.example.org/",
        "https://HOOKS.example.org./",
        "http://10.1.2.3:81/",
        "http://0x0a010203/",
        "http://012.1.2.3/",
        "http://[::ffff:10.1.2.3]/",
        "http://[fd00:0::0007]/",
        "http://dot.example/",
    ] {
        assert_eq!(reach(&check_url(url).unwrap(), &listed), Reach::OutwardListed, "{url}");
    }
    for url in [
        "https://a.hooks.example.org/",
        "https://hooks.example.org.evil.example/",
        "https://example.org/",
        "http://10.1.2.4/",
        "http://[fd00::8]/",
    ] {
        assert_eq!(reach(&check_url(url).unwrap(), &listed), Reach::Outward, "{url}");
    }
}
