//! The command `outlive tasks remove`.

use crate::{
    call::{
        saved_calls::{Handles, short},
        screen::Screen,
    },
    error::Result,
};
use std::process::ExitCode;

/// Deletes handles, and leaves their tasks alone
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  outlive tasks remove 3f2a91c0\n  outlive tasks remove 3f2a91c0 77ab01de\n  outlive tasks remove --all"
)]
pub(super) struct Remove {
    /// Which calls
    handles: Vec<String>,
    /// All that are saved
    #[arg(long, conflicts_with = "handles")]
    all: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn remove(args: &Remove) -> Result<ExitCode> {
    let screen = Screen::new();
    let handles = Handles::open(&screen);
    // All are found before one is deleted.
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
                let forgotten = serde_json::json!({"handle": saved.call.id, "forgotten": true});
                screen.data(&forgotten.to_string());
            }
            false => screen.talk(&format!("forgotten: {}", short(&saved.call.id))),
        }
    }
    Ok(ExitCode::SUCCESS)
}
