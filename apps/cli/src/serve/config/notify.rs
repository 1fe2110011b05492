//! `[notify.NAME]`: receivers that are notified of events of tasks.

use outlive::deliveries::{Contents, Format, NetworkPolicy, TaskEvent};
use serde_json::json;

use super::{
    asked::Asked,
    public_url::origin,
    reader::{At, Problem, Read, Result, Section, Value, nearest},
    tool::ToolConfig,
    upstream::UpstreamConfig,
    worker::WorkerConfig,
};

/// `[notify.NAME]`.
#[derive(Clone, Debug)]
pub(crate) struct NotifyConfig {
    pub(crate) name: String,
    pub(crate) receiver: Receiver,
    pub(crate) events: Vec<TaskEvent>,
    /// Tools whose tasks are reported; `None` for all.
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) links: bool,
    pub(crate) contents: Contents,
    pub(crate) format: Format,
}

/// Receiver of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    Webhook {
        url: String,
        /// Environment variable: secrets must not be in the file, which others may read.
        secret_env: Option<String>,
        network: NetworkPolicy,
    },
    Command(Vec<String>),
}

/// An event of tasks.
struct Event(TaskEvent);

impl Read for Event {
    fn read(value: Value<'_>) -> Result<Self> {
        let names = TaskEvent::ALL.map(|event| format!("\"{}\"", event.as_str()));
        let unfit = value.unfit(&names.join(" or "));
        let event = value.text().and_then(TaskEvent::from_name);
        event.map(Self).ok_or(unfit)
    }

    fn schema() -> serde_json::Value {
        json!({"enum": TaskEvent::ALL.map(TaskEvent::as_str)})
    }
}

const EXAMPLE: &str = "set url = \"https://…\" and secret_env, or command = [\"program\"]";

/// Names of the tools that the server has. Only an upstream or a tool worker knows the names of its
/// tools.
#[derive(Clone, Copy)]
pub(super) struct KnownTools<'a> {
    pub(super) tools: &'a [ToolConfig],
    pub(super) upstreams: &'a [UpstreamConfig],
    pub(super) workers: &'a [WorkerConfig],
}

impl KnownTools<'_> {
    /// Returns whether the server can have a tool.
    fn may_have(self, name: &str) -> bool {
        let of_upstream = |upstream: &UpstreamConfig| match upstream.shown_prefix() {
            "" => true,
            prefix => name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with("__")),
        };
        self.tools.iter().any(|tool| tool.name == name)
            || self.upstreams.iter().any(of_upstream)
            || !self.workers.is_empty()
    }
}

/// Reads `[notify]`. `has_url` says whether links to this server have an address.
pub(super) fn notify(
    file: &mut Section<'_>,
    tools: KnownTools<'_>,
    has_url: bool,
    asked: &mut Asked,
) -> Result<Vec<NotifyConfig>> {
    let mut targets = Vec::new();
    let table = file.section("notify")?;
    for (name, value) in table.map(Section::entries).into_iter().flatten() {
        let line = value.line;
        let Some(mut section) = file.attempt(|_| value.section()) else { continue };
        section.attempt(|_| check_name(&name, line));
        if let Some(target) = section.attempt(|section| target(name, section, tools, has_url)) {
            targets.push(target);
        }
        asked.note("notify.NAME", section.finish()?);
    }
    // The documentation test needs the keys of this table even if the file has no such table.
    let mut none = Section::empty();
    let _ = target(String::new(), &mut none, tools, has_url);
    asked.note("notify.NAME", none.finish()?);
    Ok(targets)
}

fn check_name(name: &str, line: usize) -> Result<()> {
    const MAX_NAME: usize = 64;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_plain) {
        true => Ok(()),
        false => {
            Err(Problem::at(line, format_args!("`{name}` is not a valid name for a receiver"))
                .remedy("use at most 64 letters, digits, `_` and `-`"))
        }
    }
}

/// Reads `[notify.NAME]`.
fn target(
    name: String,
    section: &mut Section<'_>,
    tools: KnownTools<'_>,
    has_url: bool,
) -> Result<NotifyConfig> {
    let format = [("standard", Format::Standard), ("text", Format::Text)];
    let format = section.choice("format", &format).map_or(Format::Standard, |it| it.value);
    let contents = [("none", Contents::None), ("summary", Contents::Summary)];
    let contents = section.choice("contents", &contents).map_or(Contents::None, |it| it.value);
    let events = events(section)?;
    let links = links(section, has_url)?;
    let tools = known_tools(section, tools)?;
    let receiver = receiver(section, format)?;
    Ok(NotifyConfig { name, receiver, events, tools, links, contents, format })
}

