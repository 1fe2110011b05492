//! Follows the tutorials of Python and TypeScript in terminals, as a reader does.
//!
//! The commands, the files and the expected output are those of the pages. Three things differ: the
//! program is built already, the server listens on a free port, and `pkill` ends only the processes
//! of this reader.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};

use super::bench::Bench;
use super::{interpreters, packages};
use crate::page::Page;
use crate::row::Row;
use crate::terminals::Terminals;

/// A tutorial and its files.
struct Tutorial {
    page: &'static str,
    /// Language of its blocks of code.
    language: &'static str,
    tools: &'static str,
    tests: &'static str,
}

const TUTORIALS: [Tutorial; 2] = [
    Tutorial {
        page: "docs/tutorial-python.md",
        language: "python",
        tools: "tools.py",
        tests: "test_tools.py",
    },
    Tutorial {
        page: "docs/tutorial-typescript.md",
        language: "js",
        tools: "tools.mjs",
        tests: "tools.test.mjs",
    },
];

/// The address in the pages.
const ADDRESS: &str = "127.0.0.1:8000";
/// Names of the terminals.
const SERVER: &str = "server";
const CLIENT: &str = "client";
const OTHER: &str = "third";

/// Ends the processes whose home is that of the caller.
const PKILL: &str = r#"#!/bin/sh
for environment in $(grep -lzxsF "HOME=$HOME" /proc/[0-9]*/environ); do
  process=${environment%/environ}
  tr '\0' ' ' < "$process/cmdline" | grep -q "$3" && kill "$1" "${process#/proc/}"
done
"#;

const BAR: &str = "every command prints what the page says";

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    // They mostly wait.
    thread::scope(|scope| {
        let all = TUTORIALS.map(|tutorial| scope.spawn(move || row(bench, &tutorial)));
        let rows = all.into_iter().map(|row| row.join().map_err(|_| anyhow!("a thread panicked")));
        rows.collect()
    })
}

fn row(bench: &Bench, tutorial: &Tutorial) -> Row {
    let start = Instant::now();
    let followed = Reader::new(bench, tutorial).and_then(|reader| reader.follow());
    let figure = match &followed {
        Ok(()) => format!("followed in {:.0} s", start.elapsed().as_secs_f64()),
        Err(error) => format!("{error:#}"),
    };
    Row::new(tutorial.page, figure, BAR, followed.is_ok())
}

/// A reader who follows a tutorial.
struct Reader<'t> {
    tutorial: &'t Tutorial,
    page: Page,
    /// The folder of the tools.
    folder: PathBuf,
    /// The address of the server.
    address: String,
    terminals: Terminals,
}

