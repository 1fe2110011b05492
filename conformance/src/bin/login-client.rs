//! Our client with a protected server: `login-client VERSION URL STEP…`, with `DPOP=1` for
//! sender-constrained tokens.
//!
//! A step is the name of a tool, a number of seconds to wait, or `logout`. For each tool the
//! program prints one line of JSON with the result or the error, as the clients in
//! `conformance/logins` do. Pages are opened with the program in `BROWSER`.

#![expect(clippy::print_stdout, reason = "one line per call is the output of the program")]

use std::{
    env,
    error::Error,
    process::{Command, Stdio},
    time::Duration,
};

use outlive::{
    auth::client::{LoopbackLogin, OAuth},
    client::{Client, request::result_text},
    wire::Version,
};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: login-client VERSION URL STEP…";
    let words: Vec<String> = env::args().skip(1).collect();
    let [version, url, steps @ ..] = words.as_slice() else { return Err(usage.into()) };
    let browser = env::var("BROWSER")?;
    let login = LoopbackLogin::new().without_browser().on_url(move |page| open(&browser, page));
    let mut oauth = OAuth::builder(url).client_name("Outlive (library)").login(login);
    if env::var_os("DPOP").is_some() {
        oauth = oauth.dpop();
    }
    let oauth = oauth.build();
    let client = Client::builder("login-client", "1")
        .protocol_version(Version::parse(version).ok_or(usage)?)
        .token_source(oauth.clone());
    let client = match client.connect(url.as_str()).await {
        Ok(client) => client,
        Err(error) => {
            println!("{}", json!({"error": error.to_string()}));
            return Ok(());
        }
    };
    for step in steps {
        if let Ok(seconds) = step.parse() {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            continue;
        }
        let line = match step.as_str() {
            "logout" => json!({"logout": oauth.logout().await?}),
            tool => match client.call_tool(tool, json!({})).await {
                Ok(result) => json!({"tool": tool, "text": result_text(&result)}),
                Err(error) => json!({"tool": tool, "error": error.to_string()}),
            },
        };
        println!("{line}");
    }
    client.close().await;
    Ok(())
}

fn open(browser: &str, page: &str) {
    let mut words = browser.split_whitespace();
    let Some(program) = words.next() else { return };
    let started = Command::new(program)
        .args(words)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    if let Err(error) = started {
        eprintln!("no browser: {error}");
    }
}
