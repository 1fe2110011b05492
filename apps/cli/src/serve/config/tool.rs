//! One tool of the file: a command and its settings.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use outlive::server::hosts::RESERVED_TOOL_NAMES;
use outlive_jobs::ControlMode;
use serde_json::{Value as Json, json, value::RawValue};

use super::asked::Asked;
use super::{
    argument::{self, Argument},
    policy::ToolPolicy,
    policy_keys::{Hints, OnCrash, TaskMode},
    reader::{At, Problem, Read, Result, Section, Value},
    template::{Given, Refused, Template, Word, variables},
    trial,
    units::{Bytes, Span},
};

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
    /// Whether the command records steps.
    pub(crate) steps: bool,
    pub(crate) control: ControlMode,
    pub(crate) kill_grace: Duration,
    pub(crate) max_output: u64,
    pub(crate) max_lines: u64,
    pub(crate) concurrency: u32,
    pub(crate) output: Output,
    pub(crate) success_codes: BTreeSet<i32>,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    pub(crate) policy: ToolPolicy,
}

/// Output format of the command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    /// Lines of text.
    Text,
    /// One JSON value, with an optional schema.
    Json { schema: Option<Json> },
}

/// Defaults. docs/outlive-toml.md lists them.
pub(crate) const KILL_GRACE: Duration = Duration::from_secs(5);
pub(crate) const MAX_OUTPUT: u64 = 1 << 20;
pub(crate) const MAX_LINES: u32 = 20_000;
pub(crate) const CONCURRENCY: u32 = 16;

/// Maximum number of lines that a task can emit: `TaskConfig::max_segments`, minus a reserve for
/// notices and for lines split by an input request.
const MAX_EMITTED_LINES: u32 = 99_000;

/// A command line, ready to run.
pub(crate) struct Ready {
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) stdin: Option<String>,
}

impl ToolConfig {
    /// Reads `[tools.NAME]`, and reports mistakes. After a mistake, the tool must not be used.
    pub(crate) fn read(name: String, value: Value<'_>, asked: &mut Asked) -> Result<Self> {
        let mut section = value.section()?;
        let line = section.line;
        section.attempt(|_| check_name(&name, line));
        let arguments = arguments(&mut section, asked)?;
        let command = section.attempt(|section| command(section, &arguments));
        let has_command = command.is_some();
        let (command, shell) = command.unwrap_or_else(|| (Template::fixed(&[""]), false));
        let description = section.attempt(|section| description(section, &name));
        let read_only = section.read("read_only")?;
        let idempotent = section.read("idempotent")?;
        let steps = section.read("steps")?.unwrap_or(false);
        // Tools that are read-only or idempotent can be rerun, and so can commands with steps.
        let repeatable = read_only == Some(true) || idempotent == Some(true) || steps;
        let destructive = section.read("destructive")?;
        let hints = Hints { repeatable, destructive: destructive == Some(true) };
        let policy = ToolPolicy::read(&mut section, hints, &arguments, asked)?;
        let tool = Self {
            title: section.read("title")?,
            description: description.unwrap_or_default(),
            folder: section.read::<String>("working_dir")?.map(PathBuf::from),
            env: environment(&mut section, &arguments)?,
            pass_env: section.read("pass_env")?.unwrap_or_default(),
            inherit_env: section.read("inherit_env")?.unwrap_or(false),
            stdin: section.attempt(|section| stdin(section, &arguments)).flatten(),
            asks: section.read("interactive")?.unwrap_or(false),
            steps,
            control: control(&mut section),
            kill_grace: section.read("kill_grace")?.map_or(KILL_GRACE, |Span(span)| span),
            max_output: section.read("max_output")?.map_or(MAX_OUTPUT, |Bytes(bytes)| bytes),
            max_lines: max_lines(&mut section, &policy)?,
            concurrency: section.read("max_concurrent")?.unwrap_or(CONCURRENCY),
            output: output(&mut section)?,
            success_codes: section.attempt(success_codes).unwrap_or_default(),
            read_only,
            destructive,
            idempotent,
            open_world: section.read("open_world")?,
            policy,
            name,
            arguments,
            command,
            shell,
        };
        tool.warn(&section, has_command);
        tool.check(&section);
        asked.note("tools.NAME", section.finish()?);
        Ok(tool)
    }

