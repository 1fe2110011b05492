//! Figures of the builds, their table, their page and their limits.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use xtask::process::cores;

/// Limits of a build of the program.
struct Limits {
    profile: &'static str,
    seconds: f64,
    cpu_seconds: f64,
}

const DEV: Limits = Limits { profile: "dev", seconds: 120.0, cpu_seconds: 180.0 };
const RELEASE: Limits = Limits { profile: "release", seconds: 360.0, cpu_seconds: 640.0 };
const PROGRAM_MEGABYTES: f64 = 40.0;

/// Limits of hello world, relative to rmcp's.
const HELLO_CPU: f64 = 1.2;
const HELLO_SIZE: f64 = 1.5;

/// The result of one build.
#[derive(Debug)]
pub(super) struct Build {
    pub(super) name: String,
    pub(super) profile: String,
    pub(super) seconds: f64,
    /// `None` if the system does not count it.
    pub(super) cpu_seconds: Option<f64>,
    pub(super) crates: usize,
    /// Size of the program, if there is one.
    pub(super) bytes: Option<u64>,
}

impl Build {
    pub(super) fn json(&self) -> Value {
        json!({
            "name": self.name,
            "profile": self.profile,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "crates": self.crates,
            "bytes": self.bytes,
        })
    }

    fn megabytes(&self) -> Option<f64> {
        self.bytes.map(|bytes| bytes as f64 / 1e6)
    }
}

pub(super) fn table(builds: &[Build]) -> String {
    let mut text = format!(
        "cold builds, {} cores\n{:<16} {:<8} {:>9} {:>9} {:>7} {:>9}\n",
        cores(),
        "build",
        "profile",
        "seconds",
        "CPU s",
        "crates",
        "MB"
    );
    let figure = |figure: Option<f64>| {
        figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.1}"))
    };
    for build in builds {
        text += &format!(
            "{:<16} {:<8} {:>9.1} {:>9} {:>7} {:>9}\n",
            build.name,
            build.profile,
            build.seconds,
            figure(build.cpu_seconds),
            build.crates,
            figure(build.megabytes())
        );
    }
    text
}

/// Returns the page of build times.
pub(super) fn page(builds: &[Build]) -> String {
    let mut text = format!(
        "# Build times\n\n\
         Cold builds on {} cores with an empty target directory; downloads are not counted.\n\
         `cargo xtask build-time --write` wrote this page.\n\
         CPU seconds are those of all processes that cargo started; they depend less on what else runs than seconds do.\n\n\
         | build | profile | seconds | CPU seconds | crates | binary, MB |\n\
         |---|---|---|---|---|---|\n",
        cores()
    );
    let figure = |figure: Option<f64>| {
        figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.0}"))
    };
    for build in builds {
        text += &format!(
            "| {} | `{}` | {:.0} | {} | {} | {} |\n",
            described(&build.name),
            build.profile,
            build.seconds,
            figure(build.cpu_seconds),
            build.crates,
            figure(build.megabytes())
        );
    }
    text + &format!(
        "\nBars: the program takes at most {:.0} s and {:.0} CPU seconds in `dev`, and {:.0} s and {:.0} CPU seconds in `release`; its \
         `release` binary has at most {PROGRAM_MEGABYTES:.0} MB. Hello world is built from the packaged crates. It compiles at most as \
         many crates as rmcp's over the same transport, and takes at most {HELLO_CPU} times its CPU seconds and {HELLO_SIZE} times its \
         megabytes. `cargo xtask build-time --check` fails if one is exceeded.\n",
        DEV.seconds, DEV.cpu_seconds, RELEASE.seconds, RELEASE.cpu_seconds,
    )
}

fn described(name: &str) -> &str {
    match name {
        "program" => "`outlive` (apps/cli)",
        "hello" => "hello world over HTTP, `outlive`",
        "hello-rmcp" => "hello world over HTTP, `rmcp`",
        "hello-stdio" => "hello world over stdio, `outlive`",
        "hello-stdio-rmcp" => "hello world over stdio, `rmcp`",
        other => other,
    }
}

/// Returns the figures that exceed their limits.
pub(super) fn broken_bars(builds: &[Build]) -> Vec<String> {
    let by_name: BTreeMap<(&str, &str), &Build> =
        builds.iter().map(|build| ((build.name.as_str(), build.profile.as_str()), build)).collect();
    let mut broken = Vec::new();
    let mut hold = |what: &str, figure: Option<f64>, bar: Option<f64>| {
        if let (Some(figure), Some(bar)) = (figure, bar)
            && figure > bar
        {
            broken.push(format!("{what}: {figure:.1}, limit {bar:.1}"));
        }
    };
    for limits in [DEV, RELEASE] {
        let Some(program) = by_name.get(&("program", limits.profile)) else { continue };
        let name = format!("program ({})", limits.profile);
        hold(&format!("{name}, seconds"), Some(program.seconds), Some(limits.seconds));
        hold(&format!("{name}, CPU seconds"), program.cpu_seconds, Some(limits.cpu_seconds));
    }
    let program = by_name.get(&("program", "release")).and_then(|build| build.megabytes());
    hold("program (release), MB", program, Some(PROGRAM_MEGABYTES));
    for ((name, profile), ours) in &by_name {
        let peer = format!("{name}-rmcp");
        let Some(peer) = by_name.get(&(peer.as_str(), *profile)) else { continue };
        let crates = |build: &Build| Some(build.crates as f64);
        hold(&format!("{name} ({profile}), crates"), crates(ours), crates(peer));
        let cpu = peer.cpu_seconds.map(|cpu| cpu * HELLO_CPU);
        hold(&format!("{name} ({profile}), CPU seconds"), ours.cpu_seconds, cpu);
        let size = peer.megabytes().map(|size| size * HELLO_SIZE);
        hold(&format!("{name} ({profile}), MB"), ours.megabytes(), size);
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::{Build, broken_bars, page, table};

    fn build(name: &str, profile: &str, cpu: f64, crates: usize, megabytes: u64) -> Build {
        let (name, profile) = (name.to_owned(), profile.to_owned());
        let bytes = Some(megabytes * 1_000_000);
        Build { name, profile, seconds: 100.0, cpu_seconds: Some(cpu), crates, bytes }
    }

    #[test]
    fn hello_world_is_compared_with_rmcp_of_same_profile() {
        let peer = build("hello-rmcp", "dev", 100.0, 91, 60);
        let within = [build("hello", "dev", 119.0, 91, 89), peer];
        assert!(broken_bars(&within).is_empty(), "{:?}", broken_bars(&within));
        let [_, peer] = within;
        let above =
            [build("hello", "dev", 121.0, 92, 91), build("hello", "release", 1.0, 1, 1), peer];
        assert_eq!(broken_bars(&above).len(), 3, "{:?}", broken_bars(&above));
    }

    #[test]
    fn program_has_separate_limits() {
        let builds =
            [build("program", "dev", 1.0, 1, 100), build("program", "release", 1.0, 1, 41)];
        assert_eq!(broken_bars(&builds), ["program (release), MB: 41.0, limit 40.0"]);
        assert!(table(&builds).lines().count() == 4);
        assert!(page(&builds).contains("| `outlive` (apps/cli) | `dev` | 100 | 1 | 1 | 100 |"));
    }
}
