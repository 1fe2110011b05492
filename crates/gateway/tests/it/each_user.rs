//! Logins of principals at upstreams, on a page of the server, with a browser.

use std::sync::{Arc, Mutex, OnceLock};

use outlive::{
    auth::{
        client::{Login, OAuth, OAuthError, PendingLogin, RedirectParams},
        server::ResourceServer,
    },
    auth_proxy::{AuthProxy, ConnectedServer, Connections, Provider},
    client::{
        Client, Version,
        input::{InputCallbacks, InputKind, InputResponse},
    },
    people::Vault,
    server::{
        Principal, SealKeys, Server,
        http::{HttpConfig, HttpServer},
        tasks::TaskConfig,
    },
    store::MemoryStore,
};
use outlive_gateway::{Gateway, Upstream, UpstreamAuth, status::State};
use serde_json::{Value, json};

use crate::{
    authority::{Authority, Protected},
    browser::{Browser, PROGRAM, Page},
    site::{Site, answer},
    support::{text, tool_names},
};

/// An identity provider, at which the current user logs in.
struct Idp {
    site: Site,
    user: Arc<Mutex<String>>,
}

impl Idp {
    async fn start() -> Self {
        let user = Arc::new(Mutex::new(String::new()));
        let current = Arc::clone(&user);
        let site = Site::start(move |_, seen| match seen.path.as_str() {
            "/authorize" => {
                let (user, state) = (current.lock().unwrap(), seen.asks("state").unwrap());
                let back =
                    format!("{}?code={user}&state={state}", seen.asks("redirect_uri").unwrap());
                answer(302, Value::Null).with("location", back)
            }
            "/token" => {
                let user = seen.field("code").or_else(|| seen.field("refresh_token")).unwrap();
                answer(
                    200,
                    json!({"access_token": user, "token_type": "bearer", "refresh_token": user}),
                )
            }
            "/userinfo" => {
                let user = seen.header("authorization").unwrap().trim_start_matches("Bearer ");
                answer(200, json!({"id": user}))
            }
            _ => answer(404, Value::Null),
        })
        .await;
        Self { site, user }
    }
}

/// The page on which users log in, which is created before its gateway.
#[derive(Clone, Default)]
struct Pages(Arc<OnceLock<Gateway>>);

impl Connections for Pages {
    fn server(&self, name: &str) -> Option<ConnectedServer> {
        let target = self.0.get()?.user_login_target(name)?;
        Some(ConnectedServer::new(target.host, target.scopes))
    }

    fn client(&self, name: &str, principal: &Principal) -> Option<OAuth> {
        self.0.get()?.user_login(name, principal)
    }

    fn connected(&self, name: &str, principal: &Principal) {
        if let Some(gateway) = self.0.get() {
            gateway.user_logged_in(name, principal);
        }
    }
}

/// A gateway behind an identity provider, and an upstream at which each user logs in.
struct World {
    idp: Idp,
    authority: Authority,
    protected: Protected,
    gateway: Gateway,
    serving: HttpServer,
    url: String,
}

/// A user with a browser.
#[derive(Clone)]
struct User {
    name: &'static str,
    current: Arc<Mutex<String>>,
    browser: Arc<tokio::sync::Mutex<Browser>>,
}

impl User {
    /// Opens a page, and logs in at the provider if that asks for it.
    async fn open(&self, url: &str) -> Page {
        self.name.clone_into(&mut self.current.lock().unwrap());
        self.browser.lock().await.open(url).await
    }

    /// Opens a page, and agrees.
    async fn agree(&self, url: &str) -> Page {
        let page = self.open(url).await;
        assert_eq!(page.status, 200, "{page:?}");
        self.browser.lock().await.submit(&page, "allow").await
    }
}

impl Login for User {
    async fn prepare(&self, _: Option<&str>) -> Result<PendingLogin, OAuthError> {
        let user = self.clone();
        Ok(PendingLogin::new(PROGRAM, move |page| async move {
            Ok(RedirectParams::from_url(&user.agree(&page).await.url))
        }))
    }
}

