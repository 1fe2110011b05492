//! Serves an example over stdio or HTTP.

use anyhow::{Context, Result, bail};
use outlive::server::{Server, http::HttpConfig};

/// Serves over stdio with `--stdio`, or over HTTP on `--port` (default 8000, 0 for a free port).
///
/// # Errors
///
/// If an argument is unknown or the address cannot be bound.
pub async fn serve(server: Server) -> Result<()> {
    Arguments::given().serve(server).await
}

/// Command line of an example with its own arguments.
#[derive(Debug)]
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Returns the arguments of this process.
    #[must_use]
    pub fn given() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// Removes an argument and returns its value.
    ///
    /// # Errors
    ///
    /// If the value is missing.
    pub fn take(&mut self, name: &str) -> Result<Option<String>> {
        let Some(at) = self.0.iter().position(|argument| argument == name) else { return Ok(None) };
        self.0.remove(at);
        let value = (at < self.0.len()).then(|| self.0.remove(at));
        value.map(Some).with_context(|| format!("`{name}` requires a value"))
    }

    /// Serves with the remaining arguments; see [`serve`].
    ///
    /// # Errors
    ///
    /// Same as [`serve`].
    pub async fn serve(mut self, server: Server) -> Result<()> {
        let port = match self.take("--port")? {
            Some(port) => port.parse().with_context(|| format!("`{port}` is not a valid port"))?,
            None => 8000,
        };
        let stdio = self.0.iter().any(|argument| argument == "--stdio");
        if let Some(other) = self.0.iter().find(|argument| *argument != "--stdio") {
            bail!("unknown argument `{other}`; use --stdio or --port PORT");
        }
        if stdio {
            return Ok(server.serve_stdio().await?);
        }
        let serving = server.serve_http(("127.0.0.1", port), HttpConfig::new()).await?;
        eprintln!("listening on {}", serving.url());
        eprintln!(
            "connect Claude Code:  claude mcp add --transport http example {}",
            serving.url()
        );
        eprintln!(
            "inspect it:           npx @modelcontextprotocol/inspector  (then Streamable HTTP, the URL above)"
        );
        Ok(serving.wait().await?)
    }
}
