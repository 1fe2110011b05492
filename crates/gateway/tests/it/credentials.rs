//! Tokens and logins of the gateway at upstreams, with a real authorization server.

use std::{path::PathBuf, sync::Arc, time::Duration};

use outlive::{
    auth::jose::SigningKey,
    client::{Client, Version},
    people::Vault,
    server::{SealKeys, Server, tasks::TaskConfig},
    store::{KeyValueStore, PeopleStore},
};
use outlive_gateway::{
    Gateway, Upstream, UpstreamAuth,
    status::{GatewayStatus, State, UpstreamStatus},
};
use serde_json::json;

use crate::{
    authority::{Authority, Protected, Robot, SECRET},
    support::{Served, eventually, text, tool_names},
};

/// A store on disk that several gateways share.
struct Shared {
    store: Arc<dyn PeopleStore>,
    file: PathBuf,
}

impl Shared {
    async fn new(name: &str) -> Self {
        let file = std::env::temp_dir()
            .join(format!("outlive-gateway-credentials-{}-{name}.db", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let url = format!("sqlite:{}", file.display());
        Self { store: outlive::store::open_people(&url).await.unwrap(), file }
    }

    fn vault(&self) -> Vault {
        let store = Arc::clone(&self.store) as Arc<dyn KeyValueStore>;
        Vault::open(store, SealKeys::new([7; 32]))
    }

    /// Returns a gateway on this store.
    fn gateway(&self, upstream: Upstream) -> Served {
        let store = Arc::clone(&self.store) as Arc<dyn KeyValueStore>;
        let gateway = Gateway::builder().store(store).upstream(upstream).build().unwrap();
        let server = Server::builder("gateway", "1.0.0")
            .seal_keys(SealKeys::new([7; 32]))
            .tasks(TaskConfig::people(Arc::clone(&self.store)));
        let server = gateway.attach(server).build().unwrap();
        gateway.start(&server);
        Served { gateway, server }
    }

    /// Logs the gateway in at an upstream, as `outlive login --upstream` does.
    async fn log_in(&self, upstream: &Upstream) {
        let client = upstream.login_client(self.vault()).unwrap();
        client.login(Robot).build().login().await.unwrap();
    }

    /// Returns the bytes of all files of the store.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for suffix in ["", "-wal"] {
            let mut file = self.file.clone().into_os_string();
            file.push(suffix);
            bytes.extend(std::fs::read(file).unwrap_or_default());
        }
        assert!(!bytes.is_empty());
        bytes
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            let mut file = self.file.clone().into_os_string();
            file.push(suffix);
            let _ = std::fs::remove_file(file);
        }
    }
}

fn status(served: &Served) -> UpstreamStatus {
    let GatewayStatus { mut upstreams, .. } = served.gateway.status();
    upstreams.remove(0)
}

async fn whoami(client: &Client) -> String {
    text(&client.call_tool("up__whoami", json!({})).await.unwrap())
}

