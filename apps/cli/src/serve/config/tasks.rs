//! The section `[tasks]`.

use super::asked::Asked;
use super::reader;
use super::reader::{At, Problem, Result as Read, Section, Value};
use super::units::in_words;
use super::units::{Bytes, Span};
use serde_json::json;
use std::time::Duration;

/// `[tasks]`.
#[derive(Clone, Debug)]
pub(crate) struct TasksConfig {
    pub(crate) store: Option<String>,
    pub(crate) ttl: Duration,
    pub(crate) max_ttl: Duration,
    pub(crate) poll_interval: Duration,
    pub(crate) max_tasks_per_caller: u32,
    pub(crate) max_store_bytes_per_caller: u64,
    pub(crate) max_audit_events: u32,
    pub(crate) max_anonymous_store: u64,
    pub(crate) max_store: u64,
    pub(crate) max_running: u32,
    /// `None` means a quarter of `max_running`.
    pub(crate) max_running_per_caller: Option<u32>,
    pub(crate) replica_timeout: Duration,
    pub(crate) promote_before_input: bool,
}

pub(crate) const TTL: Duration = Duration::from_secs(24 * 3_600);

pub(crate) const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3_600);

pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) const MAX_PER_CALLER: u32 = 1_000;

pub(crate) const MAX_STORE_BYTES_PER_CALLER: u64 = 48 << 20;

pub(crate) const MAX_AUDIT_EVENTS: u32 = 1_000_000;

pub(crate) const MAX_ANONYMOUS_STORE: u64 = 256 << 20;

pub(crate) const MAX_STORE: u64 = 4 << 30;

pub(crate) const MAX_RUNNING: u32 = 256;

pub(crate) const REPLICA_TIMEOUT: Duration = Duration::from_secs(30);

/// URL of the task store.
pub(super) struct StoreUrl(String);

impl reader::Read for StoreUrl {
    fn read(value: Value<'_>) -> Read<Self> {
        let line = value.line;
        let text = String::read(value)?;
        // Only the scheme is shown: the rest of the URL may have a password.
        match text.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite" | "postgres" | "postgresql" | "memory") => Ok(Self(text)),
            Some(scheme) => Err(Problem::at(
                line,
                format_args!("`store` starts with the unknown scheme `{scheme}:`"),
            )),
            None => Err(Problem::at(line, "`store` has no scheme such as `sqlite:`")),
        }
        .map_err(|problem| {
            problem
                .remedy("write store = \"sqlite:FILE\", or \"postgres://…\" for several replicas")
        })
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string", "pattern": "^(sqlite|postgres|postgresql|memory):"})
    }
}

pub(super) fn tasks(section: Option<Section<'_>>, asked: &mut Asked) -> Read<TasksConfig> {
    let mut section = section.unwrap_or_else(Section::empty);
    let time = |span: Option<Span>, default| span.map_or(default, |Span(span)| span);
    let ttl: Option<At<Span>> = section.read("ttl")?;
    let max_ttl: Option<At<Span>> = section.read("max_ttl")?;
    if let (Some(ttl), Some(max_ttl)) = (&ttl, &max_ttl)
        && ttl.value.0 > max_ttl.value.0
    {
        let (ttl_shown, max_shown) = (in_words(ttl.value.0), in_words(max_ttl.value.0));
        let what = format!("`ttl` is {ttl_shown}, but `max_ttl` is only {max_shown}");
        section.report(Problem::at(ttl.line, what).remedy("set `ttl` to at most `max_ttl`"));
    }
    let max_ttl = time(max_ttl.map(|it| it.value), MAX_TTL);
    let read = TasksConfig {
        store: section.read("store")?.map(|StoreUrl(url)| url),
        // The default `ttl` must not exceed a written `max_ttl`.
        ttl: time(ttl.map(|it| it.value), TTL.min(max_ttl)),
        max_ttl,
        poll_interval: time(section.read("poll_interval")?, POLL_INTERVAL),
        max_tasks_per_caller: section.read("max_tasks_per_caller")?.unwrap_or(MAX_PER_CALLER),
        max_store_bytes_per_caller: section
            .read("max_store_bytes_per_caller")?
            .map_or(MAX_STORE_BYTES_PER_CALLER, |Bytes(bytes)| bytes),
        max_audit_events: section.read("max_audit_events")?.unwrap_or(MAX_AUDIT_EVENTS),
        max_anonymous_store: section
            .read("max_anonymous_store")?
            .map_or(MAX_ANONYMOUS_STORE, |Bytes(bytes)| bytes),
        max_store: section.read("max_store")?.map_or(MAX_STORE, |Bytes(bytes)| bytes),
        max_running: section.read("max_running")?.unwrap_or(MAX_RUNNING),
        max_running_per_caller: section.read("max_running_per_caller")?,
        replica_timeout: time(section.read("replica_timeout")?, REPLICA_TIMEOUT),
        promote_before_input: section.read("promote_before_input")?.unwrap_or(false),
    };
    asked.note("tasks", section.finish()?);
    Ok(read)
}
