//! The console of a store without a server.

use std::process::ExitCode;

use outlive::{
    people::People,
    server::{Server, http::HttpConfig},
    store::open_people,
};
use outlive_console::Console;

use super::show::{Shown, show};
use crate::{
    error::{CliError, Kind, Result},
    print::talk,
    serve::config::{is_address, is_loopback},
    store::{Store, trouble, without_password},
};

/// Serves the console until Ctrl-C.
pub(super) async fn serve(url: String, listen: String, shown: Shown) -> Result<ExitCode> {
    if !is_address(&listen) || !is_loopback(&listen) {
        return Err(CliError::usage(format!(
            "--listen {listen} is not an address of this machine"
        ))
        .remedy("write --listen 127.0.0.1:PORT; a console for other machines needs a server"));
    }
    // Checks that the store exists and has the schema of this program.
    drop(Store::open(&url).await?);
    let people =
        People::open(open_people(&url).await.map_err(trouble)?).map_err(CliError::usage)?;
    let console = Console::store(people).build().map_err(CliError::usage)?;
    let path = console.sign_in_path().ok_or_else(|| {
        CliError::new(Kind::Failed, "the operating system provides no random bytes")
    })?;
    // Only its pages are used: it has no tools.
    let server = Server::builder("outlive-console", env!("CARGO_PKG_VERSION"));
    let server = server.build().map_err(CliError::usage)?;
    let serving = server
        .serve_http(listen.as_str(), HttpConfig::new().routes(console))
        .await
        .map_err(|error| CliError::usage(format_args!("cannot listen on {listen}: {error}")))?;
    let endpoint = serving.url();
    let origin = endpoint.strip_suffix("/mcp").unwrap_or(&endpoint);
    talk!("console of {}; Ctrl-C stops it", without_password(&url));
    show(&format!("{origin}{path}"), true, shown)?;
    serving.wait().await.map_err(|error| CliError::new(Kind::Failed, error))?;
    Ok(ExitCode::SUCCESS)
}