fn events(section: &mut Section<'_>) -> Result<Vec<TaskEvent>> {
    let Some(At { value, line }) = section.read::<At<Vec<Event>>>("events")? else {
        return Ok(TaskEvent::ALL.to_vec());
    };
    if value.is_empty() {
        let what = "`events` is empty, so the receiver would get no message";
        section.report(Problem::at(line, what).remedy("name an event, or remove `events` for all"));
    }
    Ok(value.into_iter().map(|Event(event)| event).collect())
}

fn links(section: &mut Section<'_>, has_url: bool) -> Result<bool> {
    let Some(At { value, line }) = section.read::<At<bool>>("links")? else { return Ok(false) };
    if value && !has_url {
        let what = "`links` is true, but links need the address of this server";
        let remedy = "set public_url = \"https://…\" in [server], or remove `links`";
        section.report(Problem::at(line, what).remedy(remedy));
    }
    Ok(value)
}

/// Reads the tools whose tasks are reported. Each must be a tool of the file.
fn known_tools(section: &mut Section<'_>, tools: KnownTools<'_>) -> Result<Option<Vec<String>>> {
    let Some(At { value, line: first }) = section.read::<At<Vec<At<String>>>>("tools")? else {
        return Ok(None);
    };
    if value.is_empty() {
        let what = "`tools` is empty, so the receiver would get no message";
        section.report(Problem::at(first, what).remedy("name a tool, or remove `tools` for all"));
    }
    let known: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_str()).collect();
    for At { value: name, line } in &value {
        if !tools.may_have(name) {
            let problem = Problem::at(*line, format_args!("the file has no tool `{name}`"));
            section.report(match nearest(name, &known) {
                Some(meant) => problem.remedy(format_args!("write `{meant}`")),
                None => problem.remedy("name a tool of the file"),
            });
        }
    }
    Ok(Some(value.into_iter().map(|it| it.value).collect()))
}

fn receiver(section: &mut Section<'_>, format: Format) -> Result<Receiver> {
    let url: Option<At<String>> = section.read("url")?;
    let secret_env: Option<At<String>> = section.read("secret_env")?;
    let network = [("public", NetworkPolicy::Public), ("local", NetworkPolicy::Local)];
    let network: Option<At<NetworkPolicy>> = section.choice("network", &network);
    let command: Option<At<Vec<String>>> = section.read("command")?;
    match (url, command) {
        (Some(url), None) => {
            let policy = network.map_or(NetworkPolicy::Public, |it| it.value);
            webhook(section, url, secret_env, policy, format)
        }
        (None, Some(At { value, line })) => {
            if value.first().is_none_or(String::is_empty) {
                let what = "`command` names no program";
                return Err(Problem::at(line, what).remedy("write command = [\"program\"]"));
            }
            let of_webhook = secret_env.map(|it| ("secret_env", it.line));
            if let Some((key, line)) = of_webhook.or(network.map(|it| ("network", it.line))) {
                let what = format!("`{key}` applies to a `url`, but this receiver is a command");
                section.report(Problem::at(line, what).remedy(format_args!("remove `{key}`")));
            }
            Ok(Receiver::Command(value))
        }
        (Some(_), Some(At { line, .. })) => {
            let what = format!("[{}] has both `url` and `command`", section.path());
            Err(Problem::at(line, what).remedy("remove one of them"))
        }
        (None, None) => {
            let what = format!("[{}] has neither `url` nor `command`", section.path());
            Err(section.lacks("url", what).or_remedy(EXAMPLE))
        }
    }
}

fn webhook(
    section: &mut Section<'_>,
    At { value: url, line }: At<String>,
    secret_env: Option<At<String>>,
    network: NetworkPolicy,
    format: Format,
) -> Result<Receiver> {
    // The URL of a chat is a secret, so no message repeats it.
    let origin = origin(&url).filter(|origin| !origin.contains('@') && !url.contains([' ', '#']));
    match origin {
        None => section.report(
            Problem::at(line, "`url` is not a URL without user name, space and fragment")
                .remedy("write url = \"https://host/path\""),
        ),
        Some(origin) if origin.starts_with("http:") && network == NetworkPolicy::Public => section
            .report(
                Problem::at(line, "`url` must start with https:// to reach a public address")
                    .remedy("write https://, or set network = \"local\" for a local receiver"),
            ),
        Some(_) => {}
    }
    if secret_env.is_none() && format == Format::Standard {
        let path = section.path();
        let what = format!("[{path}] has no `secret_env`, so its messages would have no signature");
        let remedy = "set secret_env = \"HOOK_SECRET\", a variable with a secret that starts with whsec_; or format = \"text\" for a chat";
        section.report(section.lacks("secret_env", what).or_remedy(remedy));
    }
    Ok(Receiver::Webhook { url, secret_env: secret_env.map(|it| it.value), network })
}
