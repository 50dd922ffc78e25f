use super::*;

#[test]
fn key_file_round_trips_is_private_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("publisher.key");
    let key = PublisherKey::generate("acme").unwrap();
    key.save(&path).unwrap();
    assert_eq!(PublisherKey::load(&path).unwrap().trusted(), key.trusted());
    assert!(matches!(key.save(&path), Err(KeyError::Io(_))));
    assert!(!format!("{key:?}").contains(&hex::encode(key.signing().as_bytes())));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(PublisherKey::load(&path), Err(KeyError::Mode)));
    }
}

#[test]
fn trusted_keys_round_trip() {
    let keys = vec![
        PublisherKey::generate("acme").unwrap().trusted(),
        PublisherKey::generate("globex").unwrap().trusted(),
    ];
    assert_eq!(parse_trusted_keys(write_trusted_keys(&keys).as_bytes()).unwrap(), keys);
}

#[test]
fn unsound_trusted_keys_are_refused() {
    let sound = hex::encode(PublisherKey::generate("acme").unwrap().trusted().key);
    // The neutral point: a weak key.
    let weak = format!("01{}", "00".repeat(31));
    for text in [
        "{}".to_owned(),
        format!(r#"[{{"publisher":"Acme","key":"{sound}"}}]"#),
        format!(r#"[{{"publisher":"acme","key":"{weak}"}}]"#),
        r#"[{"publisher":"acme","key":"00"}]"#.to_owned(),
        format!(r#"[{{"publisher":"acme","key":"{sound}","role":"root"}}]"#),
        format!(r#"[{{"publisher":"acme","key":"{sound}"}},{{"publisher":"globex","key":"{sound}"}}]"#),
    ] {
        assert!(parse_trusted_keys(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_key_without_ids_signs_in_its_publishers_name_only() {
    let sound = hex::encode(PublisherKey::generate("acme").unwrap().trusted().key);
    let keys = parse_trusted_keys(format!(r#"[{{"publisher":"acme","key":"{sound}"}}]"#).as_bytes()).unwrap();
    for (id, may) in [("acme", true), ("acme-switch", true), ("acmes", false), ("openwrt", false)] {
        assert_eq!(keys[0].may_sign(id), may, "{id}");
    }
    let text = format!(r#"[{{"publisher":"acme","public_key":"{sound}","ids":["openwrt","zyxel-*"]}}]"#);
    let keys = parse_trusted_keys(text.as_bytes()).unwrap();
    for (id, may) in [("openwrt", true), ("openwrt-x", false), ("zyxel-gs", true), ("acme", false)] {
        assert_eq!(keys[0].may_sign(id), may, "{id}");
    }
    assert!(keys[0].names("openwrt") && !keys[0].names("zyxel-gs"));
    for ids in ["[]", r#"[""]"#, r#"["a*b"]"#, r#"["Acme"]"#, r#"["acme.*"]"#] {
        let text = format!(r#"[{{"publisher":"acme","public_key":"{sound}","ids":{ids}}}]"#);
        assert!(parse_trusted_keys(text.as_bytes()).is_err(), "{ids}");
    }
}
