//! `outlive inspect`: shows the tools, resources, prompts and skills of a server, as text or JSON.

use std::{fmt::Write as _, process::ExitCode, sync::Arc};

use console::measure_text_width;
use outlive::{
    client::{Client, Error, Result as Asked, ServerErrorKind, ServerInfo, skills::SkillEntry},
    schema::{self, Field, plain_text},
    text,
    wire::{Prompt, Resource, ResourceTemplate, Tool, Version},
};
use serde_json::{Value, json};

use crate::{
    call::{
        screen::{Screen, shown},
        server::{Connection, Server, trouble},
    },
    error::Result,
    print::{Paint, paint},
    runtime::block_on,
};

/// Maximum width of a line of text.
const WIDTH: usize = 100;

/// Shows the tools, resources, prompts and skills of an MCP server.
#[derive(clap::Args)]
#[command(
    override_usage = "outlive inspect [OPTIONS] SERVER\n       outlive inspect [OPTIONS] -- COMMAND…",
    after_help = "SERVER is a URL, or a command that starts a server on stdio.

Examples:
  outlive inspect http://127.0.0.1:8000/mcp
  outlive inspect 'my-server --stdio'
  outlive inspect --json -- my-server --stdio | jq '.tools[].name'"
)]
pub(crate) struct Args {
    /// URL of the server, or the command that starts it
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    /// Command that starts the server, instead of SERVER
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Tries every protocol version, each on a new connection
    #[arg(long)]
    all_protocol_versions: bool,
    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    block_on(Box::pin(inspect(args)))
}

