//! Opens a connection to a supervised process: a new one, or one of an earlier gateway.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use outlive::client::{Client, ClientBuilder, Error, Target};
use outlive_jobs::Pipe;

use super::{
    adopted::Adopting,
    environment::environment,
    state::UpstreamState,
    supervised::{OnStderr, Supervised},
    supervisor::{PipeGreeting, PipeLabel, Supervisor, fingerprint},
};
use crate::settings::Upstream;

/// The process of a client that is being connected. A client may start it twice, because a server may
/// exit at a request that it does not know.
#[derive(Clone, Default)]
pub(super) struct Current(Arc<Mutex<Option<Arc<Supervised>>>>);

impl Current {
    /// Replaces the process by its successor, and ends it.
    fn replace(&self, supervised: Arc<Supervised>) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(previous) = current.replace(supervised) {
            previous.end_later();
        }
    }

    /// Takes the process, for a client that is connected.
    pub(super) fn take(&self) -> Option<Arc<Supervised>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Ends the process of a client that could not be connected.
impl Drop for Connecting {
    fn drop(&mut self) {
        if let Some(supervised) = self.current.take() {
            supervised.end_later();
        }
    }
}

/// A client that is being connected to a supervised process.
struct Connecting {
    current: Current,
}

/// Start of the processes of one connection.
pub(super) struct Start {
    state: Arc<UpstreamState>,
    supervisor: Arc<Supervisor>,
    settings: Arc<Upstream>,
    label: PipeLabel,
    /// Fingerprint of the settings.
    fingerprint: String,
}

impl Start {
    pub(super) fn new(
        state: &Arc<UpstreamState>,
        supervisor: &Arc<Supervisor>,
        settings: &Arc<Upstream>,
        label: PipeLabel,
    ) -> Self {
        Self {
            state: Arc::clone(state),
            supervisor: Arc::clone(supervisor),
            settings: Arc::clone(settings),
            label,
            fingerprint: fingerprint(settings, &environment(settings)),
        }
    }

    /// Connects to a process of an earlier gateway that has the same settings, or releases
    /// `adopting` and starts one.
    pub(super) async fn connect(
        self,
        builder: ClientBuilder,
        adopting: &mut Option<Adopting>,
    ) -> Result<(Client, Arc<Supervised>), Error> {
        if let Some(pipe) = self.supervisor.survivor(&self.label, &self.fingerprint).await
            && let Some(Ok(connected)) = self.reuse(builder.clone(), pipe).await
        {
            return Ok(connected);
        }
        *adopting = None;
        let fingerprint = self.fingerprint.clone();
        let connecting = Connecting { current: Current::default() };
        let client = builder
            .first_request_id(first_request_id())
            .connect(self.target(&connecting.current))
            .await?;
        let supervised = connecting.current.take().ok_or(outlive::client::ClientError::Closed)?;
        let greeting =
            client.handshake().map(|handshake| PipeGreeting::new(handshake, fingerprint));
        if let Some(greeting) = greeting.and_then(|greeting| greeting.text()) {
            supervised.sender.greet(&greeting);
        }
        Ok((client, supervised))
    }

    /// Connects to a process of an earlier gateway, without a handshake. Returns `None` if that
    /// gateway had none.
    pub(super) async fn reuse(
        &self,
        builder: ClientBuilder,
        pipe: Pipe,
    ) -> Option<Result<(Client, Arc<Supervised>), Error>> {
        let PipeGreeting { handshake, fingerprint } = PipeGreeting::of(&pipe)?;
        let has_same_settings = fingerprint == self.fingerprint;
        let (supervised, opened) =
            Supervised::open(pipe, has_same_settings, on_stderr(&self.state));
        let builder = builder.restore(handshake).first_request_id(first_request_id());
        let client = builder.connect(Target::Open(opened)).await;
        Some(client.map(|client| (client, supervised)))
    }

    fn target(self, current: &Current) -> Target {
        let (start, current) = (Arc::new(self), current.clone());
        Target::open_with(move || {
            let (start, current) = (Arc::clone(&start), current.clone());
            async move {
                let variables = environment(&start.settings);
                let pipe = start.supervisor.start(&start.label, &start.settings, &variables).await;
                let pipe = pipe.map_err(io::Error::other)?;
                let (supervised, opened) = Supervised::open(pipe, true, on_stderr(&start.state));
                current.replace(supervised);
                Ok(opened)
            }
        })
    }
}

fn on_stderr(state: &Arc<UpstreamState>) -> OnStderr {
    let state = Arc::downgrade(state);
    Arc::new(move |line| {
        if let Some(state) = state.upgrade() {
            state.stderr_line(line);
        }
    })
}

/// Returns the ID of the first request. It is random, so that the IDs of two gateways on one process
/// differ, and small enough for programs that read numbers as floating point.
fn first_request_id() -> u64 {
    (getrandom::u64().unwrap_or_default() >> 16).max(1)
}
