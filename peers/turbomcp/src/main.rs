//! Benchmark server of turbomcp: `(calls | progress | tasks TTL)`.
//!
//! Prints `listening PORT` on standard output and exits at the end of standard input. With
//! `--defaults` it follows turbomcp's documentation. Without, it disables Nagle's algorithm.

use std::{
    env,
    error::Error,
    io::{self, Read},
    net::SocketAddr,
    sync::Arc,
};

use axum::serve::ListenerExt;
use turbomcp::{
    ext_tasks::TasksExtension,
    http::{HttpConfig, router},
    prelude::*,
};

#[derive(Clone)]
struct Bench;

#[server(name = "bench", version = "1.0.0")]
impl Bench {
    /// Returns its argument
    #[tool]
    async fn echo(&self, message: String) -> McpResult<String> {
        Ok(message)
    }

    /// Reports progress steps
    #[tool]
    async fn count(&self, ctx: &CallToolContext, steps: u32) -> McpResult<String> {
        for step in 1..=steps {
            ctx.progress.report(f64::from(step), Some(f64::from(steps)), None).await;
        }
        Ok(format!("counted to {steps}"))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let words: Vec<String> = env::args().skip(1).filter(|word| word != "--defaults").collect();
    let defaults = env::args().any(|word| word == "--defaults");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // The default limit is 1,024 open streams.
    let config = HttpConfig::new().max_concurrent_requests(100_000).max_body_bytes(16 << 20);
    let app = match words[..] {
        ["calls"] | ["calls", "1"] | ["progress"] => router(Bench.into_server().build(), config),
        ["tasks", ttl] => {
            let tasks = TasksExtension::new()
                .capacity(10_000_000)
                .ttl_ms(Some(ttl.parse()?))
                .task_tools(["echo"]);
            let dispatcher = Bench.into_server().with_extension(Arc::new(tasks)).build();
            router(dispatcher, config)
        }
        _ => return Err("usage: [--defaults] (calls | progress | tasks TTL)".into()),
    };
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("listening {}", listener.local_addr()?.port());
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move {
            let listener = listener.tap_io(move |stream| {
                if !defaults {
                    let _ = stream.set_nodelay(true);
                }
            });
            axum::serve(listener, app).await
        });
        io::Result::Ok(())
    })?;
    io::copy(&mut io::stdin().by_ref(), &mut io::sink())?;
    Ok(())
}
