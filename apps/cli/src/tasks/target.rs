//! The target of a command: a saved call, or a task of a server by its ID.

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

/// A call that a command operates on.
#[derive(Clone)]
pub(super) enum Taken {
    /// A saved call.
    Saved(Box<SavedHandle>),
    /// A task without a saved call.
    Task { server: String, id: String },
}

impl Taken {
    /// Finds a saved call by its handle, or the only one.
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

    /// Returns the connection options. Options on the command line take precedence over saved ones.
    pub(super) fn connection(&self, given: &Connection) -> Connection {
        match self {
            Self::Saved(saved) => saved.origin.connection(given, &saved.call),
            Self::Task { .. } => given.clone(),
        }
    }

    /// Resumes the call, and returns its handle.
    pub(super) async fn resume(&self, client: &Client) -> Result<TaskHandle, Error> {
        match self {
            Self::Saved(saved) => client.resume(saved.call.clone()).await,
            Self::Task { id, .. } => client.task(id).await,
        }
    }

    /// Returns whether the call is a task, as last saved.
    pub(super) fn is_task(&self) -> bool {
        match self {
            Self::Saved(saved) => matches!(saved.call.stage, CallStage::Task(_)),
            Self::Task { .. } => true,
        }
    }

    /// Returns whether the call has ended, as last saved.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Saved(saved) if saved.call.is_terminal())
    }

    /// Returns the short name.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Saved(saved) => short(&saved.call.id),
            Self::Task { id, .. } => id,
        }
    }

    /// Returns the name of the tool, or the task ID if the tool is unknown.
    pub(super) fn title(&self) -> &str {
        match self {
            Self::Saved(saved) => &saved.call.tool,
            Self::Task { id, .. } => id,
        }
    }

    /// Returns the server of a task without a saved call.
    pub(super) fn elsewhere(&self) -> Option<&str> {
        match self {
            Self::Saved(_) => None,
            Self::Task { server, .. } => Some(server),
        }
    }

    /// Returns the command that continues with the call.
    pub(super) fn command(&self, how: &str) -> String {
        match self {
            Self::Saved(saved) => go_on(how, &saved.call.id, None),
            Self::Task { server, id } => go_on(how, id, Some(server)),
        }
    }

    /// Describes the call as JSON, from saved data only.
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
