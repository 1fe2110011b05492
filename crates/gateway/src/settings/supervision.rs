//! Settings of processes that survive the gateway.

use std::{fmt, future::Future, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use outlive::store::TaskStore;

/// Returns whether a machine is alive.
type MachineCheck = Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// Processes of upstreams that survive the gateway: where they are, and whose tasks they work for.
///
/// A small supervisor stands between the gateway and each process. If the gateway is killed, calls
/// of tasks continue, and the next gateway on the same folder gets their results. The supervisor is
/// this program, which calls [`outlive_jobs::supervise_if_asked`] first in `main`. Without that call,
/// and on systems without Unix sockets, processes end with the gateway.
#[derive(Clone)]
#[must_use]
pub struct Supervision {
    pub(crate) folder: PathBuf,
    pub(crate) program: Option<PathBuf>,
    pub(crate) machine: Arc<str>,
    pub(crate) is_machine_alive: Option<MachineCheck>,
    pub(crate) tasks: Arc<dyn TaskStore>,
    pub(crate) orphan_timeout: Option<Duration>,
}

impl fmt::Debug for Supervision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervision").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Supervision {
    /// Creates the settings of processes in a folder, `<data>/pipes`, and of the store of the server's
    /// tasks.
    pub fn new(folder: impl Into<PathBuf>, tasks: Arc<dyn TaskStore>) -> Self {
        Self {
            folder: folder.into(),
            program: None,
            machine: "local".into(),
            is_machine_alive: None,
            tasks,
            orphan_timeout: None,
        }
    }

    /// Sets the program that supervisors run. The default is this program.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Sets the ID of this machine, for a store that several machines share. Another machine waits
    /// for a call while `is_alive` returns `true` for the ID of its machine.
    pub fn machine<F, Fut>(mut self, id: impl Into<Arc<str>>, is_alive: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        self.machine = id.into();
        self.is_machine_alive = Some(Arc::new(move |machine| Box::pin(is_alive(machine))));
        self
    }

    /// Sets the time without a heartbeat of a server, [`outlive_jobs::record_heartbeat`], after which
    /// a process ends. For a store that several machines share.
    pub fn orphan_timeout(mut self, timeout: Duration) -> Self {
        self.orphan_timeout = Some(timeout);
        self
    }
}
