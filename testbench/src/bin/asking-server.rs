//! A server whose tool elicits twice and records every step in a file.
//!
//! `asking-server KEYS STEPS` serves HTTP and prints its address; with `--stdio` it serves standard
//! input. KEYS is the file of the seal keys, STEPS the file of the executed steps.

use std::{env, error::Error, fs::OpenOptions, io::Write, path::PathBuf};

use outlive::{
    Form,
    server::{
        Args, ContentBlock, Durable, Result, SealKeys, Server, State, Tool, http::HttpConfig,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Deploy {
    repo: String,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Approval {
    yes: bool,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Window {
    hour: u32,
}

/// The file of the executed steps, which survives a killed process.
struct Steps(PathBuf);

impl Steps {
    fn note(&self, step: &str) -> Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.0)?;
        Ok(writeln!(file, "{step}")?)
    }
}

async fn deploy(cx: Durable, Args(args): Args<Deploy>, steps: State<Steps>) -> Result<String> {
    let image: String = cx
        .step("build", async || {
            steps.note("build")?;
            Ok(format!("{}:1", args.repo))
        })
        .await?;
    cx.emit(ContentBlock::text(format!("built {image}"))).await?;
    let approval: Approval = cx.elicit("approve", format!("Deploy {image}?")).await?;
    if !approval.yes {
        return Ok("nothing happened".to_owned());
    }
    let (eu, us) = tokio::join!(push(&cx, &steps, "eu"), push(&cx, &steps, "us"));
    let window: Window = cx.elicit("window", "When should it go live?").await?;
    let done: String = cx
        .step("switch", async || {
            steps.note("switch")?;
            Ok(format!("{image} {} {} at {}", eu?, us?, window.hour))
        })
        .await?;
    Ok(done)
}

async fn push(cx: &Durable, steps: &Steps, region: &str) -> Result<String> {
    let push = async || {
        steps.note(&format!("push {region}"))?;
        Ok(region.to_owned())
    };
    cx.step(("push", region), push).await
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    reason = "the parent process reads the address from standard output"
)]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [keys, steps, rest @ ..] = &arguments[..] else {
        return Err("usage: asking-server KEYS STEPS [--stdio]".into());
    };
    let server = Server::builder("asking", "1")
        .seal_keys(SealKeys::from_file(keys)?)
        .state(Steps(steps.into()))
        .tool(Tool::new("deploy", deploy))
        .build()?;
    if rest.iter().any(|argument| argument == "--stdio") {
        return Ok(server.serve_stdio().await?);
    }
    let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await?;
    println!("{}", serving.address());
    Ok(serving.wait().await?)
}
