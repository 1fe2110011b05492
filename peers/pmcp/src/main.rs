//! Benchmark server of pmcp: `(calls TOOLS | progress | tasks TTL)`.
//!
//! Prints `listening PORT` on standard output and exits at the end of standard input. With
//! `--defaults` it uses event streams and sequential calls, as pmcp's first examples do. Without,
//! it uses JSON and concurrent calls, as its documentation advises. pmcp cannot disable Nagle's
//! algorithm.

use std::{
    env,
    error::Error,
    io::{self, Read},
    net::SocketAddr,
    sync::Arc,
};

use pmcp::{
    Server,
    server::{
        streamable_http_server::{StreamableHttpServer, StreamableHttpServerConfig},
        task_store::{InMemoryTaskStore, StoreConfig},
        typed_tool::TypedTool,
    },
    types::{
        TaskSupport, ToolExecution,
        protocol::{LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28, ProtocolVersion},
    },
};
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    message: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Count {
    steps: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let defaults = env::args().any(|word| word == "--defaults");
    let words: Vec<String> = env::args().skip(1).filter(|word| word != "--defaults").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let builder = Server::builder().name("bench").version("1.0.0");
    let versions = [LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28];
    let mut builder = builder.with_supported_protocol_versions(
        versions.map(|version| ProtocolVersion(version.to_owned())),
    );
    let mut config = StreamableHttpServerConfig::default();
    config.max_request_bytes = 16 << 20;
    config.enable_json_response = !defaults && words != ["progress"];
    match words[..] {
        ["calls", tools] => {
            builder = builder.tool("echo", echo("echo"));
            for number in 1..tools.parse::<u32>()? {
                let name = format!("tool_{number:05}");
                builder = builder.tool(name.clone(), echo(&name));
            }
        }
        ["progress"] => builder = builder.tool("count", count()),
        ["tasks", ttl] => {
            // The default limit is 100 tasks per caller.
            let store = StoreConfig { max_tasks_per_owner: 10_000_000, ..StoreConfig::default() };
            let store = InMemoryTaskStore::with_config(store);
            builder = builder.tool("echo", task(ttl.parse()?)).task_store(Arc::new(store));
        }
        _ => return Err("usage: [--defaults] (calls TOOLS | progress | tasks TTL)".into()),
    }
    let server = builder.build()?;
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    runtime.block_on(async {
        let http = if defaults {
            let server = Arc::new(tokio::sync::Mutex::new(server));
            StreamableHttpServer::with_config(address, server, config)
        } else {
            StreamableHttpServer::with_config_concurrent(address, Arc::new(server), config)
        };
        let (address, _) = http.start().await?;
        println!("listening {}", address.port());
        pmcp::Result::Ok(())
    })?;
    io::copy(&mut io::stdin().by_ref(), &mut io::sink())?;
    Ok(())
}

fn echo(name: &str) -> impl pmcp::ToolHandler + 'static {
    // pmcp returns this value as JSON text, so the message is in quotes.
    TypedTool::new(name, |args: Echo, _| Box::pin(async move { Ok(Value::String(args.message)) }))
        .with_description("Returns its argument")
}

fn count() -> impl pmcp::ToolHandler + 'static {
    TypedTool::new("count", |args: Count, extra: pmcp::RequestHandlerExtra| {
        Box::pin(async move {
            let steps = f64::from(args.steps);
            for step in 1..=args.steps {
                extra.report_progress(f64::from(step), Some(steps), None).await?;
            }
            Ok(json!(format!("counted to {steps}")))
        })
    })
    .with_description("Reports progress steps")
}

/// Creates a tool whose tasks are completed on creation. The store assigns the task ID.
fn task(ttl: u64) -> impl pmcp::ToolHandler + 'static {
    TypedTool::new("echo", move |args: Echo, _| {
        Box::pin(async move {
            Ok(json!({
                "taskId": "none",
                "status": "completed",
                "ttl": ttl,
                "result": {"content": [{"type": "text", "text": args.message}]},
            }))
        })
    })
    .with_description("Returns its argument as a task")
    .with_execution(ToolExecution::new().with_task_support(TaskSupport::Required))
}
