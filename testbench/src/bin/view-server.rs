//! A server with slow tools, for the test of the task view.
//!
//! `view-server ORIGIN` serves HTTP to the web pages of ORIGIN on a free port, prints its address,
//! and ends with its standard input.

use std::{
    env,
    error::Error,
    io::Read,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use outlive::server::{
    Args, CallToolResult, ContentBlock, Durable, Result, Server, Tool,
    durable::ElicitOutcome,
    hosts::{AnswerBy, Hosts},
    http::HttpConfig,
    tasks::{TaskConfig, TaskPolicy},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{json, value::to_raw_value};

/// Lines of `print` per second.
const LINES_PER_SECOND: u64 = 150;

/// Calls become tasks early, so that the test is short.
const TASK_AFTER: Duration = Duration::from_millis(200);

/// Call timeout of the test's host. A pending result comes after two seconds.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// Form with every kind of field. The view shows the fields in this order.
const FORM: &str = r#"{"type": "object", "required": ["replicas", "date", "region", "yes"], "properties": {
    "replicas": {"type": "integer", "title": "Replicas", "minimum": 1, "maximum": 9},
    "date": {"type": "string", "format": "date", "title": "Go live on"},
    "region": {"type": "string", "title": "Region", "oneOf": [{"const": "eu", "title": "Europe"}, {"const": "us", "title": "United States"}]},
    "steps": {"type": "array", "title": "Steps", "items": {"type": "string", "enum": ["canary", "notify"]}},
    "yes": {"type": "boolean", "title": "The release notes are written", "description": "They are linked in the chat."},
    "note": {"type": "string", "title": "Note", "maxLength": 200}
}}"#;

/// Text that would run a script if a page inserted it as HTML.
const HOSTILE: &str =
    r#"<img src=x onerror="watched.ran=true"><b>bold</b><script>watched.ran=true</script>"#;

const PICTURE: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" width="480" height="150"><defs><linearGradient id="sky" x2="0" y2="1"><stop stop-color="#243b6b"/><stop offset="1" stop-color="#e7a977"/></linearGradient></defs><rect width="480" height="150" fill="url(#sky)"/><circle cx="360" cy="96" r="26" fill="#ffe9c9"/><path d="M0 150V110l90-50 80 44 70-30 110 60 70-26 60 24v18z" fill="#1d2438"/></svg>"##;

#[derive(Deserialize, JsonSchema)]
struct Render {
    frames: u32,
    millis: u64,
    /// Whether the status message has the time, so that a reader knows its age.
    #[serde(default)]
    stamp: bool,
}

async fn render(cx: Durable, Args(args): Args<Render>) -> Result<CallToolResult> {
    let Render { frames, millis, stamp } = args;
    for frame in 1..=frames {
        let stamp = if stamp { format!(" @{}", millis_since_1970()) } else { String::new() };
        let message = format!("frame {frame} of {frames}{stamp}");
        cx.progress(f64::from(frame), f64::from(frames), message);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(millis)) => {}
            () = cx.cancelled() => return Err(outlive::server::Error::new("stopped")),
        }
    }
    let data = json!({"frames": frames, "codec": "av1"});
    Ok(CallToolResult {
        content: vec![
            ContentBlock::text(format!("{frames} frames")),
            ContentBlock::image(PICTURE, "image/svg+xml"),
        ],
        structured_content: Some(to_raw_value(&data)?),
        ..CallToolResult::default()
    })
}

#[derive(Deserialize, JsonSchema)]
struct Print {
    seconds: u64,
}

