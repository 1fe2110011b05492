//! `outlive test`: calls a tool of a tool worker once, with prepared responses, and kills its process
//! after each journal entry if asked to.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use outlive::{
    client::{
        Client,
        input::{InputCapabilities, InputHandler, InputKind, InputResponse, PendingInput},
    },
    schema::fields,
    server::{SealKeys, Server, tasks::TaskConfig},
    store::{MemoryStore, PeopleStore},
    wire::CallToolResult,
};
use serde_json::Value;

use crate::{
    call::arguments::{arguments, typed},
    error::{CliError, Kind, Result},
    print,
    runtime::block_on,
    serve::{Source, WorkerOptions, Workers},
};

/// Calls a tool of a script once, to test it.
///
/// The call runs on the real engine with a store in memory. Timers end at once. The client responds to
/// input requests as the options say.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive test tools.py greet name=Ada
  outlive test tools.py deploy repo=shop regions=eu --accept approve.yes=true --crash-after-each

Exit codes: 0 success, 1 the tool failed, 2 usage error, 5 an input request has no response.")]
pub(crate) struct Args {
    /// Script with tools, or a file with [workers]
    file: PathBuf,
    /// Name of the tool
    tool: String,
    /// Arguments: key=value, key:=JSON, or the whole object
    arguments: Vec<String>,
    /// Accepts an input request, with a value of its form; repeatable
    #[arg(long, value_name = "KEY[.FIELD=VALUE]")]
    accept: Vec<String>,
    /// Declines an input request; repeatable
    #[arg(long, value_name = "KEY")]
    decline: Vec<String>,
    /// Kills the process of the call after each journal entry
    #[arg(long)]
    crash_after_each: bool,
    /// Prints the result as JSON
    #[arg(long)]
    json: bool,
}

/// Prepared responses to input requests, by key.
#[derive(Default)]
struct Responses {
    /// `FIELD=VALUE` words of accepted requests.
    accepted: BTreeMap<String, Vec<String>>,
    declined: Vec<String>,
    /// The first request without a valid response.
    problem: Mutex<Option<String>>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let _calls = crate::log::to_stderr(false);
    block_on(Box::pin(test(args)))
}

