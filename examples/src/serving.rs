//! How an example is served: standard output or HTTP.

use anyhow::{Context, Result, bail};
use outlive::server::{Server, http::HttpConfig};

/// Serves a server as the command line says: `--stdio`, or HTTP on `--port` (8000 by default, 0
/// for any free one).
///
/// # Errors
///
/// When an argument is none of those, or the address cannot be used.
pub async fn serve(server: Server) -> Result<()> {
    Arguments::given().serve(server).await
}

/// The command line of an example that has arguments of its own.
#[derive(Debug)]
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Those that this program was started with.
    #[must_use]
    pub fn given() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// Takes an argument and its value out, if it was given.
    ///
    /// # Errors
    ///
    /// When the value is missing.
    pub fn take(&mut self, name: &str) -> Result<Option<String>> {
        let Some(at) = self.0.iter().position(|argument| argument == name) else { return Ok(None) };
        self.0.remove(at);
        let value = (at < self.0.len()).then(|| self.0.remove(at));
        value.map(Some).with_context(|| format!("`{name}` needs a value after it"))
    }

    /// Serves a server as the rest of the command line says; see [`serve`].
    ///
    /// # Errors
    ///
    /// As with [`serve`].
    pub async fn serve(mut self, server: Server) -> Result<()> {
        let port = match self.take("--port")? {
            Some(port) => port.parse().with_context(|| format!("`{port}` is no port"))?,
            None => 8000,
        };
        let stdio = self.0.iter().any(|argument| argument == "--stdio");
        if let Some(other) = self.0.iter().find(|argument| *argument != "--stdio") {
            bail!("unknown argument `{other}`; there are --stdio and --port PORT");
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
