//! Runs a command for a call.

use super::error::unreachable;
use crate::serve::command::follow::{Contexts, Ended, follow};
use crate::serve::{
    command_pool::Runner,
    config::{OnCrash, Ready, ToolConfig},
    host_liveness::{Host, longest_end, orphan_after},
    janitor::abandon_timeout,
    places::Label,
};
use outlive::server::{
    CallToolResult, Durable, Error, Result,
    durable::{Capacity, Cleanup},
};
use outlive_jobs::JobSpec;
use serde_json::{Map, Value as Json};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::timeout;

/// A tool of the file, ready to be called.
pub(crate) struct Command {
    config: ToolConfig,
    /// Working folder of the command.
    folder: PathBuf,
    capacity: Capacity,
    runner: Arc<Runner>,
}

/// Delay before the next liveness check of the machine that runs the command.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Time that an inline call waits for a slot before it becomes a task or fails.
pub(super) const MOMENT: Duration = Duration::from_secs(1);

/// Environment variables that commands inherit by default: enough to find programs and the user's
/// files, without secrets of the server.
pub(crate) const PASSED_ON: [&str; 11] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
    "TERM",
];

/// Error of a command that would run under an approval of other words.
const STALE: &str = "the tool was changed after people approved this call, so its command was not started; call the tool again for a new approval";

impl Command {
    pub(crate) fn new(config: ToolConfig, base: &Path, runner: Arc<Runner>) -> Self {
        let capacity = runner.places.capacity(&config.name, Some(config.concurrency));
        Self { folder: config.folder_in(base), config, capacity, runner }
    }

    /// Runs the command for a call.
    pub(crate) async fn call(
        &self,
        cx: Durable,
        values: Map<String, Json>,
    ) -> Result<CallToolResult> {
        let ready = self.config.ready(values).map_err(|refused| Error::new(refused.0))?;
        let label = Label::new(&self.config.name, &cx);
        let spec = self.spec(ready, &label);
        let mut attempt = 1;
        loop {
            let run = cx.scope(("run", attempt));
            if run.get::<String>("lost")?.is_some() {
                attempt += 1;
                continue;
            }
            // Clients and models see the keys of input requests, so those of the first attempt have
            // no prefix.
            let reruns = (attempt > 1).then(|| cx.scope(("rerun", attempt)));
            let inputs = reruns.as_ref().unwrap_or(&cx);
            // All attempts share their steps, so that a rerun does not execute recorded ones.
            let contexts = Contexts { run: &run, inputs, steps: &cx.scope("step") };
            let why = match self.attempt(contexts, &spec, &label).await? {
                Ended::Result(result) => return result,
                Ended::Lost(why) => why,
            };
            if self.config.policy.on_crash == OnCrash::Fail {
                return Err(Error::new(format!(
                    "the command was interrupted: {why}; it is not rerun, because it may have taken effect in part; set `on_crash = \"rerun\"` for the tool if a rerun is safe"
                )));
            }
            if attempt >= self.config.policy.max_attempts {
                return Err(Error::new(format!(
                    "the command was interrupted {attempt} times; last reason: {why}"
                )));
            }
            run.step("lost", async || Ok(why.clone())).await?;
            // In a separate scope: the lines of the lost attempt use the segment keys of `run`.
            run.scope("note").emit(format!("[interrupted: {why}; rerunning]")).await?;
            attempt += 1;
        }
    }

    async fn attempt(
        &self,
        contexts: Contexts<'_>,
        spec: &JobSpec,
        label: &Label,
    ) -> Result<Ended> {
        let run = contexts.run;
        let here = self.runner.host.id();
        let host: String = run.step("host", async || Ok(here.to_owned())).await?;
        if host != here {
            self.wait_for(run, &host).await?;
            return Ok(Ended::Lost("its machine is gone".to_owned()));
        }
        let id = run.idempotency_key("job");
        self.place(run, &id, label).await?;
        if run.is_approval_stale() && self.runner.jobs.state(&id).map_err(unreachable)?.is_none() {
            self.runner.places.release(&id);
            return Err(Error::new(STALE));
        }
        let niceness = self.runner.places.niceness(&id, &label.caller);
        let spec = JobSpec { niceness, ..spec.clone() };
        let job = self.runner.jobs.start_or_find(&id, &spec).await.map_err(|error| {
            self.runner.places.release(&id);
            unreachable(error)
        })?;
        follow(contexts, &self.config, &self.runner, job, id, label.caller.clone()).await
    }