async fn test(args: Args) -> Result<ExitCode> {
    let source = Source::at(args.file.clone());
    let config = source.config()?;
    if config.workers.is_empty() {
        return Err(CliError::usage(format_args!("{} has no tool worker", args.file.display()))
            .remedy("name a script with tools, such as tools.py, or a file with [workers.NAME]"));
    }
    let options = WorkerOptions {
        data: None,
        is_dev: true,
        crash_after_each_entry: args.crash_after_each,
        skip_time: true,
    };
    let workers = Workers::start(&config, source.path(), options).await?;
    let called = call(&args, &workers).await;
    workers.shutdown().await;
    let result = called?;
    let text = match args.json {
        true => serde_json::to_string(&result).unwrap_or_default(),
        false => result.texts().collect::<Vec<_>>().join("\n"),
    };
    if let Err(error) = print::data(&text) {
        return Err(CliError::new(Kind::Failed, error));
    }
    Ok(if result.is_error == Some(true) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn call(args: &Args, workers: &Workers) -> Result<CallToolResult> {
    let store: Arc<dyn PeopleStore> = Arc::new(MemoryStore::new());
    let tasks = TaskConfig::people(store).engine(|engine| {
        // Parked at once, so that every input request and timer starts the function again.
        engine.park_after = Duration::from_millis(1);
        engine.poll_interval = Duration::from_millis(20);
    });
    let builder = workers.attach(Server::builder("outlive-test", env!("CARGO_PKG_VERSION")));
    let keys = SealKeys::random().map_err(|error| CliError::new(Kind::Failed, error))?;
    let server = builder.tasks(tasks).seal_keys(keys).build().map_err(CliError::usage)?;
    let responses = Arc::new(Responses::of(args));
    let handler = Handler(Arc::clone(&responses));
    let client = Client::builder("outlive-test", env!("CARGO_PKG_VERSION"));
    let client = client.input_handler(handler).connect(&server).await;
    let client = client.map_err(CliError::unreachable)?;
    let tools = client.list_tools().collect().await.map_err(CliError::unreachable)?;
    let tool = tools.into_iter().find(|tool| tool.name == args.tool).ok_or_else(|| {
        CliError::usage(format_args!("{} has no tool `{}`", args.file.display(), args.tool))
            .remedy(format_args!("use one of: {}", workers.tool_names().join(", ")))
    })?;
    let schema = serde_json::to_value(&tool.input_schema).unwrap_or_default();
    let values = arguments(&args.tool, &schema, &args.arguments)?;
    let result = client.call_tool(&args.tool, &values).as_task().no_timeout().await;
    let problem = responses.problem.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (problem, result) {
        (Some(problem), _) => Err(CliError::new(Kind::Unanswered, problem)
            .remedy("pass --accept KEY.FIELD=VALUE or --decline KEY")),
        (None, Ok(result)) => Ok(result),
        (None, Err(error)) => Err(CliError::new(Kind::Failed, error)),
    }
}

impl Responses {
    fn of(args: &Args) -> Self {
        let mut responses = Self { declined: args.decline.clone(), ..Self::default() };
        for word in &args.accept {
            let (key, value) = match word.split_once('=') {
                Some((path, value)) => match path.rsplit_once('.') {
                    Some((key, field)) => (key, Some(format!("{field}={value}"))),
                    None => (path, None),
                },
                None => (word.as_str(), None),
            };
            responses.accepted.entry(key.to_owned()).or_default().extend(value);
        }
        responses
    }

    fn respond(&self, input: &PendingInput) -> Result<InputResponse, String> {
        let key = input.key.as_deref().unwrap_or_default();
        // The key of a repeated request has a number.
        let key = key.split_once('#').map_or(key, |(key, _)| key);
        if self.declined.iter().any(|declined| declined == key) {
            return Ok(InputResponse::Decline);
        }
        let words = self.accepted.get(key);
        let words = words.ok_or_else(|| format!("the tool requests the input `{key}`"))?;
        match &input.request {
            InputKind::Url(_) => Ok(InputResponse::accept_url()),
            InputKind::Form(form) => {
                let schema = serde_json::to_value(&form.requested_schema).unwrap_or_default();
                let values = typed(&fields(&schema), words).map_err(|error| error.to_string())?;
                let response = InputResponse::accept(Value::Object(values));
                let checked = input.check(&response);
                checked
                    .map_err(|reason| format!("the response to `{key}` is invalid: {reason}"))?;
                Ok(response)
            }
            _ => Err(format!("the input `{key}` is not a form or a URL")),
        }
    }
}

/// Responds as the options say.
struct Handler(Arc<Responses>);

impl InputHandler for Handler {
    fn capabilities(&self) -> InputCapabilities {
        InputCapabilities { form: true, url: true, ..InputCapabilities::default() }
    }

    async fn handle(&self, input: PendingInput) -> InputResponse {
        match self.0.respond(&input) {
            Ok(response) => response,
            Err(problem) => {
                let mut first = self.0.problem.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(problem.clone());
                drop(first);
                InputResponse::Error(problem)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Args, Responses};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn responses_are_read_by_key_and_field() {
        let words = [
            "outlive",
            "tools.py",
            "deploy",
            "--accept",
            "approve.yes=true",
            "--accept",
            "login",
            "--accept",
            "approve.note=a=b.c",
            "--decline",
            "size",
        ];
        let responses = Responses::of(&Program::parse_from(words).args);
        assert_eq!(responses.accepted["approve"], ["yes=true", "note=a=b.c"]);
        assert!(responses.accepted["login"].is_empty());
        assert_eq!(responses.declined, ["size"]);
    }
}
