//! The keys of an upstream that say how it is reached: a command, or a URL.

use std::path::PathBuf;

use http::{HeaderName, Uri, header::AUTHORIZATION};
use serde_json::json;

use super::{
    asked::Asked,
    reader::{At, Problem, Read, Result, Section, Value},
    reference::{Reference, is_variable},
    server::is_local_host,
    upstream_auth::{KnownCallers, UpstreamAuthConfig, auth},
};

/// Program or address of an upstream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum UpstreamTarget {
    Command(CommandTarget),
    Url(Box<UrlTarget>),
}

/// A stdio server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CommandTarget {
    /// Program and arguments.
    pub(crate) words: Vec<String>,
    /// Working folder, relative to the folder of the file.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) env: Vec<(String, Reference)>,
    pub(crate) pass_env: Vec<String>,
    pub(crate) inherit_env: bool,
    pub(crate) max_processes: Option<u32>,
}

/// A server at a URL.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UrlTarget {
    pub(crate) url: Reference,
    pub(crate) headers: Vec<(HeaderName, Reference)>,
    pub(crate) token_env: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) auth: Option<UpstreamAuthConfig>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) allow_http: bool,
}

impl UrlTarget {
    pub(crate) fn new(url: Reference) -> Self {
        Self {
            url,
            headers: Vec::new(),
            token_env: None,
            token_file: None,
            auth: None,
            ca_file: None,
            allow_http: false,
        }
    }
}

const EXAMPLE: &str = "add command = [\"npx\", \"-y\", \"PACKAGE\"] or url = \"https://…/mcp\"";

/// Reads the target of an upstream, and reports mistakes.
pub(super) fn target(
    section: &mut Section<'_>,
    callers: KnownCallers,
    asked: &mut Asked,
) -> Result<UpstreamTarget> {
    let words = json!({"type": "array", "items": {"type": "string"}, "minItems": 1});
    let command = section.take_as("command", words);
    let url = section.take_as("url", Reference::schema());
    let has_url = url.is_some();
    let line = section.line;
    let name = section.path().to_owned();
    // All keys are read in both cases, so that a key of the other kind is not an unknown key.
    let others = Others { needs: if has_url { "command" } else { "url" }, line };
    let is_command = command.is_some();
    let command_line = command.map(|command| section.attempt(|_| command_words(command)));
    let on_command = others.read_command(section, has_url && !is_command)?;
    let on_url = others.read_url(section, is_command && !has_url, callers, asked)?;
    match (command_line, url) {
        (Some(_), Some(_)) => {
            Err(Problem::at(line, format_args!("[{name}] has both `command` and `url`"))
                .remedy("remove one of them, or make two upstreams"))
        }
        (Some(words), None) => Ok(UpstreamTarget::Command(CommandTarget {
            words: words.unwrap_or_default(),
            ..on_command
        })),
        (None, Some(url)) => {
            let line = url.line;
            let url = section.attempt(|_| Reference::read(url));
            let Some(url) = url else { return Ok(UpstreamTarget::Url(Box::new(on_url))) };
            let target = UrlTarget { url, ..on_url };
            section.attempt(|_| target.check(line));
            Ok(UpstreamTarget::Url(Box::new(target)))
        }
        (None, None) => {
            let what = format!("[{name}] needs `command` or `url`");
            Err(section.lacks("command", what).or_remedy(EXAMPLE))
        }
    }
}

pub(super) fn command_words(value: Value<'_>) -> Result<Vec<String>> {
    let line = value.line;
    if let Some(text) = value.text() {
        let words: Vec<&str> = text.split_whitespace().collect();
        return Err(Problem::at(line, "`command` is a string, but must be a list of words")
            .remedy(format_args!("write command = {words:?}")));
    }
    let words = Vec::<String>::read(value)?;
    match words.first().is_none_or(String::is_empty) {
        true => Err(Problem::at(line, "`command` is empty").remedy(EXAMPLE)),
        false => Ok(words),
    }
}

/// Reads keys, and reports those that need another kind of target.
struct Others {
    /// Key that the target lacks.
    needs: &'static str,
    line: usize,
}

impl Others {
    /// Takes the value of a key of the other kind, and reports it if `wrong`.
    fn take<T: Read>(
        &self,
        section: &mut Section<'_>,
        key: &'static str,
        wrong: bool,
    ) -> Result<Option<T>> {
        let value = section.read::<At<T>>(key)?;
        if let (true, Some(At { line, .. })) = (wrong, &value) {
            self.report(section, key, *line);
        }
        Ok(value.map(|value| value.value))
    }

    fn report(&self, section: &Section<'_>, key: &str, line: usize) {
        let what = format!("`{key}` needs a `{}`", self.needs);
        section.report(Problem::at(line, what).remedy(format_args!("remove `{key}`")));
    }

