//! The program `outlive`: serve, call, watch and answer MCP servers without writing Rust.
//!
//! Standard output is data, standard error is talk. Each command is a module: its arguments, and `run`.
//! It is a library so that tests can reach what runs below the commands; nobody else should use it.

mod auth;
mod call;
mod doctor;
mod inspect;
#[doc(hidden)]
pub mod job;
mod jobs;
mod log;
mod paths;
mod serve;
mod store;
mod tasks;
mod trouble;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::trouble::Result;

/// MCP servers whose work outlives the request.
#[derive(Parser)]
#[command(name = "outlive", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 the tool failed, 2 wrong use, 3 no way to the server or the store, \
4 cancelled, 5 a question that cannot be asked here, 130 interrupted."
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Args),
    Call(call::Args),
    Tasks(tasks::Args),
    Inspect(inspect::Args),
    Login(auth::LoginArgs),
    Logout(auth::LogoutArgs),
    Whoami(auth::WhoamiArgs),
    Store(store::Args),
    Jobs(jobs::Args),
    Doctor(doctor::Args),
    Completions(Completions),
    /// Watches over one command; `outlive serve` starts it.
    #[command(name = job::SUPERVISE, hide = true)]
    Supervise(job::SuperviseArgs),
}

/// Prints completions for a shell.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  outlive completions bash > ~/.local/share/bash-completion/completions/outlive"
)]
struct Completions {
    shell: clap_complete::Shell,
}

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    match run(Program::parse().command) {
        Ok(code) => code,
        Err(trouble) => trouble.tell(),
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Serve(args) => serve::run(args),
        Command::Call(args) => call::run(args),
        Command::Tasks(args) => tasks::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Login(args) => auth::login(args),
        Command::Logout(args) => auth::logout(args),
        Command::Whoami(args) => auth::whoami(args),
        Command::Store(args) => store::run(args),
        Command::Jobs(args) => jobs::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => {
            let mut program = Program::command();
            clap_complete::generate(args.shell, &mut program, "outlive", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Command::Supervise(args) => job::supervise(args),
    }
}
