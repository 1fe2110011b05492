//! One tool of the file: a command, and everything that is said about it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value as Json;

use super::{
    argument::{self, Argument},
    reader::{At, Problem, Read, Result, Section, Value},
    template::{Given, Refused, Template, Word, variables},
    units::{Bytes, Span},
};
use crate::job::ControlMode;

/// A tool that runs a command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolConfig {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) arguments: Vec<Argument>,
    command: Template,
    shell: bool,
    folder: Option<PathBuf>,
    env: Vec<(String, Word)>,
    pub(crate) pass_env: Vec<String>,
    pub(crate) inherit_env: bool,
    stdin: Option<Word>,
    pub(crate) asks: bool,
    pub(crate) control: ControlMode,
    pub(crate) time_limit: Duration,
    pub(crate) end_grace: Duration,
    pub(crate) max_output: u64,
    pub(crate) max_lines: u64,
    pub(crate) concurrency: u32,
    pub(crate) task: TaskMode,
    pub(crate) on_crash: OnCrash,
    pub(crate) max_attempts: u32,
    pub(crate) output: Output,
    pub(crate) ok_codes: BTreeSet<i32>,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    pub(crate) scopes: Vec<String>,
    pub(crate) listed_always: bool,
}

/// Whether calls become tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskMode {
    Never,
    Auto { after: Duration },
    Always,
}

/// What is done with a command that was lost in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnCrash {
    Fail,
    RunAgain,
}

/// What the command prints.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    /// Lines for a reader.
    Text,
    /// One JSON value, with a schema if one was given.
    Json { schema: Option<Json> },
}

/// Defaults, which docs/outlive-toml.md lists.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(3_600);
pub(crate) const END_GRACE: Duration = Duration::from_secs(5);
pub(crate) const MAX_OUTPUT: u64 = 1 << 20;
pub(crate) const MAX_LINES: u32 = 20_000;
pub(crate) const CONCURRENCY: u32 = 16;
pub(crate) const TASK_AFTER: Duration = Duration::from_secs(2);
pub(crate) const MAX_ATTEMPTS: u32 = 3;

/// How many lines a task can emit: as many as it has segments (`TaskConfig::max_segments`), but for some that notices and
/// lines with an input request inside take.
const MAX_EMITTED_LINES: u64 = 99_000;

/// A command line that is ready to be run.
pub(crate) struct Ready {
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) stdin: Option<String>,
}

impl ToolConfig {
    /// Reads `[tools.NAME]`.
    pub(crate) fn read(name: String, value: Value<'_>, asked: &mut Asked) -> Result<Self> {
        let mut section = value.section()?;
        let line = section.line;
        check_name(&name, line)?;
        let arguments = arguments(&mut section, asked)?;
        let (command, shell) = command(&mut section, &arguments)?;
        let description = section.read::<String>("description")?.ok_or_else(|| {
            section
                .lacks("description", format_args!("the tool `{name}` has no description"))
                .or_remedy("description = \"what it does, for the model that chooses\"")
        })?;
        let read_only = section.read("read_only")?;
        let idempotent = section.read("idempotent")?;
        // As for every tool: who changes nothing, or nothing more, can be run again.
        let repeatable = read_only == Some(true) || idempotent == Some(true);
        let tool = Self {
            title: section.read("title")?,
            description,
            folder: section.read::<String>("folder")?.map(PathBuf::from),
            env: environment(&mut section, &arguments)?,
            pass_env: section.read("pass_env")?.unwrap_or_default(),
            inherit_env: section.read("inherit_env")?.unwrap_or(false),
            stdin: stdin(&mut section, &arguments)?,
            asks: section.read("asks")?.unwrap_or(false),
            control: control(&mut section)?,
            time_limit: section.read("time_limit")?.map_or(TIME_LIMIT, |Span(span)| span),
            end_grace: section.read("end_grace")?.map_or(END_GRACE, |Span(span)| span),
            max_output: section.read("max_output")?.map_or(MAX_OUTPUT, |Bytes(bytes)| bytes),
            max_lines: section.read::<u32>("max_lines")?.unwrap_or(MAX_LINES).into(),
            concurrency: section.read("concurrency")?.unwrap_or(CONCURRENCY),
            task: task(&mut section)?,
            on_crash: on_crash(&mut section, repeatable)?,
            max_attempts: section.read("max_attempts")?.unwrap_or(MAX_ATTEMPTS),
            output: output(&mut section)?,
            ok_codes: ok_codes(&mut section)?,
            read_only,
            destructive: section.read("destructive")?,
            idempotent,
            open_world: section.read("open_world")?,
            scopes: scopes(&mut section)?,
            listed_always: section.read("listed_always")?.unwrap_or(false),
            name,
            arguments,
            command,
            shell,
        };
        asked.note("tools.NAME", section.finish()?);
        tool.check(line)?;
        Ok(tool)
    }