    fn read_command(&self, section: &mut Section<'_>, wrong: bool) -> Result<CommandTarget> {
        let folder: Option<String> = self.take(section, "working_dir", wrong)?;
        let env = self.table(section, "env", wrong, variable)?;
        Ok(CommandTarget {
            words: Vec::new(),
            folder: folder.map(PathBuf::from),
            env,
            pass_env: self.take(section, "pass_env", wrong)?.unwrap_or_default(),
            inherit_env: self.take(section, "inherit_env", wrong)?.unwrap_or(false),
            max_processes: self.take(section, "max_processes", wrong)?,
        })
    }

    fn read_url(
        &self,
        section: &mut Section<'_>,
        wrong: bool,
        callers: KnownCallers,
        asked: &mut Asked,
    ) -> Result<UrlTarget> {
        let headers = self.table(section, "headers", wrong, header)?;
        let token_env: Option<String> = self.take(section, "token_env", wrong)?;
        let token_file: Option<String> = self.take(section, "token_file", wrong)?;
        let ca_file: Option<String> = self.take(section, "ca_file", wrong)?;
        if token_env.is_some() && token_file.is_some() {
            let what = "`token_env` and `token_file` are two tokens";
            section.report(Problem::at(self.line, what).remedy("remove one of them"));
        }
        let auth_table = section.section("auth")?;
        let auth_line = auth_table.as_ref().map(|table| table.line);
        if let (true, Some(line)) = (wrong, auth_line) {
            self.report(section, "auth", line);
        }
        let allow_http = self.take(section, "allow_http", wrong)?.unwrap_or(false);
        let auth = section.attempt(|_| auth(auth_table, allow_http, callers, asked)).flatten();
        if let (true, Some(line)) = (token_env.is_some() || token_file.is_some(), auth_line) {
            let what = "the upstream has both `auth` and a token";
            section.report(Problem::at(line, what).remedy("remove one of them"));
        }
        let has_token = token_env.is_some() || token_file.is_some() || auth_line.is_some();
        if has_token && headers.iter().any(|(name, _)| *name == AUTHORIZATION) {
            let what = "the upstream has both an `Authorization` header and a token";
            section.report(Problem::at(self.line, what).remedy("remove one of them"));
        }
        Ok(UrlTarget {
            url: Reference::Text(String::new()),
            headers,
            token_env,
            token_file: token_file.map(PathBuf::from),
            auth,
            ca_file: ca_file.map(PathBuf::from),
            allow_http,
        })
    }

    /// Reads a table of references with the names that `name` accepts.
    fn table<K>(
        &self,
        section: &mut Section<'_>,
        key: &'static str,
        wrong: bool,
        name: fn(&str, usize) -> Result<K>,
    ) -> Result<Vec<(K, Reference)>> {
        let schema = json!({"type": "object", "additionalProperties": Reference::schema()});
        let Some(value) = section.take_as(key, schema) else { return Ok(Vec::new()) };
        if wrong {
            self.report(section, key, value.line);
        }
        let Some(table) = section.attempt(|_| value.section()) else { return Ok(Vec::new()) };
        let mut pairs = Vec::new();
        for (written, value) in table.entries() {
            let line = value.line;
            pairs.extend(section.attempt(|_| Ok((name(&written, line)?, Reference::read(value)?))));
        }
        Ok(pairs)
    }
}

pub(super) fn variable(name: &str, line: usize) -> Result<String> {
    match is_variable(name) {
        true => Ok(name.to_owned()),
        false => {
            Err(Problem::at(line, format_args!("`{name}` is not a valid name for a variable"))
                .remedy("use letters, digits and `_`"))
        }
    }
}

fn header(name: &str, line: usize) -> Result<HeaderName> {
    let header: HeaderName = name.parse().map_err(|_| {
        Problem::at(line, format_args!("`{name}` is not a valid name for a header"))
            .remedy("use letters, digits and `-`")
    })?;
    match header.as_str().starts_with("mcp-") {
        true => {
            Err(Problem::at(line, format_args!("`{name}`: `Mcp-*` headers belong to the protocol"))
                .remedy("remove the header"))
        }
        false => Ok(header),
    }
}

impl UrlTarget {
    /// Checks the URL of the command line.
    ///
    /// # Errors
    ///
    /// Returns the reason.
    pub(crate) fn checked(self) -> std::result::Result<Self, String> {
        self.check(1).map_err(|problem| problem.what().to_owned())?;
        Ok(self)
    }

    /// Checks the URL, unless it is in a variable or a file.
    fn check(&self, line: usize) -> Result<()> {
        let Reference::Text(url) = &self.url else { return Ok(()) };
        let uri: Option<Uri> = url.parse().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let scheme = uri.as_ref().and_then(Uri::scheme_str).filter(|_| !host.is_empty());
        match scheme {
            Some("https") => Ok(()),
            Some("http") if self.allow_http || is_local_host(host) => Ok(()),
            Some("http") => {
                Err(Problem::at(line, "`http:` to another machine sends tokens in clear text")
                    .remedy("write https://…, or allow_http = true"))
            }
            _ => Err(Problem::at(line, format_args!("`{url}` is not the URL of a server"))
                .remedy("write url = \"https://…/mcp\"")),
        }
    }
}
