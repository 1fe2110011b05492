//! `outlive jobs`: lists and ends the commands that a server started. They run even while the
//! server is down.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use outlive_jobs::{JobInfo, Jobs, State};
use serde_json::json;

use crate::{
    error::{CliError, Kind, Result},
    paths,
    print::{self, talk},
    runtime::block_on,
    serve::Label,
    store::{plain, rough, wall_clock},
};

/// Lists the commands that a server runs, and ends them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive jobs list                     commands of ./outlive.toml, or of the demo
  outlive jobs list --data-dir /srv/outlive --json
  outlive jobs end 3f2a91c0             end one command and its child processes

A unique prefix of an ID is enough. Exit codes: 0 success, 1 no such job, 2 usage error.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Lists the running commands: tool, caller, age, and the input that each one waits for
    #[command(
        after_help = "Examples:\n  outlive jobs list\n  outlive jobs list --data-dir /srv/outlive --json"
    )]
    List {
        #[command(flatten)]
        server: Server,
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
    /// Ends a command and its child processes
    #[command(after_help = "Example:\n  outlive jobs end 3f2a91c0")]
    End {
        /// Job ID, or a unique prefix of it
        id: String,
        #[command(flatten)]
        server: Server,
    },
}

/// Selects the server whose commands are listed.
#[derive(clap::Args)]
struct Server {
    /// File that the server serves [default: ./outlive.toml if it exists, else the demo]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Data folder of the server
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::List { server, json } => list(&server, json),
        Command::End { id, server } => block_on(Box::pin(end(&server, &id))),
    }
}

impl Server {
    /// Opens the job folder of the server. Returns `None` if the server never ran.
    fn jobs(&self) -> Result<Option<Jobs>> {
        let file =
            self.file.as_deref().or(Some(Path::new("outlive.toml")).filter(|file| file.exists()));
        let data = match &self.data_dir {
            Some(data) => data.clone(),
            None => paths::of_server(file)?,
        };
        let jobs = data.join("jobs");
        if !jobs.is_dir() {
            return Ok(None);
        }
        Ok(Some(Jobs::open(&jobs)?))
    }
}

/// Returns the running jobs, oldest first.
fn running(jobs: Option<&Jobs>) -> Result<Vec<JobInfo>> {
    let mut running = jobs.map(Jobs::list).transpose()?.unwrap_or_default();
    running.retain(|job| job.state == State::Running);
    running.sort_by_key(|job| job.started_at);
    Ok(running)
}

fn list(server: &Server, as_json: bool) -> Result<ExitCode> {
    let running = running(server.jobs()?.as_ref())?;
    let lines: Vec<String> = match as_json {
        true => running.iter().map(|job| json(job).to_string()).collect(),
        false => running.iter().map(row).collect(),
    };
    if running.is_empty() && !as_json {
        talk!("no running commands");
    }
    let head = format!("{:<12}  {:<20}  {:<20}  {:>8}  WAITS FOR", "ID", "TOOL", "CALLER", "AGE");
    let head = (!running.is_empty() && !as_json).then_some(head);
    for line in head.into_iter().chain(lines) {
        match print::data(&line) {
            Ok(()) => {}
            // A reader such as `head` closes the pipe early.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => {
                return Err(CliError::new(Kind::Failed, format!("cannot write the list: {error}")));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(job: &JobInfo) -> String {
    let label = Label::of(job);
    let tool = label.as_ref().map_or("", |label| label.tool.as_str());
    let caller = label.as_ref().map_or("", |label| label.caller.as_str());
    let age = job.started_at.map(|at| rough(wall_clock().saturating_sub(at))).unwrap_or_default();
    let waits = job.waits_for.as_ref().map(|waits| plain(&waits.message)).unwrap_or_default();
    let id = job.id.get(..12).unwrap_or(&job.id);
    let line = format!("{id:<12}  {:<20}  {:<20}  {age:>8}  {waits}", plain(tool), plain(caller));
    line.trim_end().to_owned()
}

fn json(job: &JobInfo) -> serde_json::Value {
    let label = Label::of(job);
    json!({
        "id": job.id,
        "tool": label.as_ref().map(|label| &label.tool),
        "caller": label.as_ref().map(|label| &label.caller),
        "startedAt": job.started_at,
        "isTask": job.note.is_some(),
        "waitsFor": job.waits_for.as_ref().map(|waits| &waits.message),
        "waitsSince": job.waits_for.as_ref().map(|waits| waits.since),
    })
}

async fn end(server: &Server, id: &str) -> Result<ExitCode> {
    let jobs = server.jobs()?;
    let found: Vec<JobInfo> =
        running(jobs.as_ref())?.into_iter().filter(|job| job.id.starts_with(id)).collect();
    let (Some(jobs), [job]) = (&jobs, &found[..]) else {
        let what = match found.len() {
            0 => format!("no running command has the ID {id}"),
            count => format!("{count} running commands have an ID that starts with {id}"),
        };
        return Err(
            CliError::new(Kind::Failed, what).remedy("run `outlive jobs list` to see the IDs")
        );
    };
    if let Some(running) = jobs.find(&job.id).await? {
        running.end().await?;
    }
    talk!("ended");
    Ok(ExitCode::SUCCESS)
}
