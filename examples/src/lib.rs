//! What the example servers share: they serve HTTP, or stdio if told so.

use anyhow::{Result, bail};
use outlive::{http::HttpConfig, server::Server};

/// Serves a server as the command line says: `--stdio`, or HTTP on `--port` (8000 by default, 0
/// for any free one).
///
/// # Errors
///
/// When an argument is none of those, or the address cannot be used.
pub async fn serve(server: Server) -> Result<()> {
    let mut port = 8000;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--stdio" => return Ok(server.serve_stdio().await?),
            "--port" => port = arguments.next().unwrap_or_default().parse()?,
            other => bail!("unknown argument `{other}`; there are --stdio and --port PORT"),
        }
    }
    let serving = server.serve_http(("127.0.0.1", port), HttpConfig::new()).await?;
    eprintln!("listening on {}", serving.url());
    eprintln!("connect Claude Code:  claude mcp add --transport http example {}", serving.url());
    eprintln!(
        "inspect it:           npx @modelcontextprotocol/inspector  (then Streamable HTTP, the URL above)"
    );
    Ok(serving.until_stopped().await?)
}
