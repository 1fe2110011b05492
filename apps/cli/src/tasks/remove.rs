//! The command `outlive tasks remove`.

use crate::{
    call::{
        saved_calls::{Handles, short},
        screen::Screen,
    },
    error::Result,
};
use std::process::ExitCode;

/// Deletes saved calls; their tasks keep running
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  outlive tasks remove 3f2a91c0\n  outlive tasks remove 3f2a91c0 77ab01de\n  outlive tasks remove --all"
)]
pub(super) struct Remove {
    /// Handles of the calls
    handles: Vec<String>,
    /// All saved calls
    #[arg(long, conflicts_with = "handles")]
    all: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn remove(args: &Remove) -> Result<ExitCode> {
    let screen = Screen::new();
    let handles = Handles::open(&screen);
    // Find all calls before deleting any, so that an unknown handle deletes nothing.
    let found = match (args.all, &args.handles[..]) {
        (true, _) => handles.all()?,
        (false, []) => vec![handles.find(None)?],
        (false, named) => {
            named.iter().map(|handle| handles.find(Some(handle))).collect::<Result<_>>()?
        }
    };
    for saved in &found {
        handles.forget(&saved.call.id);
        match args.json {
            true => {
                let removed = serde_json::json!({"handle": saved.call.id, "removed": true});
                screen.data(&removed.to_string());
            }
            false => screen.talk(&format!("removed: {}", short(&saved.call.id))),
        }
    }
    Ok(ExitCode::SUCCESS)
}
