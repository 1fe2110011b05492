//! Tests of the OAuth client against the resource server, with an issuer that signs the requested
//! tokens. Client and server share no state.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use outlive::{
    client::Client,
    server::{
        Cx, Server, Tool,
        http::{HttpConfig, HttpServer},
    },
};
use outlive_auth::{
    client::OAuth,
    jose::{Algorithm, Algorithms, JwkSet, Jws, SigningKey, decode_base64url, encode_base64url},
    server::{Issuer, ResourceServer, ResourceServerBuilder},
};
use serde_json::{Value, json};

use crate::client::kit::{Answer, Robot, Seen, Site, answer};

/// Starts an issuer of signed tokens. Returns the scopes of each login.
async fn issuer(key: SigningKey) -> (Site, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let site = Site::start(move |base, seen| match seen.path.as_str() {
        "/.well-known/oauth-authorization-server" => answer(
            200,
            json!({
                "issuer": base, "jwks_uri": format!("{base}/keys"),
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "code_challenge_methods_supported": ["S256"],
                "dpop_signing_alg_values_supported": ["ES256"],
            }),
        ),
        "/keys" => {
            answer(200, serde_json::from_str(&JwkSet::new([key.public()]).to_json()).unwrap())
        }
        "/register" => answer(201, json!({"client_id": "registered"})),
        "/authorize" => {
            let scopes = seen.asks("scope").unwrap_or_default();
            noted.lock().unwrap().push(scopes.clone());
            // The code contains the claims of the token.
            let code = json!({"scope": scopes, "aud": seen.asks("resource")});
            let back = format!(
                "{}?code={}&state={}",
                seen.asks("redirect_uri").unwrap(),
                encode_base64url(code.to_string()),
                seen.asks("state").unwrap()
            );
            answer(302, Value::Null).with("location", back)
        }
        "/token" => token(base, &key, seen),
        _ => answer(404, Value::Null),
    })
    .await;
    (site, asked)
}

fn token(base: &str, key: &SigningKey, seen: &Seen) -> Answer {
    let code = decode_base64url(seen.field("code").unwrap()).unwrap();
    let mut claims: Value = serde_json::from_slice(&code).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    claims["iss"] = json!(base);
    claims["sub"] = json!("ann");
    claims["client_id"] = json!(seen.field("client_id"));
    claims["exp"] = json!(now + 3600);
    let mut kind = "Bearer";
    if let Some(proof) = seen.header("dpop") {
        let proof = Jws::parse(proof).unwrap();
        let shown = proof.header().key.clone().unwrap();
        proof.verify([&shown], Algorithms::ALL).unwrap();
        claims["cnf"] = json!({"jkt": shown.thumbprint()});
        kind = "DPoP";
    }
    let token = key.sign("at+jwt", &claims).unwrap();
    answer(200, json!({"access_token": token, "token_type": kind, "expires_in": 3600}))
}

/// Starts a protected server at an address that is known before it listens.
async fn protected(
    issuer: &Site,
    change: impl Fn(ResourceServerBuilder) -> ResourceServerBuilder,
) -> (HttpServer, String) {
    let says = async |cx: Cx| format!("{} may {}", cx.principal(), cx.principal().scopes());
    let server = Server::builder("protected", "1")
        .tool(Tool::new("whoami", says))
        .tool(Tool::new("write", says).scopes(["write"]).always_listed())
        .build()
        .unwrap();
    for _ in 0..100 {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = format!("http://{free}/mcp");
        let auth = ResourceServer::builder(&url).issuer(Issuer::new(&issuer.url)).scopes(["mcp"]);
        let config = HttpConfig::new().authenticator(change(auth).build().unwrap());
        // Another process may have taken the port meanwhile.
        if let Ok(serving) = server.serve_http(free, config).await {
            return (serving, url);
        }
    }
    panic!("no port is free");
}

async fn connect(url: &str) -> Client {
    let oauth = OAuth::builder(url).client_name("Both").login(Robot::default()).build();
    let client = Client::builder("both", "1").token_source(oauth).connect(url).await;
    client.unwrap_or_else(|error| panic!("{error}"))
}

async fn call(client: &Client, tool: &str) -> String {
    let result = client.call_tool(tool, json!({})).await.unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(&result).unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
}

fn key() -> SigningKey {
    SigningKey::generate(Algorithm::Es256).unwrap().with_id("k1")
}

// ARS-03, ARS-06, ARS-07
#[tokio::test]
async fn client_requests_more_scopes_when_a_tool_requires_them() {
    let (issuer, asked) = issuer(key()).await;
    let (serving, url) = protected(&issuer, |auth| auth).await;
    let client = connect(&url).await;
    let name = format!("{}|ann|registered", issuer.url);
    assert_eq!(call(&client, "whoami").await, format!("{name} may mcp"));
    assert_eq!(call(&client, "write").await, format!("{name} may mcp write"));
    assert_eq!(call(&client, "whoami").await, format!("{name} may mcp write"));
    assert_eq!(*asked.lock().unwrap(), ["mcp", "mcp write"]);
    assert_eq!(issuer.all("/keys").len(), 1);
    drop(serving);
}

#[tokio::test]
async fn client_sends_dpop_proofs_with_the_server_nonce() {
    let (issuer, asked) = issuer(key()).await;
    let (serving, url) =
        protected(&issuer, |auth| auth.require_dpop().dpop_nonces(Duration::from_secs(60), None))
            .await;
    let client = connect(&url).await;
    let name = format!("{}|ann|registered", issuer.url);
    for _ in 0..3 {
        assert_eq!(call(&client, "whoami").await, format!("{name} may mcp"));
    }
    assert_eq!(call(&client, "write").await, format!("{name} may mcp write"));
    assert_eq!(*asked.lock().unwrap(), ["mcp", "mcp write"]);
    drop(serving);
}
