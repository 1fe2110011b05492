//! Runs a command for a call.

use super::error::unreachable;
use crate::serve::command::follow::{Ended, follow};
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
    /// Where its command runs.
    folder: PathBuf,
    capacity: Capacity,
    runner: Arc<Runner>,
}

/// How long to wait before looking again whether the machine that has the command is there.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long a call that is no task waits for a place.
pub(super) const MOMENT: Duration = Duration::from_secs(1);

/// What a command gets of the server's environment, unless its tool says otherwise: enough to find
/// programs and the user's files, and none of the server's secrets.
pub(super) const PASSED_ON: [&str; 11] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
    "TERM",
];

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
            let why = match self.attempt(&run, &spec, &label).await? {
                Ended::Result(result) => return result,
                Ended::Lost(why) => why,
            };
            if self.config.on_crash == OnCrash::Fail {
                return Err(Error::new(format!(
                    "the command was interrupted: {why}; it may have done part of its work, so it is not run again unless its tool says `on_crash = \"rerun\"`"
                )));
            }
            if attempt >= self.config.max_attempts {
                return Err(Error::new(format!(
                    "the command was interrupted {attempt} times, the last time because {why}"
                )));
            }
            run.step("lost", async || Ok(why.clone())).await?;
            // In a place of its own: the lines of the lost run have theirs.
            run.scope("note").emit(format!("[interrupted: {why}; running again]")).await?;
            attempt += 1;
        }
    }

    async fn attempt(&self, run: &Durable, spec: &JobSpec, label: &Label) -> Result<Ended> {
        let here = self.runner.host.id();
        let host: String = run.step("host", async || Ok(here.to_owned())).await?;
        if host != here {
            self.wait_for(run, &host).await?;
            return Ok(Ended::Lost("the machine it ran on is gone".to_owned()));
        }
        let id = run.idempotency_key("job");
        self.place(run, &id, label).await?;
        let niceness = self.runner.places.niceness(&id, &label.caller);
        let spec = JobSpec { niceness, ..spec.clone() };
        let job = self.runner.jobs.start_or_find(&id, &spec).await.map_err(|error| {
            self.runner.places.release(&id);
            unreachable(error)
        })?;
        follow(run, &self.config, &self.runner, job, id, label.caller.clone()).await
    }

    /// Waits until this call goes on at the machine that has its command, which drops this run;
    /// returns when that machine is gone.
    async fn wait_for(&self, run: &Durable, host: &str) -> Result<()> {
        let Some(store) = &self.runner.shared_store else { return Ok(()) };
        while Host::is_alive(&**store, host).await {
            // Whoever takes it next may be the one that has the command.
            run.yield_to_replica().retry_after(LOOK_AGAIN).await?;
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Waits until the job has a place among those of its tool that may run at once. It keeps the place until its
    /// processes have exited. A task waits in the store, without a place in the engine.
    async fn place(&self, run: &Durable, id: &str, label: &Label) -> Result<()> {
        let places = &self.runner.places;
        if places.has(id) {
            return Ok(());
        }
        // One that runs already has outlived the server that gave it its place.
        if self.runner.jobs.may_run(id).map_err(unreachable)? {
            places.give(id, &label.caller, self.capacity.force_acquire());
            return Ok(());
        }
        if self.capacity.used() >= self.capacity.max() {
            places.release_ended(&self.runner.jobs);
        }
        let free = match run.task_id() {
            Some(_) => None,
            // A call that is no task waits for a moment before it becomes one, or is refused.
            None => timeout(MOMENT, self.capacity.acquire(&label.caller)).await.ok(),
        };
        let permit = match free {
            Some(permit) => permit,
            None => {
                let is_full = self.capacity.used() >= self.capacity.max();
                if is_full {
                    run.set_status_message(format!(
                        "waits: {} run already",
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
            control: self.config.control,
            timeout: Some(self.config.timeout),
            max_output_bytes: self.config.max_output,
            max_output_lines: self.config.max_lines,
            // It has to be over before others take it for lost.
            kill_grace: replica_timeout
                .map_or(*kill_grace, |lost| longest_end(lost).min(*kill_grace)),
            orphan_timeout: replica_timeout.map(orphan_after),
            abandon_timeout: Some(abandon_timeout()),
            niceness: 0,
        }
    }

    /// What is done after a task that was cancelled or has expired: nothing of its command is left.
    pub(crate) async fn clean_up(&self, task: Cleanup) -> Result<()> {
        for attempt in 1..=self.config.max_attempts {
            let run = task.scope(("run", attempt));
            if run.get::<String>("host")?.as_deref() != Some(self.runner.host.id()) {
                continue;
            }
            self.runner.end(&run.idempotency_key("job")).await.map_err(unreachable)?;
        }
        Ok(())
    }
}
