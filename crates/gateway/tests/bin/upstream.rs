//! A server over stdio, for tests of the gateway. Its first argument chooses how it behaves, and
//! the second is a file that gets a line for each execution. The tool `slow` returns when a file with
//! that name and `.go` exists, and a server that is `late` serves from then on.
//!
//! It also supervises itself.

mod raw;

use std::{
    io::{self, Write as _},
    process::ExitCode,
    sync::{Arc, OnceLock},
    time::Duration,
};

use outlive::{
    server::{Cx, Durable, Error, LoggingLevel, Resource, Result, Server, Tool},
    wire::{CreateMessageRequestParams, RequestedSchema},
};

fn main() -> ExitCode {
    if let Some(code) = outlive_jobs::supervise_if_asked() {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let executions = arguments.next();
    match mode.as_str() {
        "exits" => {
            eprintln!("cannot read the configuration");
            std::process::exit(3);
        }
        "late" => {
            let executions = Executions::new(executions);
            executions.add("started")?;
            while !executions.may_go() {
                std::thread::sleep(Duration::from_millis(10));
            }
            server(executions)?.serve_stdio().await?;
        }
        "silent" => std::thread::sleep(Duration::from_secs(3600)),
        "floods" => flood()?,
        "raw" => raw::serve(false, executions)?,
        "raw-modern" => raw::serve(true, executions)?,
        _ => server(Executions::new(executions))?.serve_stdio().await?,
    }
    Ok(())
}

/// Writes lines that are not messages.
fn flood() -> io::Result<()> {
    let mut out = io::stdout().lock();
    loop {
        writeln!(out, "this is not a message")?;
    }
}

fn server(executions: Executions) -> Result<Server, Box<dyn std::error::Error>> {
    let counted = executions.clone();
    let echo = move |cx: Cx| {
        let counted = counted.add("echo");
        async move {
            counted?;
            Ok::<_, Error>(cx.call().arguments()?.to_owned())
        }
    };
    let counted = executions.clone();
    let slow = move |cx: Cx| {
        let counted = counted.clone();
        async move {
            counted.add("slow")?;
            let dropped = Dropped(Some(counted.clone()));
            let mut progress = 0.0;
            while !counted.may_go() {
                progress += 1.0;
                cx.progress(progress, None, "waiting");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            dropped.disarm();
            Ok::<_, Error>("slow result")
        }
    };
    let counted = executions.clone();
    let paint = move |cx: Durable| {
        let counted = counted.clone();
        async move {
            let painted = form(cx).await?;
            counted.add("painted")?;
            Ok::<_, Error>(painted)
        }
    };
    let safe_exit = move || {
        let executions = executions.clone();
        async move { exit_once(&executions).await }
    };
    let exit = async || -> Result<String> {
        eprintln!("going down");
        tokio::time::sleep(Duration::from_millis(50)).await;
        std::process::exit(7)
    };
    // The server, for the tool that changes its resource.
    let server = Arc::new(OnceLock::<Server>::new());
    let changed = Arc::clone(&server);
    let touch = move || {
        if let Some(server) = changed.get() {
            server.resource_updated("note://x");
        }
        async { "touched" }
    };
    let built = Server::builder("child", "1.0.0")
        .logging(true)
        .instructions("Paint with care.")
        .resource(Resource::new("note://x", "x", async || "text".to_owned()))
        .tool(Tool::new("touch", touch))
        .tool(Tool::new("log", log))
        .tool(Tool::new("echo", echo).input_schema(any_object()))
        .tool(Tool::new("exit", exit))
        .tool(Tool::new("slow", slow))
        .tool(Tool::new("paint", paint))
        .tool(Tool::new("pid", async || std::process::id().to_string()))
        .tool(Tool::new("form", form))
        .tool(Tool::new("sample", sample))
        .tool(Tool::new("safe_exit", safe_exit).read_only())
        .build()?;
    let _ = server.set(built.clone());
    Ok(built)
}

/// Ends the process in the first call of any process.
async fn exit_once(executions: &Executions) -> Result<String> {
    executions.add("safe_exit")?;
    let count = executions.count();
    if count == 1 {
        std::process::exit(7);
    }
    Ok(format!("executed {count} times"))
}

/// The file with a line for each execution.
#[derive(Clone)]
struct Executions(Option<Arc<str>>);

impl Executions {
    fn new(file: Option<String>) -> Self {
        Self(file.map(Arc::from))
    }

    fn add(&self, what: &str) -> io::Result<()> {
        let Some(file) = &self.0 else { return Ok(()) };
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&**file)?;
        writeln!(file, "{what}")
    }

    fn count(&self) -> usize {
        let text = self.0.as_ref().and_then(|file| std::fs::read_to_string(&**file).ok());
        text.unwrap_or_default().lines().count()
    }

    fn may_go(&self) -> bool {
        self.0.as_ref().is_none_or(|file| std::path::Path::new(&format!("{file}.go")).exists())
    }
}

/// Adds a line if the call is cancelled.
struct Dropped(Option<Executions>);

impl Dropped {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(executions) = &self.0 {
            // The test sees that the line is missing.
            let _ = executions.add("cancelled");
        }
    }
}

fn any_object() -> outlive::wire::RawJson {
    serde_json::value::RawValue::from_string(r#"{"type":"object"}"#.to_owned())
        .expect("the literal is valid JSON")
}

async fn log(cx: Cx) -> &'static str {
    cx.log(LoggingLevel::Info, "the last line");
    "logged"
}

async fn form(cx: Durable) -> Result<String> {
    let schema: RequestedSchema = serde_json::from_value(serde_json::json!({
        "type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]
    }))?;
    let chosen: serde_json::Value = cx.elicit_with("color", "Which color?", schema).await?;
    Ok(format!("painted {}", chosen["color"]))
}

async fn sample(cx: Durable) -> Result<String> {
    let params: CreateMessageRequestParams = serde_json::from_value(serde_json::json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": "Say hi"}}], "maxTokens": 9
    }))?;
    let reply = cx.sample("hi", params).await?;
    Ok(format!("sampled by {}", reply.model))
}
