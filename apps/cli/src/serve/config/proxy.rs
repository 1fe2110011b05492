//! `[auth.proxy]`: an identity provider without MCP support, and its users who may log in.

use std::{env, sync::Arc};

use outlive::{
    auth_proxy::{AuthProxy, AuthProxyBuilder, Provider, TaskLoginStore},
    store::Store,
};

use super::{
    asked::Asked,
    grants::{Claims, GrantRule, grants},
    reader::{Problem, Read as _, Result as Read, Section},
};
use crate::error::{CliError, Result};

/// `[auth.proxy]`.
#[derive(Clone, Debug)]
pub(crate) struct ProxyConfig {
    place: Place,
    client_id: String,
    /// Environment variable: secrets must not be in the file, which others may read.
    client_secret_env: Option<String>,
    signing_secret_env: String,
    scopes: Option<Vec<String>>,
    subject: Option<String>,
    tenant: Option<String>,
    parameters: Vec<(String, String)>,
    /// Claims of the users who may log in. Without claims, every user may.
    allow: Claims,
    grants: Vec<GrantRule>,
}

/// Location of the provider.
#[derive(Clone, Debug)]
enum Place {
    Upstream(String),
    Known { authorize: String, token: String, userinfo: String },
}

pub(super) fn proxy(section: Option<Section<'_>>, asked: &mut Asked) -> Read<Option<ProxyConfig>> {
    let is_there = section.is_some();
    let mut section = section.unwrap_or_else(Section::empty);
    let place = section.attempt(place).flatten();
    let client_id = section.read("client_id")?;
    let client_secret_env = section.read("client_secret_env")?;
    let signing_secret_env = section.read("signing_secret_env")?;
    let scopes = section.read("scopes")?;
    let (subject, tenant) = (section.read("subject")?, section.read("tenant")?);
    let parameters = section.section("parameters")?.map(Section::entries).unwrap_or_default();
    let parameters = parameters.into_iter().map(|(name, value)| Ok((name, String::read(value)?)));
    let parameters = parameters.collect::<Read<_>>()?;
    let allow = section.take("allow_users").map(Claims::read).transpose()?.unwrap_or_default();
    let grants = grants(section.take("grants"))?;
    let allow_all_users = section.read("allow_all_users")?.unwrap_or(false);
    let lacks = |key, example: &str| {
        section.lacks(key, format_args!("[auth.proxy] has no `{key}`")).or_remedy(example)
    };
    let read = match (is_there, place, client_id, signing_secret_env) {
        (false, ..) => None,
        (true, None, ..) => {
            section.report(lacks("provider", "provider = \"https://accounts.google.com\""));
            None
        }
        (true, _, None, _) => {
            section.report(lacks(
                "client_id",
                "set client_id = \"…\" to the client ID at the provider",
            ));
            None
        }
        (true, _, _, None) => {
            let example = "set signing_secret_env = \"PROXY_SECRET\", a variable with 32 or more random characters";
            section.report(lacks("signing_secret_env", example));
            None
        }
        (true, ..) if allow.is_empty() != allow_all_users => {
            let what = "[auth.proxy] needs exactly one of `allow_users` and `allow_all_users`";
            section.report(Problem::at(section.line, what).remedy(
                "write allow_users = { email = [\"ann@example.com\"] }; or allow_all_users = true to admit every user of the provider",
            ));
            None
        }
        (true, Some(place), Some(client_id), Some(signing_secret_env)) => Some(ProxyConfig {
            place,
            client_id,
            client_secret_env,
            signing_secret_env,
            scopes,
            subject,
            tenant,
            parameters,
            allow,
            grants,
        }),
    };
    asked.note("auth.proxy", section.finish()?);
    Ok(read)
}

fn place(section: &mut Section<'_>) -> Read<Option<Place>> {
    let upstream = section.read("provider")?;
    let authorize = section.read("authorize_url")?;
    let token = section.read("token_url")?;
    let userinfo = section.read("userinfo_url")?;
    match (upstream, authorize, token, userinfo) {
        (None, None, None, None) => Ok(None),
        (Some(upstream), None, None, None) => Ok(Some(Place::Upstream(upstream))),
        (None, Some(authorize), Some(token), Some(userinfo)) => {
            Ok(Some(Place::Known { authorize, token, userinfo }))
        }
        _ => {
            Err(Problem::at(section.line, "[auth.proxy] needs either `provider` or all three URLs")
                .remedy(
                    "write `provider`; or `authorize_url`, `token_url` and `userinfo_url` together",
                ))
        }
    }
}

impl ProxyConfig {
    /// Returns the URL of the provider, for display.
    pub(crate) fn provider(&self) -> &str {
        match &self.place {
            Place::Upstream(url) | Place::Known { authorize: url, .. } => url,
        }
    }

    /// Returns whether a rule grants this scope to some users.
    pub(super) fn grants(&self, scope: &str) -> bool {
        self.grants.iter().any(|rule| rule.scope == scope)
    }

    /// Builds the proxy for the server at `resource`. Every user who may log in gets `scopes`.
    pub(crate) fn build(
        &self,
        resource: &str,
        name: &str,
        scopes: &[String],
        store: Arc<dyn Store>,
    ) -> Result<AuthProxyBuilder> {
        let id = self.client_id.as_str();
        let mut upstream = match &self.place {
            Place::Upstream(issuer) => Provider::discover(issuer, id),
            Place::Known { authorize, token, userinfo } => {
                Provider::new(authorize, token, id).userinfo_url(userinfo)
            }
        };
        if let Some(variable) = &self.client_secret_env {
            upstream = upstream.client_secret(secret(variable)?);
        }
        if let Some(scopes) = &self.scopes {
            upstream = upstream.scopes(scopes);
        }
        if let Some(claim) = &self.subject {
            upstream = upstream.subject(claim);
        }
        if let Some(claim) = &self.tenant {
            upstream = upstream.tenant(claim);
        }
        for (name, value) in &self.parameters {
            upstream = upstream.parameter(name, value);
        }
        let allow = self.allow.clone();
        let mut proxy = AuthProxy::builder(resource, upstream).name(name).scopes(scopes);
        for rule in self.grants.clone() {
            proxy = proxy.grants([rule.scope.clone()], move |user| rule.fits(user));
        }
        let proxy =
            proxy.secret(secret(&self.signing_secret_env)?).login_store(TaskLoginStore::new(store));
        Ok(proxy.allow_user(move |user| allow.fit(user)))
    }
}

/// Builds a proxy.
pub(super) fn built(proxy: AuthProxyBuilder) -> Result<AuthProxy> {
    proxy.build().map_err(|error| {
        CliError::usage(format_args!("[auth.proxy]: {error}"))
            .remedy("see the example in docs/outlive-toml.md")
    })
}

fn secret(variable: &str) -> Result<String> {
    let secret = env::var(variable).ok().map(|secret| secret.trim().to_owned());
    secret.filter(|secret| !secret.is_empty()).ok_or_else(|| {
        CliError::usage(format_args!("the environment variable {variable} is not set or empty"))
            .remedy(format_args!("{variable}=SECRET outlive serve"))
    })
}
