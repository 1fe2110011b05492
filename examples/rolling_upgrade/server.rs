//! A tool that is replaced while calls are on their way. Revision 1 asks for accounts at GitHub and
//! Google, revision 2 for accounts at GitHub and Microsoft. A call that began on the one and comes
//! back to the other keeps what both of them ask for.
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
    /// The name of the account. No password.
    login: String,
}

async fn revision_1(cx: Durable) -> Result<String> {
    let (github, google) = tokio::join!(
        cx.elicit::<Account>("github_login", "Who are you at GitHub?"),
        cx.elicit::<Account>("google_login", "Who are you at Google?"),
    );
    Ok(format!("linked {} at GitHub and {} at Google", github?.login, google?.login))
}

async fn revision_2(cx: Durable) -> Result<String> {
    let (github, microsoft) = tokio::join!(
        cx.elicit::<Account>("github_login", "Who are you at GitHub?"),
        cx.elicit::<Account>("microsoft_login", "Who are you at Microsoft?"),
    );
    Ok(format!("linked {} at GitHub and {} at Microsoft", github?.login, microsoft?.login))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = Arguments::given();
    let tool = match arguments.take("--revision")?.as_deref() {
        Some("1") => Tool::new("link_accounts", revision_1).handler_revision("1"),
        Some("2") | None => Tool::new("link_accounts", revision_2).handler_revision("2"),
        Some(other) => bail!("there is no revision {other}; choose 1 or 2"),
    };
    let mut server = Server::builder("rolling-upgrade", "1.0.0")
        .tool(tool.description("Links the accounts of a user"));
    // What one replica has sealed, the others can open. Without a file the keys are this process's.
    if let Some(file) = arguments.take("--keys")? {
        server = server.seal_keys(SealKeys::from_file(file)?);
    }
    arguments.serve(server.build()?).await
}
