//! `[console]`: the pages for people, and their roles.

use std::time::Duration;

use serde_json::json;

use super::{
    asked::Asked,
    reader::{self, At, Problem, Result, Section, Value},
    scopes::one_scope,
    units::Span,
};

/// `[console]`.
#[derive(Clone, Debug)]
pub(crate) struct ConsoleConfig {
    /// Whether the server has a console; `None` if the file does not say it.
    pub(super) enabled: Option<bool>,
    pub(crate) path: String,
    pub(crate) operators: Vec<String>,
    pub(crate) operator_scope: Option<String>,
    pub(crate) viewers: Vec<String>,
    pub(crate) viewer_scope: Option<String>,
    /// Whether only the person of a task sees its contents.
    pub(crate) owners_only: bool,
    pub(crate) client_id: Option<String>,
    /// Environment variable: secrets must not be in the file, which others may read.
    pub(crate) client_secret_env: Option<String>,
    pub(crate) session_idle_timeout: Duration,
    pub(crate) session_ttl: Duration,
}

pub(crate) const SESSION_IDLE_TIMEOUT: Duration = Duration::from_secs(12 * 3_600);

pub(crate) const SESSION_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Path of the console, without a slash at its end.
struct Path(String);

impl reader::Read for Path {
    fn read(value: Value<'_>) -> Result<Self> {
        let unfit =
            value.unfit("a path such as \"/console\", and neither \"/mcp\" nor \"/answer\"");
        let path = String::read(value)?;
        let path = path.trim_end_matches('/');
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
        let is_taken = |taken: &str| path == taken || path.starts_with(&format!("{taken}/"));
        let is_fit = path.starts_with('/')
            && !path.contains("//")
            && path.bytes().all(is_plain)
            && !is_taken("/mcp")
            && !is_taken("/answer");
        if is_fit { Ok(Self(path.to_owned())) } else { Err(unfit) }
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string", "pattern": "^(/[A-Za-z0-9_.~-]+)+/?$"})
    }
}

/// Reads `[console]`. `has_auth` says whether tokens have scopes and people log in.
pub(super) fn console(
    section: Option<Section<'_>>,
    has_auth: bool,
    asked: &mut Asked,
) -> Result<ConsoleConfig> {
    let is_there = section.is_some();
    let mut section = section.unwrap_or_else(Section::empty);
    let time = |span: Option<Span>, default| span.map_or(default, |Span(span)| span);
    let contents = [("operators", false), ("owners", true)];
    let enabled: Option<bool> = section.read("enabled")?;
    let client_id: Option<At<String>> = section.read("client_id")?;
    let secret: Option<At<String>> = section.read("client_secret_env")?;
    if let (None, Some(At { line, .. })) = (&client_id, &secret) {
        let what = "`client_secret_env` has no effect without `client_id`";
        section.report(Problem::at(*line, what).remedy("set client_id, or remove both"));
    }
    if let Some(At { line, .. }) = client_id.as_ref().filter(|_| !has_auth) {
        let what = "`client_id` is for logins with OAuth, but the file has no [auth]";
        section.report(Problem::at(*line, what).remedy("add [auth], or remove `client_id`"));
    }
    let read = ConsoleConfig {
        enabled: enabled.or(is_there.then_some(true)),
        path: section.read("path")?.map_or_else(|| "/console".to_owned(), |Path(path)| path),
        operators: section.read("operators")?.unwrap_or_default(),
        operator_scope: one_scope(&mut section, "operator_scope")?,
        viewers: section.read("viewers")?.unwrap_or_default(),
        viewer_scope: one_scope(&mut section, "viewer_scope")?,
        owners_only: section.choice("contents", &contents).is_some_and(|it| it.value),
        client_id: client_id.map(|it| it.value),
        client_secret_env: secret.map(|it| it.value),
        session_idle_timeout: time(section.read("session_idle_timeout")?, SESSION_IDLE_TIMEOUT),
        session_ttl: time(section.read("session_ttl")?, SESSION_TTL),
    };
    let scopes = [("operator_scope", &read.operator_scope), ("viewer_scope", &read.viewer_scope)];
    for (key, _) in scopes.iter().filter(|(_, scope)| scope.is_some() && !has_auth) {
        let what = format!("`{key}` is set, but without [auth] no token has scopes");
        let remedy = "add [auth] with an issuer, or name people in `operators` or `viewers`";
        section.report(Problem::at(section.line, what).remedy(remedy));
    }
    asked.note("console", section.finish()?);
    Ok(read)
}
