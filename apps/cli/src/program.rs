//! Parses the command line and runs the command.

use super::{
    auth, call, connect, console, doctor, inbox, init, inspect, jobs, print, serve, store, tasks,
    test, upstreams,
};
use crate::error::{CliError, Result};
use clap::{
    CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ErrorKind},
};
use std::{env, fs, path::PathBuf, process::ExitCode};

/// MCP servers whose work outlives the request.
#[derive(Parser)]
#[command(name = "outlive", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 success, 1 the tool failed, 2 usage error, 3 server or store unreachable, \
4 cancelled, 5 input required but no terminal, 130 interrupted, 141 the output pipe was closed."
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    Init(init::Args),
    Serve(serve::Args),
    Test(test::Args),
    Upstreams(upstreams::Args),
    Connect(connect::Args),
    Call(call::Args),
    Tasks(tasks::Args),
    Inbox(Box<inbox::Args>),
    Console(console::Args),
    Inspect(inspect::Args),
    Login(auth::LoginArgs),
    Logout(auth::LogoutArgs),
    Whoami(auth::WhoamiArgs),
    Store(store::Args),
    Jobs(jobs::Args),
    Doctor(doctor::Args),
    Completions(Completions),
    Man(Man),
}

/// Prints a completion script for a shell.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  outlive completions bash > ~/.local/share/bash-completion/completions/outlive"
)]
pub(super) struct Completions {
    shell: clap_complete::Shell,
}

/// Writes the manual pages into a folder.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  outlive man ~/.local/share/man/man1")]
pub(super) struct Man {
    /// Folder, created if missing
    folder: PathBuf,
}

/// Parses the command line, runs the command, and returns the exit code.
pub fn main() -> ExitCode {
    // An internal command: it appears neither in the help nor in completions.
    if let Some(code) = outlive_jobs::supervise_if_asked() {
        return code;
    }
    let ran = match parsed() {
        Ok(program) => run(program.command),
        Err(error) => misread(&error),
    };
    match ran {
        Ok(code) => code,
        Err(trouble) => trouble.tell(),
    }
}

/// Parses the command line. `--version` prints the program's name for every subcommand.
fn parsed() -> Result<Program, clap::Error> {
    fn named(command: clap::Command) -> clap::Command {
        command.display_name("outlive").mut_subcommands(named)
    }
    Program::from_arg_matches(&named(Program::command()).try_get_matches()?)
}

/// Reports an invalid command line. `--help` and `--version` exit with success.
pub(super) fn misread(error: &clap::Error) -> Result<ExitCode> {
    let words: Vec<String> =
        env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let unknown = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    match (error.kind(), unknown.as_deref().and_then(|it| it.strip_prefix("--")), &words[..]) {
        (ErrorKind::UnknownArgument, Some(name), ["call", ..]) => {
            let at = words.iter().position(|word| word.strip_prefix("--") == Some(name));
            let value = at.and_then(|at| words.get(at + 1)).filter(|it| !it.starts_with('-'));
            let value = value.map_or("VALUE", |value| value);
            Err(CliError::usage(format!("`outlive call` has no option `--{name}`")).remedy(format!(
                "write {name}={value} if it is an argument of the tool; `outlive call --help` lists the options"
            )))
        }
        _ => error.exit(),
    }
}

/// Returns every command of the program, such as `tasks list`, so that tests can check that they
/// cover all.
pub fn commands() -> Vec<String> {
    fn collect(command: &clap::Command, path: &str, all: &mut Vec<String>) {
        if !path.is_empty() && !command.has_subcommands() {
            all.push(path.to_owned());
        }
        for part in command.get_subcommands() {
            collect(part, format!("{path} {}", part.get_name()).trim(), all);
        }
    }
    let mut all = Vec::new();
    collect(&Program::command(), "", &mut all);
    all
}

pub(super) fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Init(args) => init::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Test(args) => test::run(args),
        Command::Upstreams(args) => upstreams::run(&args),
        Command::Connect(args) => connect::run(&args),
        Command::Call(args) => call::run(args),
        Command::Tasks(args) => tasks::run(args),
        Command::Inbox(args) => inbox::run(*args),
        Command::Console(args) => console::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Login(args) => auth::login(args),
        Command::Logout(args) => auth::logout(args),
        Command::Whoami(args) => auth::whoami(args),
        Command::Store(args) => store::run(args),
        Command::Jobs(args) => jobs::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => {
            let (mut program, mut script) = (Program::command(), Vec::new());
            clap_complete::generate(args.shell, &mut program, "outlive", &mut script);
            // A closed pipe is not an error: the reader, such as `head`, has read enough.
            let _ = print::own(&script);
            Ok(ExitCode::SUCCESS)
        }
        Command::Man(args) => {
            let written = fs::create_dir_all(&args.folder)
                .and_then(|()| clap_mangen::generate_to(Program::command(), &args.folder));
            written.map_err(|error| {
                let folder = args.folder.display();
                CliError::usage(format_args!("cannot write the manual pages to {folder}: {error}"))
                    .remedy("name a folder that you can write to")
            })?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};

    use super::Program;

    /// Collects the commands below `command` that have no subcommands, with their full names.
    fn leaves(command: &Command, name: &str, found: &mut Vec<(String, Command)>) {
        let mut below =
            command.get_subcommands().filter(|below| below.get_name() != "help").peekable();
        if below.peek().is_none() {
            found.push((name.to_owned(), command.clone()));
        }
        for command in below {
            leaves(command, &format!("{name} {}", command.get_name()), found);
        }
    }

    #[test]
    fn help_of_every_command_has_description_and_example() {
        let mut program = Program::command();
        program.build();
        let mut commands = Vec::new();
        leaves(&program, "outlive", &mut commands);
        assert!(commands.len() > 15, "{} commands", commands.len());
        for (name, mut command) in commands {
            let help = command.render_long_help().to_string();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.len() > 10, "`{name}` has no description:\n{help}");
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let (_, examples) = after.split_once("Example").unwrap_or_else(|| {
                panic!("the help of `{name}` has no example:\n{help}");
            });
            let mut examples = examples.lines().skip(1).take_while(|line| line.starts_with("  "));
            assert!(
                examples.any(|line| line.contains(&name)),
                "no example in the help of `{name}` uses that command:\n{help}"
            );
        }
    }
}