fn contains(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_without_login_gets_no_request_and_names_the_command() {
    let authority = Authority::start(3_600).await;
    let protected = Protected::start(&authority).await;
    let shared = Shared::new("missing").await;
    let upstream = Upstream::url("up", &protected.url).auth(UpstreamAuth::login());
    let served = shared.gateway(upstream.clone());
    // The state is known before the first use.
    eventually("needs login", async || status(&served).state == State::NeedsLogin).await;
    assert_eq!(status(&served).remedy.unwrap(), "run: outlive login --upstream up");
    let client = served.client(Version::V2026_07_28).await;
    assert_eq!(tool_names(&client).await, ["upstream_problems"]);
    let problems = client.call_tool("upstream_problems", json!({})).await.unwrap();
    assert!(text(&problems).contains("outlive login --upstream up"), "{problems:?}");
    assert!(client.list_resources().collect().await.unwrap().is_empty());
    assert!(client.list_prompts().collect().await.unwrap().is_empty());
    assert!(protected.sent().is_empty(), "{:?}", protected.sent());
    // The login is noticed without a restart.
    shared.log_in(&upstream).await;
    eventually("the tools are listed", async || {
        tool_names(&client).await.contains(&"up__whoami".to_owned())
    })
    .await;
    let has_token =
        |sent: &Option<String>| sent.as_ref().is_some_and(|sent| sent.contains("Bearer"));
    assert!(protected.sent().iter().all(has_token), "{:?}", protected.sent());
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn login_is_made_once_and_renewed_before_expiry_by_one_replica_at_a_time() {
    // Tokens expire soon, so that every request finds one that must be renewed.
    let authority = Authority::start(20).await;
    let protected = Protected::start(&authority).await;
    let shared = Shared::new("renewed").await;
    let upstream = Upstream::url("up", &protected.url).auth(UpstreamAuth::login());
    shared.log_in(&upstream).await;
    let replicas = [shared.gateway(upstream.clone()), shared.gateway(upstream)];
    for round in 0..5 {
        let mut clients = Vec::new();
        for replica in &replicas {
            clients.push(replica.client(Version::V2025_06_18).await);
            clients.push(replica.client(Version::V2026_07_28).await);
        }
        let [a, b, c, d] = clients.try_into().unwrap();
        let said = tokio::join!(whoami(&a), whoami(&b), whoami(&c), whoami(&d));
        let said = [said.0, said.1, said.2, said.3];
        assert!(said.iter().all(|one| *one == said[0]), "round {round}: {said:?}");
    }
    assert_eq!(authority.logins(), 1);
    assert!(authority.grants("refresh_token") >= 5);
    for replica in &replicas {
        replica.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_token_is_renewed_once_and_the_call_is_sent_again() {
    let authority = Authority::start(3_600).await;
    let protected = Protected::start(&authority).await;
    let shared = Shared::new("rejected").await;
    let upstream = Upstream::url("up", &protected.url).auth(UpstreamAuth::login());
    shared.log_in(&upstream).await;
    let served = shared.gateway(upstream);
    let client = served.client(Version::V2026_07_28).await;
    let first = whoami(&client).await;
    assert_eq!(authority.grants("refresh_token"), 0);
    protected.reject_known();
    assert_eq!(whoami(&client).await, first);
    assert_eq!(authority.grants("refresh_token"), 1);
    // A login that has ended fails closed, and says what helps.
    authority.end_logins();
    protected.reject_known();
    let failed = client.call_tool("up__whoami", json!({})).await.unwrap();
    assert_eq!(failed.is_error, Some(true));
    assert!(text(&failed).contains("run: outlive login --upstream up"), "{failed:?}");
    assert_eq!(authority.logins(), 1);
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn client_credentials_with_secret_or_key_get_tokens_before_the_first_request() {
    for with_key in [false, true] {
        let authority = Authority::start(3_600).await;
        let protected = Protected::start(&authority).await;
        let auth = UpstreamAuth::client_credentials("gateway");
        let auth = match with_key {
            false => auth.client_secret(SECRET),
            true => {
                let pem = include_str!("../../../auth/tests/it/keys/p256.pem");
                authority.trust(SigningKey::from_any_pem(pem).unwrap().public());
                auth.client_key(pem)
            }
        };
        let served = Served::new([Upstream::url("up", &protected.url).auth(auth)]);
        let client = served.client(Version::V2026_07_28).await;
        assert_eq!(whoami(&client).await, "gateway", "key: {with_key}");
        assert!(protected.sent().iter().skip(1).all(Option::is_some), "{:?}", protected.sent());
        assert_eq!((authority.grants("client_credentials"), authority.logins()), (1, 0));
        // The next token is requested before the first one expires.
        authority.set_lifetime(20);
        protected.reject_known();
        assert_eq!(whoami(&client).await, "gateway");
        assert_eq!(whoami(&client).await, "gateway");
        assert!(authority.grants("client_credentials") >= 3);
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_client_secret_is_shown_as_refused_without_the_secret() {
    let authority = Authority::start(3_600).await;
    let protected = Protected::start(&authority).await;
    let wrong = "wrong-secret-of-the-gateway";
    let auth = UpstreamAuth::client_credentials("gateway").client_secret(wrong);
    let served = Served::new([Upstream::url("up", &protected.url).auth(auth)]);
    let reports = served.gateway.check(None).await;
    assert_eq!(reports[0].status.state, State::Refused);
    let shown = format!("{:?} {:?}", reports, served.gateway.status());
    assert!(shown.contains("invalid_client") && shown.contains("check the client ID"), "{shown}");
    assert!(!shown.contains(wrong), "{shown}");
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_in_no_file_of_the_store_and_in_no_status() {
    let authority = Authority::start(20).await;
    let protected = Protected::start(&authority).await;
    let shared = Shared::new("sealed").await;
    let upstream = Upstream::url("up", &protected.url).auth(UpstreamAuth::login());
    shared.log_in(&upstream).await;
    let served = shared.gateway(upstream);
    let client = served.client(Version::V2026_07_28).await;
    whoami(&client).await;
    whoami(&client).await;
    let (stored, shown) = (shared.bytes(), format!("{:?}", served.gateway.status()));
    let secrets = authority.secrets();
    assert!(secrets.len() >= 4, "{}", secrets.len());
    for secret in secrets {
        assert!(!contains(&stored, &secret) && !shown.contains(&secret));
    }
    assert!(contains(&stored, "gateway/login/up/"), "the entries are in the store");
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_of_another_address_is_not_used() {
    let authority = Authority::start(3_600).await;
    let (first, second) = (Protected::start(&authority).await, Protected::start(&authority).await);
    let shared = Shared::new("moved").await;
    let upstream =
        |protected: &Protected| Upstream::url("up", &protected.url).auth(UpstreamAuth::login());
    shared.log_in(&upstream(&first)).await;
    let served = shared.gateway(upstream(&first));
    let client = served.client(Version::V2026_07_28).await;
    whoami(&client).await;
    served
        .gateway
        .reload(outlive_gateway::GatewaySettings::new(), vec![upstream(&second)])
        .unwrap();
    let failed = client.call_tool("up__whoami", json!({})).await;
    let is_refused = match &failed {
        Ok(result) => result.is_error == Some(true),
        Err(_) => true,
    };
    assert!(is_refused, "{failed:?}");
    tokio::time::timeout(Duration::from_secs(10), tool_names(&client)).await.unwrap();
    assert!(second.sent().is_empty(), "{:?}", second.sent());
    served.gateway.shutdown().await;
}
