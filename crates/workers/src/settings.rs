//! Settings of one tool worker.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use crate::policy::ToolPolicy;

/// A tool worker: a command whose processes run tools.
///
/// ```
/// use outlive_workers::{ToolPolicy, WorkerSettings};
///
/// let shop = WorkerSettings::new("shop", ["python3", "tools.py"])
///     .processes(2)
///     .tool("deploy", ToolPolicy::new().change(|tool| tool.always_listed()));
/// # drop(shop);
/// ```
#[derive(Clone)]
#[must_use]
pub struct WorkerSettings {
    pub(crate) name: Arc<str>,
    pub(crate) command: Vec<OsString>,
    pub(crate) working_dir: Option<PathBuf>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) inherit_env: bool,
    pub(crate) withheld_env: Vec<String>,
    pub(crate) processes: usize,
    pub(crate) max_concurrent: usize,
    pub(crate) start_timeout: Duration,
    pub(crate) ping_timeout: Duration,
    pub(crate) kill_grace: Duration,
    pub(crate) watch: Vec<String>,
    pub(crate) is_dev: bool,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) tools: BTreeMap<String, ToolPolicy>,
    pub(crate) crash_after_each_entry: bool,
    pub(crate) skips_time: bool,
}

/// Variables that a process gets from this one.
const INHERITED: [&str; 11] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
];

/// Prefix of the variables that a process never gets.
const OWN: &str = "OUTLIVE_";

impl WorkerSettings {
    /// Creates the settings of a tool worker with this name and command. The command is started
    /// without a shell, in a clean environment.
    pub fn new<A: Into<OsString>>(
        name: impl Into<Arc<str>>,
        command: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            name: name.into(),
            command: command.into_iter().map(Into::into).collect(),
            working_dir: None,
            env: Vec::new(),
            inherit_env: false,
            withheld_env: Vec::new(),
            processes: 1,
            max_concurrent: 16,
            start_timeout: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(30),
            kill_grace: Duration::from_secs(5),
            watch: Vec::new(),
            is_dev: false,
            data_dir: None,
            tools: BTreeMap::new(),
            crash_after_each_entry: false,
            skips_time: false,
        }
    }

    /// Sets the working folder of the processes.
    pub fn working_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.working_dir = Some(folder.into());
        self
    }

    /// Sets an environment variable of the processes.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets whether the processes inherit the environment of this process. They never inherit
    /// `OUTLIVE_*` variables.
    pub fn inherit_env(mut self, inherits: bool) -> Self {
        self.inherit_env = inherits;
        self
    }

    /// Sets variables with secrets of the server, which the processes never inherit.
    pub fn withheld_env(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.withheld_env = names.into_iter().collect();
        self
    }

    /// Sets the number of processes; 1 by default.
    pub fn processes(mut self, processes: usize) -> Self {
        self.processes = processes.max(1);
        self
    }

    /// Sets the number of parallel calls of one process; 16 by default. Further calls wait.
    pub fn max_concurrent(mut self, calls: usize) -> Self {
        self.max_concurrent = calls.max(1);
        self
    }

    /// Sets how long a process may take until it declares its tools; 30 seconds by default.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Sets how long a process may be silent after a `ping`; 30 seconds by default. The server then
    /// kills it.
    pub fn ping_timeout(mut self, timeout: Duration) -> Self {
        self.ping_timeout = timeout;
        self
    }

    /// Sets how long a process may take to exit before it gets SIGTERM, and then before it is killed;
    /// 5 seconds by default.
    pub fn kill_grace(mut self, grace: Duration) -> Self {
        self.kill_grace = grace;
        self
    }

    /// Sets patterns of file names in the working folder, such as `*.py`. If such a file changes, new
    /// processes replace those that run.
    pub fn watch<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.watch = patterns.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether errors name the line of the tool's code, for development.
    pub fn dev(mut self, is_dev: bool) -> Self {
        self.is_dev = is_dev;
        self
    }

    /// Sets the folder that records running processes. The next server ends those of a killed one.
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// Sets the policy of a tool, which overrides its declaration.
    pub fn tool(mut self, name: impl Into<String>, policy: ToolPolicy) -> Self {
        self.tools.insert(name.into(), policy);
        self
    }

    /// Sets whether the process of a call is killed after each journal entry of that call, to test
    /// tools.
    pub fn crash_after_each_entry(mut self, crashes: bool) -> Self {
        self.crash_after_each_entry = crashes;
        self
    }

    /// Sets whether timers end at once, to test tools.
    pub fn skip_time(mut self, skips: bool) -> Self {
        self.skips_time = skips;
        self
    }

    /// Returns the number of calls in all processes.
    pub(crate) fn places(&self) -> usize {
        self.processes.saturating_mul(self.max_concurrent)
    }

    /// Returns the environment of a process.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let inherited = std::env::vars_os().filter(|(name, _)| self.is_inherited(name));
        inherited.chain(self.env.iter().cloned()).collect()
    }

    fn is_inherited(&self, name: &OsStr) -> bool {
        match name.to_str() {
            Some(name) if name.starts_with(OWN) => false,
            Some(name) if self.withheld_env.iter().any(|withheld| withheld == name) => false,
            Some(name) => self.inherit_env || INHERITED.contains(&name),
            None => self.inherit_env,
        }
    }

    /// Returns the text of everything that decides which code runs, for approvals.
    pub(crate) fn identity(&self) -> String {
        format!("{:?} {:?}", self.command, self.working_dir)
    }
}

impl fmt::Debug for WorkerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and variables may contain secrets.
        f.debug_struct("WorkerSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::WorkerSettings;

    #[test]
    fn environment_has_set_variables_and_never_own_ones() {
        let settings = WorkerSettings::new("shop", ["x"]).env("TOKEN", "1").inherit_env(true);
        let names: Vec<_> = settings.environment().into_iter().map(|(name, _)| name).collect();
        assert!(
            names.iter().any(|name| name == "TOKEN") && names.iter().any(|name| name == "PATH")
        );
        let withheld = settings.withheld_env(["PATH".to_owned()]).environment();
        assert!(withheld.iter().all(|(name, _)| name != "PATH"));
        let is_own = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("OUTLIVE_");
        assert!(withheld.iter().all(|(name, _)| !is_own(name)));
    }

    #[test]
    fn debug_output_hides_command_and_variables() {
        let settings = WorkerSettings::new("shop", ["x", "--token=hunter2"]).env("T", "hunter2");
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
