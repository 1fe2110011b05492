//! A tool that is upgraded while calls are in progress. Handler revision 1 requests accounts at
//! GitHub and Google, revision 2 at GitHub and Microsoft. A call that moves to the other revision
//! keeps the input responses that both revisions request.
//!
//! Run with `cargo run -p outlive-examples --bin rolling-upgrade -- --revision 1 --keys FILE`, and a
//! second one with `--revision 2` and the same file, on another `--port`.

use anyhow::bail;
use outlive::{
    Form,
    server::{Durable, Result, SealKeys, Server, Tool},
};
use outlive_examples::Arguments;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema, Form)]
struct Account {
    /// Name of the account, not the password.
    login: String,
}

async fn revision_1(cx: Durable) -> Result<String> {
    let (github, google) = tokio::join!(
        cx.elicit::<Account>("github_login", "Enter your GitHub account"),
        cx.elicit::<Account>("google_login", "Enter your Google account"),
    );
    Ok(format!("linked {} at GitHub and {} at Google", github?.login, google?.login))
}

async fn revision_2(cx: Durable) -> Result<String> {
    let (github, microsoft) = tokio::join!(
        cx.elicit::<Account>("github_login", "Enter your GitHub account"),
        cx.elicit::<Account>("microsoft_login", "Enter your Microsoft account"),
    );
    Ok(format!("linked {} at GitHub and {} at Microsoft", github?.login, microsoft?.login))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = Arguments::given();
    let tool = match arguments.take("--revision")?.as_deref() {
        Some("1") => Tool::new("link_accounts", revision_1).handler_revision("1"),
        Some("2") | None => Tool::new("link_accounts", revision_2).handler_revision("2"),
        Some(other) => bail!("unknown revision {other}; use 1 or 2"),
    };
    let mut server = Server::builder("rolling-upgrade", "1.0.0")
        .tool(tool.description("Links the accounts of a user"));
    // Replicas that share a key file can open each other's request states. Without a file, the keys
    // are random.
    if let Some(file) = arguments.take("--keys")? {
        server = server.seal_keys(SealKeys::from_file(file)?);
    }
    arguments.serve(server.build()?).await
}