    /// Refuses what contradicts itself.
    fn check(&self, line: usize) -> Result<()> {
        let name = &self.name;
        if self.asks && self.stdin.is_some() && self.control == ControlMode::Stdout {
            let what = format!(
                "the tool `{name}` has `stdin`, and with `control = \"stdout\"` its responses come there"
            );
            return Err(Problem::at(line, what).remedy("leave `stdin` out, or `control`"));
        }
        let attempts = match self.on_crash {
            OnCrash::Fail => 1,
            OnCrash::RunAgain => u64::from(self.max_attempts.max(1)),
        };
        let most = MAX_EMITTED_LINES / attempts;
        if self.task != TaskMode::Never && self.max_lines > most {
            let what = format!(
                "the tool `{name}` keeps {} lines, and a task emits at most {most} of a command that is run {attempts} times",
                self.max_lines
            );
            let remedy = format!("max_lines = {most} or less; or task = \"never\"");
            return Err(Problem::at(line, what).remedy(remedy));
        }
        Ok(())
    }

    /// The schema of its arguments.
    pub(crate) fn input_schema(&self) -> Json {
        argument::schema(&self.arguments)
    }

    /// Where it is run: relative folders begin where the file is.
    pub(crate) fn folder_in(&self, base: &Path) -> PathBuf {
        self.folder.as_ref().map_or_else(|| base.to_owned(), |folder| base.join(folder))
    }

    /// What is run.
    pub(crate) fn program(&self) -> &str {
        self.command.program()
    }

    /// The command line for what a caller has given.
    pub(crate) fn ready(&self, values: serde_json::Map<String, Json>) -> Result<Ready, Refused> {
        let given = Given::new(&self.arguments, values);
        let mut env = Vec::new();
        for (name, word) in &self.env {
            // A variable whose argument was not given is not set.
            if let Some(value) = word.fill(&self.arguments, &given)?.pop() {
                env.push((name.clone(), value));
            }
        }
        if self.shell {
            env.extend(variables(&self.arguments, &given)?);
        }
        let stdin = match &self.stdin {
            Some(word) => Some(word.fill(&self.arguments, &given)?.concat()),
            None => None,
        };
        Ok(Ready { argv: self.command.fill(&self.arguments, &given)?, env, stdin })
    }
}

/// Which keys a section may have, gathered while a file is read; the page about them is checked
/// against it.
#[derive(Debug, Default)]
pub(crate) struct Asked(
    pub(crate) std::collections::BTreeMap<&'static str, BTreeSet<&'static str>>,
);

impl Asked {
    pub(crate) fn note(&mut self, section: &'static str, keys: Vec<&'static str>) {
        self.0.entry(section).or_default().extend(keys);
    }
}

fn check_name(name: &str, line: usize) -> Result<()> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if (1..=64).contains(&name.len()) && name.bytes().all(fine) {
        return Ok(());
    }
    Err(Problem::at(line, format_args!("`{name}` cannot be the name of a tool"))
        .remedy("1 to 64 letters, digits, `_`, `-` or `.`"))
}

fn arguments(section: &mut Section<'_>, asked: &mut Asked) -> Result<Vec<Argument>> {
    let Some(section) = section.section("arguments")? else { return Ok(Vec::new()) };
    let entries = section.entries().into_iter();
    entries.map(|(name, value)| Argument::read(name, value, asked)).collect()
}

fn command(section: &mut Section<'_>, arguments: &[Argument]) -> Result<(Template, bool)> {
    let shell = section.read("shell")?.unwrap_or(false);
    let Some(command) = section.take("command") else {
        let what = format!("[{}] has no command", section.path());
        let lacking = section.lacks("command", what);
        return Err(lacking.or_remedy("command = [\"program\", \"{argument}\", …]"));
    };
    let line = command.line;
    match (shell, command.is_string()) {
        (false, true) => Err(Problem::at(line, "`command` is one text, and no shell is to read it")
            .remedy("a list of words, command = [\"program\", \"{argument}\"]; or shell = true, with values as \"$arg_NAME\"")),
        (true, false) => Err(Problem::at(line, "with `shell = true` the command is one text")
            .remedy("command = \"cd project && make \\\"$arg_target\\\"\"")),
        (false, false) => Ok((Template::read(command, arguments)?, false)),
        (true, true) => {
            let script = String::read(command)?;
            let placeholder =
                arguments.iter().find(|argument| script.contains(&format!("{{{}}}", argument.name)));
            match placeholder.filter(|argument| !script.contains(&format!("${{{}}}", argument.name))) {
                // Text inside a script would be read as script.
                Some(Argument { name, .. }) => Err(Problem::at(line, format_args!("a shell would read the value of `{{{name}}}` as its own text"))
                    .remedy(format_args!("\"$arg_{name}\", in quotes"))),
                None => Ok((Template::fixed(&["/bin/sh", "-c", &script]), true)),
            }
        }
    }
}