async fn inspect(args: Args) -> Result<ExitCode> {
    let words: Vec<String> = args.server.into_iter().collect();
    let (server, _) = Server::of_words(&words, args.command)?;
    let screen = Screen::new();
    let client = args.connection.connect(&server, &screen, |builder| builder).await?;
    let mut found = Found::of(&client).await.map_err(|error| trouble(&error, Some(&server)))?;
    client.close().await;
    if let Some(error) = found.nothing() {
        return Err(trouble(error, Some(&server)));
    }
    if args.all_protocol_versions {
        found.speaks = Some(speaks(&server, &args.connection, &screen).await);
    }
    match args.json {
        true => screen.data(&format!("{:#}", found.as_json())),
        false => screen.page(&found.page()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the protocol versions that a server supports.
async fn speaks(server: &Server, connection: &Connection, screen: &Arc<Screen>) -> Vec<Version> {
    let mut spoken = Vec::new();
    for version in Version::ALL {
        let mut pinned = connection.clone();
        pinned.protocol_version = Some(version.as_str().to_owned());
        let pinned = pinned.connect(server, screen, |builder| builder).await;
        // A server may negotiate a protocol version other than the one that the client offered.
        if let Ok(client) = pinned {
            if client.protocol_version().await.is_ok_and(|agreed| agreed == version)
                && client.ping().await.is_ok()
            {
                spoken.push(version);
            }
            client.close().await;
        }
    }
    spoken
}

/// Contents of a server.
struct Found {
    version: Version,
    speaks: Option<Vec<Version>>,
    server: ServerInfo,
    tools: Vec<Tool>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
    skills: Vec<SkillEntry>,
    /// Lists that could not be read, by their names in JSON, with the errors.
    failed: Vec<(&'static str, Error)>,
}

/// Names of the lists in JSON.
const LISTS: [&str; 4] = ["tools", "resources", "resourceTemplates", "prompts"];

/// Name of the skill list in JSON. Servers without the skills extension do not have it.
const SKILLS: &str = "skills";

impl Found {
    async fn of(client: &Client) -> Asked<Self> {
        let (version, server) = (client.protocol_version().await?, client.server_info().await?);
        let mut failed = Vec::new();
        let [tools, resources, templates, prompts] = LISTS;
        Ok(Self {
            version,
            speaks: None,
            server,
            tools: listed(tools, client.list_tools().collect().await, &mut failed),
            resources: listed(resources, client.list_resources().collect().await, &mut failed),
            templates: listed(
                templates,
                client.list_resource_templates().collect().await,
                &mut failed,
            ),
            prompts: listed(prompts, client.list_prompts().collect().await, &mut failed),
            skills: listed(SKILLS, client.skills().await, &mut failed),
            failed,
        })
    }

    /// Returns the first error if every list failed.
    fn nothing(&self) -> Option<&Error> {
        let failed = |list: &&str| self.failed.iter().any(|(name, _)| name == list);
        LISTS.iter().all(failed).then(|| self.failed.first().map(|(_, it)| it))?
    }

    fn as_json(&self) -> Value {
        let all =
            |versions: &Vec<Version>| versions.iter().map(|it| it.as_str()).collect::<Vec<_>>();
        json!({
            "version": self.version.as_str(),
            "speaks": self.speaks.as_ref().map(all),
            "server": self.server.info,
            "instructions": self.server.instructions,
            "capabilities": self.server.capabilities,
            "tools": self.tools,
            "resources": self.resources,
            "resourceTemplates": self.templates,
            "prompts": self.prompts,
            "skills": self.skills,
            "failed": self
                .failed
                .iter()
                .map(|(list, error)| ((*list).to_owned(), error.to_string().into()))
                .collect::<serde_json::Map<String, Value>>(),
        })
    }

    fn page(&self) -> String {
        let mut page = Page::default();
        let info = self.server.info.as_ref();
        let name = info.map_or("unnamed server".to_owned(), |info| {
            let title =
                info.title.as_deref().map(|title| format!(" ({title})")).unwrap_or_default();
            format!("{}{title} {}", info.name, info.version)
        });
        page.line(&paint(Paint::Bold, &shown(&name)));
        page.pair("protocol version", self.version.as_str());
        if let Some(speaks) = &self.speaks {
            let all: Vec<&str> = speaks.iter().map(|version| version.as_str()).collect();
            page.pair("speaks", &all.join(", "));
        }
        let capabilities = serde_json::to_value(&self.server.capabilities).unwrap_or_default();
        page.pair("capabilities", &names(&capabilities, "extensions"));
        page.pair("extensions", &names(&capabilities["extensions"], ""));
        if let Some(instructions) = &self.server.instructions {
            page.head("Instructions", None);
            page.text(instructions, 2);
        }
        page.head("Tools", Some(self.tools.len()));
        self.tools.iter().for_each(|tool| page.tool(tool));
        page.head("Resources", Some(self.resources.len()));
        for it in &self.resources {
            page.entry(&it.uri, Some(&it.name), it.description.as_deref());
        }
        page.head("Resource templates", Some(self.templates.len()));
        for it in &self.templates {
            page.entry(&it.uri_template, Some(&it.name), it.description.as_deref());
        }
        page.head("Prompts", Some(self.prompts.len()));
        self.prompts.iter().for_each(|prompt| page.prompt(prompt));
        page.head("Skills", Some(self.skills.len()));
        for it in &self.skills {
            page.entry(it.name(), Some(&it.uri), Some(it.description()));
            if let Some(files) = it.resources.as_ref().filter(|files| files.len() > 1) {
                let bytes: u64 = files.iter().map(|file| file.size).sum();
                page.text(&format!("{} files, {bytes} bytes", files.len()), 6);
            }
        }
        if !self.failed.is_empty() {
            page.head("Failed lists", Some(self.failed.len()));
            for (list, error) in &self.failed {
                page.text(&format!("{list}: {error}"), 2);
            }
        }
        page.0.trim_end().to_owned()
    }
}

/// Returns a list, or an empty one if the server does not offer it. A failure is recorded in
/// `failed` and does not affect the other lists.
fn listed<T>(
    name: &'static str,
    listed: Asked<Vec<T>>,
    failed: &mut Vec<(&'static str, Error)>,
) -> Vec<T> {
    match listed {
        Ok(listed) => listed,
        Err(error) if is_not_offered(&error) => Vec::new(),
        Err(error) => {
            failed.push((name, error));
            Vec::new()
        }
    }
}

fn is_not_offered(error: &Error) -> bool {
    error.kind() == Some(ServerErrorKind::MethodNotFound)
        || matches!(error, Error::Client(outlive::client::ClientError::NotOffered(_)))
}

/// Returns the names of the members of an object, except `without`.
fn names(object: &Value, without: &str) -> String {
    let members = object.as_object().into_iter().flat_map(|members| members.keys());
    let names: Vec<String> =
        members.filter(|name| *name != without).map(|name| shown(name)).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// A page of text under construction.
#[derive(Default)]
struct Page(String);

impl Page {
    fn prompt(&mut self, prompt: &Prompt) {
        let arguments = prompt.arguments.iter().flatten().map(|argument| match argument.required {
            Some(true) => argument.name.clone(),
            _ => format!("[{}]", argument.name),
        });
        let arguments: Vec<String> = arguments.collect();
        let head = format!("{} {}", prompt.name, arguments.join(" "));
        self.entry(&head, None, prompt.description.as_deref());
    }

    fn line(&mut self, text: &str) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.0, "{}", text.trim_end());
    }

    fn pair(&mut self, name: &str, value: &str) {
        self.line(&format!("  {name:<18}{}", shown(value)));
    }

    fn head(&mut self, name: &str, count: Option<usize>) {
        if count == Some(0) {
            return;
        }
        let count = count.map(|count| format!(" ({count})")).unwrap_or_default();
        self.line("");
        self.line(&paint(Paint::Bold, &format!("{name}{count}")));
    }

    fn entry(&mut self, name: &str, title: Option<&str>, description: Option<&str>) {
        let title = title.map(|title| format!("  {}", shown(title))).unwrap_or_default();
        self.line(&format!("  {}{title}", shown(name)));
        if let Some(description) = description {
            self.text(description, 6);
        }
    }

    fn tool(&mut self, tool: &Tool) {
        let notes = notes(tool);
        let name = paint(Paint::Cyan, &shown(&tool.name));
        self.line(format!("  {name}  {}", notes.join(", ")).trim_end());
        if let Some(description) = &tool.description {
            self.text(description, 6);
        }
        let schema = serde_json::to_value(&tool.input_schema).unwrap_or_default();
        let fields = schema::fields(&schema);
        let widest = |text: fn(&Field) -> usize| fields.iter().map(text).max().unwrap_or_default();
        let (names, hints) = (
            widest(|it| measure_text_width(&shown(&it.name))).min(40),
            widest(|it| measure_text_width(&shown(&it.hint))).min(36),
        );
        for field in &fields {
            let need = if field.is_required { '*' } else { ' ' };
            let default = field.default.as_ref();
            let default =
                default.map(|it| format!(" [{}]", shown(&plain_text(it)))).unwrap_or_default();
            let about = field.description.as_deref().map(shown).unwrap_or_default();
            let (name, hint) = (shown(&field.name), shown(&field.hint));
            self.line(&format!("    {need} {name:<names$}  {hint:<hints$}  {about}{default}"));
        }
        if let Some(output) = &tool.output_schema {
            let output = serde_json::to_value(output).unwrap_or_default();
            let fields: Vec<String> =
                schema::fields(&output).iter().map(|it| shown(&it.name)).collect();
            self.line(&format!("      returns {{{}}}", fields.join(", ")));
        }
    }

    /// Appends text, wrapped at [`WIDTH`].
    fn text(&mut self, text: &str, indent: usize) {
        let room = WIDTH.saturating_sub(indent);
        for paragraph in text::lines(text).lines() {
            let mut line = String::new();
            for word in paragraph.split_whitespace() {
                if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                    self.line(&format!("{:indent$}{line}", ""));
                    line.clear();
                }
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            self.line(&format!("{:indent$}{line}", ""));
        }
    }
}

/// Returns a tool's title, behavior hints and task support.
fn notes(tool: &Tool) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(tool.title.as_deref().map(shown));
    if let Some(hints) = &tool.annotations {
        let hints = [
            (hints.read_only_hint, "read-only"),
            (hints.idempotent_hint, "idempotent"),
            (hints.destructive_hint, "destructive"),
            (hints.open_world_hint, "open world"),
        ];
        notes.extend(
            hints
                .into_iter()
                .filter(|(hint, _)| *hint == Some(true))
                .map(|(_, word)| word.to_owned()),
        );
    }
    let execution = tool.execution.as_ref().map(serde_json::to_value);
    if let Some(Ok(execution)) = execution
        && let Some(support) = execution["taskSupport"].as_str()
    {
        notes.push(format!("task {support}"));
    }
    notes
}
