//! A server over HTTP with slow tools: `relay-upstream EXECUTIONS`. Every execution adds a line with
//! its key to the file. Prints its URL and ends with standard input.

use std::{
    env,
    fs::OpenOptions,
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use outlive::{
    server::{
        Args, Cx, Result, Server, State, Tool,
        http::HttpConfig,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::MemoryStore,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

#[derive(Deserialize, JsonSchema)]
struct Render {
    key: String,
    steps: u32,
}

/// The file of executions.
#[derive(Clone, Debug)]
struct File {
    path: Arc<str>,
}

async fn render(cx: Cx, file: State<File>, Args(render): Args<Render>) -> Result<String> {
    let mut executions = OpenOptions::new().append(true).open(&*file.path)?;
    // One write, so that concurrent lines stay whole.
    executions.write_all(format!("{}\n", render.key).as_bytes())?;
    for step in 1..=render.steps {
        sleep(Duration::from_millis(100)).await;
        let message = format!("{} step {step}", render.key);
        cx.progress(f64::from(step), Some(f64::from(render.steps)), message);
    }
    Ok(format!("rendered {}", render.key))
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the parent process reads the URL")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let file = env::args().nth(1).ok_or("name the file of executions")?;
    let server = Server::builder("relay", "1")
        .state(File { path: file.into() })
        .tasks(TaskConfig::new(Arc::new(MemoryStore::new())))
        .tool(Tool::new("render", render))
        .tool(Tool::new("work", render).task(TaskPolicy::Always))
        .build()?;
    let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await?;
    println!("{}", serving.url());
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    Ok(serving.wait().await?)
}
