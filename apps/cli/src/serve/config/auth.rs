//! `[auth]`: whose tokens are taken, and for what.

use std::env;

use outlive::auth::server::{Issuer, ResourceServer};

use super::{
    Read,
    reader::{At, Problem, Section},
    tool::Asked,
};
use crate::trouble::{Result, Trouble};

/// `[auth]`.
#[derive(Clone, Debug)]
pub(crate) struct AuthConfig {
    pub(crate) resource: String,
    pub(crate) issuer: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) audiences: Vec<String>,
    pub(crate) check: Check,
    pub(crate) tenant_claim: Option<String>,
}

/// How tokens are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// With the keys that the issuer's metadata names.
    Signature,
    /// With the keys that are published there.
    KeysAt(String),
    /// By asking there. The secret stands in a variable: the file may be seen by others.
    Introspection { url: String, client_id: String, secret_env: String },
}

pub(super) fn auth(section: Option<Section<'_>>, asked: &mut Asked) -> Read<Option<AuthConfig>> {
    let is_there = section.is_some();
    let mut section = section.unwrap_or_else(Section::empty);
    let (resource, issuer) = (section.read("resource")?, section.read("issuer")?);
    let scopes = section.read("scopes")?.unwrap_or_default();
    let audiences = section.read("audiences")?.unwrap_or_default();
    let check = check(&mut section)?;
    let tenant_claim = section.read("tenant_claim")?;
    let lacks = |key, example: &str| {
        section.lacks(key, format_args!("[auth] has no `{key}`")).or_remedy(example)
    };
    let read = match (is_there, resource, issuer) {
        (false, _, _) => None,
        (true, None, _) => {
            return Err(lacks("resource", "resource = \"https://mcp.example.com/mcp\""));
        }
        (true, _, None) => return Err(lacks("issuer", "issuer = \"https://id.example.com\"")),
        (true, Some(resource), Some(issuer)) => {
            Some(AuthConfig { resource, issuer, scopes, audiences, check, tenant_claim })
        }
    };
    asked.note("auth", section.finish()?);
    Ok(read)
}

fn check(section: &mut Section<'_>) -> Read<Check> {
    let jwks: Option<At<String>> = section.read("jwks_url")?;
    let url: Option<At<String>> = section.read("introspection_url")?;
    let client_id = section.read("introspection_client_id")?;
    let secret_env = section.read("introspection_secret_env")?;
    match (jwks, url, client_id, secret_env) {
        (None, None, None, None) => Ok(Check::Signature),
        (Some(jwks), None, None, None) => Ok(Check::KeysAt(jwks.value)),
        (None, Some(url), Some(client_id), Some(secret_env)) => {
            Ok(Check::Introspection { url: url.value, client_id, secret_env })
        }
        (jwks, url, ..) => {
            let line = jwks.or(url).map_or(section.line, |written| written.line);
            Err(Problem::at(line, "tokens are checked by their signature, or by asking about them")
                .remedy("`jwks_url`, or `introspection_url`, `introspection_client_id` and `introspection_secret_env` together, or none of these"))
        }
    }
}

impl AuthConfig {
    /// What takes the tokens.
    pub(crate) fn resource_server(&self, name: &str) -> Result<ResourceServer> {
        let mut issuer = Issuer::new(&self.issuer);
        issuer = match &self.check {
            Check::Signature => issuer,
            Check::KeysAt(url) => issuer.keys_at(url),
            Check::Introspection { url, client_id, secret_env } => {
                let secret = env::var(secret_env).ok().filter(|it| !it.trim().is_empty());
                let secret = secret.ok_or_else(|| {
                    Trouble::usage(format_args!("the variable {secret_env} has no secret"))
                        .remedy(format_args!("{secret_env}=… outlive serve"))
                })?;
                issuer.introspection(url, client_id, secret.trim())
            }
        };
        for audience in &self.audiences {
            issuer = issuer.audience(audience);
        }
        if let Some(claim) = &self.tenant_claim {
            issuer = issuer.tenant_claim(claim);
        }
        let server = ResourceServer::builder(&self.resource).issuer(issuer).name(name);
        server.scopes(&self.scopes).build().map_err(|error| {
            Trouble::usage(format_args!("[auth]: {error}"))
                .remedy("docs/outlive-toml.md has an example")
        })
    }
}
