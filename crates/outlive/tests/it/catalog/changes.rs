//! Notifications for some principals, and the resources that clients subscribe to.

use std::sync::Arc;

use outlive::server::{Principal, Server, catalog::Change};
use serde_json::json;

use super::world::{Foreign, both, server};
use crate::support::pipe::{LEGACY, MODERN, Pipe, with_meta};

async fn connect(server: &Server, version: &str, name: &str) -> Pipe {
    let mut pipe = Pipe::speaking_as(server, version, Principal::named(name)).await;
    if version == MODERN {
        let wish = json!({"notifications": {"toolsListChanged": true}});
        pipe.send_as_is("subscriptions/listen", with_meta(wish)).await;
        pipe.read().await;
    } else {
        // The server has read the initialization.
        pipe.result("ping", json!({})).await;
    }
    pipe
}

#[tokio::test(start_paused = true)]
async fn change_reaches_clients_of_its_principals_only() {
    let foreign = Arc::<Foreign>::default();
    let server = server(&foreign);
    for version in LEGACY.into_iter().chain([MODERN]) {
        let mut ann = connect(&server, version, "ann").await;
        let mut bob = connect(&server, version, "bob").await;
        foreign.handle().changed_for(&Change::Tools, |principal| principal == "name:ann");
        let change = ann.read().await;
        assert_eq!(change["method"], "notifications/tools/list_changed", "{version}");
        bob.quiet().await;
        foreign.handle().changed(&Change::Tools);
        for pipe in [&mut ann, &mut bob] {
            let change = pipe.read().await;
            assert_eq!(change["method"], "notifications/tools/list_changed", "{version}");
        }
    }
}

fn take(foreign: &Foreign) -> Vec<String> {
    std::mem::take(&mut foreign.subscriptions.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn catalog_sees_subscribed_resources_until_unsubscribe() {
    for foreign in both() {
        let server = server(&foreign);
        for version in LEGACY {
            let mut pipe = connect(&server, version, "ann").await;
            for _ in 0..2 {
                pipe.result("resources/subscribe", json!({"uri": "far://a"})).await;
            }
            assert_eq!(take(&foreign), ["+name:ann far://a"], "{version}");
            let unknown = pipe.error("resources/subscribe", json!({"uri": "near://a"})).await;
            assert_eq!(unknown["code"], -32002, "{unknown}");
            foreign.handle().changed(&Change::Resource("far://a".into()));
            assert_eq!(pipe.read().await["params"]["uri"], "far://a", "{version}");
            pipe.result("resources/unsubscribe", json!({"uri": "far://a"})).await;
            assert_eq!(take(&foreign), ["-name:ann far://a"], "{version}");
            pipe.result("resources/subscribe", json!({"uri": "far://b"})).await;
            drop(pipe);
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            let expected = ["+name:ann far://b", "-name:ann far://b"];
            assert_eq!(take(&foreign), expected, "{version}: the session has ended");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn catalog_sees_resources_of_listening_clients() {
    for foreign in both() {
        let server = server(&foreign);
        let mut pipe = Pipe::speaking_as(&server, MODERN, Principal::named("ann")).await;
        let uris = json!(["far://a", "near://a"]);
        let wish = with_meta(json!({"notifications": {"resourceSubscriptions": uris}}));
        let id = pipe.send_as_is("subscriptions/listen", wish).await;
        let accepted = pipe.read().await;
        let notifications = &accepted["params"]["notifications"];
        assert_eq!(notifications["resourceSubscriptions"], json!(["far://a"]), "{accepted}");
        assert_eq!(take(&foreign), ["+name:ann far://a"]);
        foreign.handle().changed(&Change::Resource("far://a".into()));
        assert_eq!(pipe.read().await["params"]["uri"], "far://a");
        pipe.cancel(id).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(take(&foreign), ["-name:ann far://a"]);
    }
}