    /// Reports settings that are probably a mistake.
    fn warn(&self, section: &Section<'_>, has_command: bool) {
        let name = &self.name;
        for (index, argument) in self.arguments.iter().enumerate().filter(|_| has_command) {
            if !self.uses(index, argument) {
                let what = format!(
                    "the command of `{name}` does not use the argument `{}`",
                    argument.name
                );
                let remedy = match self.shell {
                    true => format!(
                        "use \"$arg_{}\" in the command, or remove the argument",
                        argument.name
                    ),
                    false => format!(
                        "use {{{}}} in a word of the command, or remove the argument",
                        argument.name
                    ),
                };
                section.report(Problem::at(argument.line, what).remedy(remedy).warning());
            }
        }
        if self.read_only == Some(true) && self.destructive == Some(true) {
            let what = format!("`{name}` is both `read_only` and `destructive`");
            section.report(Problem::at(section.line, what).remedy("remove one of them").warning());
        }
    }

    /// Returns whether the command uses an argument.
    fn uses(&self, index: usize, argument: &Argument) -> bool {
        let in_word = |word: &Word| word.arguments().any(|used| used == index);
        self.command.uses(index)
            || self.env.iter().any(|(_, word)| in_word(word))
            || self.stdin.as_ref().is_some_and(in_word)
            || (self.shell && self.command.has_text(&format!("arg_{}", argument.name)))
    }

    /// Reports settings that contradict each other.
    fn check(&self, section: &Section<'_>) {
        let line = section.line;
        let name = &self.name;
        let responds = self.asks || self.steps;
        if responds && self.stdin.is_some() && self.control == ControlMode::Stdout {
            let what = format!(
                "the tool `{name}` sets `stdin`, which `control = \"stdout\"` needs for responses"
            );
            section.report(Problem::at(line, what).remedy("remove `stdin` or `control`"));
        }
    }

    /// Returns the schema of the arguments.
    pub(crate) fn input_schema(&self) -> Json {
        argument::schema(&self.arguments)
    }

    /// Returns the working folder. A relative folder is relative to the folder of the file.
    pub(crate) fn folder_in(&self, base: &Path) -> PathBuf {
        self.folder.as_ref().map_or_else(|| base.to_owned(), |folder| base.join(folder))
    }

    /// Returns the words that the operating system receives for the arguments of a caller.
    pub(crate) fn words(&self, arguments: &RawValue) -> Option<Vec<String>> {
        let values = serde_json::from_str(arguments.get()).ok()?;
        self.ready(values).ok().map(|ready| ready.argv)
    }

    /// Returns every key that determines what a call executes, as text. An approval covers it.
    pub(crate) fn definition(&self) -> String {
        let Self { command, shell, folder, env, pass_env, inherit_env, stdin, .. } = self;
        let dashes = self.arguments.iter().map(|argument| argument.may_begin_with_dash);
        let parts = json!({
            "command": format!("{command:?}"),
            "shell": shell,
            "working_dir": folder,
            "env": format!("{env:?}"),
            "pass_env": pass_env,
            "inherit_env": inherit_env,
            "stdin": format!("{stdin:?}"),
            "interactive": self.asks,
            "steps": self.steps,
            "control": format!("{:?}", self.control),
            "arguments": self.input_schema(),
            "allow_dash": dashes.collect::<Vec<_>>(),
        });
        parts.to_string()
    }

    /// Returns the program.
    pub(crate) fn program(&self) -> &str {
        self.command.program()
    }

