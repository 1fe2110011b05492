//! Reloads the tools when the configuration file changes.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use outlive::server::Server;
use tokio::time::{MissedTickBehavior, interval};

use super::{
    base_of,
    config::{self, Config},
    tools::{Changed, Tools},
};
use crate::{
    checks::{self, Check},
    error::CliError,
    print::{self, talk},
    store::plain,
};

/// Poll interval. Polling works where change notifications do not: on network drives and in
/// containers.
const LOOK: Duration = Duration::from_secs(1);

/// Modification time and size of the file, which change when the file is written or replaced.
#[derive(PartialEq, Eq)]
struct Stamp(Option<SystemTime>, u64);

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self(file.modified().ok(), file.len()))
    }
}

/// Keeps the tools of a server in sync with the file, until dropped. `check_people` checks the people
/// whom the file names.
pub(super) async fn follow(
    path: PathBuf,
    check_people: impl Fn(&Config) -> Vec<Check>,
    server: Server,
    mut tools: Tools,
) {
    let mut seen = Stamp::of(&path);
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let now = Stamp::of(&path);
        // An editor may remove the file while it saves. The tools stay.
        if now.is_none() || now == seen {
            continue;
        }
        seen = now;
        match config::load(&path) {
            Err(mistakes) => {
                CliError::from(mistakes).tell();
                talk!("  the tools are unchanged");
            }
            Ok(config) => {
                config.warnings.iter().for_each(checks::warn);
                // These checks are never fatal: a tool that cannot run fails when it is called.
                let _ = checks::admit(checks::tools(&config.tools, &base_of(Some(&path))));
                // Unknown people could not approve the calls of their tools.
                if let Err(error) = checks::admit(check_people(&config)) {
                    error.tell();
                    talk!("  the tools are unchanged");
                    continue;
                }
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
        [("new", &changed.added), ("changed", &changed.replaced), ("removed", &changed.removed)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what}: {}", names.join(", ")))
        .collect();
    if parts.is_empty() {
        talk!(
            "{path} changed, but the tools did not; restart the server to apply changes to other sections"
        );
    } else {
        talk!("reloaded {path}; {}", plain(&parts.join("; ")));
    }
}
