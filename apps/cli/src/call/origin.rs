//! Where a call was made and how its server was reached, as it is saved with the call's handle.

use std::{
    env, fs,
    path::{Path, PathBuf, absolute},
    time::{SystemTime, UNIX_EPOCH},
};

use outlive::{client::saved::SavedCall, wire::Version};
use serde::{Deserialize, Serialize};

use super::{
    saved_task::task_version,
    server::{Connection, Server},
};
use crate::error::{CliError, Result};

/// Where a call comes from. It has names and paths only: a token is never saved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Origin {
    /// When the call was saved first, in milliseconds since 1970.
    pub(crate) created: Option<u64>,
    /// The folder in which a server that is a command was started.
    pub(crate) folder: Option<PathBuf>,
    /// The protocol version that the user has named.
    pub(crate) protocol_version: Option<String>,
    token_env: Option<String>,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

impl Origin {
    /// The origin of a call that is made now.
    pub(crate) fn new(server: &Server, connection: &Connection) -> Self {
        let whole = |file: &PathBuf| absolute(file).unwrap_or_else(|_| file.clone());
        Self {
            created: None,
            folder: server.url().is_none().then(|| env::current_dir().ok()).flatten(),
            protocol_version: connection.protocol_version.clone(),
            token_env: connection.token_env.clone(),
            token_file: connection.token_file.as_ref().map(whole),
            ca_file: connection.ca_file.as_ref().map(whole),
        }
    }

    /// The same, for a call that is saved for the first time.
    pub(crate) fn created_now(&self) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { created: u64::try_from(now.as_millis()).ok(), ..self.clone() }
    }

    /// The server of a saved call, to be started where it was started before.
    pub(crate) fn server(&self, call: &SavedCall) -> Result<Server> {
        let server = Server::read(&call.server)?;
        let Some(folder) = &self.folder else { return Ok(server) };
        if !fs::metadata(folder).is_ok_and(|folder| folder.is_dir()) {
            let place = folder.display();
            return Err(CliError::usage(format!(
                "the folder {place} is gone, in which the server was started: {}",
                server.text
            ))
            .remedy("make it again, or name the task and its server: outlive tasks get TASK --server SERVER"));
        }
        Ok(server.in_folder(folder))
    }

    /// How to reach the server of a saved call: as the user says now, else as the call was made.
    pub(crate) fn connection(&self, given: &Connection, call: &SavedCall) -> Connection {
        let mut connection = given.clone();
        if !connection.has_credentials() {
            connection.token_env.clone_from(&self.token_env);
            connection.token_file.clone_from(&self.token_file);
        }
        connection.ca_file = connection.ca_file.or_else(|| self.ca_file.clone());
        let made_on = task_version(call).or(self.protocol_version.as_deref());
        let made_on = made_on.filter(|version| Version::parse(version).is_some());
        connection.protocol_version =
            connection.protocol_version.or_else(|| made_on.map(str::to_owned));
        connection
    }

    /// The folder in which the server is started, if it is a command.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }
}
