//! What is taken up: a call that is written down here, or a task of a server by its name.

use outlive::client::{Client, Error, SavedCall, Stage, TaskHandle};
use serde_json::{Value, json};

use super::list::described;
use crate::{
    call::{
        handles::{Handles, go_on, short},
        server::Server,
    },
    trouble::Result,
};

/// A call that somebody goes on with.
#[derive(Clone)]
pub(super) enum Taken {
    /// It is written down here.
    Saved(Box<SavedCall>),
    /// Nothing is written down of it.
    Task { server: String, id: String },
}

impl Taken {
    /// The one that is written down and meant.
    pub(super) fn saved(handles: &Handles, named: Option<&str>) -> Result<Self> {
        handles.find(named).map(Self::from)
    }

    pub(super) fn task(server: &str, id: &str) -> Self {
        Self::Task { server: server.to_owned(), id: id.to_owned() }
    }

    pub(super) fn server(&self) -> Result<Server> {
        match self {
            Self::Saved(saved) => Server::read(&saved.server),
            Self::Task { server, .. } => Server::read(server),
        }
    }

    /// A handle on it.
    pub(super) async fn resume(&self, client: &Client) -> Result<TaskHandle, Error> {
        match self {
            Self::Saved(saved) => client.resume((**saved).clone()).await,
            Self::Task { id, .. } => client.task(id).await,
        }
    }

    /// Whether there is a task, as far as is known here.
    pub(super) fn is_task(&self) -> bool {
        match self {
            Self::Saved(saved) => matches!(saved.stage, Stage::Task(_)),
            Self::Task { .. } => true,
        }
    }

    /// What it is called where little room is.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Saved(saved) => short(&saved.id),
            Self::Task { id, .. } => id,
        }
    }

    /// The command that goes on with it.
    pub(super) fn command(&self, how: &str) -> String {
        match self {
            Self::Saved(saved) => go_on(how, &saved.id, None),
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

impl From<SavedCall> for Taken {
    fn from(saved: SavedCall) -> Self {
        Self::Saved(Box::new(saved))
    }
}
