//! `outlive inbox link`.

use std::process::ExitCode;

use serde::Deserialize;
use serde_json::json;

use super::desk::{At, Desk};
use crate::error::Result;

/// Creates an answer link: its holder votes once on one request, without signing in.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive inbox link 4f2a
  outlive inbox link 4f2a --to ada --expires 2h

The tool must allow links: approve = { …, links = true }. An operator creates links for the people of the request, \
other people only for themselves. A link ends when the request is settled, and at the latest after a day.")]
pub(super) struct Args {
    /// Task ID or its unique prefix; TASK/KEY if the task has several requests
    #[arg(value_name = "REQUEST")]
    request: String,
    /// Person who votes with the link; for a request to a scope, the name of a channel
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    /// Time after which the link ends: 30m, 2h
    #[arg(long, value_name = "SPAN")]
    expires: Option<String>,
    #[command(flatten)]
    at: At,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    let desk = args.at.open().await?;
    let created = create(&desk, &args).await;
    desk.console.close().await;
    created
}

async fn create(desk: &Desk, args: &Args) -> Result<ExitCode> {
    #[derive(Deserialize)]
    struct Link {
        url: String,
    }
    let found = desk.find(&args.request).await?;
    let body = json!({"to": args.to, "expires": args.expires});
    let reply = desk.console.post(&format!("{}/link", found.request.path()), &body).await?;
    let Link { url } = reply.json()?;
    desk.screen.data(&if args.at.json { reply.text() } else { url });
    Ok(ExitCode::SUCCESS)
}