fn environment(section: &mut Section<'_>, arguments: &[Argument]) -> Result<Vec<(String, Word)>> {
    let Some(section) = section.section("env")? else { return Ok(Vec::new()) };
    let read = |(name, value): (String, Value<'_>)| {
        let line = value.line;
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Problem::at(
                line,
                format_args!("`{name}` cannot be the name of a variable"),
            ));
        }
        Ok((name, Word::parse(&String::read(value)?, line, arguments)?))
    };
    section.entries().into_iter().map(read).collect()
}

fn stdin(section: &mut Section<'_>, arguments: &[Argument]) -> Result<Option<Word>> {
    let Some(value) = section.take("stdin") else { return Ok(None) };
    let line = value.line;
    Word::parse(&String::read(value)?, line, arguments).map(Some)
}

fn control(section: &mut Section<'_>) -> Result<ControlMode> {
    let Some(value) = section.take("control") else { return Ok(ControlMode::Descriptors) };
    let line = value.line;
    match String::read(value)?.as_str() {
        "fd" => Ok(ControlMode::Descriptors),
        "stdout" => Ok(ControlMode::Stdout),
        other => {
            Err(Problem::at(line, format_args!("`{other}` is no place for a control channel"))
                .remedy(
                    "control = \"fd\" (descriptors 3 and 4) or \"stdout\" (lines with a nonce)",
                ))
        }
    }
}

fn task(section: &mut Section<'_>) -> Result<TaskMode> {
    let after = section.read("task_after")?.map_or(TASK_AFTER, |Span(span)| span);
    let Some(value) = section.take("task") else { return Ok(TaskMode::Auto { after }) };
    let line = value.line;
    match String::read(value)?.as_str() {
        "never" => Ok(TaskMode::Never),
        "auto" => Ok(TaskMode::Auto { after }),
        "always" => Ok(TaskMode::Always),
        other => Err(Problem::at(line, format_args!("`{other}` is no way to make tasks"))
            .remedy("task = \"never\", \"auto\" or \"always\"")),
    }
}

fn on_crash(section: &mut Section<'_>, repeatable: bool) -> Result<OnCrash> {
    let Some(value) = section.take("on_crash") else {
        return Ok(if repeatable { OnCrash::RunAgain } else { OnCrash::Fail });
    };
    let line = value.line;
    match String::read(value)?.as_str() {
        "fail" => Ok(OnCrash::Fail),
        "run-again" => Ok(OnCrash::RunAgain),
        other => Err(Problem::at(line, format_args!("`{other}` is nothing to do after a crash"))
            .remedy("on_crash = \"fail\" or \"run-again\"")),
    }
}

fn output(section: &mut Section<'_>) -> Result<Output> {
    let schema = section.take("output_schema");
    let kind = section.take("output");
    let line = kind.as_ref().map(|kind| kind.line);
    match (kind.map(String::read).transpose()?.as_deref(), schema) {
        (None | Some("text"), None) => Ok(Output::Text),
        (Some("json"), None) => Ok(Output::Json { schema: None }),
        (None | Some("json"), Some(schema)) => {
            Ok(Output::Json { schema: Some(schema_of(schema)?) })
        }
        (Some("text"), Some(schema)) => {
            Err(Problem::at(schema.line, "text has no schema").remedy("output = \"json\""))
        }
        (Some(other), _) => {
            Err(Problem::at(line.unwrap_or(1), format_args!("`{other}` is no kind of output"))
                .remedy("output = \"text\" or \"json\""))
        }
    }
}

/// A schema in the file as a table, or as JSON in a string.
fn schema_of(value: Value<'_>) -> Result<Json> {
    let line = value.line;
    if !value.is_string() {
        return value.json();
    }
    serde_json::from_str(&String::read(value)?)
        .map_err(|error| Problem::at(line, format_args!("the schema is no JSON: {error}")))
}

fn scopes(section: &mut Section<'_>) -> Result<Vec<String>> {
    let written: Vec<At<String>> = section.read("scopes")?.unwrap_or_default();
    let read = |At { value, line }: At<String>| match value.split_whitespace().count() {
        1 if !value.contains(['"', '\\']) && value.trim() == value => Ok(value),
        _ => Err(Problem::at(line, format_args!("`{value}` is no scope"))
            .remedy("scopes = [\"files:read\", \"files:write\"]")),
    };
    written.into_iter().map(read).collect()
}

fn ok_codes(section: &mut Section<'_>) -> Result<BTreeSet<i32>> {
    let Some(value) = section.take("ok_codes") else { return Ok(BTreeSet::from([0])) };
    let line = value.line;
    let codes: Vec<i64> = Vec::read(value)?;
    let codes: Option<BTreeSet<i32>> = codes
        .into_iter()
        .map(|code| i32::try_from(code).ok().filter(|code| (0..256).contains(code)))
        .collect();
    codes.filter(|codes| !codes.is_empty()).ok_or_else(|| {
        Problem::at(line, "`ok_codes` must list exit codes from 0 to 255")
            .remedy("ok_codes = [0, 1]")
    })
}
