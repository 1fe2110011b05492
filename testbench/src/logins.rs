//! `cargo xtask logins`: logins to our servers through a third-party authorization server, in a
//! real browser.
//!
//! The authorization server is the certified `oidc-provider`, the browser a headless Chromium. The
//! clients are ours and the official ones for TypeScript and Python. Everything is in
//! `conformance/logins`; its `legs.mjs` lists the legs. Without a browser the command skips all
//! legs with a message; in continuous integration it fails.

use std::env;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::conformance::suite::{self, Suite};
use crate::python;
use xtask::args::Args;
use xtask::packages::{self, CHROMIUM, TMUX};
use xtask::process::{self, Build};

/// The clients, in the order of the table.
const CLIENTS: [&str; 4] = ["program", "library", "TypeScript", "Python"];

/// The result of a leg with one client.
#[derive(Debug)]
struct Played {
    leg: String,
    client: String,
    /// The error, if it failed.
    why: Option<String>,
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    let build = Build::wanted(&mut args);
    let only = args.values("--only")?;
    args.finish()?;
    let Some(chromium) = or_left_out("everything", packages::ensure(&CHROMIUM))? else {
        return Ok(());
    };
    packages::ensure(&TMUX)?;
    let server = process::built("outlive-conformance", "protected-server", build)?;
    let conformance = process::root().join("conformance");
    // The node version of the suite is new enough for these scripts.
    let node = Suite::ready(&conformance)?.node().to_owned();
    let folder = conformance.join("logins");
    suite::install_once(&folder, suite::EXACTLY)?;
    let list = conformance.join("interop/requirements-mcp.txt");
    let python = python::environments(&server).and_then(|at| python::with(&list, &at));
    let python = or_left_out("the Python client", python)?;
    let settings = json!({
        "chromium": chromium,
        "server": server,
        "client": server.with_file_name("login-client"),
        "outlive": server.with_file_name("outlive"),
        "python": python,
        "only": only,
    });
    let mut script = Command::new(node);
    script.arg("main.mjs").arg(settings.to_string()).current_dir(&folder);
    let (legs, played) = play(script)?;
    println!("{}", table(&legs, &played));
    let wrong: Vec<String> = played.iter().filter_map(Played::wrong).collect();
    ensure!(wrong.is_empty(), "{} logins failed:\n{}", wrong.len(), wrong.join("\n"));
    let absent = CLIENTS.iter().filter(|client| {
        let is_left_out = **client == "Python" && python.is_none();
        !is_left_out && !played.iter().any(|it| it.client == **client)
    });
    let absent: Vec<&str> = absent.copied().collect();
    ensure!(!only.is_empty() || absent.is_empty(), "no leg ran with {}", absent.join(", "));
    Ok(())
}

/// Returns the dependency. If it is missing, prints a warning, or fails in continuous integration.
fn or_left_out<T>(what: &str, found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(why) if env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false") => {
            Err(why.context(format!("`logins` needs it for {what}, and CI is set")))
        }
        Err(why) => {
            eprintln!("\n*** NOT RUN, and not counted as a failure: {what}. {why:#} ***\n");
            Ok(None)
        }
    }
}

/// Runs the script to its end. The script and its processes end with its standard input. Returns
/// the names of all legs, and the results of those that ran.
fn play(mut script: Command) -> Result<(Vec<String>, Vec<Played>)> {
    let mut child = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("could not start node")?;
    let out = child.stdout.take().context("the script has no output")?;
    let (mut legs, mut played) = (Vec::new(), Vec::new());
    for line in BufReader::new(out).lines() {
        let line = line?;
        let Ok(line) = serde_json::from_str::<Value>(&line) else { bail!("invalid line {line}") };
        if let Some(with) = line["with"].as_str() {
            eprintln!("logins: with {with}");
            legs = serde_json::from_value(line["legs"].clone())?;
            continue;
        }
        let text = |name: &str| line[name].as_str().map(str::to_owned);
        let it = Played {
            leg: text("leg").context("a line has no leg")?,
            client: text("client").context("a line has no client")?,
            why: text("why"),
        };
        let how = if it.why.is_some() { "FAILED" } else { "ok" };
        eprintln!("logins: {}, {}: {how} after {} s", it.leg, it.client, line["seconds"]);
        played.push(it);
    }
    let status = child.wait()?;
    ensure!(status.success(), "the login script failed: {status}");
    ensure!(!played.is_empty(), "no leg ran");
    Ok((legs, played))
}

impl Played {
    fn wrong(&self) -> Option<String> {
        self.why.as_ref().map(|why| format!("{}, {}: {why}", self.leg, self.client))
    }
}

fn table(legs: &[String], played: &[Played]) -> String {
    let mut table = format!("{:<34}", "");
    for client in CLIENTS {
        let _ = write!(table, " {client:<10}");
    }
    for leg in legs.iter().filter(|leg| played.iter().any(|it| it.leg == **leg)) {
        let _ = write!(table, "\n{leg:<34}");
        for client in CLIENTS {
            let cell = played.iter().find(|it| it.leg == *leg && it.client == client);
            let cell = cell.map_or("–", |it| if it.why.is_none() { "✓" } else { "✗" });
            let _ = write!(table, " {cell:<10}");
        }
    }
    table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Played, table};

    #[test]
    fn table_has_row_per_leg_and_marks_untested_cells() {
        let played = |leg: &str, client: &str, why: Option<&str>| Played {
            leg: leg.to_owned(),
            client: client.to_owned(),
            why: why.map(str::to_owned),
        };
        let all = [
            played("login", "program", None),
            played("login", "Python", Some("no")),
            played("logout", "library", None),
        ];
        let legs = ["login", "never", "logout"].map(str::to_owned);
        let table = table(&legs, &all);
        let lines: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["login", "✓", "–", "–", "✗"]);
        assert_eq!(lines[2], ["logout", "–", "✓", "–", "–"]);
    }
}
