//! Queries the status of saved calls: all servers in parallel, with one connection and a timeout
//! each.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use outlive::client::{Client, ServerErrorKind, tasks::TaskSnapshot};
use tokio::task::JoinSet;

use super::target::Taken;
use crate::call::{
    saved_calls::SavedHandle, saved_task::task_version, screen::Screen, server::Connection,
};

/// Timeout per server, so that an unreachable server does not delay the list.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time to close a connection.
const PARTING: Duration = Duration::from_secs(2);

/// Status of a task.
pub(super) enum Seen {
    /// The server's snapshot of the task.
    Task(Box<TaskSnapshot>),
    /// The server does not know the task.
    Gone,
    /// The server is unreachable, with the reason.
    Unreachable(String),
}

/// Connection that calls share: the server, its working folder, and the protocol version.
type Way = (String, Option<PathBuf>, String);

/// Queries the tasks among `calls`. Returns the status by index in `calls`.
pub(super) async fn look(
    calls: &[SavedHandle],
    given: &Connection,
    screen: &Arc<Screen>,
) -> BTreeMap<usize, Seen> {
    let mut groups: BTreeMap<Way, Vec<(usize, Taken)>> = BTreeMap::new();
    for (at, saved) in calls.iter().enumerate() {
        if let Some(version) = task_version(&saved.call) {
            let key = (saved.call.server.clone(), saved.origin.folder.clone(), version.to_owned());
            groups.entry(key).or_default().push((at, Taken::from(saved.clone())));
        }
    }
    let mut looking = JoinSet::new();
    for group in groups.into_values() {
        let (mut given, screen) = (given.clone(), Arc::clone(screen));
        given.without_login = true;
        looking.spawn(async move {
            let places: Vec<usize> = group.iter().map(|(at, _)| *at).collect();
            match tokio::time::timeout(TIMEOUT, at_server(group, &given, &screen)).await {
                Ok((seen, client)) => {
                    if let Some(client) = client {
                        let _ = tokio::time::timeout(PARTING, client.close()).await;
                    }
                    seen
                }
                Err(_) => {
                    let late = || Seen::Unreachable("no response within the timeout".to_owned());
                    places.into_iter().map(|at| (at, late())).collect()
                }
            }
        });
    }
    looking.join_all().await.into_iter().flatten().collect()
}

/// Queries the tasks of one server. The caller closes the returned connection.
async fn at_server(
    group: Vec<(usize, Taken)>,
    given: &Connection,
    screen: &Arc<Screen>,
) -> (Vec<(usize, Seen)>, Option<Client>) {
    let Some((_, first)) = group.first() else { return (Vec::new(), None) };
    let connected = async {
        first.connection(given).connect(&first.server()?, screen, |builder| builder).await
    };
    let client = match connected.await {
        Ok(client) => client,
        Err(trouble) => {
            let why = trouble.to_string();
            let lost = |(at, _)| (at, Seen::Unreachable(why.clone()));
            return (group.into_iter().map(lost).collect(), None);
        }
    };
    let mut all = Vec::new();
    for (at, call) in &group {
        let looked = match call.resume(&client).await {
            Ok(handle) => handle.get().await,
            Err(error) => Err(error),
        };
        let seen = match looked {
            Ok(Some(task)) => Seen::Task(Box::new(task)),
            Ok(None) => continue,
            Err(error) if error.kind() == Some(ServerErrorKind::TaskGone) => Seen::Gone,
            Err(error) => Seen::Unreachable(error.to_string()),
        };
        all.push((*at, seen));
    }
    (all, Some(client))
}