    /// Returns the command line for the values of a caller.
    pub(crate) fn ready(&self, values: serde_json::Map<String, Json>) -> Result<Ready, Refused> {
        let given = Given::new(&self.arguments, values);
        let mut env = Vec::new();
        for (name, word) in &self.env {
            // A variable is not set if its argument is absent.
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

fn check_name(name: &str, line: usize) -> Result<()> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if RESERVED_TOOL_NAMES.contains(&name) {
        return Err(Problem::at(
            line,
            format_args!("`{name}` is the name of a tool that Outlive adds"),
        )
        .remedy(format_args!("rename the tool, for example to `my_{name}`")));
    }
    if (1..=64).contains(&name.len()) && name.bytes().all(fine) {
        return Ok(());
    }
    Err(Problem::at(line, format_args!("`{name}` is not a valid name for a tool"))
        .remedy("use 1 to 64 letters, digits, `_`, `-` or `.`"))
}

fn arguments(section: &mut Section<'_>, asked: &mut Asked) -> Result<Vec<Argument>> {
    let Some(section) = section.section("arguments")? else { return Ok(Vec::new()) };
    let entries = section.entries().into_iter();
    Ok(entries.map(|(name, value)| Argument::read(name, value, asked)).collect())
}

fn description(section: &mut Section<'_>, tool: &str) -> Result<String> {
    section.read::<String>("description")?.ok_or_else(|| {
        section
            .lacks("description", format_args!("the tool `{tool}` has no description"))
            .or_remedy("add description = \"…\", which tells the model what the tool does")
    })
}

fn command(section: &mut Section<'_>, arguments: &[Argument]) -> Result<(Template, bool)> {
    let shell = section.read("shell")?.unwrap_or(false);
    let words = json!({"type": ["array", "string"]});
    let Some(command) = section.take_as("command", words) else {
        let what = format!("[{}] has no command", section.path());
        let lacking = section.lacks("command", what);
        return Err(lacking.or_remedy("add command = [\"program\", \"{argument}\", …]"));
    };
    let line = command.line;
    match (shell, command.is_string()) {
        (false, true) => Err(Problem::at(line, "`command` is a string, but `shell` is not set")
            .remedy("write a list of words, command = [\"program\", \"{argument}\"]; or set shell = true and use values as \"$arg_NAME\"")),
        (true, false) => Err(Problem::at(line, "with `shell = true`, `command` must be a string")
            .remedy("write command = \"cd project && make \\\"$arg_target\\\"\"")),
        (false, false) => Ok((Template::read(command, arguments)?, false)),
        (true, true) => {
            let script = String::read(command)?;
            let placeholder =
                arguments.iter().find(|argument| script.contains(&format!("{{{}}}", argument.name)));
            match placeholder.filter(|argument| !script.contains(&format!("${{{}}}", argument.name))) {
                // A value inserted into a script would be executed as script.
                Some(Argument { name, .. }) => Err(Problem::at(line, format_args!("a shell would execute the value of `{{{name}}}` as script text"))
                    .remedy(format_args!("use \"$arg_{name}\", in quotes"))),
                None => Ok((Template::fixed(&["/bin/sh", "-c", &script]), true)),
            }
        }
    }
}

fn environment(section: &mut Section<'_>, arguments: &[Argument]) -> Result<Vec<(String, Word)>> {
    let Some(table) = section.section("env")? else { return Ok(Vec::new()) };
    let read = |name: &str, value: Value<'_>| {
        let line = value.line;
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Problem::at(
                line,
                format_args!("`{name}` is not a valid name for a variable"),
            ));
        }
        Word::parse(&String::read(value)?, line, arguments)
    };
    let mut variables = Vec::new();
    for (name, value) in table.entries() {
        if let Some(word) = section.attempt(|_| read(&name, value)) {
            variables.push((name, word));
        }
    }
    Ok(variables)
}