    /// Waits while the machine of the command is alive. That machine may claim the task, which
    /// drops this run. Returns when the machine is gone.
    async fn wait_for(&self, run: &Durable, host: &str) -> Result<()> {
        let Some(store) = &self.runner.shared_store else { return Ok(()) };
        while Host::is_alive(&**store, host).await {
            // The next worker may be the one on the machine of the command.
            run.yield_to_replica().retry_after(LOOK_AGAIN).await?;
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Waits for a concurrency slot of the tool. The job keeps the slot until its processes have
    /// exited. A task waits in the store, without using a worker.
    async fn place(&self, run: &Durable, id: &str, label: &Label) -> Result<()> {
        let places = &self.runner.places;
        if places.has(id) {
            return Ok(());
        }
        // A job that already runs had its slot from an earlier server.
        if self.runner.jobs.may_run(id).map_err(unreachable)? {
            places.give(id, &label.caller, self.capacity.force_acquire());
            return Ok(());
        }
        if self.capacity.used() >= self.capacity.max() {
            places.release_ended(&self.runner.jobs);
        }
        let free = match run.task_id() {
            Some(_) => None,
            // An inline call waits briefly before it becomes a task or fails.
            None => timeout(MOMENT, self.capacity.acquire(&label.caller)).await.ok(),
        };
        let permit = match free {
            Some(permit) => permit,
            None => {
                let is_full = self.capacity.used() >= self.capacity.max();
                if is_full {
                    run.set_status_message(format!(
                        "waiting for a free slot (max_concurrent = {})",
                        self.config.concurrency
                    ));
                }
                let permit = run.acquire(&self.capacity).await?;
                if is_full {
                    run.set_status_message("started");
                }
                permit
            }
        };
        places.give(id, &label.caller, permit);
        Ok(())
    }

    fn spec(&self, ready: Ready, label: &Label) -> JobSpec {
        let ToolConfig { pass_env, inherit_env, kill_grace, .. } = &self.config;
        let mut env: Vec<(String, String)> = Vec::new();
        if !*inherit_env {
            let names: BTreeSet<&str> =
                PASSED_ON.into_iter().chain(pass_env.iter().map(String::as_str)).collect();
            let set = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
            let withheld = &self.runner.withheld_env;
            let is_secret = |name: &&str| withheld.iter().any(|secret| secret == name);
            env.extend(names.into_iter().filter(|name| !is_secret(name)).filter_map(set));
        }
        env.extend(ready.env);
        let replica_timeout =
            self.runner.shared_store.is_some().then_some(self.runner.replica_timeout);
        JobSpec {
            label: serde_json::to_string(label).ok(),
            argv: ready.argv,
            env,
            clear_env: !inherit_env,
            withheld_env: self.runner.withheld_env.clone(),
            working_dir: Some(self.folder.clone()),
            stdin: ready.stdin,
            interactive: self.config.asks,
            steps: self.config.steps,
            control: self.config.control,
            timeout: Some(self.config.policy.timeout),
            max_output_bytes: self.config.max_output,
            max_output_lines: self.config.max_lines,
            // The command must end before other replicas consider it lost.
            kill_grace: replica_timeout
                .map_or(*kill_grace, |lost| longest_end(lost).min(*kill_grace)),
            orphan_timeout: replica_timeout.map(orphan_after),
            abandon_timeout: Some(abandon_timeout()),
            niceness: 0,
        }
    }

    /// Ends the command of a cancelled or expired task.
    pub(crate) async fn clean_up(&self, task: Cleanup) -> Result<()> {
        for attempt in 1..=self.config.policy.max_attempts {
            let run = task.scope(("run", attempt));
            if run.get::<String>("host")?.as_deref() != Some(self.runner.host.id()) {
                continue;
            }
            self.runner.end(&run.idempotency_key("job")).await.map_err(unreachable)?;
        }
        Ok(())
    }
}
