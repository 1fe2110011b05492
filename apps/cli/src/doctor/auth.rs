//! Checks that the server can verify tokens, and that clients can find the authorization server.

use std::sync::Arc;

use outlive::store::MemoryStore;

use super::Finding;
use crate::{
    print,
    serve::config::{AuthConfig, Check},
};

const AUTH: &str = "auth";

pub(super) async fn check(auth: &AuthConfig) -> Vec<Finding> {
    let (server, proxy) = match auth.servers("outlive", Arc::new(MemoryStore::new()), None, None) {
        Ok(servers) => servers,
        Err(trouble) => {
            let remedy = trouble.next_step().unwrap_or("correct [auth]").to_owned();
            return vec![Finding::failure(AUTH, trouble.to_string(), remedy)];
        }
    };
    let mut findings = vec![resource(auth, server.metadata_url())];
    for (tried, issuer) in server.check_issuers().await.into_iter().zip(&auth.issuers) {
        let name = &tried.issuer;
        findings.push(match tried.found {
            Ok(Some(keys)) => Finding::ok(
                AUTH,
                format!("{name} publishes {} for its tokens", print::count(keys, "key")),
            ),
            Ok(None) => Finding::ok(AUTH, format!("{name} supports token introspection")),
            Err(why) => Finding::failure(
                AUTH,
                format!("cannot verify tokens of {name}: {why}"),
                remedy(&issuer.check),
            ),
        });
    }
    if let (Some(proxy), Some(config)) = (proxy, &auth.proxy) {
        let (callback, provider) = (proxy.callback(), config.provider());
        findings.push(Finding::ok(
            AUTH,
            format!("register the redirect URI {callback} with {provider}"),
        ));
    }
    findings
}

/// Checks that the `resource` URL has the path `/mcp`, which this program serves.
fn resource(auth: &AuthConfig, metadata: &str) -> Finding {
    let resource = &auth.resource;
    if resource.trim_end_matches('/').ends_with("/mcp") {
        return Finding::ok(AUTH, format!("clients read the metadata of {resource} at {metadata}"));
    }
    Finding::warning(
        AUTH,
        format!("`resource` is {resource}, but this program serves /mcp"),
        format!(
            "ignore this if a reverse proxy rewrites this path and {metadata}; else end `resource` with /mcp"
        ),
    )
}

fn remedy(check: &Check) -> String {
    match check {
        Check::Signature => {
            "copy `issuer` exactly from the issuer's metadata; or set `jwks_url` if it publishes no metadata"
                .to_owned()
        }
        Check::KeysAt(url) => format!("open {url}, which must be a JSON object with `keys`"),
        Check::Introspection { client_id, secret_env, .. } => {
            format!(
                "check that the issuer knows the client `{client_id}`, and that {secret_env} has its secret"
            )
        }
    }
}