fn stdin(section: &mut Section<'_>, arguments: &[Argument]) -> Result<Option<Word>> {
    let Some(value) = section.take_as("stdin", String::schema()) else { return Ok(None) };
    let line = value.line;
    Word::parse(&String::read(value)?, line, arguments).map(Some)
}

/// Returns how many lines of one attempt a task can emit.
fn most_lines(policy: &ToolPolicy) -> u32 {
    match (policy.task, policy.on_crash) {
        (TaskMode::Never, _) => u32::MAX,
        (_, OnCrash::Fail) => MAX_EMITTED_LINES,
        (_, OnCrash::RunAgain) => MAX_EMITTED_LINES / policy.max_attempts.max(1),
    }
}

/// Reads `max_lines`. The default never exceeds the limit of a task.
fn max_lines(section: &mut Section<'_>, policy: &ToolPolicy) -> Result<u64> {
    let most = most_lines(policy);
    let Some(At { value, line }) = section.read::<At<u32>>("max_lines")? else {
        return Ok(MAX_LINES.min(most).into());
    };
    if value > most {
        let what = format!(
            "`max_lines` is {value}, but a task emits at most {most} lines per attempt of a command"
        );
        let remedy = format!("set max_lines to {most} or less; or set task = \"never\"");
        section.report(Problem::at(line, what).remedy(remedy));
    }
    Ok(value.into())
}

/// Reads the location of the command's control channel.
fn control(section: &mut Section<'_>) -> ControlMode {
    let words = [("fd", ControlMode::Descriptors), ("stdout", ControlMode::Stdout)];
    section.choice("control", &words).map_or(ControlMode::Descriptors, |chosen| chosen.value)
}

fn output(section: &mut Section<'_>) -> Result<Output> {
    let schema = section.take_as("output_schema", json!({"type": ["object", "boolean", "string"]}));
    let kind = section.choice("output", &[("text", false), ("json", true)]);
    match (kind.map(|kind| kind.value), schema) {
        (None | Some(false), None) => Ok(Output::Text),
        (Some(true), None) => Ok(Output::Json { schema: None }),
        (None | Some(true), Some(schema)) => {
            let line = schema.line;
            let schema = section.attempt(|_| {
                let schema = schema_of(schema)?;
                trial::output(&schema)
                    .map_err(|why| Problem::at(line, format_args!("`output_schema`: {why}")))?;
                Ok(schema)
            });
            Ok(Output::Json { schema })
        }
        (Some(false), Some(schema)) => {
            section.report(
                Problem::at(schema.line, "`output_schema` requires JSON output")
                    .remedy("set output = \"json\""),
            );
            Ok(Output::Text)
        }
    }
}

/// Reads a schema, which is a table or a string of JSON.
fn schema_of(value: Value<'_>) -> Result<Json> {
    let line = value.line;
    if !value.is_string() {
        return value.json();
    }
    serde_json::from_str(&String::read(value)?)
        .map_err(|error| Problem::at(line, format_args!("the schema is not valid JSON: {error}")))
}

fn success_codes(section: &mut Section<'_>) -> Result<BTreeSet<i32>> {
    let code = json!({"type": "integer", "minimum": 0, "maximum": 255});
    let codes = json!({"type": "array", "items": code, "minItems": 1});
    let Some(value) = section.take_as("success_codes", codes) else {
        return Ok(BTreeSet::from([0]));
    };
    let line = value.line;
    let codes: Vec<i64> = Vec::read(value)?;
    let codes: Option<BTreeSet<i32>> = codes
        .into_iter()
        .map(|code| i32::try_from(code).ok().filter(|code| (0..256).contains(code)))
        .collect();
    codes.filter(|codes| !codes.is_empty()).ok_or_else(|| {
        Problem::at(line, "`success_codes` must list exit codes from 0 to 255")
            .remedy("write success_codes = [0, 1]")
    })
}
