//! The URL of a database, and the parameters that this module handles itself.
//!
//! The client library supports three of the six TLS modes and no root certificates. So `sslmode`
//! and `sslrootcert` are removed before the library parses the URL.

use std::path::PathBuf;

use tokio_postgres::config::Host;

use crate::store::StoreError;

/// Parsed URL of a database.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) config: tokio_postgres::Config,
    pub(super) security: Security,
    /// Host, port and database for messages, without the password.
    pub(super) place: String,
}

/// TLS requirements of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Security {
    pub(super) mode: Mode,
    /// File with the trusted root certificates; `None` for the certificates of the system.
    pub(super) roots: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Disable,
    /// Encrypted if the database supports TLS.
    Prefer,
    /// Encrypted, without verification.
    Require,
    /// Encrypted, with a certificate that the roots verify.
    VerifyCa,
    /// Encrypted, with a verified certificate for the host name.
    VerifyFull,
}

impl Address {
    pub(super) fn read(url: &str) -> Result<Self, StoreError> {
        let (rest, taken) = match url.contains("://") {
            true => from_url(url),
            false => from_words(url),
        };
        let mut security = Security { mode: Mode::Prefer, roots: None };
        for (key, value) in taken {
            match key {
                "sslmode" => security.mode = mode(&value)?,
                _ if value == "system" => security.roots = None,
                _ => security.roots = Some(PathBuf::from(value)),
            }
        }
        // Like libpq: explicit root certificates imply verification.
        if security.mode == Mode::Require && security.roots.is_some() {
            security.mode = Mode::VerifyCa;
        }
        let config: tokio_postgres::Config =
            rest.parse().map_err(|why: tokio_postgres::Error| {
                let why =
                    std::error::Error::source(&why).map_or(why.to_string(), ToString::to_string);
                unreadable(&why)
            })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(unreadable("it contains no host"));
        }
        let place = place(&config);
        Ok(Self { config, security, place })
    }
}

fn unreadable(why: &str) -> StoreError {
    StoreError::Unavailable(format!(
        "invalid database URL: {why}; write it as \
         `postgres://user:password@host:5432/database?sslmode=verify-full`"
    ))
}

fn mode(value: &str) -> Result<Mode, StoreError> {
    match value {
        "disable" => Ok(Mode::Disable),
        "allow" | "prefer" => Ok(Mode::Prefer),
        "require" => Ok(Mode::Require),
        "verify-ca" => Ok(Mode::VerifyCa),
        "verify-full" => Ok(Mode::VerifyFull),
        other => Err(unreadable(&format!(
            "unknown `sslmode={other}`; use disable, prefer, require, verify-ca or verify-full"
        ))),
    }
}

const OURS: [&str; 2] = ["sslmode", "sslrootcert"];

type Taken = Vec<(&'static str, String)>;

fn from_url(url: &str) -> (String, Taken) {
    let Some((before, query)) = url.split_once('?') else { return (url.to_owned(), Vec::new()) };
    let (mut rest, mut taken) = (Vec::new(), Vec::new());
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match OURS.iter().find(|ours| **ours == key) {
            Some(ours) => taken.push((*ours, unescaped(value))),
            None => rest.push(pair),
        }
    }
    match rest.is_empty() {
        true => (before.to_owned(), taken),
        false => (format!("{before}?{}", rest.join("&")), taken),
    }
}

fn from_words(words: &str) -> (String, Taken) {
    let mut taken = Vec::new();
    let rest: Vec<&str> = words
        .split(' ')
        .filter(|word| {
            let Some((key, value)) = word.split_once('=') else { return true };
            let Some(ours) = OURS.iter().find(|ours| **ours == key) else { return true };
            taken.push((*ours, value.trim_matches('\'').to_owned()));
            false
        })
        .collect();
    (rest.join(" "), taken)
}

fn unescaped(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => (bytes.push(byte), rest = &tail[2..]).0,
            None => (bytes.push(*first), rest = tail).0,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn place(config: &tokio_postgres::Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(folder) => folder.display().to_string(),
    });
    let hosts: Vec<String> = match config.get_hosts().is_empty() {
        true => config.get_hostaddrs().iter().map(ToString::to_string).collect(),
        false => hosts.collect(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or("?");
    format!("`{}:{port}/{database}`", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Address, Mode};

    #[track_caller]
    fn read(url: &str) -> Address {
        Address::read(url).unwrap()
    }

    #[test]
    fn url_with_any_libpq_sslmode_is_accepted() {
        let mode = |mode: &str| read(&format!("postgres://h/d?sslmode={mode}")).security.mode;
        assert_eq!(mode("disable"), Mode::Disable);
        assert_eq!(mode("allow"), Mode::Prefer);
        assert_eq!(mode("verify-ca"), Mode::VerifyCa);
        assert_eq!(mode("verify-full"), Mode::VerifyFull);
        assert_eq!(read("postgres://h/d").security.mode, Mode::Prefer);
        let error = Address::read("postgres://h/d?sslmode=full").unwrap_err().to_string();
        assert!(error.contains("verify-full"), "{error}");
    }

    #[test]
    fn sslrootcert_selects_file_or_system_roots() {
        let url = "postgres://h/d?connect_timeout=3&sslrootcert=%2Fa%20b.pem&sslmode=require";
        let address = read(url);
        assert_eq!(address.security.roots.as_deref(), Some(Path::new("/a b.pem")));
        assert_eq!(address.security.mode, Mode::VerifyCa);
        assert_eq!(address.config.get_connect_timeout().map(|time| time.as_secs()), Some(3));
        let words = read("host=h dbname=d sslmode=verify-full sslrootcert=system");
        assert_eq!((words.security.roots, words.security.mode), (None, Mode::VerifyFull));
    }

    #[test]
    fn place_in_messages_omits_password() {
        assert_eq!(read("postgres://ada:secret@h:5433/d").place, "`h:5433/d`");
        assert_eq!(read("postgresql://ada@h").place, "`h:5432/ada`");
        let error = Address::read("postgres://ada:secret@h/d?no=1").unwrap_err().to_string();
        assert!(!error.contains("secret") && error.contains("`no`"), "{error}");
    }
}
