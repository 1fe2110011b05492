//! `[auth]`: whether tokens can be checked, and clients find out where to get them.

use std::sync::Arc;

use outlive::store::MemoryStore;

use super::Finding;
use crate::serve::config::{AuthConfig, Check};

const AUTH: &str = "auth";

pub(super) async fn check(auth: &AuthConfig) -> Vec<Finding> {
    let (server, proxy) = match auth.servers("outlive", Arc::new(MemoryStore::new())) {
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
            Ok(Some(keys)) => Finding::ok(AUTH, format!("{name} has {keys} keys for its tokens")),
            Ok(None) => Finding::ok(AUTH, format!("{name} answers questions about tokens")),
            Err(why) => Finding::failure(
                AUTH,
                format!("tokens of {name} cannot be checked: {why}"),
                remedy(&issuer.check),
            ),
        });
    }
    if let (Some(proxy), Some(config)) = (proxy, &auth.proxy) {
        let (callback, provider) = (proxy.callback(), config.provider());
        findings.push(Finding::ok(AUTH, format!("{provider} has to know {callback}")));
    }
    findings
}

/// Clients connect to the address that tokens are for, and this program serves `/mcp`.
fn resource(auth: &AuthConfig, metadata: &str) -> Finding {
    let resource = &auth.resource;
    if resource.trim_end_matches('/').ends_with("/mcp") {
        return Finding::ok(AUTH, format!("clients find out about {resource} at {metadata}"));
    }
    Finding::warning(
        AUTH,
        format!("`resource` is {resource}, and this program serves /mcp"),
        format!(
            "nothing if a proxy in front rewrites the path, and that of {metadata}; else `resource` with /mcp at its end"
        ),
    )
}

fn remedy(check: &Check) -> String {
    match check {
        Check::Signature => {
            "`issuer` letter by letter as its metadata has it; or `jwks_url`, if it publishes none"
                .to_owned()
        }
        Check::KeysAt(url) => format!("open {url}: it should be a JSON object with `keys`"),
        Check::Introspection { client_id, secret_env, .. } => {
            format!(
                "see whether the issuer knows the client `{client_id}`, and that {secret_env} has its secret"
            )
        }
    }
}
