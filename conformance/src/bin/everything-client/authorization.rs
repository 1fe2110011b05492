//! Tokens for the client of the suite: each scenario uses the OAuth client of the product.

use std::{error::Error, io};

use outlive::auth::{
    client::{Assertion, EnterpriseAuthorization, LoopbackLogin, OAuth, OAuthBuilder},
    jose::{Algorithm, SigningKey},
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The client metadata document that the suite expects.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// The OAuth client for a scenario.
pub(crate) fn oauth(scenario: &str, url: &str, context: &Value) -> Result<OAuth, Box<dyn Error>> {
    let text = |name: &str| {
        let missing = || format!("the context has no `{name}`");
        context[name].as_str().map(str::to_owned).ok_or_else(missing)
    };
    let builder = OAuth::builder(url)
        .client_name("outlive-conformance")
        .client_metadata_url(DOCUMENT)
        .login(LoopbackLogin::new().without_browser().on_url(browse));
    let with_secret = |builder: OAuthBuilder| -> Result<OAuthBuilder, String> {
        Ok(builder.client_id(text("client_id")?).client_secret(text("client_secret")?))
    };
    let builder = match scenario {
        "auth/pre-registration" => with_secret(builder)?,
        "auth/client-credentials-basic" => with_secret(builder)?.client_credentials(),
        "auth/client-credentials-jwt" => {
            let algorithm = Algorithm::from_name(&text("signing_algorithm")?);
            let algorithm = algorithm.ok_or("unsupported signing algorithm")?;
            let key = SigningKey::from_pem(algorithm, &text("private_key_pem")?)?;
            builder.client_id(text("client_id")?).client_key(key).client_credentials()
        }
        // The second name is that of the old release of the suite.
        "auth/enterprise-managed-authorization" | "auth/cross-app-access-complete-flow" => {
            let id_token = Assertion::fixed(text("idp_id_token")?);
            let (endpoint, id) = (text("idp_token_endpoint")?, text("idp_client_id")?);
            with_secret(builder)?.enterprise(EnterpriseAuthorization::new(endpoint, id, id_token))
        }
        "auth/wif-jwt-bearer" => builder
            .client_id(text("client_id")?)
            .workload_identity(Assertion::fixed(text("valid_jwt")?)),
        _ => builder,
    };
    Ok(builder.build())
}

/// Acts as a browser: opens the page and follows its redirects.
fn browse(url: &str) {
    let url = url.to_owned();
    tokio::spawn(async move {
        if let Err(error) = follow(url).await {
            eprintln!("the page could not be opened: {error}");
        }
    });
}

async fn follow(mut url: String) -> io::Result<()> {
    for _ in 0..5 {
        let rest = url.strip_prefix("http://").ok_or(io::ErrorKind::InvalidInput)?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let mut stream = TcpStream::connect(host).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await?;
        let head = reply.split("\r\n\r\n").next().unwrap_or_default();
        let location = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
        });
        match location {
            Some(location) => url = location,
            None => return Ok(()),
        }
    }
    Err(io::Error::other("the redirects form a loop"))
}
