//! Tests of the keys of an issuer: discovery, caching, rotation and outages.

use std::{sync::Arc, time::Duration};

use outlive_auth::{
    jose::{Algorithm, JwkSet, SigningKey},
    server::{Issuer, ResourceServer},
};
use serde_json::json;

use super::support::{Protected, RESOURCE, Signer, Site, StandingClock, changed};

struct World {
    clock: StandingClock,
    site: Site,
    signer: Signer,
    server: Protected,
    issuer: String,
}

impl World {
    /// Starts an issuer that publishes its metadata, and a server that has not fetched its keys.
    async fn new() -> Self {
        let (clock, site) = (StandingClock::new(), Site::open().await);
        let signer = Signer::new(&clock);
        let issuer = site.url("");
        let metadata = json!({"issuer": issuer, "jwks_uri": site.url("/keys")});
        site.publish("/.well-known/oauth-authorization-server", 200, metadata.to_string());
        site.publish("/keys", 200, signer.keys().to_json());
        let auth = ResourceServer::builder(RESOURCE)
            .issuer(Issuer::new(&issuer))
            .clock(Arc::new(clock.clone()))
            .build()
            .unwrap();
        let server = Protected::guarded(auth).await;
        Self { clock, site, signer, server, issuer }
    }

    fn token(&self, key: &SigningKey, subject: &str) -> String {
        let changes =
            json!({"iss": self.issuer, "sub": subject, "exp": self.clock.seconds() + 600});
        key.sign("at+jwt", &changed(self.signer.claims(), changes)).unwrap()
    }

    /// Sends calls with new valid tokens until the keys have been fetched `reads` times.
    async fn served_until_read(&self, subject: &str, reads: usize) {
        let mut number = 0;
        while self.site.reads("/keys") < reads {
            number += 1;
            assert!(number < 10_000, "the keys are not fetched");
            let subject = format!("{subject}{number}");
            assert_eq!(self.status(&self.signer.key, &subject).await, 200);
        }
        assert_eq!(self.site.reads("/keys"), reads);
    }

    async fn status(&self, key: &SigningKey, subject: &str) -> u16 {
        self.server.call("whoami", &self.token(key, subject)).await.status
    }
}

fn key(id: &str) -> SigningKey {
    SigningKey::generate(Algorithm::Es256).unwrap().with_id(id)
}

#[tokio::test]
async fn keys_are_discovered_and_cached() {
    let world = World::new().await;
    for number in 0..20 {
        assert_eq!(world.status(&world.signer.key, &format!("u{number}")).await, 200);
    }
    assert_eq!(world.site.reads("/keys"), 1);
    assert_eq!(world.site.reads("/.well-known/oauth-authorization-server"), 1);
}

#[tokio::test]
async fn concurrent_requests_share_one_key_fetch() {
    let world = World::new().await;
    let calls = (0..20).map(|number| {
        let token = world.token(&world.signer.key, &format!("u{number}"));
        let server = &world.server;
        async move { server.call("whoami", &token).await.status }
    });
    let statuses = join_all(calls).await;
    assert_eq!(statuses, [200; 20]);
    assert_eq!(world.site.reads("/keys"), 1);
}

