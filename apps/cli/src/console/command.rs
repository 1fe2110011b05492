//! The command `outlive console`.

use std::process::ExitCode;

use outlive_console::sign_in_key;

use super::{
    address::{Address, Place},
    of_store,
    show::{Shown, show},
};
use crate::{
    error::{CliError, Kind, Result},
    runtime::block_on,
    store,
};

/// Opens the console of a server in the browser.
///
/// On the machine of a server without tokens, the address signs the browser in: once, within ten
/// minutes. People of other servers sign in there. With --store, the program serves a console for
/// the operator of a store, which decides nothing for people.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive console                                     the server of this folder
  outlive console --server https://ops.example.com/mcp
  outlive console --store                             the store of this folder, without its server
  outlive console --store postgres://outlive@db/outlive

A user who can read the data folder of a server without tokens can sign in to its console.")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Serves a console of this store, without a server [default: the store of this folder]
    #[arg(long, value_name = "URL", num_args = 0..=1, conflicts_with_all = ["server", "path"])]
    store: Option<Option<String>>,
    /// With --store, the address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", requires = "store", default_value = "127.0.0.1:0")]
    listen: String,
    /// Prints the address without opening it
    #[arg(long)]
    no_browser: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let shown = Shown { opens: !args.no_browser, json: args.json };
    match args.store {
        Some(url) => {
            let url = store::url_or_own(url)?;
            block_on(Box::pin(of_store::serve(url, args.listen, shown)))
        }
        None => block_on(Box::pin(async move { open(args.place.find()?, shown) })),
    }
}

/// Shows the address of the console of a server, which signs the browser in where it can.
fn open(Address { console, keys, .. }: Address, shown: Shown) -> Result<ExitCode> {
    let url = match &keys {
        Some(keys) => {
            let key = sign_in_key(keys).ok_or_else(|| {
                CliError::new(Kind::Failed, "the operating system provides no random bytes")
            })?;
            format!("{console}/in/{key}")
        }
        None => format!("{console}/"),
    };
    show(&url, keys.is_some(), shown)?;
    Ok(ExitCode::SUCCESS)
}
