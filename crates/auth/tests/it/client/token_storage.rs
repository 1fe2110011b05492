//! Tests of storing, refreshing, sharing and deleting tokens.

use std::{
    fs,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use outlive_auth::client::{
    CredentialStore, CredentialStoreError, FileCredentialStore, Login, MemoryCredentialStore,
    OAuthError, PendingLogin, RedirectParams, SecretString,
};
use outlive_protocol::Clock;
use serde_json::json;
use tokio::sync::Notify;

use super::kit::{BACK, Ways, World, link, location, post, refused};

/// A manual clock.
#[derive(Clone, Debug, Default)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + self.0.load(Ordering::SeqCst))
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(span))
    }
}

impl Hand {
    fn forward(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

/// A credential store that clones share.
#[derive(Clone, Default)]
struct Shared(Arc<MemoryCredentialStore>);

impl CredentialStore for Shared {
    fn get(&self, name: &str) -> Result<Option<SecretString>, CredentialStoreError> {
        self.0.get(name)
    }

    fn put(&self, name: &str, value: &SecretString) -> Result<(), CredentialStoreError> {
        self.0.put(name, value)
    }

    fn remove(&self, name: &str) -> Result<(), CredentialStoreError> {
        self.0.remove(name)
    }
}

fn grants(world: &World) -> Vec<String> {
    world.issuer.all("/token").iter().map(|form| form.field("grant_type").unwrap()).collect()
}

// ACL-10, ACL-22
#[tokio::test]
async fn expiring_token_is_refreshed_once_for_concurrent_requests() {
    let (world, clock) = (World::new().await, Hand::default());
    let link = link(&world.url(), &world.oauth().clock(clock.clone()).build());
    assert_eq!(post(&link, "").await.unwrap(), 200);
    clock.forward(3600 - 20);
    let posts = (0..20).map(|_| {
        tokio::spawn({
            let link = link.clone();
            async move { post(&link, "").await.unwrap() }
        })
    });
    for posted in posts.collect::<Vec<_>>() {
        assert_eq!(posted.await.unwrap(), 200);
    }
    assert_eq!(grants(&world), ["authorization_code", "refresh_token"]);
    assert_eq!(world.issuer.all("/token")[1].field("resource"), Some(world.url()));
    // The new refresh token is used next: this server accepts each refresh token once.
    clock.forward(3600);
    assert_eq!(post(&link, "").await.unwrap(), 200);
    assert_eq!(grants(&world).len(), 3);
    assert_eq!(world.logins(), 1);
}

#[tokio::test]
async fn rejected_token_is_refreshed_or_replaced_by_a_login() {
    let world = World::new().await;
    let link = link(&world.url(), &world.oauth().build());
    assert_eq!(post(&link, "").await.unwrap(), 200);
    world.expire();
    assert_eq!(post(&link, "").await.unwrap(), 200);
    assert_eq!(grants(&world), ["authorization_code", "refresh_token"]);
    world.expire();
    world.book.lock().unwrap().refresh.clear();
    let posted = post(&link, "").await;
    assert_eq!(posted.unwrap(), 200);
    assert_eq!(world.logins(), 2);
    assert_eq!(world.issuer.all("/register").len(), 1);
}

#[tokio::test]
async fn transient_refresh_failure_keeps_the_login() {
    let (world, clock) = (World::new().await, Hand::default());
    let link = link(&world.url(), &world.oauth().clock(clock.clone()).build());
    assert_eq!(post(&link, "").await.unwrap(), 200);
    world.book.lock().unwrap().refuse = vec![(503, "temporarily_unavailable"); 2];
    // The token is still valid, so it is used.
    clock.forward(3600 - 20);
    assert_eq!(post(&link, "").await.unwrap(), 200);
    // The token has expired, so the error is reported.
    clock.forward(60);
    let error = refused(&link, "").await;
    assert!(error.is_transient(), "{error}");
    assert_eq!(post(&link, "").await.unwrap(), 200);
    assert_eq!(world.logins(), 1);
}

#[tokio::test]
async fn concurrent_rejected_requests_share_one_login() {
    let world = World::new().await;
    let link = link(&world.url(), &world.oauth().build());
    let posts: Vec<_> = (0..20)
        .map(|_| {
            let link = link.clone();
            tokio::spawn(async move { post(&link, "").await.unwrap() })
        })
        .collect();
    for posted in posts {
        assert_eq!(posted.await.unwrap(), 200);
    }
    assert_eq!(world.logins(), 1);
}

/// Login that waits for a signal.
#[derive(Clone, Default)]
struct Slow {
    started: Arc<Notify>,
    go: Arc<Notify>,
}

impl Login for Slow {
    async fn prepare(&self, _: Option<&str>) -> Result<PendingLogin, OAuthError> {
        let this = self.clone();
        Ok(PendingLogin::new(BACK, move |page| async move {
            this.started.notify_one();
            this.go.notified().await;
            Ok(RedirectParams::from_url(&location(&page).await))
        }))
    }
}

#[tokio::test]
async fn login_continues_after_its_request_is_dropped() {
    let (world, slow) = (World::new().await, Slow::default());
    let link = link(&world.url(), &world.oauth().login(slow.clone()).build());
    let first = tokio::spawn({
        let link = link.clone();
        async move { post(&link, "").await }
    });
    slow.started.notified().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    slow.go.notify_one();
    assert_eq!(post(&link, "").await.unwrap(), 200);
    assert_eq!(world.logins(), 1);
}

// ACL-17
#[tokio::test]
async fn changed_authorization_server_receives_no_credentials_of_the_first() {
    let (old, new) = (World::new().await, World::new().await);
    let issuers = Arc::new(Mutex::new(old.issuer.url.clone()));
    let (named, books) = (Arc::clone(&issuers), [Arc::clone(&old.book), Arc::clone(&new.book)]);
    let (first, second) = (old.issuer.url.clone(), new.issuer.url.clone());
    let site = super::kit::Site::start(move |base, seen| {
        let issuer = named.lock().unwrap().clone();
        if seen.path.starts_with("/.well-known") {
            let resource = format!("{base}/mcp");
            return super::kit::answer(
                200,
                json!({"resource": resource, "authorization_servers": [issuer]}),
            );
        }
        let book = &books[usize::from(issuer == second)];
        let token = seen.header("authorization").and_then(|it| it.strip_prefix("Bearer "));
        match token.is_some_and(|token| book.lock().unwrap().good.contains_key(token)) {
            true => super::kit::answer(200, json!({})),
            false => super::kit::answer(401, json!(null)),
        }
    })
    .await;
    let url = format!("{}/mcp", site.url);
    let builder = || outlive_auth::client::OAuth::builder(&url).login(super::kit::Robot::default());
    let by_itself = link(&url, &builder().build());
    let by_hand = link(&url, &builder().client_id("known").client_secret("hush").build());
    assert_eq!(post(&by_itself, "").await.unwrap(), 200);
    assert_eq!(post(&by_hand, "").await.unwrap(), 200);
    new.issuer.all("/"); // no requests yet
    assert!(new.issuer.lines().is_empty());
    *issuers.lock().unwrap() = new.issuer.url.clone();
    // Different client IDs, to distinguish the two servers.
    new.book.lock().unwrap().made = 100;
    assert_eq!(post(&by_itself, "").await.unwrap(), 200);
    assert_eq!(new.issuer.all("/register").len(), 1);
    let ids = new
        .issuer
        .all("/authorize")
        .iter()
        .map(|page| page.asks("client_id").unwrap())
        .collect::<Vec<_>>();
    assert_eq!(ids, ["client-101"]);
    assert!(new.issuer.all("/token").iter().all(|form| form.field("refresh_token").is_none()));
    // A client that was registered in advance gets an error.
    let before = new.issuer.lines().len();
    let error = refused(&by_hand, "").await;
    assert!(matches!(&error, OAuthError::Moved { from, .. } if *from == first), "{error}");
    assert_eq!(new.issuer.lines()[before..], ["GET /.well-known/oauth-authorization-server"]);
}

#[tokio::test]
async fn second_process_uses_stored_tokens() {
    let (world, store) = (World::new().await, Shared::default());
    let first = world.oauth().store(store.clone()).build();
    let second = world.oauth().store(store.clone()).build();
    assert_eq!(post(&link(&world.url(), &first), "").await.unwrap(), 200);
    assert_eq!(post(&link(&world.url(), &second), "").await.unwrap(), 200);
    assert_eq!(world.logins(), 1);
    // A token refreshed by one process is not refreshed by the other: each refresh token is valid
    // once.
    world.expire();
    assert_eq!(post(&link(&world.url(), &first), "").await.unwrap(), 200);
    assert_eq!(post(&link(&world.url(), &second), "").await.unwrap(), 200);
    assert_eq!(grants(&world), ["authorization_code", "refresh_token"]);
}

#[tokio::test]
async fn logout_deletes_and_revokes_tokens() {
    let (world, store) = (World::new().await, Shared::default());
    let oauth = world.oauth().store(store.clone()).build();
    assert!(oauth.login_info().await.unwrap().is_none());
    assert!(!oauth.logout().await.unwrap());
    let login = oauth.login().await.unwrap();
    assert_eq!(
        (login.issuer.as_str(), login.client_id.as_str()),
        (world.issuer.url.as_str(), "client-1")
    );
    assert!(login.renewable && !login.bound && login.expires.is_some());
    assert!(oauth.logout().await.unwrap());
    assert!(oauth.login_info().await.unwrap().is_none());
    assert_eq!(store.get(&format!("tokens {}", world.url())).unwrap(), None);
    assert!(world.book.lock().unwrap().refresh.is_empty());
    assert_eq!(
        world.issuer.all("/revoke")[0].field("token_type_hint").as_deref(),
        Some("refresh_token")
    );
}

// ACL-33
#[cfg(unix)]
#[tokio::test]
async fn credential_file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let folder = std::env::temp_dir().join(format!("outlive-auth-{}", std::process::id()));
    let path = folder.join("deep/credentials.json");
    let store = FileCredentialStore::new(&path);
    assert_eq!(store.get("a").unwrap(), None);
    store.put("a", &SecretString::new("1")).unwrap();
    store.put("b", &SecretString::new("2")).unwrap();
    store.remove("a").unwrap();
    store.remove("a").unwrap();
    assert_eq!(store.get("a").unwrap(), None);
    assert_eq!(store.get("b").unwrap(), Some(SecretString::new("2")));
    // The store lists the servers that it has tokens for.
    assert!(store.servers().unwrap().is_empty());
    let world = World::new().await;
    let oauth = world.oauth().store(store.clone()).build();
    oauth.login().await.unwrap();
    assert_eq!(store.servers().unwrap(), [world.url()]);
    oauth.logout().await.unwrap();
    assert!(store.servers().unwrap().is_empty());
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    // A file that other users can read is rejected with an error.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let error = store.get("b").unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, "{ not json, but \"secret\"").unwrap();
    let error = store.get("b").unwrap_err().to_string();
    assert!(error.contains("log in again") && !error.contains("secret"), "{error}");
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn expired_client_secret_triggers_a_new_registration() {
    let registration = json!({"client_secret": "s", "client_secret_expires_at": 1_000_100});
    let (world, clock) = (
        World::with(Ways { registration, refreshes: false, ..Ways::default() }).await,
        Hand::default(),
    );
    let link = link(&world.url(), &world.oauth().clock(clock.clone()).build());
    assert_eq!(post(&link, "").await.unwrap(), 200);
    world.expire();
    clock.forward(90);
    assert_eq!(post(&link, "").await.unwrap(), 200);
    assert_eq!(world.issuer.all("/register").len(), 1);
    world.expire();
    clock.forward(90);
    assert_eq!(post(&link, "").await.unwrap(), 200);
    assert_eq!(world.issuer.all("/register").len(), 2);
}

#[tokio::test]
async fn unknown_client_registers_again() {
    let world = World::new().await;
    let link = link(&world.url(), &world.oauth().build());
    assert_eq!(post(&link, "").await.unwrap(), 200);
    world.expire();
    world.book.lock().unwrap().refuse = vec![(401, "invalid_client")];
    assert_eq!(post(&link, "").await.unwrap(), 200);
    assert_eq!((world.issuer.all("/register").len(), world.logins()), (2, 2));
}

#[tokio::test]
async fn only_post_requests_trigger_a_login() {
    let world = World::new().await;
    let link = link(&world.url(), &world.oauth().build());
    // Opening a stream or ending a session does not trigger a login.
    let headers = http::HeaderMap::new;
    assert!(link.get(headers()).await.is_err());
    assert!(link.delete(headers()).await.is_err());
    assert_eq!(world.logins(), 0);
    assert_eq!(post(&link, "").await.unwrap(), 200);
    assert_eq!(link.get(headers()).await.unwrap().status, 200);
    // A refresh needs no user, so it happens for any request.
    world.expire();
    assert_eq!(link.get(headers()).await.unwrap().status, 200);
    assert_eq!(world.logins(), 1);
}
