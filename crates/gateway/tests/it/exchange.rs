//! Tokens of principals, exchanged for tokens at upstreams.

use std::sync::Arc;

use outlive::{
    auth::server::{Delegates, Issuer, ResourceServer},
    client::{Client, Version},
    people::Vault,
    server::{
        SealKeys, Server,
        http::{HttpConfig, HttpServer},
        tasks::{TaskConfig, TaskPolicy},
    },
    store::MemoryStore,
};
use outlive_gateway::{
    Gateway, Isolation, Policy, ToolSettings, Upstream, UpstreamAuth, status::State,
};
use serde_json::json;

use crate::{
    authority::{Authority, EXCHANGE, Protected, SECRET},
    support::{eventually, text, tool_names},
};

/// Resource of the tokens of callers.
const RESOURCE: &str = "https://mcp.test/mcp";

/// A gateway over HTTP that accepts tokens of an authorization server.
struct World {
    authority: Authority,
    protected: Protected,
    gateway: Gateway,
    serving: HttpServer,
}

impl World {
    async fn new(expires_in: u64) -> Self {
        let authority = Authority::start(expires_in).await;
        let protected = Protected::start(&authority).await;
        let (gateway, serving) = gateway(&authority, &protected, Arc::default()).await;
        Self { authority, protected, gateway, serving }
    }

    async fn client(&self, user: &str) -> (Client, String) {
        client(&self.authority, &self.serving, user).await
    }
}

/// Starts a gateway on a store.
async fn gateway(
    authority: &Authority,
    protected: &Protected,
    store: Arc<MemoryStore>,
) -> (Gateway, HttpServer) {
    let auth = UpstreamAuth::exchange(format!("{}/token", authority.site.url))
        .resource(&protected.url)
        .scopes(["mcp"])
        .client_id("gateway")
        .client_secret(SECRET);
    let always = Policy::new().task(TaskPolicy::Always);
    let upstream = Upstream::url("up", &protected.url)
        .auth(auth)
        .tool("later", ToolSettings::new().policy(always));
    let delegates = Delegates::new();
    let keys = SealKeys::new([7; 32]);
    let gateway = Gateway::builder()
        .vault(Vault::open(Arc::clone(&store) as _, keys.clone()))
        .delegates(delegates.clone())
        .upstream(upstream)
        .build()
        .unwrap();
    let server = Server::builder("gateway", "1").seal_keys(keys).tasks(TaskConfig::people(store));
    let server = gateway.attach(server).build().unwrap();
    gateway.start(&server);
    let auth = ResourceServer::builder(RESOURCE).issuer(Issuer::new(&authority.site.url));
    let auth = auth.delegates(delegates).build().unwrap();
    let config = HttpConfig::new().authenticator(auth);
    let serving = server.serve_http("127.0.0.1:0", config).await.unwrap();
    (gateway, serving)
}

/// Connects as a user, with a token for the gateway. Returns the token too.
async fn client(authority: &Authority, serving: &HttpServer, user: &str) -> (Client, String) {
    let token = authority.token(user, RESOURCE, 3_600);
    let builder = Client::builder("test", "1").token(token.clone());
    let builder = builder.protocol_version(Version::V2026_07_28);
    (builder.connect(serving.url().as_str()).await.unwrap(), token)
}

