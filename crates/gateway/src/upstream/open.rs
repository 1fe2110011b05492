//! Opens an upstream connection: starts the program or connects to the URL.

use std::sync::Arc;

use outlive::{
    auth::client::OAuth,
    client::{
        Client, ClientBuilder, Error, Target,
        relay::{self, RoutedInputs},
        transport::{ChildProcess, SecretString},
    },
    wire::JsonObject,
};

use super::{
    adopted::Adopting,
    connection::{Connection, Server},
    environment::environment,
    key::{Alive, ConnectionKey},
    offered::PARTIALS,
    open_supervised::Start,
    process_limit::ProcessPlace,
    state::UpstreamState,
    supervised::Supervised,
    supervisor::PipeLabel,
    token_check::TokenCheck,
};
use crate::{
    settings::{Credential, Endpoint, Upstream},
    status::{Problem, State},
};

/// Input requests of one connection that wait for the gateway.
const MAX_ROUTED: usize = 64;

/// Bytes of a message around its result.
const ENVELOPE: usize = 64 << 10;

/// A client that is connected, and its process if that survives the gateway.
type Connected = (Client, Option<Arc<Supervised>>);

/// Opens an upstream connection. Releases `adopting` before it starts a process.
pub(super) async fn open(
    state: &Arc<UpstreamState>,
    key: ConnectionKey,
    (alive, place): (Alive, Option<ProcessPlace>),
    adopting: &mut Option<Adopting>,
) -> Result<(Connection, RoutedInputs), Problem> {
    let settings = state.settings();
    let (inputs, routed) = relay::input_channel(MAX_ROUTED);
    let source = match settings.oauth() {
        Some(auth) => Some(state.credentials.source(&settings, auth, key.principal())?),
        None => None,
    };
    let tokens = source.clone().map(|source| TokenCheck::new(source, &settings));
    if let Some(tokens) = &tokens {
        // Without a token, the upstream gets no request at all.
        tokens.check().await.map_err(|error| state.problem_of(&error))?;
    }
    let builder = builder(state, &settings, &key, source)?.input_channel(inputs);
    let connecting = match state.process_supervisor() {
        Some(supervisor) => {
            let label = PipeLabel::new(&settings.name, &key);
            let start = Start::new(state, supervisor, &settings, label);
            let connected = Box::pin(supervised(start, builder, adopting));
            tokio::time::timeout(settings.start_timeout, connected).await
        }
        None => {
            let target = target(state, &settings)?;
            tokio::time::timeout(settings.start_timeout, connect(builder, target)).await
        }
    };
    let connected = match connecting {
        Ok(connected) => connected.map_err(|error| state.problem_of(&error))?,
        Err(_) => return Err(Problem::slow(settings.start_timeout)),
    };
    let tokens = tokens.filter(|_| key.is_users());
    let connection = connection(state, &settings, (key, alive, place), connected).await?;
    Ok((connection.with_tokens(tokens), routed))
}

/// Opens a connection to a process of an earlier gateway. Returns `None` if the process has ended.
pub(super) async fn adopt(
    state: &Arc<UpstreamState>,
    process: &str,
) -> Option<Result<(Connection, RoutedInputs), Problem>> {
    let supervisor = state.supervisor.as_ref()?;
    let settings = state.settings();
    let (pipe, label) = supervisor.find(process, &settings.name).await?;
    let key = label.own_key()?;
    let (inputs, routed) = relay::input_channel(MAX_ROUTED);
    // Only commands have processes, and they have no tokens.
    let builder = match builder(state, &settings, &key, None) {
        Ok(builder) => builder.input_channel(inputs),
        Err(problem) => return Some(Err(problem)),
    };
    let start = Start::new(state, supervisor, &settings, label);
    let (client, supervised) = match start.reuse(builder, pipe).await? {
        Ok(connected) => connected,
        Err(error) => return Some(Err(state.problem_of(&error))),
    };
    let place = Some(state.place_of_survivor());
    let connected = (client, Some(supervised));
    let made = connection(state, &settings, (key, Alive::Always, place), connected).await;
    Some(made.map(|made| (made, routed)))
}

async fn connect(builder: ClientBuilder, target: Target) -> Result<Connected, Error> {
    Ok((builder.connect(target).await?, None))
}

async fn supervised(
    start: Start,
    builder: ClientBuilder,
    adopting: &mut Option<Adopting>,
) -> Result<Connected, Error> {
    let (client, supervised) = start.connect(builder, adopting).await?;
    Ok((client, Some(supervised)))
}

/// Returns the connection of a client.
async fn connection(
    state: &UpstreamState,
    settings: &Upstream,
    (key, alive, place): (ConnectionKey, Alive, Option<ProcessPlace>),
    (client, supervised): Connected,
) -> Result<Connection, Problem> {
    let version = client.protocol_version().await.map_err(|error| state.problem_of(&error))?;
    let is_legacy = client.is_older().await.map_err(|error| state.problem_of(&error))?;
    let info = client.server_info().await.map_err(|error| state.problem_of(&error))?;
    let server = Server::new(version, is_legacy, &info);
    let mut connection = Connection::new(key, client, server, place, settings, alive);
    connection.supervised = supervised;
    Ok(connection)
}

fn builder(
    state: &UpstreamState,
    settings: &Upstream,
    key: &ConnectionKey,
    source: Option<OAuth>,
) -> Result<ClientBuilder, Problem> {
    let mut builder = Client::builder("outlive-gateway", env!("CARGO_PKG_VERSION"))
        .capability_class(key.class)
        .label(&*settings.name)
        .version_cache(state.versions.clone())
        .reconnect(false)
        // Support for tasks is declared with each request.
        .extension(PARTIALS, JsonObject::new())
        .limits(|limits| {
            limits.max_message_bytes = settings.max_message().saturating_add(ENVELOPE);
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
        Credential::OAuth(_) => match source {
            Some(source) => builder.token_source(source),
            None => builder,
        },
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