impl World {
    async fn new() -> Self {
        let (idp, authority) = (Idp::start().await, Authority::start(3_600).await);
        let protected = Protected::start(&authority).await;
        for _ in 0..100 {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let url = format!("http://{free}/mcp");
            let (gateway, server, config) = build(&idp, &protected, &url);
            // Another process may have taken the port meanwhile.
            if let Ok(serving) = server.serve_http(free, config).await {
                return Self { idp, authority, protected, gateway, serving, url };
            }
        }
        panic!("no port is free");
    }

    fn user(&self, name: &'static str) -> User {
        User { name, current: Arc::clone(&self.idp.user), browser: Arc::default() }
    }

    /// Connects as a user whose client opens URLs in the user's browser. Returns the opened URLs.
    async fn client(&self, user: &User, version: Version) -> (Client, Arc<Mutex<Vec<String>>>) {
        let (opened, visitor) = (Arc::new(Mutex::new(Vec::new())), user.clone());
        let noted = Arc::clone(&opened);
        let input = InputCallbacks::new().url(move |pending| {
            let (noted, visitor) = (Arc::clone(&noted), visitor.clone());
            let InputKind::Url(request) = &pending.request else { panic!("no URL: {pending:?}") };
            let url = request.url.clone();
            async move {
                noted.lock().unwrap().push(url.clone());
                let page = visitor.agree(&url).await;
                assert!(page.body.contains("You are logged in at"), "{page:?}");
                InputResponse::accept_url()
            }
        });
        let client = self.builder(user, version).input_handler(input);
        (client.connect(self.url.as_str()).await.unwrap(), opened)
    }

    fn builder(&self, user: &User, version: Version) -> outlive::client::ClientBuilder {
        let oauth = OAuth::builder(&self.url).client_name("App").login(user.clone()).build();
        Client::builder("test", "1").protocol_version(version).token_source(oauth)
    }
}

fn build(idp: &Idp, protected: &Protected, url: &str) -> (Gateway, Server, HttpConfig) {
    let pages = Pages::default();
    let at = |path: &str| format!("{}{path}", idp.site.url);
    let provider = Provider::new(at("/authorize"), at("/token"), "the-one");
    let provider = provider.client_secret("hush").userinfo_url(at("/userinfo")).subject("id");
    let proxy = AuthProxy::builder(url, provider).scopes(["mcp"]).secret([7; 32]);
    let proxy = proxy.connections(pages.clone()).build().unwrap();
    let (store, keys) = (Arc::new(MemoryStore::new()), SealKeys::new([7; 32]));
    let addresses = proxy.clone();
    let gateway = Gateway::builder()
        .vault(Vault::open(Arc::clone(&store) as _, keys.clone()))
        .connect_url(move |name, principal| addresses.connect_url(name, principal))
        .upstream(Upstream::url("up", &protected.url).auth(UpstreamAuth::each_user()))
        .build()
        .unwrap();
    pages.0.set(gateway.clone()).unwrap_or_else(|_| panic!("it is set once"));
    let server = Server::builder("gateway", "1").seal_keys(keys).tasks(TaskConfig::people(store));
    let server = gateway.attach(server).build().unwrap();
    gateway.start(&server);
    let auth = ResourceServer::builder(url).issuer(proxy.issuer()).scopes(["mcp"]).build().unwrap();
    (gateway, server, HttpConfig::new().authenticator(auth).routes(proxy))
}

