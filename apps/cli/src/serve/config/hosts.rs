//! The sections `[hosts]` and `[results]`: calls and results for clients without tasks.

use std::time::Duration;

use outlive::server::hosts::{AnswerBy, Host, Hosts, Results};
use serde_json::json;

use super::{
    asked::Asked,
    policy_keys::{Answer, repeat},
    reader::{At, Problem, Read, Result, Section, Value},
    units::{Bytes, Span, in_words},
};

/// Rounds of one call that clients of 2026-07-28 follow.
const CLIENT_ROUNDS: u32 = 10;

/// Shortest call timeout. Calls wait for at least two seconds.
const MIN_CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// `[hosts]`.
#[derive(Clone, Debug)]
pub(crate) struct HostsConfig {
    /// Configuration of the server; `None` if `fallback` is `false`.
    pub(crate) hosts: Option<Hosts>,
    /// Ways to answer input requests of all tools.
    pub(crate) answers: Vec<AnswerBy>,
    /// Line of the section.
    pub(super) line: usize,
}

impl HostsConfig {
    /// Returns the configuration of a server whose answer page is at `url`, if it has one.
    pub(crate) fn at(self, url: Option<&str>) -> Option<Hosts> {
        match (self.hosts, url) {
            (Some(hosts), Some(url)) => Some(hosts.public_url(url)),
            (hosts, _) => hosts,
        }
    }
}

/// A call timeout, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallTimeout(Option<Duration>);

impl Read for CallTimeout {
    fn read(value: Value<'_>) -> Result<Self> {
        if value.text() == Some("none") {
            return Ok(Self(None));
        }
        let short =
            value.unfit(&format!("at least \"{}\", or \"none\"", in_words(MIN_CALL_TIMEOUT)));
        let Span(timeout) = Span::read(value)?;
        if timeout < MIN_CALL_TIMEOUT { Err(short) } else { Ok(Self(Some(timeout))) }
    }

    fn schema() -> serde_json::Value {
        json!({"anyOf": [Span::schema(), {"const": "none"}]})
    }
}

/// The tokens of a result, or `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ResultTokens(Option<usize>);

impl Read for ResultTokens {
    fn read(value: Value<'_>) -> Result<Self> {
        if value.text() == Some("all") {
            return Ok(Self(None));
        }
        let unfit = value.unfit("a number of tokens such as 8000, or \"all\"");
        let tokens = u32::read(value).map_err(|_| unfit)?;
        Ok(Self(Some(tokens as usize)))
    }

    fn schema() -> serde_json::Value {
        json!({"anyOf": [u32::schema(), {"const": "all"}]})
    }
}

/// The size limit of a delivered result.
struct Inline(Results);

impl Read for Inline {
    fn read(value: Value<'_>) -> Result<Self> {
        if value.text() == Some("host") {
            return Ok(Self(Results::by_host()));
        }
        if value.text() == Some("all") {
            return Ok(Self(Results::all()));
        }
        let unfit = value.unfit("\"host\", \"all\" or a size such as \"64 KiB\"");
        let Bytes(bytes) = Bytes::read(value).map_err(|_| unfit)?;
        Ok(Self(Results::bytes(usize::try_from(bytes).unwrap_or(usize::MAX))))
    }

    fn schema() -> serde_json::Value {
        json!({"anyOf": [{"enum": ["host", "all"]}, Bytes::schema()]})
    }
}

/// Reads `[hosts]`. Without the section, calls are bridged with the defaults of the library.
pub(super) fn hosts(section: Option<Section<'_>>, asked: &mut Asked) -> Result<HostsConfig> {
    let mut section = section.unwrap_or_else(Section::empty);
    let line = section.line;
    let fallback = section.read("fallback")?.unwrap_or(true);
    let mut hosts = Hosts::known();
    if let Some(CallTimeout(timeout)) = section.read("call_timeout")? {
        hosts = hosts.call_timeout(timeout);
    }
    if let Some(rounds) = max_rounds(&mut section)? {
        hosts = hosts.max_rounds(rounds);
    }
    if let Some(Span(wait)) = section.read("max_wait")? {
        hosts = hosts.max_wait(wait);
    }
    if let Some(repeat) = repeat(&mut section) {
        hosts = hosts.repeat(repeat);
    }
    if let Some(Span(timeout)) = section.read("abandon_timeout")? {
        hosts = hosts.abandon_timeout(timeout);
    }
    let answers: Vec<Answer> = section.read("answers")?.unwrap_or_default();
    let answers: Vec<AnswerBy> = answers.into_iter().map(|Answer(answer)| answer).collect();
    if let Some(view) = section.read("view")? {
        hosts = hosts.view(view);
    }
    if let Some(learn) = section.read("learn")? {
        hosts = hosts.learn(learn);
    }
    let hosts = known(&mut section, hosts.answers(answers.iter().copied()), asked)?;
    asked.note("hosts", section.finish()?);
    Ok(HostsConfig { hosts: fallback.then_some(hosts), answers, line })
}

fn max_rounds(section: &mut Section<'_>) -> Result<Option<u32>> {
    let Some(At { value, line }) = section.read::<At<u32>>("max_rounds")? else { return Ok(None) };
    if value > CLIENT_ROUNDS {
        let what =
            format!("`max_rounds` is {value}, but clients follow at most {CLIENT_ROUNDS} rounds");
        let remedy = format!("set max_rounds to {CLIENT_ROUNDS} or less");
        section.report(Problem::at(line, what).remedy(remedy));
    }
    Ok(Some(value))
}

/// Reads `[hosts.known]`.
fn known(section: &mut Section<'_>, mut hosts: Hosts, asked: &mut Asked) -> Result<Hosts> {
    let table = section.section("known")?;
    for (name, value) in table.map(Section::entries).into_iter().flatten() {
        let line = value.line;
        let Some(mut row) = section.attempt(|_| value.section()) else { continue };
        if name.is_empty() || name.trim_end_matches('*').contains('*') {
            let what = format!("`{name}` is not a valid name of a client");
            let remedy = "write the client's `clientInfo.name`; only its last character may be `*`";
            section.report(Problem::at(line, what).remedy(remedy));
        }
        hosts = hosts.host(name, host(&mut row)?);
        asked.note("hosts.known.NAME", row.finish()?);
    }
    // The documentation test needs the keys of this table even if the file has no such table.
    let mut none = Section::empty();
    let _: Host = host(&mut none)?;
    asked.note("hosts.known.NAME", none.finish()?);
    Ok(hosts)
}

/// Reads `[hosts.known.NAME]`.
fn host(row: &mut Section<'_>) -> Result<Host> {
    let mut host = Host::new();
    if let Some(CallTimeout(timeout)) = row.read("call_timeout")? {
        host = host.call_timeout(timeout);
    }
    if let Some(progress) = row.choice("progress", &[("extends", true), ("no", false)]) {
        host = host.progress_extends(progress.value);
    }
    if let Some(ResultTokens(tokens)) = row.read("result_tokens")? {
        host = host.result_tokens(tokens);
    }
    Ok(host)
}

/// Reads `[results]`.
pub(super) fn results(section: Option<Section<'_>>, asked: &mut Asked) -> Result<Results> {
    let mut section = section.unwrap_or_else(Section::empty);
    let inline = section.read("inline")?;
    asked.note("results", section.finish()?);
    Ok(inline.map_or_else(Results::by_host, |Inline(results)| results))
}
