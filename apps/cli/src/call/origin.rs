//! The origin of a saved call: its folder and the connection options.

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

/// Origin of a call. It has only names and paths: tokens are never saved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Origin {
    /// Time at which the call was first saved, in Unix milliseconds.
    pub(crate) created: Option<u64>,
    /// Working folder of a server that the client starts as a command.
    pub(crate) folder: Option<PathBuf>,
    /// Protocol version that the user chose.
    pub(crate) protocol_version: Option<String>,
    token_env: Option<String>,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

impl Origin {
    /// Returns the origin of a new call.
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

    /// Returns this origin with the current time as its creation time.
    pub(crate) fn created_now(&self) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { created: u64::try_from(now.as_millis()).ok(), ..self.clone() }
    }

    /// Returns the server of a saved call, with the original working folder.
    pub(crate) fn server(&self, call: &SavedCall) -> Result<Server> {
        let server = Server::read(&call.server)?;
        let Some(folder) = &self.folder else { return Ok(server) };
        if !fs::metadata(folder).is_ok_and(|folder| folder.is_dir()) {
            let place = folder.display();
            return Err(CliError::usage(format!(
                "the working folder {place} of the server no longer exists: {}",
                server.text
            ))
            .remedy("create the folder again, or name the task and its server: outlive tasks get TASK --server SERVER"));
        }
        Ok(server.in_folder(folder))
    }

    /// Returns the connection options of a saved call. Options on the current command line take
    /// precedence.
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

    /// Returns the working folder of the server, if the server is a command.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }
}
