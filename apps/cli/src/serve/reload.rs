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
    upstreams::Upstreams,
    workers::Workers,
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

const UNCHANGED: &str = "tools and upstreams are unchanged";

/// Modification time and size of the file, which change when the file is written or replaced.
#[derive(PartialEq, Eq)]
struct Stamp(Option<SystemTime>, u64);

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self(file.modified().ok(), file.len()))
    }
}

/// Parts of a running server that follow the file.
pub(super) struct Served {
    pub(super) server: Server,
    pub(super) tools: Tools,
    pub(super) upstreams: Upstreams,
    pub(super) workers: Workers,
}

impl Served {
    /// Applies a configuration. An error changes nothing.
    fn update(&mut self, config: Config) -> Result<Changed, String> {
        self.workers.rename(&self.tools.names(), &config.tools)?;
        let upstreams = self.upstreams.reload(&config)?;
        let tools = self.tools.update(&self.server, config.tools);
        let tools = tools.map_err(|error| error.to_string())?;
        Ok(Changed { upstreams, ..tools })
    }
}

/// Keeps the tools and upstreams of a server in sync with the file, until dropped. `check_people`
/// checks the people whom the file names.
pub(super) async fn follow(
    path: PathBuf,
    check_people: impl Fn(&Config) -> Vec<Check>,
    mut served: Served,
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
                talk!("  {UNCHANGED}");
            }
            Ok(config) => {
                config.warnings.iter().for_each(checks::warn);
                // These checks are never fatal: a tool that cannot run fails when it is called.
                let _ = checks::admit(checks::tools(&config.tools, &base_of(Some(&path))));
                let _ = checks::admit(checks::upstreams(&config, Some(&path)));
                let _ = checks::admit(checks::workers(&config, &base_of(Some(&path))));
                // Unknown people could not approve the calls of their tools.
                if let Err(error) = checks::admit(check_people(&config)) {
                    error.tell();
                    talk!("  {UNCHANGED}");
                    continue;
                }
                match served.update(config) {
                    Ok(changed) => tell(&path, &changed),
                    Err(error) => {
                        let what = format!("{}: {error}", path.display());
                        talk!("{}", print::hanging("error: ", "       ", &what));
                        talk!("  {UNCHANGED}");
                    }
                }
            }
        }
    }
}

fn tell(path: &Path, changed: &Changed) {
    let path = plain(&path.display().to_string());
    let parts = [
        ("new", &changed.added),
        ("changed", &changed.replaced),
        ("removed", &changed.removed),
        ("upstreams", &changed.upstreams),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what}: {}", names.join(", ")))
        .collect();
    if parts.is_empty() {
        talk!(
            "{path} changed, but its tools and upstreams did not; restart the server to apply changes to other sections"
        );
    } else {
        talk!("reloaded {path}; {}", plain(&parts.join("; ")));
    }
}
