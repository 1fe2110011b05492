//! Tests that the tokens of the provider stay secret.

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive_auth_proxy::{LoginStoreError, Provider};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::support::{Browser, LOOPBACK, SECRET, World, asked};

/// Captures all log output at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = writeln!(self.0.lock().unwrap(), "{field}={value:?}");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut self.clone());
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

// ARS-20
#[tokio::test]
async fn provider_tokens_are_in_no_response_entry_log_or_debug_output() {
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let world = World::new().await;
    let id = world.register(LOOPBACK).await;
    let mut browser = Browser::default();
    let back = browser.log_in(&world.authorize(&id, LOOPBACK, &[])).await;
    let given = world.token(&asked(&back, "code").unwrap(), &id, &[]).await;
    world.later(Duration::from_secs(3_600));
    let again = world.refresh(&given.text("refresh_token"), &id, &[]).await;
    let broken = world.refresh(&given.text("refresh_token"), &id, &[]).await;
    // Errors contain no secrets either.
    world.idp.lock().unwrap().refuses = Some((400, "invalid_client"));
    browser.log_in(&world.authorize(&id, LOOPBACK, &[])).await;
    let debug =
        format!("{:?} {:?}", world.proxy, Provider::new("a", "b", "c").client_secret("hush"));
    // Excludes the responses of the provider itself.
    let ours = browser.seen.iter().filter(|got| !got.location_is_callback(&world.base));
    let answers: String =
        ours.chain([&given, &again, &broken]).map(|got| format!("{got:?}")).collect();
    let written = world.logins.written.lock().unwrap().clone();
    assert!(written.iter().any(|(key, _)| key.starts_with("proxy/upstream/")));
    let notes: String = written.iter().map(|(key, note)| format!("{key} {note}\n")).collect();
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("used twice") && logged.contains("returned the error"), "{logged}");
    for (where_, text) in
        [("answers", answers), ("notes", notes), ("log", logged), ("debug", debug)]
    {
        for secret in [SECRET, "provider-code", "hush", "dGhlLW9uZTpodXNo"] {
            assert!(!text.contains(secret), "{secret} in {where_}: {text}");
        }
        if where_ == "log" || where_ == "notes" {
            for ours in [given.text("access_token"), again.text("refresh_token")] {
                assert!(!text.contains(&ours), "our own token in {where_}");
            }
        }
    }
}

impl crate::support::Got {
    /// Returns whether this is the provider's response, which redirects to the proxy.
    fn location_is_callback(&self, base: &str) -> bool {
        self.header("location").is_some_and(|to| to.starts_with(&format!("{base}/callback")))
    }
}

#[tokio::test]
async fn stored_entry_opens_only_under_its_key_and_secret() {
    let world = World::new().await;
    let id = world.register(LOOPBACK).await;
    let given = world.token(&world.code(&id, LOOPBACK).await, &id, &[]).await;
    let written = world.logins.written.lock().unwrap().clone();
    // An entry under another key, as an attacker with write access to the store could place it.
    let find = |kind: &str| written.iter().find(|(key, _)| key.contains(kind)).unwrap().clone();
    let ((_, upstream), (grant, _)) = (find("/upstream/"), find("/grant/"));
    use outlive_auth_proxy::LoginStore as _;
    world.logins.put(&grant, upstream, Duration::from_secs(60)).await.unwrap();
    let got = world.refresh(&given.text("refresh_token"), &id, &[]).await;
    assert_eq!(got.text("error"), "invalid_grant");
    // A proxy with another secret can open neither entries nor client IDs.
    let other = World::with(|proxy| proxy.secret([8; 32])).await;
    for (key, note) in &written {
        other.logins.put(key, note.clone(), Duration::from_secs(600)).await.unwrap();
    }
    let got = other.refresh(&given.text("refresh_token"), &id, &[]).await;
    assert_eq!(got.text("error"), "invalid_client");
    assert_eq!(LoginStoreError::new("away").to_string(), "the login store failed: away");
}
