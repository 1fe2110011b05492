//! A protected server for `cargo xtask logins`: `PORT=8001 protected-server ISSUER [--exact-clock]
//! [--dpop] [--introspection URL ID] [--proxy ID]`.
//!
//! It prints its address and ends with its standard input. `CLIENT_SECRET` is the secret of an ID.
//! With `--proxy` the server issues its own tokens, and users log in at the issuer.

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
    let id = words.next().ok_or("ISSUER is missing")?;
    let mut issuer = Issuer::new(&id);
    let port: u16 = env::var("PORT")?.parse()?;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut auth = ResourceServer::builder(&url).scopes(["mcp"]).name("A protected server");
    let mut config = HttpConfig::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            // An expired token is rejected immediately, even if the issuer's clock differs.
            "--exact-clock" => auth = auth.clock_skew(Duration::ZERO),
            "--dpop" => auth = auth.require_dpop().dpop_nonces(Duration::from_secs(300), None),
            "--introspection" => {
                let (url, id) = (
                    words.next().ok_or("where?")?,
                    words.next().ok_or("the client ID is missing")?,
                );
                issuer = issuer.introspection(url, id, env::var("CLIENT_SECRET")?);
                auth = auth.introspection_cache_ttl(Duration::ZERO);
            }
            "--proxy" => {
                let upstream =
                    Provider::discover(&id, words.next().ok_or("the client ID is missing")?)
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
            other => return Err(format!("unknown argument `{other}`").into()),
        }
    }
    let auth = auth.issuer(issuer).build()?;
    let says = async |cx: Cx| {
        let principal = cx.principal();
        format!("{} with {}", principal.name().unwrap_or("nobody"), principal.scopes())
    };
    let server = Server::builder("protected", "1")
        .tool(Tool::new("whoami", says).description("Returns the principal."))
        .tool(
            Tool::new("write", says)
                .description("Needs an additional scope.")
                .scopes(["write"])
                .always_listed(),
        )
        .build()?;
    let serving = server.serve_http(("127.0.0.1", port), config.authenticator(auth)).await?;
    eprintln!("listening on {}", serving.url());
    let (mut input, mut ignored) = (tokio::io::stdin(), Vec::new());
    tokio::select! {
        ended = serving.wait() => Ok(ended?),
        _ = input.read_to_end(&mut ignored) => Ok(()),
    }
}
