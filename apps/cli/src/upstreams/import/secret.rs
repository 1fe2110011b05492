//! Decides which values of a host's file are secrets, and stores those in files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{call::private_file::write_private, paths};

/// Parts of a name whose value is a secret.
const SECRET_NAMES: &[&str] = &[
    "token",
    "key",
    "secret",
    "pass",
    "pwd",
    "auth",
    "cred",
    "cookie",
    "session",
    "private",
    "dsn",
    "connection",
    "webhook",
    "database",
    "jwt",
    "bearer",
    "pat",
    "sig",
];

/// Starts of the tokens of well-known services.
const SECRET_STARTS: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xox",
    "sbp_",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "ya29.",
    "hf_",
    "npm_",
    "pypi-",
    "ntn_",
    "secret_",
    "shpat_",
    "dop_v1_",
    "lin_api_",
    "figd_",
    "Bearer ",
    "Basic ",
];

/// Returns whether the value of a variable or a header must not be shown. Values that are obviously
/// harmless are shown: switches, numbers, words, paths and plain URLs.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    is_secret_name(name) || is_token(value) || !is_harmless(value)
}

/// Returns whether a name says that its value is a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let words: Vec<&str> = name.split(['_', '-', '.']).collect();
    SECRET_NAMES.iter().any(|part| match part.len() {
        // Short parts occur in many words, such as `path` and `design`.
        3 => words.contains(part) || (*part != "pat" && *part != "sig" && name.ends_with(part)),
        _ => name.contains(part),
    })
}

/// Returns whether a word of a command or a part of a URL resembles a token or has a password.
pub(super) fn is_token(text: &str) -> bool {
    SECRET_STARTS.iter().any(|start| text.starts_with(start) && text.len() > start.len() + 4)
        || has_password(text)
        || is_random(text)
}

/// Returns whether a URL contains a secret: a password, a query with a token, or a random segment.
pub(super) fn is_secret_url(url: &str) -> bool {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let in_query = query.split('&').filter_map(|pair| pair.split_once('='));
    has_password(url)
        || place.split('/').any(is_token)
        || in_query.into_iter().any(|(name, value)| is_secret_name(name) || is_token(value))
}

/// Returns whether a text is a URL with `user:password@`, wherever it starts in the text.
fn has_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    place.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

/// Returns whether a text resembles random characters: long, with digits and letters, and without
/// words.
fn is_random(text: &str) -> bool {
    const LONGEST_WORD: usize = 6;
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+=~".contains(&byte);
    let has = |test: fn(&u8) -> bool| text.bytes().filter(test).count() >= 3;
    let longest = text.split(|char: char| !char.is_ascii_lowercase()).map(str::len).max();
    text.len() >= 20
        && text.bytes().all(fine)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && longest.is_some_and(|length| length < LONGEST_WORD)
}

fn is_harmless(value: &str) -> bool {
    const LONGEST: usize = 24;
    let is_number = || value.len() <= 6 && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = |word: &str| {
        word.len() <= LONGEST
            && word.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-_.".contains(&byte))
    };
    let is_path = || value.starts_with('/') || value.starts_with("./") || value.starts_with("~/");
    let is_url = || value.starts_with("https://") || value.starts_with("http://");
    is_number()
        || value.split(',').all(|word| is_word(word.trim()))
        || (is_path() && !value.split('/').any(is_token))
        || (is_url() && !is_secret_url(value))
}

/// Folder with one file for each secret.
pub(super) struct Secrets {
    folder: PathBuf,
    /// Number of files with secrets of this import.
    pub(super) count: usize,
}

impl Secrets {
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self { folder, count: 0 }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stores a secret of an upstream, readable only by the user. Returns the path. A file with
    /// another value is not replaced: another upstream may use it.
    pub(super) fn store(&mut self, upstream: &str, name: &str, value: &str) -> io::Result<PathBuf> {
        self.count += 1;
        let (folder, name) = (self.folder.join(upstream), file_name(name));
        paths::make_private(&folder)?;
        for number in 1_u32.. {
            let path = match number {
                1 => folder.join(&name),
                number => folder.join(format!("{name}-{number}")),
            };
            match fs::read_to_string(&path) {
                Ok(known) if known == value => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    write_private(&path, value.as_bytes())?;
                    return Ok(path);
                }
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns the path of a secret that the user has to write.
    pub(super) fn reserve(&self, upstream: &str, name: &str) -> io::Result<PathBuf> {
        let folder = self.folder.join(upstream);
        paths::make_private(&folder)?;
        Ok(folder.join(file_name(name)))
    }
}

/// Returns a name for a file in the folder of secrets. A host's file may have any names.
fn file_name(name: &str) -> String {
    let plain = |char: char| match char.is_ascii_alphanumeric() || char == '_' || char == '-' {
        true => char,
        false => '_',
    };
    let name: String = name.chars().take(64).map(plain).collect();
    if name.is_empty() { "value".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::{file_name, is_secret, is_secret_url, is_token};

    #[test]
    fn file_of_secret_stays_in_its_folder() {
        for (name, file) in [
            ("API_KEY", "API_KEY"),
            ("../../.bashrc", "_______bashrc"),
            ("/etc/passwd", "_etc_passwd"),
            ("X-Api-Key", "X-Api-Key"),
            ("", "value"),
        ] {
            assert_eq!(file_name(name), file);
        }
    }

    #[test]
    fn values_that_may_be_secrets_are_recognized() {
        for (name, value) in [
            ("GITHUB_PERSONAL_ACCESS_TOKEN", "x"),
            ("API_KEY", "plain"),
            ("PGPASSWORD", "tiger"),
            ("X", "ghp_0123456789abcdefABCD"),
            ("VALUE", "hunter2"),
            ("TEXT", "correct horse battery staple"),
            ("DB", "postgres://ada:hunter2@db/shop"),
            ("HOOK", "https://hooks.example.com/T02AB3C4D/B05EF6G7H/a1B2c3D4e5F6g7H8i9J0"),
            ("SITE", "https://example.com/?key=abc"),
        ] {
            assert!(is_secret(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("LOG_LEVEL", "debug"),
            ("PORT", "8080"),
            ("DISABLED", "true"),
            ("ROOT", "/srv/docs"),
            ("HOST", "https://api.example.com/v1"),
            ("FEATURES", "issues,pull_requests"),
            ("PATHS", ""),
        ] {
            assert!(!is_secret(name, value), "{name}={value}");
        }
    }

    #[test]
    fn words_of_commands_that_resemble_tokens_are_recognized() {
        for word in ["sbp_0a1b2c3d4e5f", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", "http://a:b@c/"] {
            assert!(is_token(word), "{word}");
        }
        for word in [
            "@modelcontextprotocol/server-everything",
            "server-filesystem-2025-08-31-linux",
            "ghcr.io/github/github-mcp-server:0.2.1",
            "--from",
            "https://mcp.example.com/mcp",
            "/home/ada/projects/shop",
        ] {
            assert!(!is_token(word), "{word}");
        }
    }

    #[test]
    fn urls_with_secrets_are_recognized() {
        for url in [
            "https://mcp.example.com/?apiKey=1",
            "https://mcp.example.com/s/ZjA5M2Y4OTQtMWQ0Zi00/mcp",
            "https://ada:hunter2@mcp.example.com/mcp",
        ] {
            assert!(is_secret_url(url), "{url}");
        }
        for url in ["https://mcp.linear.app/mcp", "https://mcp.example.com/v1/sse?region=eu"] {
            assert!(!is_secret_url(url), "{url}");
        }
    }
}
