//! The gateway of a server, made of the file at start and at each reload.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use outlive::{
    server::{Server, ServerBuilder},
    store::KeyValueStore,
};
use outlive_gateway::{Gateway, GatewaySettings, Supervision};

use super::{
    callers::Callers,
    config::{Config, UpstreamConfig, is_loopback},
    named_upstreams,
    upstream_requests::{UpstreamReply, UpstreamRequest},
    upstream_settings::Sources,
};
use crate::error::CliError;

/// File in the data folder with the status of the upstreams.
pub(crate) const STATUS_FILE: &str = "status.json";

/// The gateway of a server, if the server has upstreams.
#[derive(Clone)]
pub(super) struct Upstreams(Option<Arc<Served>>);

struct Served {
    gateway: Gateway,
    file: Option<PathBuf>,
    /// Upstreams of the command line, which a reload keeps.
    named: Vec<String>,
    /// The newest configuration.
    upstreams: Mutex<Vec<UpstreamConfig>>,
}

/// Surroundings of a gateway: its server, which shares the store of its tasks with it.
pub(super) struct Surroundings<'a> {
    pub(super) store: Arc<dyn KeyValueStore>,
    pub(super) data: PathBuf,
    /// Place of the processes that survive the server.
    pub(super) supervision: Supervision,
    /// Whether the server listens. Several servers on standard input may share the data folder, so
    /// they write no status.
    pub(super) is_http: bool,
    /// Authentication of callers by access tokens.
    pub(super) callers: Option<&'a Callers>,
}

impl Upstreams {
    /// Creates the gateway. It starts nothing. `named` are the upstreams of the command line, which
    /// `config` already has.
    pub(super) fn new(
        config: &Config,
        file: Option<&Path>,
        named: &[String],
        surroundings: Surroundings<'_>,
    ) -> Result<Self, CliError> {
        if config.upstreams.is_empty() {
            return Ok(Self(None));
        }
        let mut builder = Gateway::builder()
            .settings(settings(config))
            .store(surroundings.store)
            .supervision(surroundings.supervision)
            .open_listener(surroundings.is_http && is_open(config));
        for upstream in Sources::new(file).upstreams(config) {
            builder = builder.upstream(upstream);
        }
        if let Some(callers) = surroundings.callers {
            builder = callers.add_to_gateway(builder);
        }
        if surroundings.is_http {
            builder = builder.status_file(surroundings.data.join(STATUS_FILE));
        }
        let gateway = builder.build().map_err(CliError::usage)?;
        if let Some(callers) = surroundings.callers {
            callers.serve_pages(&gateway);
        }
        let (file, upstreams) = (file.map(Path::to_owned), Mutex::new(config.upstreams.clone()));
        Ok(Self(Some(Arc::new(Served { gateway, file, named: named.to_vec(), upstreams }))))
    }

    /// Adds the upstreams to a server that is being built.
    pub(super) fn attach(&self, builder: ServerBuilder) -> ServerBuilder {
        match &self.0 {
            Some(served) => served.gateway.attach(builder),
            None => builder,
        }
    }

    /// Returns the metrics of the upstreams as text.
    pub(super) fn metrics(&self) -> String {
        self.0.as_ref().map(|served| served.gateway.metrics().to_string()).unwrap_or_default()
    }

    /// Returns a server without upstreams.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Starts the background work.
    pub(super) fn start(&self, server: &Server) {
        if let Some(served) = &self.0 {
            served.gateway.start(server);
        }
    }

    /// Applies a configuration. An error changes nothing. Returns the names of new, changed and
    /// removed upstreams.
    pub(super) fn reload(&self, config: &Config) -> Result<Vec<String>, String> {
        let Some(served) = &self.0 else {
            return match config.upstreams.is_empty() {
                true => Ok(Vec::new()),
                false => Err("the server started without upstreams; restart it to add them".into()),
            };
        };
        let mut config = config.clone();
        named_upstreams::add(&mut config, &served.named).map_err(|error| error.to_string())?;
        let upstreams = Sources::new(served.file.as_deref()).upstreams(&config);
        let reloaded = served.gateway.reload(settings(&config), upstreams);
        reloaded.map_err(|error| error.to_string())?;
        let mut known = served.upstreams.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = changed(&known, &config.upstreams);
        *known = config.upstreams;
        Ok(changed)
    }

    /// Executes a request of `outlive upstreams`.
    pub(super) async fn execute(&self, request: &UpstreamRequest) -> UpstreamReply {
        let mut reply = UpstreamReply::default();
        let Some(served) = &self.0 else { return reply };
        match request {
            UpstreamRequest::Restart { upstream } => {
                served.gateway.restart(upstream);
            }
            UpstreamRequest::Accept { upstream, tool } => {
                reply.tools = served.gateway.accept(upstream, tool.as_deref()).await;
            }
        }
        reply
    }

    /// Ends processes and connections.
    pub(super) async fn shutdown(&self) {
        if let Some(served) = &self.0 {
            served.gateway.shutdown().await;
        }
    }
}

/// Returns the settings of the gateway. The names of the file's own tools are taken.
fn settings(config: &Config) -> GatewaySettings {
    let own = config.tools.iter().map(|tool| tool.name.as_str());
    config.gateway.clone().taken_names(own)
}

/// Returns whether unrelated callers can use the server without a token.
fn is_open(config: &Config) -> bool {
    let knows_callers = config.server.token_file.is_some() || config.auth.is_some();
    !knows_callers && !is_loopback(&config.server.listen)
}

/// Returns the names of upstreams that differ.
fn changed(before: &[UpstreamConfig], now: &[UpstreamConfig]) -> Vec<String> {
    let gone = before.iter().filter(|old| !now.iter().any(|new| new.name == old.name));
    let differs = now.iter().filter(|new| !before.contains(new));
    differs.chain(gone).map(|upstream| upstream.name.clone()).collect()
}