async fn whoami(client: &Client) -> String {
    text(&client.call_tool("up__whoami", json!({})).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_gets_tokens_of_its_own_for_each_principal() {
    let world = World::new(3_600).await;
    let ((ada, ada_token), (bob, bob_token)) =
        (world.client("ada").await, world.client("bob").await);
    for _ in 0..3 {
        let said = tokio::join!(whoami(&ada), whoami(&bob));
        assert_eq!(said, ("ada".to_owned(), "bob".to_owned()));
    }
    // Each token is exchanged once, at the token endpoint only.
    let asked = world.authority.site.all("/token");
    let mut subjects: Vec<_> =
        asked.iter().map(|seen| seen.field("subject_token").unwrap()).collect();
    let mut sent = vec![ada_token.clone(), bob_token.clone()];
    subjects.sort();
    sent.sort();
    assert_eq!(subjects, sent);
    assert!(asked.iter().all(|seen| seen.field("grant_type").as_deref() == Some(EXCHANGE)));
    // The upstream gets two other tokens, and every request has one.
    let mut tokens: Vec<String> = world.protected.sent().into_iter().map(Option::unwrap).collect();
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 2, "{tokens:?}");
    let is_own = |token: &String| token.contains(&ada_token) || token.contains(&bob_token);
    assert!(!tokens.iter().any(is_own));
    world.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn principal_without_token_fails_closed_and_others_are_unaffected() {
    let world = World::new(3_600).await;
    world.authority.refuse_exchanges("access_denied", "eve");
    let ((ada, _), (eve, _)) = (world.client("ada").await, world.client("eve").await);
    assert_eq!(whoami(&ada).await, "ada");
    // The lists of another principal are not shown.
    assert_eq!(tool_names(&eve).await, ["upstream_problems"]);
    assert!(eve.list_resources().collect().await.unwrap().is_empty());
    assert!(eve.list_prompts().collect().await.unwrap().is_empty());
    assert!(eve.call_tool("up__whoami", json!({})).await.is_err());
    let problems = text(&eve.call_tool("upstream_problems", json!({})).await.unwrap());
    assert!(problems.contains("access_denied"), "{problems}");
    // The other principal and the operator see no problem.
    assert_eq!(tool_names(&ada).await, ["up__whoami", "up__later"]);
    let status = world.gateway.status().upstreams.remove(0);
    assert_eq!(status.state, State::Ready);
    assert!(!format!("{status:?}").contains("access_denied"), "{status:?}");
    let users: Vec<_> = world.protected.sent().into_iter().flatten().collect();
    assert!(users.windows(2).all(|pair| pair[0] == pair[1]), "only tokens of ada: {users:?}");
    world.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn task_without_renewable_token_waits_for_the_next_request_at_any_replica() {
    let store = Arc::new(MemoryStore::new());
    let authority = Authority::start(2).await;
    let protected = Protected::start(&authority).await;
    let (first, serving) = gateway(&authority, &protected, Arc::clone(&store)).await;
    let (ada, token) = client(&authority, &serving, "ada").await;
    assert_eq!(whoami(&ada).await, "ada");
    authority.expire(&token);
    eventually("the exchanged token expires", async || {
        let result = ada.call_tool("up__whoami", json!({})).await.unwrap();
        result.is_error == Some(true) && text(&result).contains("send another request")
    })
    .await;
    let executed = protected.sent().len();
    let mut task = ada.start_tool("up__later", json!({})).await.unwrap();
    eventually("the task says that it waits", async || {
        let task = task.get().await.unwrap().unwrap();
        task.message.is_some_and(|message| {
            message.contains("waits for the next request") && message.contains("`up`")
        })
    })
    .await;
    assert_eq!(protected.sent().len(), executed, "nothing is sent without a token");
    // Another replica gets the next request, with another token. It exchanges that one for the task.
    let (second, other) = gateway(&authority, &protected, store).await;
    authority.set_lifetime(3_600);
    let (again, _) = client(&authority, &other, "ada").await;
    again.list_prompts().collect().await.unwrap();
    assert_eq!(text(&task.wait().await.unwrap()), "ada");
    first.shutdown().await;
    second.shutdown().await;
}

#[test]
fn shared_connections_and_incomplete_exchanges_are_refused() {
    let exchange = || UpstreamAuth::exchange("https://id.test/token").audience("up");
    let complete = || exchange().client_id("gateway").client_secret("s");
    let upstream = |auth| Upstream::url("up", "https://up.test/mcp").auth(auth);
    for (upstream, says) in [
        (upstream(complete()).isolation(Isolation::Shared), "connections are `shared`"),
        (upstream(exchange().client_id("gateway")), "needs a client secret or a client key"),
        (
            upstream(
                UpstreamAuth::exchange("https://id.test/token").client_id("c").client_secret("s"),
            ),
            "needs an `audience` or a `resource`",
        ),
        (
            upstream(
                UpstreamAuth::exchange("http://id.test/token")
                    .audience("a")
                    .client_id("c")
                    .client_secret("s"),
            ),
            "clear text",
        ),
    ] {
        let error = Gateway::builder().upstream(upstream).build().unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    Gateway::builder().upstream(upstream(complete())).build().unwrap();
}
