//! Opens an upstream connection: starts the program or connects to the URL.

use std::{ffi::OsString, sync::Arc};

use outlive::client::{
    Client, ClientBuilder, Error, Target,
    relay::{self, RoutedInputs},
    transport::{ChildProcess, SecretString},
};

use super::{
    connection::Connection,
    key::{Alive, ConnectionKey},
    process_limit::ProcessPlace,
    state::UpstreamState,
};
use crate::{
    settings::{Credential, Endpoint, Upstream},
    status::{Problem, State},
};

/// Variables that a program gets from this process.
const INHERITED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// Prefix of the variables that a program never gets.
const OWN: &str = "OUTLIVE_";

/// Input requests of one connection that wait for the gateway.
const MAX_ROUTED: usize = 64;

/// Bytes of a message around its result.
const ENVELOPE: usize = 64 << 10;

/// Opens an upstream connection.
pub(super) async fn open(
    state: &Arc<UpstreamState>,
    key: ConnectionKey,
    alive: Alive,
    place: Option<ProcessPlace>,
) -> Result<(Connection, RoutedInputs), Problem> {
    let settings = state.settings();
    let (inputs, routed) = relay::input_channel(MAX_ROUTED);
    let builder = builder(state, &settings, &key)?.input_channel(inputs);
    let target = target(state, &settings)?;
    let connecting = connect(builder, target);
    let client = match tokio::time::timeout(settings.start_timeout, connecting).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => return Err(state.problem_of(&error)),
        Err(_) => return Err(Problem::slow(settings.start_timeout)),
    };
    let version = client.protocol_version().await.map_err(|error| state.problem_of(&error))?;
    let is_legacy = client.is_older().await.map_err(|error| state.problem_of(&error))?;
    let connection =
        Connection::new(key, client, (version, is_legacy), place, settings.max_concurrent, alive);
    Ok((connection, routed))
}

async fn connect(builder: ClientBuilder, target: Target) -> Result<Client, Error> {
    builder.connect(target).await
}

fn builder(
    state: &UpstreamState,
    settings: &Upstream,
    key: &ConnectionKey,
) -> Result<ClientBuilder, Problem> {
    let mut builder = Client::builder("outlive-gateway", env!("CARGO_PKG_VERSION"))
        .capability_class(key.class)
        .label(&*settings.name)
        .version_cache(state.versions.clone())
        .reconnect(false)
        .limits(|limits| {
            limits.max_message_bytes = settings.max_result.saturating_add(ENVELOPE);
            limits.request_timeout = settings.start_timeout;
            limits.connect_timeout = limits.connect_timeout.min(settings.start_timeout);
        });
    if let Some(version) = settings.version {
        builder = builder.protocol_version(version);
    }
    if let Some(file) = &settings.ca_file {
        builder = builder.ca_file(file);
    }
    for (name, value) in &settings.headers {
        builder = builder.header(name.clone(), value.clone());
    }
    Ok(match &settings.credential {
        Credential::None => builder,
        Credential::Token(token) => builder.token(token.clone()),
        Credential::File(file) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                let reason = format!("its token file cannot be read: {error}");
                Problem::new(State::Misconfigured, reason, "correct `token_file`")
            })?;
            builder.token(SecretString::new(text.trim()))
        }
    })
}

fn target(state: &Arc<UpstreamState>, settings: &Arc<Upstream>) -> Result<Target, Problem> {
    match &settings.endpoint {
        Endpoint::Url(url) => Ok(Target::Url(url.clone())),
        Endpoint::Misconfigured(reason) => {
            Err(Problem::new(State::Misconfigured, reason.clone(), "correct the settings"))
        }
        Endpoint::Command(words) => {
            let mut words = words.iter();
            let program = words.next().cloned().unwrap_or_default();
            let lines = Arc::downgrade(state);
            let mut child = ChildProcess::new(program)
                .args(words.cloned())
                .inherit_env(false)
                .process_group(true)
                .on_stderr(move |line| {
                    if let Some(state) = lines.upgrade() {
                        state.stderr_line(line);
                    }
                });
            for (name, value) in environment(settings) {
                child = child.env(name, value);
            }
            if let Some(folder) = &settings.working_dir {
                child = child.current_dir(folder);
            }
            Ok(Target::Program(child))
        }
    }
}

/// Returns the variables of a program.
fn environment(settings: &Upstream) -> Vec<(OsString, OsString)> {
    let inherited = std::env::vars_os().filter(|(name, _)| match name.to_str() {
        Some(name) if name.starts_with(OWN) => false,
        Some(name) => settings.inherit_env || INHERITED.contains(&name),
        None => settings.inherit_env,
    });
    inherited.chain(settings.env.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_is_short_and_never_has_own_variables() {
        let settings = Upstream::command("files", ["x"]).env("TOKEN", "1");
        let names: Vec<_> = environment(&settings).into_iter().map(|(name, _)| name).collect();
        assert!(names.iter().any(|name| name == "TOKEN"));
        assert!(names.iter().all(|name| {
            let name = name.to_str().unwrap();
            name == "TOKEN" || INHERITED.contains(&name)
        }));
    }
}
