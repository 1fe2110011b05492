//! The console that the commands of `outlive inbox` use.

use std::sync::Arc;

use super::requests::{self, Found};
use crate::{
    call::{screen::Screen, server::Connection},
    console::{ConsoleClient, Place},
    error::Result,
};

/// Connection to a console.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct At {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    connection: Connection,
    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// An open console and the screen of the user.
pub(super) struct Desk {
    pub(super) console: ConsoleClient,
    pub(super) screen: Arc<Screen>,
}

impl At {
    /// Signs in, and shows progress until the console responds.
    pub(super) async fn open(&self) -> Result<Desk> {
        let screen = Screen::new();
        let address = self.place.find()?;
        screen.begin(&format!("reads {}", address.console));
        let opened = ConsoleClient::open(address, &self.connection, &screen).await;
        if opened.is_err() {
            screen.end();
        }
        Ok(Desk { console: opened?, screen })
    }
}

impl Desk {
    /// Finds a request. Ends the progress line.
    pub(super) async fn find(&self, word: &str) -> Result<Found> {
        let found = requests::find(&self.console, word).await;
        self.screen.end();
        found
    }
}
