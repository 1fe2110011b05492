//! Converts upstreams of the file to settings of the gateway: reads the values that are in variables
//! and files, and chooses the variables that processes inherit.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use http::HeaderValue;
use outlive::server::tasks::{OnCrash as LibraryOnCrash, TaskPolicy};
use outlive_gateway::{Policy, ToolSettings, Upstream, UpstreamAuth};

use super::{
    base_of,
    config::{
        AuthKind, CommandTarget, Config, ExchangeConfig, OnCrash, PolicyKeys, TaskMode,
        UpstreamAuthConfig, UpstreamConfig, UpstreamTarget, UpstreamToolConfig, UrlTarget,
    },
    secrets,
};

/// Sources of values: the folder of the file, and the variables that no process inherits.
pub(crate) struct Sources {
    base: PathBuf,
    withheld: Vec<String>,
}

impl Sources {
    pub(crate) fn new(file: Option<&Path>) -> Self {
        Self { base: base_of(file), withheld: secrets::variables(file) }
    }

    /// Returns the upstreams whose values cannot be read, with reason and remedy.
    pub(crate) fn misconfigured(&self, config: &Config) -> Vec<(String, String)> {
        let reason = |upstream: &UpstreamConfig| {
            let reason = match &upstream.target {
                UpstreamTarget::Command(target) => self.command(&upstream.name, target).err()?,
                UpstreamTarget::Url(target) => self.url(&upstream.name, target).err()?,
            };
            Some((upstream.name.clone(), reason))
        };
        config.upstreams.iter().filter_map(reason).collect()
    }

    /// Returns the upstreams of a configuration. An upstream whose values cannot be read is
    /// misconfigured, and the others work.
    pub(crate) fn upstreams(&self, config: &Config) -> Vec<Upstream> {
        config.upstreams.iter().map(|upstream| self.upstream(upstream)).collect()
    }

    fn upstream(&self, config: &UpstreamConfig) -> Upstream {
        let target = match &config.target {
            UpstreamTarget::Command(target) => self.command(&config.name, target),
            UpstreamTarget::Url(target) => self.url(&config.name, target),
        };
        let upstream = match target {
            Ok(upstream) => upstream,
            Err(reason) => Upstream::misconfigured(config.name.as_str(), reason),
        };
        with_settings(upstream, config)
    }

    fn command(&self, name: &str, target: &CommandTarget) -> Result<Upstream, String> {
        let folder = target.folder.as_ref();
        let folder = folder.map_or_else(|| self.base.clone(), |folder| self.base.join(folder));
        if !folder.is_dir() {
            return Err(format!(
                "its working folder {} does not exist; create it, or set `working_dir`",
                folder.display()
            ));
        }
        let mut upstream = Upstream::command(name, &target.words).working_dir(folder);
        let inherited: Vec<String> = match target.inherit_env {
            true => env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect(),
            false => target.pass_env.clone(),
        };
        for variable in inherited.iter().filter(|variable| !self.is_withheld(variable)) {
            if let Some(value) = env::var_os(variable) {
                upstream = upstream.env(variable, value);
            }
        }
        for (variable, reference) in &target.env {
            let value = reference.text(&self.base);
            let value = value.map_err(|reason| format!("`env.{variable}`: {reason}"))?;
            upstream = upstream.env(variable, value);
        }
        match target.max_processes {
            Some(processes) => Ok(upstream.max_processes(processes as usize)),
            None => Ok(upstream),
        }
    }

    /// Returns whether no process inherits a variable: it is a secret of this server.
    fn is_withheld(&self, variable: &str) -> bool {
        variable.starts_with("OUTLIVE_") || self.withheld.iter().any(|name| name == variable)
    }

    fn url(&self, name: &str, target: &UrlTarget) -> Result<Upstream, String> {
        let url = target.url.text(&self.base).map_err(|reason| format!("`url`: {reason}"))?;
        let mut upstream = Upstream::url(name, url).allow_http(target.allow_http);
        for (header, reference) in &target.headers {
            let value = reference.text(&self.base);
            let value = value.map_err(|reason| format!("`headers.{header}`: {reason}"))?;
            let mut value = HeaderValue::try_from(value).map_err(|_| {
                format!("the value of `headers.{header}` has control characters; remove them")
            })?;
            value.set_sensitive(true);
            upstream = upstream.header(header.clone(), value);
        }
        if let Some(variable) = &target.token_env {
            upstream = upstream.token(variable_of("token_env", variable)?);
        }
        if let Some(file) = &target.token_file {
            upstream = upstream.token_file(self.base.join(file));
        }
        if let Some(auth) = &target.auth {
            upstream = upstream.auth(self.auth(auth)?);
        }
        match &target.ca_file {
            Some(file) => Ok(upstream.ca_file(self.base.join(file))),
            None => Ok(upstream),
        }
    }
}

