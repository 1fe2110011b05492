//! Benchmark client of rmcp: `rmcp-bench-client VERSION CONNECTIONS IN_FLIGHT (URL | -- PROGRAM
//! ARGUMENT…)`.
//!
//! Prints `ready`. For each line with a number of milliseconds, it calls `echo` for that time and
//! prints the number of responses. `bench client` does the same with the Outlive client.

use std::{
    env,
    error::Error,
    io::{self, BufRead},
    sync::Arc,
    time::{Duration, Instant},
};

use rmcp::{
    ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion,
    },
    service::RunningService,
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::json;

type Client = RunningService<RoleClient, ClientConfig>;
type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

const TEXT: &str = "the quick brown fox jumps over the lazy dog";

fn main() -> Done<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let words: Vec<String> = env::args().skip(1).collect();
    let [version, connections, in_flight, target @ ..] = &words[..] else {
        return Err("usage: VERSION CONNECTIONS IN_FLIGHT (URL | -- PROGRAM ARGUMENT…)".into());
    };
    let (connections, in_flight) = (connections.parse()?, in_flight.parse()?);
    let clients = runtime.block_on(connect(version, connections, in_flight, target))?;
    println!("ready");
    for line in io::stdin().lock().lines() {
        let time = Duration::from_millis(line?.parse()?);
        println!("{}", runtime.block_on(call(&clients, in_flight, time))?);
    }
    Ok(())
}

async fn connect(
    version: &str,
    connections: usize,
    in_flight: usize,
    target: &[String],
) -> Done<Vec<Arc<Client>>> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let info = Implementation::new("bench", "1.0.0");
        let config = ClientConfig::new(ClientCapabilities::default(), info)
            .with_protocol_version(ProtocolVersion::V_2025_11_25);
        let lifecycle = match version {
            "2026-07-28" => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
            _ => ClientLifecycleMode::Initialize,
        };
        let client = match target {
            [url] => {
                // The default is 16; this is the number of concurrent calls.
                let transport = StreamableHttpClientTransportConfig::with_uri(url.clone())
                    .max_concurrent_requests(in_flight);
                // The default client opens a connection for every call (`default_http_client` in
                // its `transport/common/reqwest/streamable_http_client.rs`); this one keeps
                // connections.
                let http = reqwest::Client::new();
                let transport = StreamableHttpClientTransport::with_client(http, transport);
                config.serve_with_lifecycle(transport, lifecycle).await?
            }
            [_, program, arguments @ ..] => {
                let mut command = tokio::process::Command::new(program);
                command.args(arguments);
                config.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
            }
            [] => return Err("missing server; pass a URL or `-- PROGRAM`".into()),
        };
        clients.push(Arc::new(client));
    }
    Ok(clients)
}

/// Keeps `in_flight` calls in flight on each connection. Returns the number of responses in time.
async fn call(clients: &[Arc<Client>], in_flight: usize, time: Duration) -> Done<u64> {
    let end = Instant::now() + time;
    let mut callers = tokio::task::JoinSet::new();
    for client in clients.iter().flat_map(|client| std::iter::repeat_n(client, in_flight)) {
        let client = Arc::clone(client);
        callers.spawn(async move {
            let mut answered = 0_u64;
            while Instant::now() < end {
                let mut arguments = serde_json::Map::new();
                arguments.insert("message".to_owned(), json!(TEXT));
                let call = CallToolRequestParams::new("echo").with_arguments(arguments);
                let result = client.call_tool(call).await?;
                let text = result.content.first().and_then(|block| block.as_text());
                if text.is_none_or(|text| text.text != TEXT) {
                    return Err(format!("unexpected result: {result:?}").into());
                }
                answered += 1;
            }
            Done::Ok(answered)
        });
    }
    let mut answered = 0;
    while let Some(done) = callers.join_next().await {
        answered += done??;
    }
    Ok(answered)
}
