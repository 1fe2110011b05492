//! A server of turbomcp, as the benchmark runs it: `(calls | progress | tasks TTL)`.
//!
//! It says `listening PORT` on standard output and ends when its standard input does. With
//! `--defaults` it is served as its documentation shows it; without, small answers do not wait for
//! the client's acknowledgement.

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
    /// Says what it is told
    #[tool]
    async fn echo(&self, message: String) -> McpResult<String> {
        Ok(message)
    }

    /// Reports so many steps
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
    // The default counts every open stream and refuses the 1,025th.
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
