//! The command `outlive connect`: prints or writes the entry of a server for a host.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::{Map, Value, json};

use super::{
    config_file,
    host::{Host, Reach},
};
use crate::{
    error::{CliError, Result},
    print::{self, tell},
    serve::config::{self, Config},
    store::plain,
};

/// Prints or writes the configuration that connects a host to a server.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive connect claude-code                     server of ./outlive.toml
  outlive connect cursor --write                  add the server to the project's file
  outlive connect vscode --url https://mcp.example.com/mcp --token-env TOKEN
  outlive connect claude-desktop --stdio          the host starts the server")]
pub(crate) struct Args {
    /// Host application
    #[arg(value_enum)]
    host: Host,
    /// URL of the server [default: from the file]
    #[arg(long, conflicts_with_all = ["stdio", "file"])]
    url: Option<String>,
    /// The host starts the server and connects to it on stdio
    #[arg(long, conflicts_with = "token_env")]
    stdio: bool,
    /// File with the tools
    #[arg(long, value_name = "FILE", default_value = "outlive.toml")]
    file: PathBuf,
    /// Name of the server in the host
    #[arg(long)]
    name: Option<String>,
    /// Environment variable of the host with the token
    #[arg(long, value_name = "VARIABLE")]
    token_env: Option<String>,
    /// Adds the entry to the host's file
    #[arg(long)]
    write: bool,
    /// Prints the entry, its file and the host's command as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let config = match args.url {
        Some(_) => None,
        None if args.file.exists() => Some(config::load(&args.file)?),
        None => None,
    };
    let name = args.name.clone().unwrap_or_else(|| match &config {
        Some(config) => config.server.name.clone(),
        None => "outlive".to_owned(),
    });
    let host = args.host;
    let reach = reach(args, config.as_ref())?;
    let file = host.file(&home()?);
    let command = host.command(&name, &reach);
    let entry = host.entry(&reach);
    if args.json {
        let report = json!({"host": host.title(), "file": file, "command": command, "entry": whole(host, &name, &entry)});
        let _ = print::data(&report.to_string());
    }
    if args.write {
        if host == Host::Codex {
            let remedy = command.unwrap_or_default();
            return Err(CliError::usage(
                "the file of Codex is TOML, which only Codex's own command can change",
            )
            .remedy(remedy));
        }
        let replaced = config_file::add(&file, host.member(), &name, entry)?;
        let what = if replaced { "replaced" } else { "added" };
        tell!("{what} `{name}` in {}; restart {} to load it", shown_path(&file), host.title());
        return Ok(ExitCode::SUCCESS);
    }
    if !args.json {
        if let Some(command) = &command {
            tell!("To add the server to {}, run:\n", host.title());
            // Escaped into one line, because the user copies it into a shell.
            let _ = print::data(&plain(command));
            tell!("\nor add this to {}:\n", shown_path(&file));
        } else {
            tell!(
                "{} reads its servers from {}; pass --write to add this entry:\n",
                host.title(),
                shown_path(&file)
            );
        }
        let _ = print::data(&shown(host, &name, entry));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the entry in the format of the host's file.
fn shown(host: Host, name: &str, entry: Map<String, Value>) -> String {
    if host == Host::Codex {
        // Strings and arrays of strings are the same in TOML and JSON.
        let table = format!("[{}.{}]", host.member(), Value::from(name));
        let lines = entry.into_iter().map(|(key, value)| format!("\n{key} = {value}"));
        return table + &lines.collect::<String>();
    }
    serde_json::to_string_pretty(&whole(host, name, &entry)).unwrap_or_default()
}

fn whole(host: Host, name: &str, entry: &Map<String, Value>) -> Value {
    json!({ host.member(): { name: entry } })
}

fn shown_path(file: &Path) -> String {
    plain(&file.display().to_string())
}

/// Returns the connection between the host and the server.
fn reach(args: &Args, config: Option<&Config>) -> Result<Reach> {
    if args.stdio {
        return stdio(args, config);
    }
    if !args.host.has_http() {
        return Err(CliError::usage(format_args!(
            "{} does not connect to servers over HTTP",
            args.host.title()
        ))
        .remedy("pass --stdio, so that the host starts the server"));
    }
    let server = config.map(|config| &config.server);
    let listen = server.map_or(config::LISTEN, |server| server.listen.as_str());
    let resource = config.and_then(|config| config.auth.as_ref()).map(|auth| auth.resource.clone());
    let url =
        args.url.clone().or(resource).unwrap_or_else(|| format!("http://{}/mcp", local(listen)));
    let token_env = args.token_env.clone().or_else(|| {
        server.and_then(|server| server.token_file.as_ref()).map(|_| "OUTLIVE_TOKEN".to_owned())
    });
    Ok(Reach::Http { url, token_env })
}

fn stdio(args: &Args, config: Option<&Config>) -> Result<Reach> {
    let program =
        env::current_exe().map_or_else(|_| "outlive".to_owned(), |path| path.display().to_string());
    let mut words = vec![program, "serve".to_owned()];
    if config.is_some() {
        let file = fs::canonicalize(&args.file).map_err(|error| {
            CliError::usage(format_args!("cannot read {}: {error}", args.file.display()))
        })?;
        words.push(shown_path(&file).to_string());
    }
    words.push("--stdio".to_owned());
    Ok(Reach::Stdio(words))
}

/// Replaces an address of all interfaces with the loopback address, which hosts can connect to.
fn local(listen: &str) -> String {
    match listen.rsplit_once(':') {
        Some(("0.0.0.0" | "[::]", port)) => format!("127.0.0.1:{port}"),
        _ => listen.to_owned(),
    }
}

fn home() -> Result<PathBuf> {
    let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    env::var_os(variable).filter(|home| !home.is_empty()).map(PathBuf::from).ok_or_else(|| {
        CliError::usage(format_args!("{variable} is not set, so the host's file is unknown"))
            .remedy(format_args!("set {variable} to your home folder"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::{Host, local, shown};

    #[test]
    fn codex_entry_is_toml_table() {
        let entry = Map::from_iter([("args".to_owned(), Value::from(vec!["a \"b\"", "c"]))]);
        let text = shown(Host::Codex, "my server", entry);
        assert_eq!(text, "[mcp_servers.\"my server\"]\nargs = [\"a \\\"b\\\"\",\"c\"]");
        assert!(text.parse::<toml::Table>().is_ok(), "{text}");
    }

    #[test]
    fn wildcard_listen_address_becomes_loopback() {
        assert_eq!(local("0.0.0.0:9000"), "127.0.0.1:9000");
        assert_eq!(local("[::]:9000"), "127.0.0.1:9000");
        assert_eq!(local("127.0.0.1:8000"), "127.0.0.1:8000");
    }
}