async fn call(client: &Client, tool: &str) -> String {
    text(&client.call_tool(tool, json!({})).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn login_of_one_principal_is_not_usable_by_another() {
    let world = World::new().await;
    let (ada, bob) = (world.user("ada"), world.user("bob"));
    let (adas, opened) = world.client(&ada, Version::V2026_07_28).await;
    let bobs = world.builder(&bob, Version::V2026_07_28).connect(world.url.as_str()).await.unwrap();
    assert_eq!(tool_names(&adas).await, ["upstream_problems"]);
    assert_eq!(tool_names(&bobs).await, ["upstream_problems"]);
    assert!(world.protected.sent().is_empty(), "no request without a login");
    // A URL elicitation starts the login of the one, on a page of the server.
    call(&adas, "upstream_problems").await;
    let page = opened.lock().unwrap()[0].clone();
    assert!(page.starts_with(&world.url.replace("/mcp", "/connect/up?request=")), "{page}");
    assert_eq!(tool_names(&adas).await, ["up__whoami", "up__later"]);
    let account = call(&adas, "up__whoami").await;
    assert!(account.starts_with("user-"), "{account}");
    // The other has no tools, and gets an address of its own in the text.
    assert_eq!(tool_names(&bobs).await, ["upstream_problems"]);
    assert!(bobs.call_tool("up__whoami", json!({})).await.is_err());
    let problems = call(&bobs, "upstream_problems").await;
    let address = problems.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let address = address.trim_end_matches(',').to_owned();
    assert!(address.contains("/connect/up?request=") && address != page, "{problems}");
    let mut tokens: Vec<_> = world.protected.sent().into_iter().flatten().collect();
    tokens.dedup();
    assert_eq!(tokens.len(), 1, "only tokens of the first account: {tokens:?}");
    // After the login, the other uses an account of its own.
    let page = bob.agree(&address).await;
    assert!(page.body.contains("You are logged in at"), "{page:?}");
    assert_ne!(call(&bobs, "up__whoami").await, account);
    assert_eq!(call(&adas, "up__whoami").await, account);
    assert_eq!(world.gateway.status().upstreams[0].state, State::Ready);
    assert_eq!(world.authority.logins(), 2);
    world.gateway.shutdown().await;
    drop(world.serving);
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_one_user_is_refused_in_the_browser_of_another() {
    let world = World::new().await;
    let (ada, eve) = (world.user("ada"), world.user("eve"));
    let adas = world.builder(&ada, Version::V2026_07_28).connect(world.url.as_str()).await.unwrap();
    tool_names(&adas).await;
    let problems = call(&adas, "upstream_problems").await;
    let address = problems.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let address = address.trim_end_matches(',');
    // Another user cannot attach an account to the principal.
    let page = eve.open(address).await;
    assert!(page.status == 403 && page.body.contains("belongs to another user"), "{page:?}");
    // A form that was shown in one browser is not accepted from another.
    let shown = ada.open(address).await;
    assert!(shown.body.contains("Connect your account?") && shown.body.contains("up"), "{shown:?}");
    let stolen = eve.browser.lock().await.submit(&shown, "allow").await;
    assert_eq!(stolen.status, 403, "{stolen:?}");
    // A changed address and a cancelled consent change nothing.
    let changed = ada.open(&address.replace("request=", "request=x")).await;
    assert_eq!(changed.status, 400, "{changed:?}");
    let unknown = ada.open(&address.replace("/connect/up", "/connect/other")).await;
    assert_eq!(unknown.status, 400, "{unknown:?}");
    let cancelled = ada.browser.lock().await.submit(&shown, "deny").await;
    assert!(cancelled.body.contains("Not connected"), "{cancelled:?}");
    assert_eq!(world.authority.logins(), 0);
    assert_eq!(tool_names(&adas).await, ["upstream_problems"]);
    world.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn call_asks_for_login_that_has_ended_and_continues_after_it() {
    for version in [Version::V2025_11_25, Version::V2026_07_28] {
        let world = World::new().await;
        let ada = world.user("ada");
        let (client, opened) = world.client(&ada, version).await;
        tool_names(&client).await;
        call(&client, "upstream_problems").await;
        let first = call(&client, "up__whoami").await;
        world.authority.end_logins();
        world.protected.reject_known();
        // The upstream rejects the token, and the refresh token is no longer valid.
        assert_ne!(call(&client, "up__whoami").await, first, "{version}");
        assert_eq!(opened.lock().unwrap().len(), 2, "{version}");
        world.gateway.shutdown().await;
    }
}
