//! `[auth]`: the token issuers, and what tokens are required for.

use std::{env, sync::Arc};

use outlive::{
    auth::server::{Issuer, ResourceServer},
    auth_proxy::AuthProxy,
    store::Store,
};

use super::{
    asked::Asked,
    proxy::{self, ProxyConfig, proxy},
    reader::{At, Problem, Result as Read, Section},
    scopes::scopes,
};
use crate::{
    error::{CliError, Result},
    serve::user_logins::ForGateway,
};

/// `[auth]`.
#[derive(Clone, Debug)]
pub(crate) struct AuthConfig {
    pub(crate) resource: String,
    /// Issuer of `[auth]`, then those of `[auth.issuers]`. At least one, unless there is a proxy.
    pub(crate) issuers: Vec<IssuerConfig>,
    pub(crate) scopes: Vec<String>,
    pub(crate) needs_dpop: bool,
    pub(crate) proxy: Option<ProxyConfig>,
}

/// An issuer, in `[auth]` or in `[auth.issuers.NAME]`.
#[derive(Clone, Debug)]
pub(crate) struct IssuerConfig {
    pub(crate) issuer: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) check: Check,
    pub(crate) tenant_claim: Option<String>,
    pub(crate) person_claim: Option<String>,
}

/// Verification of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// With the keys that the issuer's metadata names.
    Signature,
    /// With the keys at this URL.
    KeysAt(String),
    /// By introspection at this URL. The secret is in an environment variable, because others may
    /// read the file.
    Introspection { url: String, client_id: String, secret_env: String },
}

const ISSUER: &str = "issuer = \"https://id.example.com\"";

pub(super) fn auth(section: Option<Section<'_>>, asked: &mut Asked) -> Read<Option<AuthConfig>> {
    let is_there = section.is_some();
    let mut section = section.unwrap_or_else(Section::empty);
    let resource = section.read("resource")?;
    let needed = scopes(&mut section)?;
    let needs_dpop = needs_dpop(&mut section);
    let first = section.attempt(issuer).flatten();
    let more = section.section("issuers")?;
    let mut issuers: Vec<IssuerConfig> = first.into_iter().collect();
    let has_more = more.is_some();
    for (_, value) in more.map(Section::entries).into_iter().flatten() {
        let Some(mut one) = section.attempt(|_| value.section()) else { continue };
        let read = |one: &mut Section<'_>| issuer(one)?.ok_or_else(|| lacks(one, "issuer", ISSUER));
        issuers.extend(one.attempt(read));
        asked.note("auth.issuers.NAME", one.finish()?);
    }
    let table = section.section("proxy")?;
    let has_proxy = table.is_some();
    let proxy = section.attempt(|_| proxy(table, asked)).flatten();
    // The documentation test needs the keys of this table even if the file has no such table.
    let mut none = Section::empty();
    issuer(&mut none)?;
    asked.note("auth.issuers.NAME", none.finish()?);
    let read = match (is_there, resource) {
        (false, _) => None,
        (true, None) => {
            let example = "resource = \"https://mcp.example.com/mcp\"";
            section.report(lacks(&section, "resource", example));
            None
        }
        (true, _) if issuers.is_empty() && !has_more && !has_proxy => {
            section.report(lacks(&section, "issuer", ISSUER));
            None
        }
        (true, Some(resource)) => {
            Some(AuthConfig { resource, issuers, scopes: needed, needs_dpop, proxy })
        }
    };
    if let Some(twice) = read.as_ref().and_then(AuthConfig::twice) {
        let what = format!("the issuer {twice} is listed twice");
        section.report(Problem::at(section.line, what).remedy("remove one of them"));
    }
    if read.as_ref().is_some_and(|read| read.needs_dpop && read.issuers.is_empty()) {
        let what = "the proxy issues tokens without DPoP, so `dpop` cannot be required";
        section.report(Problem::at(section.line, what).remedy("remove `dpop`"));
    }
    asked.note("auth", section.finish()?);
    Ok(read)
}

/// Reads an issuer. Returns `None` if this section has none.
fn issuer(section: &mut Section<'_>) -> Read<Option<IssuerConfig>> {
    let issuer: Option<String> = section.read("issuer")?;
    let audiences = section.read("audiences")?.unwrap_or_default();
    let tenant_claim: Option<String> = section.read("tenant_claim")?;
    let person_claim: Option<String> = section.read("person_claim")?;
    let has_claims = tenant_claim.is_some() || person_claim.is_some();
    let check = check(section)?;
    match issuer {
        Some(issuer) => {
            Ok(Some(IssuerConfig { issuer, audiences, check, tenant_claim, person_claim }))
        }
        None if audiences.is_empty() && check == Check::Signature && !has_claims => Ok(None),
        None => Err(lacks(section, "issuer", ISSUER)),
    }
}