async fn print(cx: Durable, Args(Print { seconds }): Args<Print>) -> Result<String> {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / LINES_PER_SECOND as u32);
    for line in 1..=seconds * LINES_PER_SECOND {
        ticks.tick().await;
        cx.emit(format!("line {line} @{}", millis_since_1970())).await?;
    }
    Ok("printed".to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct Burst {
    lines: u64,
}

/// Prints lines at once, before the view can open.
async fn burst(cx: Durable, Args(Burst { lines }): Args<Burst>) -> Result<String> {
    for line in 1..=lines {
        cx.emit(format!("line {line}")).await?;
    }
    tokio::time::sleep(Duration::from_secs(6)).await;
    Ok("printed".to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct Deploy {
    image: String,
}

#[derive(Deserialize)]
struct Release {
    replicas: u32,
    date: String,
    region: String,
    #[serde(default)]
    steps: Vec<String>,
    yes: bool,
}

async fn deploy(cx: Durable, Args(Deploy { image }): Args<Deploy>) -> Result<String> {
    cx.emit(format!("built {image}")).await?;
    cx.emit(format!("pushed {image}")).await?;
    let (form, prompt) = (serde_json::from_str(FORM)?, format!("Deploy {image} to production?"));
    let release = cx.elicit_with::<Release>("approve", prompt, form);
    let ElicitOutcome::Accepted(release) = release.outcome().await? else {
        return Ok("nothing was deployed".to_owned());
    };
    cx.set_status_message(format!("answered @{}", millis_since_1970()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let Release { replicas, date, region, steps, yes } = release;
    let yes = if yes { "yes" } else { "no" };
    Ok(format!("{image} ×{replicas} on {date} in {region}; {}; {yes}", steps.join(", ")))
}

/// Requests input that only people can answer: the tool is destructive.
async fn launch(cx: Durable) -> Result<String> {
    let form = json!({"type": "object", "properties": {"yes": {"type": "boolean"}}});
    let form = serde_json::from_value(form)?;
    cx.elicit_with::<serde_json::Value>("go", "Launch the rocket?", form).await?;
    Ok("launched".to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct Log {
    lines: u32,
}

async fn log(Args(Log { lines }): Args<Log>) -> Result<String> {
    tokio::time::sleep(Duration::from_secs(6)).await;
    let lines = (0..lines).map(|line| format!("2026-11-18 14:05:00 step {line} took 12 ms"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

async fn fail() -> Result<String> {
    tokio::time::sleep(Duration::from_secs(3)).await;
    Err(outlive::server::Error::new("could not write frame 12: the disk is full"))
}

async fn hostile(cx: Durable) -> Result<CallToolResult> {
    cx.set_status_message(HOSTILE);
    cx.emit(HOSTILE).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let image = ContentBlock::image_base64("eA==", r#"image/png" onerror="watched.ran=true"#);
    let content = vec![ContentBlock::text(HOSTILE), image];
    Ok(CallToolResult { content, ..CallToolResult::default() })
}

fn millis_since_1970() -> u128 {
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    reason = "the parent process reads the address from standard output"
)]
async fn main() -> Result<(), Box<dyn Error>> {
    let origin = env::args().nth(1).ok_or("usage: view-server ORIGIN")?;
    std::thread::spawn(|| {
        let mut input = std::io::stdin();
        while matches!(input.read(&mut [0; 64]), Ok(1..)) {}
        std::process::exit(0);
    });
    let hosts = Hosts::known().call_timeout(CALL_TIMEOUT).max_rounds(0).answers([AnswerBy::Tool]);
    let slow = |tool: Tool| tool.task(TaskPolicy::Auto { after: TASK_AFTER });
    let server = Server::builder("view", "1")
        .tasks(TaskConfig::in_memory().hosts(hosts))
        .tool(slow(Tool::new("render", render)))
        .tool(slow(Tool::new("print", print)))
        .tool(slow(Tool::new("burst", burst)))
        .tool(slow(Tool::new("deploy", deploy)))
        .tool(slow(Tool::new("launch", launch).destructive(true)))
        .tool(slow(Tool::new("log", log)))
        .tool(slow(Tool::new("fail", fail)))
        .tool(slow(Tool::new("hostile", hostile)))
        .build()?;
    let config = HttpConfig::new().allow_origin(origin);
    let serving = server.serve_http("127.0.0.1:0", config).await?;
    println!("{}", serving.address());
    Ok(serving.wait().await?)
}
