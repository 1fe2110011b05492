//! A server over stdio, for tests of the gateway. Its first argument chooses how it behaves, and
//! the second is a file that gets a line for each execution.

use std::{io::Write as _, time::Duration};

use outlive::{
    server::{Cx, Durable, Error, Result, Server, Tool},
    wire::{CreateMessageRequestParams, RequestedSchema},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let executions = arguments.next();
    match mode.as_str() {
        "exits" => {
            eprintln!("cannot read the configuration");
            std::process::exit(3);
        }
        "silent" => std::thread::sleep(Duration::from_secs(3600)),
        "floods" => flood()?,
        _ => server(executions)?.serve_stdio().await?,
    }
    Ok(())
}

/// Writes lines that are not messages.
fn flood() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    loop {
        writeln!(out, "this is not a message")?;
    }
}

fn server(executions: Option<String>) -> Result<Server, Box<dyn std::error::Error>> {
    let count = move |what: &str| {
        let Some(file) = &executions else { return Ok(()) };
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
        writeln!(file, "{what}")
    };
    let echo = move |cx: Cx| {
        let counted = count("echo");
        async move {
            counted?;
            Ok::<_, Error>(cx.call().arguments()?.to_owned())
        }
    };
    let exit = async || -> Result<String> {
        eprintln!("going down");
        tokio::time::sleep(Duration::from_millis(50)).await;
        std::process::exit(7)
    };
    Ok(Server::builder("child", "1.0.0")
        .tool(Tool::new("echo", echo).input_schema(any_object()))
        .tool(Tool::new("exit", exit))
        .tool(Tool::new("pid", async || std::process::id().to_string()))
        .tool(Tool::new("form", form))
        .tool(Tool::new("sample", sample))
        .build()?)
}

fn any_object() -> outlive::wire::RawJson {
    serde_json::value::RawValue::from_string(r#"{"type":"object"}"#.to_owned())
        .expect("the literal is valid JSON")
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
