//! Checks for missing programs, folders and values of tool workers. Starts none.

use std::path::Path;

use super::{Check, Level, tools::is_there};
use crate::serve::config::{Config, WorkerConfig};

const WORKER: &str = "worker";

/// Checks that each tool worker of a file can be started. Relative folders are relative to `base`.
pub(crate) fn workers(config: &Config, base: &Path) -> Vec<Check> {
    config.workers.iter().flat_map(|worker| one(worker, base)).collect()
}

fn one(worker: &WorkerConfig, base: &Path) -> Vec<Check> {
    let broken = |what: String, remedy: &str| Check::new(WORKER, Level::Broken, what, remedy);
    let (name, folder) = (&worker.name, worker.folder_in(base));
    if !folder.is_dir() {
        let what = format!(
            "the working folder of tool worker `{name}` does not exist: {}",
            folder.display()
        );
        return vec![broken(what, "create it, or set `working_dir` to another folder")];
    }
    let mut checks = Vec::new();
    let program = worker.words.first().filter(|program| !is_there(program, &folder));
    if let Some(program) = program {
        let what = format!("tool worker `{name}` runs `{program}`, which was not found");
        checks.push(broken(what, "install the program, or write its full path"));
    }
    for (variable, reference) in &worker.env {
        if let Err(reason) = reference.text(base) {
            let (what, remedy) =
                reason.split_once("; ").unwrap_or((reason.as_str(), "correct the file"));
            let what = format!("tool worker `{name}`, `env.{variable}`: {what}");
            checks.push(broken(what, remedy));
        }
    }
    checks
}
