//! Everything the project does to itself. `cargo xtask` alone lists the commands.
//!
//! One file per command. A command takes its arguments and returns an error with a next step.

#![expect(clippy::print_stdout, reason = "a command's report is its product")]

mod advisories;
mod bench;
mod build_time;
mod examples;
mod features;
mod fuzz;
mod instructions;
mod public_api;
mod rust;
mod test;
mod testbench;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

use xtask::args::Args;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test         everything below that a change must pass, cheap to dear
                 --only STEP, --skip STEP   (repeatable; --list names the steps)
  advisories   known vulnerabilities of the crates that we depend on
  tidy         the rules that neither rustfmt nor clippy knows; takes seconds
                 --show RULE                every finding of a rule, those under its ceiling too
                 --update                   writes ceilings down that have shrunk or moved to other crates
  public-api   every public name of `outlive` and `outlive-wire`, beside the snapshots in api/
                 --update                   writes the snapshots
  features     each feature of `outlive` alone, none and all: whether it compiles, and how many crates it brings
  conformance  the official MCP suite against our server and client
                 --scenario NAME            just one scenario, on every wire it has
                 --url URL                  a server that already runs
                 --with-tests               build the tests too, as `test` does
  clients      clients of others, which see nothing of what they do not know
  interop      our client at servers of others, clients of others at our server; writes docs/interop.md
                 --short                    just those that need node and cargo alone, and writes nothing
                 --peer NAME                just those whose name has this in it
  logins       people log in to our servers, in a browser, through an authorization server of others
                 --only TEXT                just those with this in their name or client (repeat to narrow)
  site         builds the site from docs/ and checks its links and, in a browser, its pages
                 --no-browser               without the browser
  examples     every story in examples/, which check themselves
  bench        figures; arguments are passed on to the benchmark
  build-time   what a cold build of the program costs, and of hello world beside rmcp's; takes half an hour
                 --only NAME                program, hello or hello-rmcp (repeatable)
                 --profile NAME             instead of dev and release (repeatable)
                 --package NAME             a package of the workspace instead (repeatable)
                 --json                     the figures as JSON
                 --check                    fails if a figure is above its bar
  instructions what a call costs, counted, beside what it has cost
                 --update                   writes down what was counted
  crash        servers that are killed, frozen and restarted, and what became of their tasks
                 --store sqlite|postgres    where tasks are kept
                 --replicas N --minutes N   or --seconds N
                 --seed N                   the same faults again
  takeover     how long a task stands still when its server is killed
                 --store sqlite|postgres --replicas N --kills N
  streams      readers whose servers are killed in the middle of a stream, and what they have in the end
                 --store sqlite|postgres --replicas N --streams N --kills N
  rolling      every server replaced in turn, and no call may fail
                 --store sqlite|postgres --replicas N --rounds N
  killed-clients  clients that are killed at any moment of a task, and the processes that go on with it
                 --runs N
                 --seed N                   the same moments again
  hostile      a hostile caller uses everything up at once, and an honest one must not notice
                 --store sqlite|postgres    just one store
                 --seconds N --tasks N      how long, and how many tasks are stored (60 s, 1,000,000)
                 --short                    15 s and 100,000 tasks
                 --program PATH             an `outlive` that is built already, with `seed-store` beside it
  program      what the published program weighs, and what it costs to start
  postgres     a database for tests that are run by hand, until Ctrl-C
                 --wheel                    the pinned package, whatever the system has
                 -- COMMAND                 for as long as this command runs, which finds it in its environment
  soak         hours of traffic in minutes; arguments are passed on
  fuzz         TARGET [--seconds N]         needs nightly and cargo-fuzz
";

fn main() -> ExitCode {
    match run(Args::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut args: Args) -> Result<()> {
    match args.word().as_deref() {
        Some("test") => test::run(args),
        Some("advisories") => advisories::run(args),
        Some("tidy") => tidy::run(args),
        Some("public-api") => public_api::run(args),
        Some("features") => features::run(args),
        Some("examples") => examples::run(args),
        Some("bench") => bench::run(args),
        Some("build-time") => build_time::run(args),
        Some("instructions") => instructions::run(args),
        Some("fuzz") => fuzz::run(args),
        Some(command) if testbench::COMMANDS.contains(&command) => {
            let words = [vec![command.to_owned()], args.rest()].concat();
            testbench::run(&words)
        }
        None | Some("help" | "--help" | "-h") => {
            print!("{USAGE}");
            Ok(())
        }
        Some(other) => bail!("unknown command `{other}`\n\n{USAGE}"),
    }
}