impl<'t> Reader<'t> {
    /// Creates a home, and installs there what the page says.
    fn new(bench: &Bench, tutorial: &'t Tutorial) -> Result<Self> {
        let page = Page::read(tutorial.page)?;
        let place = bench.folder().join(format!("tutorial-{}", tutorial.language));
        let checkout = place.join("checkout");
        let home = place.join("home");
        fs::create_dir_all(&home)?;
        packages::lay_out(&checkout, &["workers/python", "workers/node"])?;
        let environment = environment(bench, &place, &home)?;
        let install = page.block(1, "sh", 0)?.lines();
        let install = install.filter(|line| *line != "cargo install --path apps/cli");
        let install = install.collect::<Vec<_>>().join("\n");
        let mut shell = Command::new("sh");
        shell.args(["-ec", &install]).current_dir(checkout).envs(environment.iter().cloned());
        let output = shell.output()?;
        ensure!(
            output.status.success(),
            "the installation failed: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let folder = home.join("releaser");
        let names = [SERVER, CLIENT, OTHER];
        let terminals = Terminals::open(&names, &folder, place.join("tmux"), &environment)?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        Ok(Self { tutorial, page, folder, address, terminals })
    }

    fn follow(&self) -> Result<()> {
        let Tutorial { language, tools, .. } = self.tutorial;
        fs::write(self.folder.join(tools), self.page.block(2, language, 0)?)?;
        self.run_it().context("section 3")?;
        self.kill_all().context("section 4, the server and the tool worker")?;
        self.kill_worker().context("section 4, the tool worker")?;
        self.clean_up().context("section 5")?;
        self.test_it().context("section 6")
    }

    fn run_it(&self) -> Result<()> {
        self.serve()?;
        self.call()?;
        let expected = self.page.block(3, "text", 0)?.replace(ADDRESS, &self.address);
        let last = expected.lines().last().unwrap_or_default();
        compare(&expected, &self.terminals.until(CLIENT, last, 1)?)
    }

    fn kill_all(&self) -> Result<()> {
        self.call_until_form()?;
        self.terminals.enter(OTHER, self.page.block(4, "sh", 0)?.trim())?;
        self.terminals.until(SERVER, "Killed", 1)?;
        self.serve()?;
        self.terminals.press(CLIENT, &["y"])?;
        self.terminals.until(CLIENT, self.page.block(4, "text", 0)?.trim(), 1)?;
        let line = self.page.block(4, "text", 1)?.trim();
        let shown = self.terminals.until(SERVER, line, 1)?;
        let outputs = shown.matches("output of a tool worker").count();
        ensure!(outputs == 1, "the new server prints {outputs} lines of the functions:\n{shown}");
        Ok(())
    }

    fn kill_worker(&self) -> Result<()> {
        let published = self.page.code(4, "publishing")?;
        self.call()?;
        // One is of the call before.
        self.terminals.until(SERVER, published, 2)?;
        self.terminals.enter(OTHER, self.page.block(4, "sh", 1)?.trim())?;
        self.terminals.until(CLIENT, self.page.block(4, "text", 0)?.trim(), 1)?;
        self.terminals.until(SERVER, published, 3).map(drop)
    }

    fn clean_up(&self) -> Result<()> {
        let Tutorial { language, tools, .. } = self.tutorial;
        let file = self.folder.join(tools);
        let before = fs::read_to_string(&file)?;
        let (start, end) = before.split_once("app.run()").context("no `app.run()`")?;
        let added = self.page.block(5, language, 0)?;
        fs::write(file, format!("{start}{added}\n\napp.run(){end}"))?;
        self.terminals.press(SERVER, &["C-c"])?;
        self.serve()?;
        let call = self.page.code(5, "outlive call")?.replace(ADDRESS, &self.address);
        self.terminals.enter(CLIENT, &call)?;
        self.terminals.until(SERVER, "uploading shop-1.tar to eu", 1)?;
        self.terminals.press(CLIENT, &["C-c"])?;
        self.terminals.until(CLIENT, "cancel the task", 1)?;
        self.terminals.press(CLIENT, &["Down", "Down", "Enter"])?;
        self.terminals.until(SERVER, self.page.code(5, "deleting shop")?, 1).map(drop)
    }

    fn test_it(&self) -> Result<()> {
        let Tutorial { language, tests, .. } = self.tutorial;
        fs::write(self.folder.join(tests), self.page.block(6, language, 0)?)?;
        self.terminals.enter(OTHER, self.page.block(6, "sh", 0)?.trim())?;
        let expected = self.page.block(6, "text", 0)?;
        let last = expected.lines().last().unwrap_or_default();
        compare(expected, &self.terminals.until(OTHER, last, 1)?)
    }

    /// Starts the server, and waits until it listens.
    fn serve(&self) -> Result<()> {
        let options = format!("outlive serve --listen {}", self.address);
        let line = self.page.block(3, "sh", 0)?.trim().replace("outlive serve", &options);
        self.terminals.enter(SERVER, &line)?;
        self.terminals.until(SERVER, &format!("http://{}/mcp", self.address), 1).map(drop)
    }

    /// Calls the tool, and approves in the form.
    fn call(&self) -> Result<()> {
        self.call_until_form()?;
        self.terminals.press(CLIENT, &["y"])
    }

    fn call_until_form(&self) -> Result<()> {
        let line = self.page.block(3, "sh", 1)?.trim().replace(ADDRESS, &self.address);
        self.terminals.enter(CLIENT, &line)?;
        self.terminals.until(CLIENT, "yes (y/n)", 1).map(drop)
    }
}

/// Returns the variables of a reader, whose programs are found first.
fn environment(bench: &Bench, place: &Path, home: &Path) -> Result<Vec<(String, OsString)>> {
    let programs = place.join("bin");
    fs::create_dir_all(&programs)?;
    symlink(bench.program(), programs.join("outlive"))?;
    let pythons = interpreters::pythons(bench)?;
    let python = &pythons.last().context("there is a Python")?.program;
    let wrapper = format!("#!/bin/sh\nexec \"{}\" \"$@\"\n", python.display());
    for (name, script) in [("python3", wrapper.as_str()), ("pkill", PKILL)] {
        let file = programs.join(name);
        fs::write(&file, script)?;
        fs::set_permissions(file, fs::Permissions::from_mode(0o755))?;
    }
    let system = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([programs].into_iter().chain(env::split_paths(&system)))?;
    Ok(vec![("PATH".to_owned(), path), ("HOME".to_owned(), home.as_os_str().to_owned())])
}

/// Compares each line of a block with what a terminal shows. Times may differ.
fn compare(expected: &str, shown: &str) -> Result<()> {
    for line in expected.lines().filter(|line| !line.is_empty()) {
        let is_shown = shown.lines().any(|shown| without_times(shown) == without_times(line));
        ensure!(is_shown, "`{line}` is not printed, but:\n{}", shown.trim_end());
    }
    Ok(())
}

/// Replaces each duration, as `0.1s`, by one text.
fn without_times(line: &str) -> String {
    let is_time =
        |word: &str| word.strip_suffix('s').is_some_and(|number| number.parse::<f64>().is_ok());
    let words = line.split_whitespace().map(|word| if is_time(word) { "time" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn lines_are_compared_without_their_times() {
        assert!(
            compare("Ran 3 tests in 0.1s\n\nOK\n", "$ x\nRan 3 tests in 0.025s\n\nOK\n").is_ok()
        );
        assert!(compare("Ran 3 tests in 0.1s\n", "Ran 2 tests in 0.1s\n").is_err());
    }
}
