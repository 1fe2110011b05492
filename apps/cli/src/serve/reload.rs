//! Sees that the file has changed, and serves what it says now.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use outlive::server::Server;
use tokio::time::{MissedTickBehavior, interval};

use super::{
    base_of, config,
    tools::{Changed, Tools},
};
use crate::{
    checks,
    error::CliError,
    print::{self, talk},
    store::plain,
};

/// How often to look. Looking is one question to the file system, and works where notices of
/// changes do not: on network drives and in containers.
const LOOK: Duration = Duration::from_secs(1);

/// What changes when a file is written, also if it is replaced by another of the same name.
#[derive(PartialEq, Eq)]
struct Stamp(Option<SystemTime>, u64);

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self(file.modified().ok(), file.len()))
    }
}

/// Keeps a server at what its file says, for as long as it is polled.
pub(super) async fn follow(path: PathBuf, server: Server, mut tools: Tools) {
    let mut seen = Stamp::of(&path);
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let now = Stamp::of(&path);
        // While an editor writes there may be no file: the tools stay.
        if now.is_none() || now == seen {
            continue;
        }
        seen = now;
        match config::load(&path) {
            Err(mistakes) => {
                CliError::from(mistakes).tell();
                talk!("  the tools stay as they were");
            }
            Ok(config) => {
                config.warnings.iter().for_each(checks::warn);
                // None of them refuses: a tool that cannot run says so when it is called.
                let _ = checks::admit(checks::tools(&config.tools, &base_of(Some(&path))));
                match tools.update(&server, config.tools) {
                    Ok(changed) => tell(&path, &changed),
                    Err(error) => {
                        let what = format!("{}: {error}", path.display());
                        talk!("{}", print::hanging("error: ", "       ", &what));
                    }
                }
            }
        }
    }
}

fn tell(path: &Path, changed: &Changed) {
    let path = plain(&path.display().to_string());
    let parts =
        [("new", &changed.added), ("changed", &changed.replaced), ("gone", &changed.removed)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what}: {}", names.join(", ")))
        .collect();
    if parts.is_empty() {
        talk!(
            "{path} was written; the tools are the same ([server], [auth] and [tasks] are read at the start only)"
        );
    } else {
        talk!("{path} was read again; {}", plain(&parts.join("; ")));
    }
}