async fn join_all<F: Future<Output = u16>>(futures: impl Iterator<Item = F>) -> Vec<u16> {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    let mut results: Vec<Option<u16>> = vec![None; futures.len()];
    std::future::poll_fn(|cx| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(status) = future.as_mut().poll(cx)
            {
                *result = Some(status);
            }
        }
        match results.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

#[tokio::test]
async fn unknown_key_id_triggers_at_most_one_fetch_per_interval() {
    let world = World::new().await;
    assert_eq!(world.status(&world.signer.key, "ann").await, 200);
    // Forged key IDs trigger at most one fetch every ten seconds.
    for number in 0..50 {
        assert_eq!(world.status(&key(&format!("made-up-{number}")), "eve").await, 401);
    }
    assert_eq!(world.site.reads("/keys"), 1, "the keys were fetched recently");
    world.clock.advance(Duration::from_secs(10));
    for number in 0..50 {
        assert_eq!(world.status(&key(&format!("made-up-{number}")), "eve").await, 401);
    }
    assert_eq!(world.site.reads("/keys"), 2);

    let new = key("k2");
    world.site.publish("/keys", 200, JwkSet::new([new.public()]).to_json());
    assert_eq!(
        world.status(&new, "ann").await,
        401,
        "the key is unknown, and the keys were fetched recently"
    );
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(world.status(&new, "ann").await, 200);
    assert_eq!(world.site.reads("/keys"), 3);
    // The old key is rejected: immediately for a new token, after five minutes for a cached one.
    assert_eq!(world.status(&world.signer.key, "bob").await, 401);
}

#[tokio::test]
async fn old_keys_stay_valid_during_a_fetch_and_an_outage() {
    let world = World::new().await;
    assert_eq!(world.status(&world.signer.key, "ann").await, 200);
    // Fetched in the background: no request waits.
    world.clock.advance(Duration::from_secs(601));
    world.served_until_read("bob", 2).await;
    // The issuer is down: the cached keys are used for one day.
    world.site.publish("/keys", 500, "");
    world.clock.advance(Duration::from_secs(601));
    world.served_until_read("cat", 3).await;
    world.clock.advance(Duration::from_secs(24 * 60 * 60));
    assert_eq!(world.status(&world.signer.key, "dan").await, 503);
    world.site.publish("/keys", 200, world.signer.keys().to_json());
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(world.status(&world.signer.key, "dan").await, 200);
}

#[tokio::test]
async fn unavailable_issuer_returns_service_unavailable() {
    let world = World::new().await;
    world.site.publish("/keys", 500, "");
    let token = world.token(&world.signer.key, "ann");
    let got = world.server.call("whoami", &token).await;
    assert_eq!((got.status, got.header("retry-after")), (503, Some("5")));
    assert_eq!(got.header("www-authenticate"), None);
    // The fetch is not repeated immediately.
    assert_eq!(world.server.call("whoami", &token).await.status, 503);
    assert_eq!(world.site.reads("/keys"), 1);
    world.site.publish("/keys", 200, world.signer.keys().to_json());
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(world.server.call("whoami", &token).await.status, 200);
    assert_eq!(world.server.calls(), 1);
}

#[tokio::test]
async fn metadata_of_another_issuer_is_rejected() {
    let world = World::new().await;
    let foreign = json!({"issuer": "https://evil.example", "jwks_uri": world.site.url("/keys")});
    world.site.publish("/.well-known/oauth-authorization-server", 200, foreign.to_string());
    assert_eq!(world.status(&world.signer.key, "ann").await, 503);
    assert_eq!(world.site.reads("/keys"), 0);
}

#[tokio::test]
async fn token_with_an_algorithm_or_type_that_is_not_allowed_is_rejected() {
    let clock = StandingClock::new();
    let signer = Signer::new(&clock);
    let builder = |algorithms: &[Algorithm]| {
        ResourceServer::builder(RESOURCE)
            .issuer(signer.issuer().algorithms(algorithms.iter().copied()).require_at_jwt())
            .clock(Arc::new(clock.clone()))
    };
    let token = signer.token(json!({}));
    let server = Protected::with(builder(&[Algorithm::EdDsa])).await;
    assert_eq!(server.call("whoami", &token).await.status, 401);
    let server = Protected::with(builder(&[Algorithm::Es256])).await;
    assert_eq!(server.call("whoami", &token).await.status, 200);
    // The same for the token type.
    let plain = signer.key.sign("JWT", &signer.claims()).unwrap();
    assert_eq!(server.call("whoami", &plain).await.status, 401);
    let server = Protected::start(&signer).await;
    assert_eq!(server.call("whoami", &plain).await.status, 200);
}
