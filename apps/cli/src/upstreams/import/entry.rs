//! Converts one server of a host's file to a table of `outlive.toml`.

use std::{fs, path::Path};

use http::HeaderName;
use serde_json::{Map, Value};

use super::{
    command_line::command_line,
    host_text::{Part, parts},
    secret::is_secret_url,
    toml_text,
    value::Import,
};
use crate::{call::server::split, error::Result};

/// Members with the URL of a server: of most hosts, Windsurf, and Gemini CLI.
const URLS: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// Lines of a table, or the reason why the server is not imported.
pub(super) enum Entry {
    Lines(Vec<String>),
    Skipped(String),
}

/// Converts a server.
pub(super) fn entry(
    import: &mut Import<'_>,
    name: &str,
    server: &Map<String, Value>,
) -> Result<Entry> {
    if server.get("disabled") == Some(&Value::Bool(true))
        || server.get("enabled") == Some(&Value::Bool(false))
    {
        return Ok(Entry::Skipped("it is disabled in the host".to_owned()));
    }
    let mut lines = Vec::new();
    if let Some(words) = words(server) {
        if is_this_program(&words) {
            return Ok(Entry::Skipped("it is Outlive itself".to_owned()));
        }
        command_lines(import, name, server, &words, &mut lines)?;
    } else if let Some(url) = text(server, &URLS) {
        let Some(url) = url_line(import, name, url)? else {
            return Ok(Entry::Skipped(
                "its URL has a reference that cannot be resolved".to_owned(),
            ));
        };
        lines.push(url);
        headers(import, name, server, &mut lines)?;
    } else {
        let reason = "it has neither a command nor a URL; extensions of hosts cannot be imported";
        return Ok(Entry::Skipped(reason.to_owned()));
    }
    filters(server, &mut lines);
    if server.contains_key("auth") || server.contains_key("oauth") {
        import.note(
            name,
            "the login of the host is not imported; a token is `token_env` or `token_file`",
        );
    }
    Ok(Entry::Lines(lines))
}

/// Adds the lines of a stdio server.
fn command_lines(
    import: &mut Import<'_>,
    name: &str,
    server: &Map<String, Value>,
    words: &[String],
    lines: &mut Vec<String>,
) -> Result<()> {
    let variables = environment(import, name, server);
    let own: Vec<String> = variables.iter().map(|(name, _)| name.clone()).collect();
    let line = command_line(import, name, words, &own)?;
    lines.push(format!("command = {}", line.command));
    let folder = text(server, &["cwd"]).and_then(|folder| literal(import, folder));
    lines.extend(folder.map(|folder| format!("working_dir = {}", toml_text::string(&folder))));
    lines.extend(line.env.iter().map(|(key, value)| pair("env", key, value)));
    for (key, value) in variables {
        let is_odd = |char: char| char == '=' || char == ' ' || char.is_control();
        if key.is_empty() || key.contains(is_odd) {
            let what = "cannot be the name of a variable";
            import.note(name, format_args!("`{key}` is left out: it {what}"));
            continue;
        }
        let value = import.value(name, &key, &value)?;
        lines.extend(value.map(|value| pair("env", &key, &value)));
    }
    Ok(())
}

/// Returns the value of the first member that is a text.
fn text<'s>(server: &'s Map<String, Value>, members: &[&str]) -> Option<&'s str> {
    members.iter().find_map(|member| server.get(*member).and_then(Value::as_str))
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(scalar).collect()
}

/// Returns a text, a number or a switch as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn pair(table: &str, key: &str, value: &str) -> String {
    format!("{table}.{} = {}", toml_text::key(key), toml_text::string(value))
}

/// Returns the program and its arguments. Older files of Zed have them in a table.
fn words(server: &Map<String, Value>) -> Option<Vec<String>> {
    let (program, args) = match server.get("command")? {
        Value::String(program) => (program.clone(), texts(server.get("args"))),
        Value::Object(command) => {
            (command.get("path")?.as_str()?.to_owned(), texts(command.get("args")))
        }
        _ => return None,
    };
    // Some hosts accept a whole command line.
    let mut words = match args.is_empty() && program.contains(' ') && !Path::new(&program).exists()
    {
        true => split(&program)?,
        false => vec![program],
    };
    words.extend(args);
    (!words[0].is_empty()).then_some(words)
}

/// Returns whether a command is `outlive serve`. A gateway must not be its own upstream.
fn is_this_program(words: &[String]) -> bool {
    let program = Path::new(&words[0]).file_stem();
    program.is_some_and(|program| program == "outlive") && words.iter().any(|word| word == "serve")
}

