//! The command `outlive init`: asks for missing options, and writes the file.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use dialoguer::{Confirm, Input};
use serde_json::json;

use super::new_tool::{NewTool, name_for, placeholders};
use crate::{
    call::{form, screen::Screen, server},
    error::{CliError, Kind, Result},
    print::{self, talk, tell},
    serve::config::{self, Mistake, Mistakes},
    store::plain,
};

/// Writes an outlive.toml that serves your command.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive init                                       prompts for the command
  outlive init -- pg_dump --file=backup.sql -- '{database}'
  outlive init --name backup --description 'Backs up a database.' -- ./backup.sh '{database}'

Each {name} in the command becomes an argument of the tool.")]
pub(crate) struct Args {
    /// Command and its arguments; prompted for if omitted
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Name of the tool [default: the name of the program]
    #[arg(long)]
    name: Option<String>,
    /// Description of the tool, for the model
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The command requests input from the user
    #[arg(long)]
    interactive: bool,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "outlive.toml")]
    file: PathBuf,
    /// Replaces the file if it exists
    #[arg(long)]
    force: bool,
    /// Prints the file, the tool and its arguments as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    if args.file.exists() && !args.force {
        return Err(CliError::usage(format_args!("{} already exists", args.file.display()))
            .remedy("pass --force to replace it, or --file NAME to write another file"));
    }
    let (file, as_json) = (args.file.clone(), args.json);
    let tool = tool(args)?;
    write(&file, &tool)?;
    if as_json {
        let arguments = placeholders(&tool.command);
        let report = json!({"file": file, "tool": tool.name, "arguments": arguments});
        let _ = print::data(&report.to_string());
    }
    next_steps(&file, &tool);
    Ok(ExitCode::SUCCESS)
}

/// Returns the tool that the command line describes. Prompts for missing options in a terminal.
fn tool(args: Args) -> Result<NewTool> {
    let asks = args.command.is_empty();
    if asks && !Screen::can_ask() {
        return Err(CliError::new(
            Kind::Unanswered,
            "missing argument: the command, and no terminal to prompt for it",
        )
        .remedy("run outlive init -- PROGRAM ARGUMENTS"));
    }
    let command = if asks { ask_command()? } else { args.command };
    let name = name_for(&command[0]);
    let name = match args.name {
        Some(name) => name,
        None if asks => ask("Name of the tool", Some(&name))?,
        None => name,
    };
    let description = match args.description {
        Some(description) => description,
        None if asks => ask("Description of the tool, for the model", None)?,
        None => format!("Runs {}.", command[0]),
    };
    let interactive = args.interactive || (asks && ask_interactive()?);
    Ok(NewTool { name, description, command, interactive })
}

fn ask_command() -> Result<Vec<String>> {
    tell!("Write {{name}} for each value that the caller chooses, such as:");
    talk!("  pg_dump --file=backup.sql {{database}}");
    loop {
        match server::split(&ask("Command", None)?) {
            Some(words) if !words.is_empty() => return Ok(words),
            _ => tell!("the command is empty or has an unclosed quote; enter it again"),
        }
    }
}

fn ask(prompt: &str, default: Option<&str>) -> Result<String> {
    let theme = form::theme();
    let mut input = Input::<String>::with_theme(&*theme).with_prompt(prompt);
    if let Some(default) = default {
        input = input.default(default.to_owned());
    }
    answered(form::interruptible(input.interact_text().map_err(Into::into)))
}

fn ask_interactive() -> Result<bool> {
    let theme = form::theme();
    let confirm = Confirm::with_theme(&*theme)
        .with_prompt("Does the command request input through file descriptors 3 and 4?")
        .default(false);
    answered(form::interruptible(confirm.interact().map_err(Into::into)))
}

/// Returns the answer. After Ctrl-C, the program exits before it writes a file.
fn answered<T>(asked: io::Result<Option<T>>) -> Result<T> {
    match asked {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(CliError::new(Kind::Interrupted, "interrupted; no file was written")),
        Err(error) => Err(CliError::usage(format_args!("cannot read from the terminal: {error}"))),
    }
}

/// Writes the file, unless the server would reject it.
fn write(file: &Path, tool: &NewTool) -> Result<()> {
    let here = env::current_dir().ok();
    let server = here.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let text = tool.file(server.as_deref().unwrap_or("outlive"));
    let failed = |error: io::Error| {
        CliError::usage(format_args!("cannot write {}: {error}", file.display()))
            .remedy("run the command in a folder that you can write to, or pass --file")
    };
    let draft = file.with_extension("toml.new");
    fs::File::create(&draft)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(failed)?;
    if let Err(Mistakes(mistakes)) = config::load(&draft) {
        let _ = fs::remove_file(&draft);
        let invalid = mistakes.into_iter().map(|mistake| invalid_tool(&draft, mistake));
        return Err(Mistakes(invalid.collect()).into());
    }
    fs::rename(&draft, file).map_err(failed)
}

/// Returns a mistake without the place in the draft, which the user never sees.
fn invalid_tool(draft: &Path, Mistake { what, remedy }: Mistake) -> Mistake {
    let place = format!("{}:", draft.display());
    let message = what.strip_prefix(&place).and_then(|rest| rest.split_once(": "));
    let message = message.map_or(what.as_str(), |(_, message)| message);
    let remedy = remedy.unwrap_or_else(|| "choose another --name or command".to_owned());
    Mistake { what: format!("invalid tool: {message}"), remedy: Some(remedy) }
}

fn next_steps(file: &Path, tool: &NewTool) {
    let shown = plain(&server::quoted(&file.display().to_string()));
    let is_default = file == Path::new("outlive.toml");
    let (words, option) = if is_default {
        (String::new(), String::new())
    } else {
        (format!(" {shown}"), format!(" --file {shown}"))
    };
    tell!("{shown} has the tool `{}`. Next:", tool.name);
    talk!("  outlive doctor{words}: checks the file, its programs and the store");
    talk!("  outlive serve{words}: serves the tool");
    talk!("  outlive connect claude-code{option}: connects a host");
}