impl Sources {
    /// Returns the OAuth settings of an upstream.
    fn auth(&self, config: &UpstreamAuthConfig) -> Result<UpstreamAuth, String> {
        let id = config.client_id.as_deref();
        let mut auth = match config.kind {
            AuthKind::Login => UpstreamAuth::login(),
            AuthKind::ClientCredentials => UpstreamAuth::client_credentials(id.unwrap_or_default()),
            AuthKind::Exchange => exchange(&config.exchange),
            AuthKind::EachUser => UpstreamAuth::each_user(),
        };
        auth = set(auth.scopes(&config.scopes), id, UpstreamAuth::client_id);
        if let Some(variable) = &config.client_secret_env {
            auth = auth.client_secret(variable_of("auth.client_secret_env", variable)?);
        }
        if let Some(file) = &config.client_key_file {
            let file = self.base.join(file);
            let pem = fs::read_to_string(&file).map_err(|error| {
                let file = file.display();
                format!("`auth.client_key_file`: cannot read {file}: {error}; write the private key to this file")
            })?;
            auth = auth.client_key(pem);
        }
        Ok(auth)
    }
}

fn exchange(config: &ExchangeConfig) -> UpstreamAuth {
    let auth = UpstreamAuth::exchange(&config.token_url).subject(config.subject);
    let auth = set(auth, config.audience.as_deref(), UpstreamAuth::audience);
    set(auth, config.resource.as_deref(), UpstreamAuth::resource)
}

/// Returns the secret in the environment variable that a key names.
fn variable_of(key: &str, variable: &str) -> Result<String, String> {
    let value = env::var(variable).ok().map(|value| value.trim().to_owned());
    value.filter(|value| !value.is_empty()).ok_or_else(|| {
        format!(
            "`{key}`: the environment variable {variable} is not set; set it and restart `outlive serve`"
        )
    })
}

fn with_settings(mut upstream: Upstream, config: &UpstreamConfig) -> Upstream {
    upstream = upstream.only(&config.only).hide(&config.hide).policy(policy(&config.policy));
    upstream = set(upstream, config.protocol_version, Upstream::protocol_version);
    upstream = set(upstream, config.prefix.as_deref(), Upstream::prefix);
    upstream = set(upstream, config.isolation, Upstream::isolation);
    upstream = set(upstream, config.start, Upstream::start);
    upstream = set(upstream, config.start_timeout.map(|span| span.0), Upstream::start_timeout);
    upstream = set(upstream, config.idle_stop.map(|span| span.0), Upstream::idle_stop);
    upstream = set(upstream, config.max_concurrent.map(number), Upstream::max_concurrent);
    upstream = set(upstream, config.input, Upstream::input);
    upstream = set(upstream, config.pin, Upstream::pin);
    upstream = set(upstream, config.max_result.map(|bytes| bytes.size()), Upstream::max_result);
    upstream = set(upstream, config.max_tools.map(number), Upstream::max_tools);
    upstream = set(upstream, config.instructions, Upstream::instructions);
    upstream = set(upstream, config.log, Upstream::log);
    for (name, tool) in &config.tools {
        upstream = upstream.tool(name, tool_settings(tool));
    }
    upstream
}

fn tool_settings(config: &UpstreamToolConfig) -> ToolSettings {
    let mut settings = ToolSettings::new().policy(policy(&config.policy)).hide(config.hide);
    settings = settings.eager(config.eager);
    settings = set(settings, config.name.as_deref(), ToolSettings::name);
    settings = set(settings, config.description.as_deref(), ToolSettings::description);
    settings = set(settings, config.read_only, ToolSettings::read_only);
    settings = set(settings, config.destructive, ToolSettings::destructive);
    settings = set(settings, config.idempotent, ToolSettings::idempotent);
    set(settings, config.max_result.map(|bytes| bytes.size()), ToolSettings::max_result)
}

fn policy(keys: &PolicyKeys) -> Policy {
    let mut policy = Policy::new();
    policy = set(policy, keys.task_mode(), |policy, mode| {
        policy.task(match mode {
            TaskMode::Never => TaskPolicy::Never,
            TaskMode::Auto { after } => TaskPolicy::Auto { after },
            TaskMode::Always => TaskPolicy::Always,
        })
    });
    policy = set(policy, keys.timeout, Policy::timeout);
    policy = set(policy, keys.on_crash, |policy, on_crash| {
        policy.on_crash(match on_crash {
            OnCrash::Fail => LibraryOnCrash::Fail,
            OnCrash::RunAgain => LibraryOnCrash::Rerun,
        })
    });
    policy = set(policy, keys.max_attempts, Policy::max_attempts);
    policy = set(policy, keys.scopes.as_ref(), Policy::scopes);
    policy = set(policy, keys.always_listed, Policy::always_listed);
    policy = set(policy, keys.approve.as_ref(), |policy, rule| policy.approve(rule.rule()));
    policy = set(policy, keys.repeat, Policy::repeat);
    policy = set(policy, keys.max_inline, Policy::max_inline);
    policy = set(policy, keys.answers.clone(), Policy::answers);
    match keys.tags.is_empty() {
        true => policy,
        false => {
            let tags = keys.tags.clone();
            policy.tags(move |arguments| tags.fill(arguments))
        }
    }
}

/// Calls a setter if there is a value.
fn set<T, V>(settings: T, value: Option<V>, setter: impl FnOnce(T, V) -> T) -> T {
    match value {
        Some(value) => setter(settings, value),
        None => settings,
    }
}

fn number(number: u32) -> usize {
    number as usize
}