/// Returns the variables of a server: those of its file, then its own.
fn environment(
    import: &mut Import<'_>,
    name: &str,
    server: &Map<String, Value>,
) -> Vec<(String, String)> {
    let mut all = Vec::new();
    if let Some(path) = text(server, &["envFile"]).and_then(|path| literal(import, path)) {
        match fs::read_to_string(&path) {
            Ok(file) => all.extend(file.lines().filter_map(variable)),
            Err(error) => {
                import.note(name, format_args!("cannot read its `envFile` {path}: {error}"))
            }
        }
    }
    let nested = server.get("command").and_then(|command| command.get("env"));
    for table in [server.get("env"), nested].into_iter().flatten().filter_map(Value::as_object) {
        let pairs = table.iter().filter_map(|(key, value)| Some((key.clone(), scalar(value)?)));
        for (key, value) in pairs {
            all.retain(|(known, _)| *known != key);
            all.push((key, value));
        }
    }
    all
}

/// Parses a line `NAME=value` of a file with variables.
fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let value = value.trim();
    let inner = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let value = inner('"').or_else(|| inner('\'')).unwrap_or(value);
    Some((name.trim().to_owned(), value.to_owned()))
}

/// Returns a text without references. Folders are not references.
fn literal(import: &Import<'_>, text: &str) -> Option<String> {
    match &parts(text, &import.folders)[..] {
        [Part::Literal(text)] => Some(text.clone()),
        _ => None,
    }
}

/// Returns the line with the URL. A URL with a secret is stored, as a secret is.
fn url_line(import: &mut Import<'_>, name: &str, url: &str) -> Result<Option<String>> {
    let url = match literal(import, url) {
        Some(url) if !is_secret_url(&url) => Some(url),
        Some(url) => Some(import.secret(name, "URL", &url)?),
        None => import.value(name, "URL", url)?,
    };
    Ok(url.map(|url| format!("url = {}", toml_text::string(&url))))
}

fn headers(
    import: &mut Import<'_>,
    name: &str,
    server: &Map<String, Value>,
    lines: &mut Vec<String>,
) -> Result<()> {
    if let Some(variable) = text(server, &["bearer_token_env_var"]) {
        lines.push(format!("token_env = {}", toml_text::string(variable)));
    }
    let table = |member: &str| server.get(member).and_then(Value::as_object).into_iter().flatten();
    let named = table("headers").chain(table("http_headers"));
    for (header, value) in named.filter_map(|(header, value)| Some((header, value.as_str()?))) {
        if HeaderName::try_from(header).is_err() {
            import.note(
                name,
                format_args!("`{header}` is left out: it cannot be the name of a header"),
            );
        } else if header.to_lowercase().starts_with("mcp-") {
            import.note(
                name,
                format_args!("the header `{header}` is left out: it belongs to the protocol"),
            );
        } else if header.eq_ignore_ascii_case("authorization") && value.starts_with("Bearer ") {
            lines.extend(token(import, name, value.trim_start_matches("Bearer ").trim())?);
        } else {
            let value = import.value(name, header, value)?;
            lines.extend(value.map(|value| pair("headers", header, &value)));
        }
    }
    for (header, variable) in table("env_http_headers") {
        let variable = variable.as_str().unwrap_or_default();
        lines.push(pair("headers", header, &format!("env:{variable}")));
    }
    Ok(())
}

/// Returns the line with the bearer token.
fn token(import: &mut Import<'_>, name: &str, token: &str) -> Result<Option<String>> {
    let value = match &parts(token, &import.folders)[..] {
        [Part::Literal(token)] => Some(import.secret(name, "TOKEN", token)?),
        _ => import.value(name, "TOKEN", token)?,
    };
    Ok(value.map(|value| match (value.strip_prefix("env:"), value.strip_prefix("file:")) {
        (Some(variable), _) => format!("token_env = {}", toml_text::string(variable)),
        (_, path) => format!("token_file = {}", toml_text::string(path.unwrap_or(&value))),
    }))
}

/// Adds the lines that select tools.
fn filters(server: &Map<String, Value>, lines: &mut Vec<String>) {
    let members = [
        ("only", &["includeTools", "enabled_tools"][..]),
        ("hide", &["excludeTools", "disabledTools", "disabled_tools"][..]),
    ];
    for (key, members) in members {
        let tools: Vec<String> =
            members.iter().flat_map(|member| texts(server.get(*member))).collect();
        if !tools.is_empty() {
            let tools = toml_text::array(tools.iter().map(String::as_str));
            lines.push(format!("{key} = {tools}"));
        }
    }
}
