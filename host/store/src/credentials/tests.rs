use super::*;
use crate::controllers::Controller;
use crate::testing::{World, on_both, page};

on_both! {
    async fn a_new_secret_raises_the_version(db) {
        let (world, other) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        let sealed = find_sealed(&mut tx, world.org, world.credential).await.unwrap().unwrap();
        assert_eq!((sealed.secret, sealed.version, sealed.key_id.as_str()), (vec![0, 1, 255], 1, "k1"));
        assert!(find_sealed(&mut tx, other.org, world.credential).await.unwrap().is_none());
        let rename = CredentialUpdate { name: Some("n".into()), ..Default::default() };
        assert_eq!(update(&mut tx, &other.scope(), world.credential, &rename, now).await.unwrap(), None);
        let renamed = update(&mut tx, &scope, world.credential, &rename, now).await.unwrap().unwrap();
        assert_eq!((renamed.version, renamed.username.as_deref()), (1, Some("root")));
        let sealed = SealedSecret { username: None, has_password: false, has_api_key: true, field_names: vec!["client-id".into()], key_id: "k2".into(), secret: vec![7] };
        let new = update(&mut tx, &scope, world.credential, &CredentialUpdate { sealed: Some(sealed), ..Default::default() }, now).await.unwrap().unwrap();
        assert_eq!((new.version, new.username, new.has_password, new.has_api_key), (2, None, false, true));
        assert_eq!((renamed.field_names, new.field_names), (Vec::<String>::new(), vec!["client-id".to_owned()]));
        let vendor = Controller::find(&mut tx, &scope, world.controller).await.unwrap().unwrap().vendor;
        assert_eq!(vendors(&mut tx, world.credential).await.unwrap(), [vendor]);
        assert_eq!(list(&mut tx, &scope, Some("N"), page()).await.unwrap().1, 1);
        assert_eq!(used_by(&mut tx, world.credential).await.unwrap(), 1);
        assert!(Credential::remove(&mut tx, &scope, world.credential, now).await.unwrap());
        assert_eq!(Credential::find(&mut tx, &scope, world.credential).await.unwrap(), None);
        assert!(Credential::find(&mut tx, &other.scope(), other.credential).await.unwrap().is_some());
    }

    async fn a_credential_is_of_some_sites_only_while_no_other_site_uses_it(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        let branch = world.clock.new_id();
        crate::sites::insert(&mut tx, &world.new_site(branch, "branch")).await.unwrap();
        assert!(is_used_only_at(&mut tx, world.credential, &[world.site]).await.unwrap());
        assert!(is_used_only_at(&mut tx, world.credential, &[world.site, branch]).await.unwrap());
        assert!(!is_used_only_at(&mut tx, world.credential, &[branch]).await.unwrap());
        assert!(!is_used_only_at(&mut tx, world.credential, &[]).await.unwrap());
        assert!(Controller::remove(&mut tx, &scope, world.controller, now).await.unwrap());
        assert!(!is_used_only_at(&mut tx, world.credential, &[world.site]).await.unwrap(), "nobody uses it");
    }

    async fn a_removed_credential_comes_back_with_its_secret(db) {
        let (world, other) = (World::new(&db, "a").await, World::new(&db, "b").await);
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        assert_eq!(Credential::restore(&mut tx, &scope, world.credential, now).await.unwrap(), None);
        assert!(Credential::remove(&mut tx, &scope, world.credential, now).await.unwrap());
        assert_eq!(Credential::restore(&mut tx, &other.scope(), world.credential, now).await.unwrap(), None);
        let restored = Credential::restore(&mut tx, &scope, world.credential, now).await.unwrap().unwrap();
        assert_eq!((restored.id, restored.deleted_at), (world.credential, None));
        assert!(find_sealed(&mut tx, world.org, world.credential).await.unwrap().is_some());
    }

    async fn where_a_credential_is_good_is_kept_set_and_cleared(db) {
        let world = World::new(&db, "a").await;
        let mut tx = db.write().await.unwrap();
        let (scope, now) = (world.scope(), world.clock.now());
        let pin = TlsPolicy { mode: heddle_core::tls::TlsMode::Pin, fingerprint: Some("ab".repeat(32)), ca_pem: None };
        let set = CredentialUpdate { host: Set::To("192.0.2.1".into()), port: Set::To(8443), tls: Set::To(pin.clone()), ..Default::default() };
        let there = update(&mut tx, &scope, world.credential, &set, now).await.unwrap().unwrap();
        assert_eq!((there.host.as_deref(), there.port, there.tls.as_ref(), there.version), (Some("192.0.2.1"), Some(8443), Some(&pin), 1));
        let clear = CredentialUpdate { port: Set::Clear, tls: Set::Clear, ..Default::default() };
        let cleared = update(&mut tx, &scope, world.credential, &clear, now).await.unwrap().unwrap();
        assert_eq!((cleared.host.as_deref(), cleared.port, cleared.tls), (Some("192.0.2.1"), None, None));
        let sealed = SealedSecret { username: None, has_password: true, has_api_key: false, field_names: Vec::new(), key_id: "k".into(), secret: vec![1] };
        let new = NewCredential { id: world.clock.new_id(), org_id: world.org, name: "b".into(), host: Some("h".into()), port: Some(1), tls: Some(pin.clone()), sealed, now };
        let made = insert(&mut tx, &new).await.unwrap();
        assert_eq!((made.host.as_deref(), made.port, made.tls.as_ref()), (Some("h"), Some(1), Some(&pin)));
        assert_eq!(Credential::find(&mut tx, &scope, made.id).await.unwrap(), Some(made));
    }
}
