//! The command of a stdio server. Secrets in its words become variables, which a shell inserts: the
//! words of `command` are in the file, and the list of processes of a host already shows the rest.

use super::{
    host_text::{Part, is_variable, parts},
    secret::{is_secret_name, is_secret_url, is_token},
    toml_text,
    value::Import,
};
use crate::{call::server::quoted, error::Result};

/// A command of `outlive.toml`, with the variables that it needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// The value of `command`, in TOML.
    pub(super) command: String,
    /// Variables and their references.
    pub(super) env: Vec<(String, String)>,
}

/// Converts the words of a command. `own` has the names of the variables that the server gets anyway.
pub(super) fn command_line(
    import: &mut Import<'_>,
    upstream: &str,
    words: &[String],
    own: &[String],
) -> Result<CommandLine> {
    let mut line = CommandLine::default();
    let mut shell = Vec::new();
    let mut plain = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let parts = parts(word, &import.folders);
        let option = index.checked_sub(1).map_or("", |before| words[before].as_str());
        match &parts[..] {
            [Part::Literal(text)] if is_secret_word(option, text) => {
                let (option, secret) = assignment(text).unwrap_or(("", text.as_str()));
                let name = format!("SECRET_{index}");
                let reference = import.secret(upstream, &name, secret)?;
                let prefix = if option.is_empty() { String::new() } else { quoted(option) + "=" };
                shell.push(format!("{prefix}\"${name}\""));
                line.env.push((name, reference));
            }
            [Part::Literal(text)] => {
                plain.push(text.clone());
                shell.push(quoted(text));
            }
            parts => shell.push(with_variables(import, upstream, parts, &mut line.env)),
        }
    }
    line.env.retain(|(name, _)| !own.contains(name));
    line.command = match plain.len() == words.len() {
        true => toml_text::array(plain.iter().map(String::as_str)),
        false => toml_text::array(["/bin/sh", "-c", &format!("exec {}", shell.join(" "))]),
    };
    Ok(line)
}

/// Returns a word for a shell in which variables are inserted.
fn with_variables(
    import: &mut Import<'_>,
    upstream: &str,
    parts: &[Part],
    env: &mut Vec<(String, String)>,
) -> String {
    let mut word = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => word.push_str(&quoted(text)),
            Part::Variable { name, default } => {
                let set = (import.environment)(name).is_some();
                match default {
                    Some(default) if !set => word.push_str(&quoted(default)),
                    _ => {
                        word.push_str(&format!("\"${{{name}}}\""));
                        env.push((name.clone(), format!("env:{name}")));
                    }
                }
            }
            Part::File(path) => word.push_str(&format!("\"$(cat {})\"", quoted(path))),
            Part::Input(id) => {
                let name =
                    format!("INPUT_{}", id.replace(|char: char| !char.is_alphanumeric(), "_"));
                if let Ok(Some(reference)) =
                    import.value(upstream, &name, &format!("${{input:{id}}}"))
                {
                    word.push_str(&format!("\"${name}\""));
                    env.push((name, reference));
                }
            }
            Part::Unknown(text) => {
                word.push_str(&quoted(text));
                import.note(
                    upstream,
                    format_args!(
                        "only the host can resolve {text} in the command; replace it by hand"
                    ),
                );
            }
        }
    }
    word
}

/// Returns whether a word of a command is a secret. `option` is the word before it.
fn is_secret_word(option: &str, word: &str) -> bool {
    if let Some((name, value)) = assignment(word).or_else(|| header(word)) {
        return is_secret_name(name) || is_token(value) || is_secret_url(value);
    }
    if word.is_empty() || word.starts_with('-') {
        return false;
    }
    let names_secret = option.starts_with('-') && is_secret_name(option.trim_start_matches('-'));
    // `docker run -e NAME` passes a variable by its name.
    is_secret_url(word)
        || names_secret && !(word.contains("://") || is_variable(word) && option == "-e")
}

/// Splits `--option=value` and `NAME=value`. Returns `None` for any other text with `=`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let (name, value) = word.split_once('=')?;
    let fine = !is_token(word) && name.bytes().all(plain) && !value.trim_matches('=').is_empty();
    fine.then_some((name, value))
}

/// Splits `Name: value` and `Name:value`.
fn header(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once(':').filter(|(_, value)| !value.starts_with("//"))?;
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (!name.starts_with('-') && name.bytes().all(fine)).then_some((name, value.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::is_secret_word;

    #[test]
    fn secret_words_of_commands_are_recognized() {
        for (option, word) in [
            ("--api-key", "abc"),
            ("--token", "x"),
            ("", "--access-token=x"),
            ("-e", "GITHUB_TOKEN=x"),
            ("--header", "Authorization: Bearer x"),
            ("-y", "postgresql://ada:hunter2@db/shop"),
            ("", "sbp_0123456789abcdef"),
            ("", "Authorization: Basic YWRhOmh1bnRlcjI="),
            ("", "Authorization:x"),
            ("", "a1B2c3D4e5F6g7H8i9J0k1=="),
        ] {
            assert!(is_secret_word(option, word), "{option} {word}");
        }
        for (option, word) in [
            ("-y", "@modelcontextprotocol/server-github"),
            ("-e", "GITHUB_TOKEN"),
            ("", "--api-key"),
            ("", "--key"),
            ("--directory", "/srv/docs"),
            ("", "--port=8080"),
            ("--header", "Accept: text/plain"),
            ("", "https://mcp.example.com/sse"),
            ("-v", "/srv/docs:/docs"),
            ("", "localhost:8080"),
            ("", "ghcr.io/github/github-mcp-server:0.2.1"),
        ] {
            assert!(!is_secret_word(option, word), "{option} {word}");
        }
    }
}
