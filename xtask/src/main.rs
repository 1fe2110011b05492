//! The project commands. `cargo xtask` without arguments lists them.
//!
//! Each command has one file. A command takes its arguments and returns an error with a next step.

#![expect(clippy::print_stdout, reason = "the report is the output of a command")]

mod advisories;
mod bench;
mod beside;
mod build_time;
mod examples;
mod features;
mod fuzz;
mod instructions;
mod packaged;
mod public_api;
mod release;
mod rust;
mod test;
mod testbench;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

use xtask::args::Args;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test         the checks of a change, cheapest first
                 --all                      every check, as CI runs them
                 --only STEP, --skip STEP   (repeatable; --list prints the steps)
                 --write                    with --all: writes the times to docs/performance/tests.md
  advisories   known vulnerabilities of the dependencies
  tidy         project rules beyond rustfmt and clippy; takes seconds
                 --show RULE                every finding of a rule, including those under its ceiling
                 --update                   writes ceilings that shrank or moved to other crates
  draw         draws comments and messages at random, to be read by a person
                 --seed N --comments N --messages N
  public-api   compares the public names of `outlive` and `outlive-wire` with the snapshots in api/
                 --update                   writes the snapshots
  features     compiles each feature of `outlive` alone, none and all, and counts the crates
  conformance  the official MCP suite against our server and client
                 --scenario NAME            only one scenario, in each of its versions
                 --url URL                  a server that is already running
                 --with-tests               also builds the tests, as `test` does
                 --through-gateway          our server directly and behind `outlive serve`; no scenario may fail only there
                   --short                  only the required scenarios, over HTTP
  clients      third-party clients against a server with extensions that they do not know
  interop      our client with third-party servers, and third-party clients with our server; writes docs/interop.md
                 --short                    only peers that need node and cargo; writes nothing
                 --peer NAME                only peers whose name contains NAME
                 --gateway                  third-party clients and servers with `outlive serve` between them, for all pairs of
                                            protocol versions; servers of other authors; the tutorial. Writes
                                            docs/gateway-interop.md
                   --short                  five pairs, two servers and no Python; takes a minute, and writes nothing
                   --pair TEXT              only pairs such as `2025-06-18 > 2026-07-28` that contain TEXT (repeat to narrow)
                   --only PART              pairs, servers or tutorial (repeatable)
  logins       logins to our servers in a browser, through a third-party authorization server
                 --only TEXT                only legs whose name or client contains TEXT (repeat to narrow)
  views        the task view in a browser, under the official host of MCP Apps; writes pictures to target/views
                 --only TEXT                only legs whose name contains TEXT (repeat to narrow)
  site         builds the site from docs/ and checks its links and, in a browser, its pages
                 --no-browser               skips the browser
  console      approvals, notifications and the pages for people, with real servers and a browser; takes 50 minutes
                 --short                    a few minutes, without PostgreSQL, as `test --all` runs it
                 --only NAME                only one campaign (repeatable)
                 --store sqlite|postgres    only one store
                 --screenshots FOLDER       pictures of every screen and state
                 --pictures FOLDER          only the pictures of the documentation (docs/images); takes a minute
                 --program PROGRAM          a program that is built, with those of testbench beside it
                 --baseline PROGRAM         an older program, to compare sizes
                 --seed N --json
  examples     runs all programs in examples/, which check their own results
  bench        benchmarks; arguments are passed to the benchmark program
                 --write                    also writes docs/performance/data/ and draws the plots
                 --plot                     only draws the plots from docs/performance/data/
  build-time   cost of a cold build of the program, and of hello world beside rmcp's; takes half an hour
                 --write                    writes docs/performance/build.md
                 --only NAME                program, hello, hello-rmcp, hello-stdio or hello-stdio-rmcp (repeatable)
                 --profile NAME             instead of dev and release (repeatable)
                 --package NAME             a package of the workspace instead (repeatable)
                 --json                     prints the figures as JSON
                 --check                    fails if a figure exceeds its limit
  instructions instruction counts of calls, compared with the recorded counts
                 --update                   records the counts
  crash        kills, freezes and restarts servers, and checks their tasks
                 --store sqlite|postgres    the task store
                 --replicas N --minutes N   or --seconds N
                 --seed N                   repeats the same failures
                 --gateway                  instead: kills gateways during calls of upstreams; takes 20 minutes
                   --short                  a few kills, without PostgreSQL
                   --only CAMPAIGN          stdio, input, task, stream, unknown, frozen or replicas (repeatable)
                   --program PATH --seed N
  takeover     how long a task stops when its server is killed
                 --store sqlite|postgres --replicas N --kills N
                 --write                    also writes docs/performance/data/; `bench --plot` draws it
  streams      kills servers in the middle of a stream, and checks the segments of the readers
                 --store sqlite|postgres --replicas N --streams N --kills N
  rolling      replaces every server in turn; no call may fail
                 --store sqlite|postgres --replicas N --rounds N
  killed-clients  kills clients at any moment of a task, and checks the processes that resume it
                 --runs N
                 --seed N                   repeats the same moments
  hostile      a hostile caller tries to exhaust the server; an honest caller must not be affected
                 --store sqlite|postgres    only one store
                 --seconds N --tasks N      duration, and number of stored tasks (60 s, 1,000,000)
                 --short                    15 s and 100,000 tasks
                 --program PATH             an existing `outlive` program, with `seed-store` in the same folder
  hostile-upstreams  hostile MCP servers behind the gateway, beside an honest one
                 --short                    smaller attacks, all at once
                 --only CASE                only one case, such as `long-line` (repeatable)
                 --program PATH             an existing `outlive` program, with `hostile-upstream` in the same folder
  gateway-isolation  principals behind the gateway, whose upstreams give all of them the same IDs and states
                 --short                    600 operations instead of 10,000
                 --program PATH --seed N
  gateway-restarts  kills of upstream processes and of the gateway, and changes of the file; takes 10 minutes
                 --short                    a few of each
                 --only CAMPAIGN            kills, gateway-kills or changes (repeatable)
                 --program PATH --seed N
  hosts        slow tools and large results in hosts without tasks, with real client packages; takes 40 minutes
                 --short                    shorter times and fewer runs; takes 2.5 minutes
                 --only ROW                 rounds, progress, pending, kills, foreign, answers, large, bytes or
                                            comparison (repeatable)
                 --json                     prints the rows as JSON
                 --program PATH             an existing `outlive` program, with `large-server` in the same folder
                 --seed N                   repeats the same moments of `kills`
                 --record                   with a program from before bridging: records its messages for `bytes`
  workers      durable tools in Python and TypeScript: killed processes, random programs, cost, packages; takes 50 minutes
                 --short                    fewer runs, one interpreter each, without cost and FastMCP; takes two minutes
                 --only ROW                 kills, fastmcp, crowd, cost, random, hostile, compared, packages or types (repeatable)
                 --json                     prints the rows as JSON
                 --program PATH             an existing `outlive` program, with `line-killer` in the same folder
                 --seed N                   repeats the same random programs and lines
  program      size and startup cost of the published program
  postgres     a database for manual tests, until Ctrl-C
                 --wheel                    the pinned package, even if the system has PostgreSQL
                 -- COMMAND                 runs COMMAND with the database in its environment, then stops it
  soak         dense traffic for some minutes; arguments are passed on
  release      makes and tests the files of a release in target/release-artifacts
                 --dry-run                  required: the hosted CI publishes
                 --only STEP                packages, binary, image, roots, deb, homebrew or kubernetes (repeatable)
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
        Some("draw") => tidy::draw(args),
        Some("tidy") => tidy::run(args),
        Some("public-api") => public_api::run(args),
        Some("features") => features::run(args),
        Some("examples") => examples::run(args),
        Some("bench") => bench::run(args),
        Some("build-time") => build_time::run(args),
        Some("instructions") => instructions::run(args),
        Some("release") => release::run(args),
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
