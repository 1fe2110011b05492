//! The tool workers of a server, made of the file at start.

use std::{env, path::Path, sync::Arc};

use outlive::server::{
    Server, ServerBuilder, Tool,
    tasks::{OnCrash as LibraryOnCrash, TaskPolicy},
};
use outlive_workers::{
    ToolNames, ToolPolicy, ToolWorker, WorkerError, WorkerMetrics, WorkerSettings,
};

use super::{
    config::{Config, OnCrash, PolicyKeys, TaskMode, ToolConfig, WorkerConfig},
    location::base_of,
    secrets,
    source::pattern_of,
};
use crate::{
    checks,
    error::{CliError, Result},
    serve::config::Mistake,
};

/// Owner of the names of the file's own tools.
const FILE: &str = "[tools]";

/// The running tool workers of a server.
#[derive(Clone, Default)]
pub(crate) struct Workers(Arc<Running>);

#[derive(Default)]
struct Running {
    workers: Vec<ToolWorker>,
    names: ToolNames,
}

/// Options of the command line for all tool workers.
#[derive(Clone, Copy, Default)]
pub(crate) struct WorkerOptions<'a> {
    /// Folder that records running processes.
    pub(crate) data: Option<&'a Path>,
    pub(crate) is_dev: bool,
    pub(crate) crash_after_each_entry: bool,
    pub(crate) skip_time: bool,
}

impl Workers {
    /// Starts all tool workers of a configuration, and waits for their tools. `path` is the file or
    /// script that has them.
    ///
    /// # Errors
    ///
    /// Returns the error of the first one that does not declare its tools, with its traceback.
    pub(crate) async fn start(
        config: &Config,
        path: Option<&Path>,
        options: WorkerOptions<'_>,
    ) -> Result<Self> {
        let names = ToolNames::new();
        for tool in &config.tools {
            // The names of the file are distinct.
            let _ = names.claim(&tool.name, FILE);
        }
        let mut workers = Vec::new();
        for worker in &config.workers {
            let settings = settings(worker, path, options)?;
            let started = ToolWorker::start(settings, names.clone()).await;
            let started = started.map_err(|error| not_started(&error))?;
            warn_of_unknown(worker, &started);
            workers.push(started);
        }
        Ok(Self(Arc::new(Running { workers, names })))
    }

    /// Returns the name that the only application declares for itself.
    pub(crate) fn app_name(&self) -> Option<&str> {
        match &self.0.workers[..] {
            [worker] => worker.app_name(),
            _ => None,
        }
    }

    /// Returns the names of all tools.
    pub(crate) fn tool_names(&self) -> Vec<String> {
        self.0.workers.iter().flat_map(ToolWorker::tool_names).collect()
    }

    /// Adds the tools to a server that is being built.
    pub(crate) fn attach(&self, builder: ServerBuilder) -> ServerBuilder {
        self.0.workers.iter().fold(builder, |builder, worker| worker.attach(builder))
    }

    /// Keeps the tools of a server in sync with the code.
    pub(crate) fn serve(&self, server: &Server) {
        self.0.workers.iter().for_each(|worker| worker.serve(server));
    }

    /// Checks that the tools of a changed file have names of their own.
    ///
    /// # Errors
    ///
    /// Returns the reason. Nothing changes then.
    pub(super) fn rename(&self, before: &[String], tools: &[ToolConfig]) -> Result<(), String> {
        let names = &self.0.names;
        for tool in tools {
            names.claim(&tool.name, FILE).map_err(|other| {
                format!("`{}` is the name of a tool of the tool worker `{other}`", tool.name)
            })?;
        }
        let is_gone = |name: &&String| !tools.iter().any(|tool| tool.name == **name);
        before.iter().filter(is_gone).for_each(|name| names.release(name, FILE));
        Ok(())
    }

    /// Returns the numbers of all tool workers.
    pub(super) fn metrics(&self) -> Vec<WorkerMetrics> {
        self.0.workers.iter().map(ToolWorker::metrics).collect()
    }

    /// Ends all processes.
    pub(crate) async fn shutdown(&self) {
        for worker in &self.0.workers {
            worker.shutdown().await;
        }
    }
}

