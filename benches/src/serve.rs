//! The servers that are measured: `bench serve NAME`. All have one worker thread.

mod control_http;
mod control_stdio;

use std::io;

use anyhow::{Result, bail};
use outlive::server::Server;
use tokio::runtime::Runtime;

use crate::echo;

/// Runs a server until its standard input ends.
pub(crate) fn run(name: &str) -> Result<()> {
    match name {
        "control-http" => listen(control_http::start()),
        "outlive-http" => listen(outlive_http(echo::server()?)),
        "outlive-durable-http" => listen(outlive_http(echo::durable_server()?)),
        "control-stdio" => control_stdio::run(),
        "outlive-stdio" => outlive_stdio(),
        _ => bail!(
            "there is no server `{name}`; there are control-http, outlive-http, outlive-durable-http, control-stdio, outlive-stdio"
        ),
    }
}

/// Runs what listens, and tells its port.
#[expect(clippy::print_stdout, reason = "this is how the parent learns the port")]
fn listen(start: impl Future<Output = Result<(u16, impl Sized)>>) -> Result<()> {
    let runtime = runtime()?;
    let (port, _serving) = runtime.block_on(start)?;
    println!("listening {port}");
    // The parent never writes: this waits until it is gone.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

async fn outlive_http(server: Server) -> Result<(u16, impl Sized)> {
    let serving = server.serve_http("127.0.0.1:0", outlive::http::HttpConfig::new()).await?;
    Ok((serving.address().port(), serving))
}

fn outlive_stdio() -> Result<()> {
    Ok(runtime()?.block_on(echo::server()?.serve_stdio())?)
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}
