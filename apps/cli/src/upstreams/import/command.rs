//! The command `outlive upstreams import`: prints the servers of a host's file as TOML.

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::json;

use super::{
    entry::{Entry, entry},
    host_file::HostFile,
    host_text::Folders,
    names::{Names, existing},
    secret::Secrets,
    value::Import,
};
use crate::{
    error::Result,
    paths,
    print::{self, tell},
    store::plain,
};

/// Prints the MCP servers of a host's file as upstreams, for outlive.toml.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive upstreams import ~/.claude.json >> outlive.toml
  outlive upstreams import .vscode/mcp.json
  outlive upstreams import ~/.cursor/mcp.json --secrets ./secrets >> outlive.toml

Values that may be secrets are stored in files that only you can read. The printed text refers to these files.")]
pub(crate) struct Args {
    /// File of a host: Claude, Cursor, VS Code, Windsurf, Zed, Gemini CLI or Codex
    #[arg(value_name = "HOST_FILE")]
    host_file: PathBuf,
    /// Folder for secret values [default: in the user's data folder]
    #[arg(long, value_name = "FOLDER")]
    secrets: Option<PathBuf>,
    /// File whose upstreams are not imported again
    #[arg(long, value_name = "FILE", default_value = "outlive.toml")]
    file: PathBuf,
    /// Prints JSON: the TOML, the names, and the servers that are left out
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let here = env::current_dir().unwrap_or_default();
    let file = HostFile::read(&args.host_file, &here)?;
    let folder = match &args.secrets {
        Some(folder) => std::path::absolute(folder).unwrap_or_else(|_| folder.clone()),
        None => paths::data()?.join("secrets"),
    };
    let home = env::var(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).unwrap_or_default();
    let project = file.project.display().to_string();
    let environment = |name: &str| env::var(name).ok();
    let mut import = Import {
        folders: Folders { home, project },
        secrets: Secrets::in_folder(folder),
        environment: &environment,
        notes: Vec::new(),
    };
    let imported = imported(&mut import, &file, &existing(&args.file))?;
    let text = text(&args.host_file, &imported.tables);
    if args.json {
        let skipped =
            imported.skipped.iter().map(|(name, reason)| json!({"name": name, "reason": reason}));
        let report = json!({
            "toml": text, "upstreams": imported.names, "skipped": skipped.collect::<Vec<_>>(),
            "notes": import.notes, "secrets": import.secrets.count,
        });
        let _ = print::data(&report.to_string());
    } else if !text.is_empty() {
        let _ = print::data(&text);
    }
    say(&args.host_file, &file, &import, &imported);
    Ok(ExitCode::SUCCESS)
}

/// The tables, and the servers that are left out.
#[derive(Default)]
struct Imported {
    tables: Vec<String>,
    names: Vec<String>,
    skipped: Vec<(String, String)>,
}

fn imported(import: &mut Import<'_>, file: &HostFile, existing: &[String]) -> Result<Imported> {
    let mut imported = Imported::default();
    let mut names = Names::default();
    for (written, server) in &file.servers {
        let name = names.valid(written);
        if existing.contains(&name) {
            let reason = "the file has an upstream of this name".to_owned();
            imported.skipped.push((written.clone(), reason));
            continue;
        }
        match entry(import, &name, server)? {
            Entry::Skipped(reason) => imported.skipped.push((written.clone(), reason)),
            Entry::Lines(lines) => {
                if name != *written {
                    import.note(&name, format_args!("the host calls it `{written}`"));
                }
                imported.tables.push(format!("[upstreams.{name}]\n{}\n", lines.join("\n")));
                imported.names.push(name);
            }
        }
    }
    Ok(imported)
}

/// Joins the tables. A comment comes first: the text may follow a line without a line break.
fn text(file: &Path, tables: &[String]) -> String {
    match tables.is_empty() {
        true => String::new(),
        false => format!("# From {}\n{}", plain(&file.display().to_string()), tables.join("\n")),
    }
}

/// Says on standard error what was imported, and what the user has to do.
fn say(path: &Path, file: &HostFile, import: &Import<'_>, imported: &Imported) {
    for note in &import.notes {
        tell!("note: {}", plain(note));
    }
    for (name, reason) in &imported.skipped {
        tell!("left out: {}: {reason}", plain(name));
    }
    if !file.other_projects.is_empty() {
        let projects = file.other_projects.iter().map(|folder| plain(folder));
        let projects = projects.collect::<Vec<_>>().join(", ");
        tell!("left out: servers of other projects; run this command there: {projects}");
    }
    let count = print::count(imported.names.len(), "upstream");
    tell!("{count} of {}", plain(&path.display().to_string()));
    if import.secrets.count > 0 {
        let values = print::count(import.secrets.count, "value");
        let folder = plain(&import.secrets.folder().display().to_string());
        tell!("{values} in files under {folder}, which only you can read");
    }
    if !imported.names.is_empty() {
        tell!("next: add the text to outlive.toml, and run `outlive upstreams check`");
    }
}