/// Returns the error of a start, with the last lines of the process.
fn not_started(error: &WorkerError) -> CliError {
    let what = match error.stderr().trim_end() {
        "" => error.to_string(),
        stderr => format!("{error}\n{stderr}"),
    };
    CliError::usage(what)
}

/// Warns about policies of tools that the code does not have.
fn warn_of_unknown(config: &WorkerConfig, worker: &ToolWorker) {
    let known = worker.tool_names();
    for (tool, _) in config.tools.iter().filter(|(tool, _)| !known.contains(tool)) {
        checks::warn(&Mistake {
            what: format!("the tool worker `{}` has no tool `{tool}`", config.name),
            remedy: Some(format!("correct [workers.{}.tools.{tool}]", config.name)),
        });
    }
}

fn settings(
    config: &WorkerConfig,
    path: Option<&Path>,
    options: WorkerOptions<'_>,
) -> Result<WorkerSettings> {
    let base = base_of(path);
    let withheld = secrets::variables(path);
    let mut settings = WorkerSettings::new(config.name.as_str(), &config.words)
        .working_dir(config.folder_in(&base))
        .inherit_env(config.inherit_env)
        .processes(config.processes as usize)
        .max_concurrent(config.max_concurrent as usize)
        .start_timeout(config.start_timeout)
        .kill_grace(config.kill_grace)
        .dev(options.is_dev)
        .crash_after_each_entry(options.crash_after_each_entry)
        .skip_time(options.skip_time);
    let is_own = |name: &String| name.starts_with("OUTLIVE_") || withheld.contains(name);
    for name in config.pass_env.iter().filter(|name| !is_own(name)) {
        if let Some(value) = env::var_os(name) {
            settings = settings.env(name, value);
        }
    }
    for (name, reference) in &config.env {
        let value = reference.text(&base).map_err(|reason| {
            CliError::usage(format_args!("`env.{name}` of [workers.{}]: {reason}", config.name))
        })?;
        settings = settings.env(name, value);
    }
    let watch = match options.is_dev && config.watch.is_empty() {
        true => pattern_of(&config.words).into_iter().collect(),
        false => config.watch.clone(),
    };
    if let Some(data) = options.data {
        settings = settings.data_dir(data);
    }
    for (tool, keys) in &config.tools {
        settings = settings.tool(tool, policy(keys));
    }
    Ok(settings.watch(watch).withheld_env(withheld))
}

/// Returns the policy of one tool.
fn policy(keys: &PolicyKeys) -> ToolPolicy {
    let mut policy = ToolPolicy::new();
    if let Some(timeout) = keys.timeout {
        policy = policy.timeout(timeout);
    }
    if let Some(on_crash) = keys.on_crash {
        policy = policy.on_crash(match on_crash {
            OnCrash::Fail => LibraryOnCrash::Fail,
            OnCrash::RunAgain => LibraryOnCrash::Rerun,
        });
    }
    if let Some(attempts) = keys.max_attempts {
        policy = policy.max_attempts(attempts);
    }
    if let Some(mode) = keys.task_mode() {
        policy = policy.task(match mode {
            TaskMode::Never => TaskPolicy::Never,
            TaskMode::Auto { after } => TaskPolicy::Auto { after },
            TaskMode::Always => TaskPolicy::Always,
        });
    }
    if let Some(scopes) = &keys.scopes {
        policy = policy.scopes(scopes);
    }
    let keys = keys.clone();
    policy.change(move |tool| change(&keys, tool))
}

fn change(keys: &PolicyKeys, mut tool: Tool) -> Tool {
    if keys.always_listed == Some(true) {
        tool = tool.always_listed();
    }
    if let Some(repeat) = keys.repeat {
        tool = tool.repeat(repeat);
    }
    if let Some(bytes) = keys.max_inline {
        tool = tool.max_inline(bytes);
    }
    if let Some(answers) = &keys.answers {
        tool = tool.answers(answers.iter().copied());
    }
    if let Some(approve) = &keys.approve {
        tool = tool.approve(approve.rule());
    }
    match keys.tags.is_empty() {
        true => tool,
        false => {
            let tags = keys.tags.clone();
            tool.tags(move |arguments| tags.fill(arguments))
        }
    }
}
