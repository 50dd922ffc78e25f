//! What waits while packages are compiled, and what does not.

use std::path::Path;

use heddle_runtime::Compiler;
use tokio::task::JoinSet;

use super::{Keys, Lab, agree, archive_of, change, manifest, send};
use crate::sandbox::device::Device;
use crate::support::plugins::named;
use crate::support::{Server, heddle_binary, on_both};

/// A compiler that begins once there is no file at this path.
fn held_by(hold: &Path) -> Compiler {
    let (hold, heddle) = (hold.display(), heddle_binary());
    let compile = format!("exec '{}' plugin-compile", heddle.display());
    let script = format!("while [ -e '{hold}' ]; do /bin/sleep 0.02; done; {compile}");
    Compiler { program: "/bin/sh".into(), args: vec!["-c".to_owned(), script], is_awaited: false }
}

/// A component without contents, which cannot serve. No server has its code yet: it has a custom section of this name.
fn never_compiled(name: &str) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("the name is short");
    assert!(length < 127, "the section has a length of one byte");
    [&b"\0asm\x0d\0\x01\0"[..], &[0, length + 1, length], name.as_bytes()].concat()
}

on_both! {
    async fn a_plugin_is_taken_out_of_service_while_as_many_installations_wait_as_may(database: Database) {
        let (keys, device) = (Keys::new(), Device::start().await);
        let folder = tempfile::tempdir().unwrap();
        let hold = folder.path().join("hold");
        let options = keys.options().compiling(held_by(&hold));
        let server = Server::start_with(database, options).await;
        let api = server.set_up().await;
        let lab = Lab { server, api, device, keys };
        send(&lab.api, &lab.archive(|_| ())).await.expect_status(201);
        agree(&lab.api).await;

        std::fs::write(&hold, "").unwrap();
        let component = never_compiled(&lab.keys.acme.trusted().key_id());
        let mut installing = JoinSet::new();
        for id in ["one", "two", "three", "four", "five"] {
            let manifest = named(&manifest(&lab.device.url()), id);
            let archive = archive_of(&manifest, component.clone(), &lab.keys.acme);
            let api = lab.api.clone();
            installing.spawn(async move { send(&api, &archive).await });
        }
        // The first one is compiled and three wait for it: only the one that finds no place is answered.
        let refused = installing.join_next().await.unwrap().unwrap().expect_status(409);
        assert_eq!(refused.error_type(), "install_under_way", "{}", refused.text);
        assert_eq!(change(&lab.api, "disable").await.expect_status(200).body["state"], "disabled");
        let full = change(&lab.api, "enable").await.expect_status(409);
        assert_eq!(full.error_type(), "install_under_way", "what is to serve needs a place: {}", full.text);
        lab.api.delete("/plugins/scripted").await.expect_status(204);

        std::fs::remove_file(&hold).unwrap();
        while let Some(sent) = installing.join_next().await {
            assert_eq!(sent.unwrap().expect_status(201).body["state"], "rejected");
        }
    }
}
