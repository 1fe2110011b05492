//! What is taken up: a saved call, or a task of a server by its id.

use outlive::client::{Client, Error, saved::CallStage, tasks::TaskHandle};
use serde_json::{Value, json};

use super::describe::described;
use crate::{
    call::{
        saved_calls::{Handles, SavedHandle, go_on, short},
        server::{Connection, Server},
    },
    error::Result,
};

/// A call that somebody goes on with.
#[derive(Clone)]
pub(super) enum Taken {
    /// It is saved here.
    Saved(Box<SavedHandle>),
    /// Nothing of it is saved here.
    Task { server: String, id: String },
}

impl Taken {
    /// The one that is saved and meant.
    pub(super) fn saved(handles: &Handles, named: Option<&str>) -> Result<Self> {
        handles.find(named).map(Self::from)
    }

    pub(super) fn task(server: &str, id: &str) -> Self {
        Self::Task { server: server.to_owned(), id: id.to_owned() }
    }

    pub(super) fn server(&self) -> Result<Server> {
        match self {
            Self::Saved(saved) => saved.origin.server(&saved.call),
            Self::Task { server, .. } => Server::read(server),
        }
    }

    /// How to get to its server: as the user says, else as it was made.
    pub(super) fn connection(&self, given: &Connection) -> Connection {
        match self {
            Self::Saved(saved) => saved.origin.connection(given, &saved.call),
            Self::Task { .. } => given.clone(),
        }
    }

    /// A handle on it.
    pub(super) async fn resume(&self, client: &Client) -> Result<TaskHandle, Error> {
        match self {
            Self::Saved(saved) => client.resume(saved.call.clone()).await,
            Self::Task { id, .. } => client.task(id).await,
        }
    }

    /// Whether there is a task, as far as is known here.
    pub(super) fn is_task(&self) -> bool {
        match self {
            Self::Saved(saved) => matches!(saved.call.stage, CallStage::Task(_)),
            Self::Task { .. } => true,
        }
    }

    /// Whether it is over, as far as is known here.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Saved(saved) if saved.call.is_terminal())
    }

    /// What it is called where little room is.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Saved(saved) => short(&saved.call.id),
            Self::Task { id, .. } => id,
        }
    }

    /// The tool that was called, or what else it is known by.
    pub(super) fn title(&self) -> &str {
        match self {
            Self::Saved(saved) => &saved.call.tool,
            Self::Task { id, .. } => id,
        }
    }

    /// The server, if nothing is saved here.
    pub(super) fn elsewhere(&self) -> Option<&str> {
        match self {
            Self::Saved(_) => None,
            Self::Task { server, .. } => Some(server),
        }
    }

    /// The command that goes on with it.
    pub(super) fn command(&self, how: &str) -> String {
        match self {
            Self::Saved(saved) => go_on(how, &saved.call.id, None),
            Self::Task { server, id } => go_on(how, id, Some(server)),
        }
    }

    /// What is known of it here, as plain JSON.
    pub(super) fn described(&self) -> Value {
        match self {
            Self::Saved(saved) => described(saved),
            Self::Task { server, id } => {
                json!({"handle": id, "server": server, "state": "task", "task": id})
            }
        }
    }
}

impl From<SavedHandle> for Taken {
    fn from(saved: SavedHandle) -> Self {
        Self::Saved(Box::new(saved))
    }
}