fn lacks(section: &Section<'_>, key: &'static str, example: &str) -> Problem {
    let what = format!("[{}] has no `{key}`", section.path());
    section.lacks(key, what).or_remedy(example)
}

fn needs_dpop(section: &mut Section<'_>) -> bool {
    section.choice("dpop", &[("allowed", false), ("required", true)]).is_some_and(|it| it.value)
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
            Err(Problem::at(line, "tokens are verified either by signature or by introspection, not both")
                .remedy("write `jwks_url`; or `introspection_url`, `introspection_client_id` and `introspection_secret_env` together; or none of these"))
        }
    }
}

impl AuthConfig {
    /// Returns an issuer that is listed more than once.
    fn twice(&self) -> Option<&str> {
        let names = self.issuers.iter().map(|one| one.issuer.as_str());
        names.enumerate().find_map(|(at, name)| {
            self.issuers[..at].iter().any(|before| before.issuer == name).then_some(name)
        })
    }

    /// Returns a tool and a scope that it requires but no user can get. `tools` have names and
    /// scopes. Issuers other than the proxy may grant any scope.
    pub(super) fn ungranted<'t>(
        &self,
        mut tools: impl Iterator<Item = (&'t str, &'t [String])>,
    ) -> Option<(&'t str, &'t str)> {
        let proxy = self.proxy.as_ref().filter(|_| self.issuers.is_empty())?;
        let is_given = |scope: &String| self.scopes.contains(scope) || proxy.grants(scope);
        tools.find_map(|(tool, scopes)| {
            let scope = scopes.iter().find(|scope| !is_given(scope))?;
            Some((tool, scope.as_str()))
        })
    }

    /// Returns the resource server, and the proxy if there is one. Tokens of `deciding_client`, a
    /// client of the first issuer, decide in the console. `gateway` gets the tokens of callers, and
    /// the pages on which they log in at upstreams.
    pub(crate) fn servers(
        &self,
        name: &str,
        store: Arc<dyn Store>,
        deciding_client: Option<&str>,
        gateway: Option<ForGateway>,
    ) -> Result<(ResourceServer, Option<AuthProxy>)> {
        let mut server = ResourceServer::builder(&self.resource).name(name).scopes(&self.scopes);
        for (index, issuer) in self.issuers.iter().enumerate() {
            let trusted = issuer.trusted()?;
            server = server.issuer(match deciding_client.filter(|_| index == 0) {
                Some(client) => trusted.deciding_client(client),
                None => trusted,
            });
        }
        let build = |proxy: &ProxyConfig| proxy.build(&self.resource, name, &self.scopes, store);
        let proxy = self.proxy.as_ref().map(build).transpose()?;
        let proxy = proxy.map(|proxy| match &gateway {
            Some(gateway) => proxy.connections(gateway.pages.clone()),
            None => proxy,
        });
        let proxy = proxy.map(proxy::built).transpose()?;
        if let Some(proxy) = &proxy {
            server = server.issuer(proxy.issuer());
        }
        if self.needs_dpop {
            server = server.require_dpop();
        }
        if let Some(gateway) = gateway {
            server = server.delegates(gateway.delegates);
        }
        let server = server.build().map_err(|error| {
            CliError::usage(format_args!("[auth]: {error}"))
                .remedy("see the example in docs/outlive-toml.md")
        })?;
        Ok((server, proxy))
    }

    /// Returns the issuers and the provider, for display.
    pub(crate) fn places(&self) -> String {
        let issuers = self.issuers.iter().map(|one| one.issuer.as_str());
        let all: Vec<&str> =
            issuers.chain(self.proxy.as_ref().map(ProxyConfig::provider)).collect();
        all.join(" or ")
    }
}

impl IssuerConfig {
    fn trusted(&self) -> Result<Issuer> {
        let mut issuer = Issuer::new(&self.issuer);
        issuer = match &self.check {
            Check::Signature => issuer,
            Check::KeysAt(url) => issuer.jwks_url(url),
            Check::Introspection { url, client_id, secret_env } => {
                let secret = env::var(secret_env).ok().filter(|it| !it.trim().is_empty());
                let secret = secret.ok_or_else(|| {
                    CliError::usage(format_args!(
                        "the environment variable {secret_env} is not set or empty"
                    ))
                    .remedy(format_args!("{secret_env}=SECRET outlive serve"))
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
        if let Some(claim) = &self.person_claim {
            issuer = issuer.person_claim(claim);
        }
        Ok(issuer)
    }
}
