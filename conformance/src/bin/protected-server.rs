//! A server that wants to know who is calling, for the logins of `cargo xtask logins`:
//! `PORT=8001 protected-server ISSUER [--exact-clock] [--dpop] [--introspection URL ID] [--proxy ID]`.
//!
//! It says where it listens, and ends with its standard input. The secret that goes with an id is in
//! `CLIENT_SECRET`. With `--proxy` it issues its tokens itself, and the issuer is where people log in.

use std::{env, error::Error, time::Duration};

use outlive::{
    auth::server::{Issuer, ResourceServer},
    auth_proxy::{AuthProxy, Provider},
    server::{Cx, Server, Tool, http::HttpConfig},
};
use tokio::io::AsyncReadExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let id = words.next().ok_or("whose tokens are taken?")?;
    let mut issuer = Issuer::new(&id);
    let port: u16 = env::var("PORT")?.parse()?;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut auth = ResourceServer::builder(&url).scopes(["mcp"]).name("A protected server");
    let mut config = HttpConfig::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            // A token that has expired is refused at once, also where its issuer has another clock.
            "--exact-clock" => auth = auth.clock_skew(Duration::ZERO),
            "--dpop" => auth = auth.require_dpop().dpop_nonces(Duration::from_secs(300), None),
            "--introspection" => {
                let (url, id) = (words.next().ok_or("where?")?, words.next().ok_or("as whom?")?);
                issuer = issuer.introspection(url, id, env::var("CLIENT_SECRET")?);
                auth = auth.introspection_cache_ttl(Duration::ZERO);
            }
            "--proxy" => {
                let upstream = Provider::discover(&id, words.next().ok_or("as whom?")?)
                    .client_secret(env::var("CLIENT_SECRET")?)
                    .scopes(["openid", "offline_access"])
                    .parameter("prompt", "consent");
                let proxy = AuthProxy::builder(&url, upstream)
                    .scopes(["mcp"])
                    .allow_user(|user| user.subject != "ben")
                    .name("A protected server")
                    .build()?;
                issuer = proxy.issuer();
                config = config.routes(proxy);
            }
            other => return Err(format!("what is `{other}`?").into()),
        }
    }
    let auth = auth.issuer(issuer).build()?;
    let says = async |cx: Cx| {
        let principal = cx.principal();
        format!("{} with {}", principal.name().unwrap_or("nobody"), principal.scopes())
    };
    let server = Server::builder("protected", "1")
        .tool(Tool::new("whoami", says).description("Says who is calling."))
        .tool(Tool::new("write", says).description("Needs more.").scopes(["write"]).always_listed())
        .build()?;
    let serving = server.serve_http(("127.0.0.1", port), config.authenticator(auth)).await?;
    eprintln!("listening on {}", serving.url());
    let (mut input, mut ignored) = (tokio::io::stdin(), Vec::new());
    tokio::select! {
        ended = serving.wait() => Ok(ended?),
        _ = input.read_to_end(&mut ignored) => Ok(()),
    }
}
