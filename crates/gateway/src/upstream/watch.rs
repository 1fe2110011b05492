//! Background tasks of an upstream connection: input requests, notifications, and its end.

use std::{
    process::ExitStatus,
    sync::{Arc, Weak},
};

use outlive::client::{
    Client,
    notifications::{ListenFilter, Notifications, ServerNotification},
    relay::{RoutedEvent, RoutedInputs},
};
use tokio::sync::{mpsc, oneshot};

use super::{connection::Connection, state::UpstreamState};

/// Starts the background tasks of a connection.
pub(super) fn start_watching(
    state: &Arc<UpstreamState>,
    connection: &Arc<Connection>,
    routed: RoutedInputs,
    on_closed: impl FnOnce(&Arc<Connection>, Option<ExitStatus>) + Send + 'static,
) {
    let weak = || (Arc::downgrade(state), Arc::downgrade(connection));
    connection.spawn(route(Arc::downgrade(connection), routed));
    let (to, of) = weak();
    let notifications = connection.client.notifications();
    if let Some(flushes) = connection.take_flushes() {
        connection.spawn(hear(to, of, notifications, flushes));
    }
    let (to, of) = weak();
    connection.spawn(listen(to, of, connection.client.clone()));
    let (_, of) = weak();
    let client = connection.client.clone();
    connection.spawn(async move {
        let status = client.closed().await;
        if let Some(connection) = of.upgrade() {
            on_closed(&connection, status);
        }
    });
}

/// Assigns the input requests that arrive on no call's own stream.
async fn route(connection: Weak<Connection>, mut routed: RoutedInputs) {
    while let Some(event) = routed.next().await {
        let Some(connection) = connection.upgrade() else { return };
        // The call that carries a withdrawn one waits for `RelayInput::withdrawn`.
        if let RoutedEvent::Input(input) = event {
            connection.carrier.route(input);
        }
    }
}

/// Handles the notifications outside of calls. A flush is answered when none is left.
async fn hear(
    state: Weak<UpstreamState>,
    connection: Weak<Connection>,
    mut notifications: Notifications,
    mut flushes: mpsc::Receiver<oneshot::Sender<()>>,
) {
    loop {
        let notification = tokio::select! {
            biased;
            notification = notifications.next() => notification,
            Some(done) = flushes.recv() => {
                // The call may have been cancelled.
                let _ = done.send(());
                continue;
            }
        };
        let Some(notification) = notification else { return };
        let (Some(state), Some(connection)) = (state.upgrade(), connection.upgrade()) else {
            return;
        };
        handle(&state, &connection, notification);
    }
}

fn handle(
    state: &Arc<UpstreamState>,
    connection: &Arc<Connection>,
    notification: ServerNotification,
) {
    match notification {
        ServerNotification::Reconnected => {
            restore_log_level(connection);
            state.events.lists_changed(state, connection);
        }
        ServerNotification::ToolsChanged
        | ServerNotification::PromptsChanged
        | ServerNotification::ResourcesChanged => state.events.lists_changed(state, connection),
        ServerNotification::ResourceUpdated(uri) => {
            state.events.resource_updated(state, connection, &uri);
        }
        ServerNotification::Log(message) => {
            let data = outlive::text::json(message.data.get()).into_owned();
            if !connection.carrier.log(message) {
                let settings = state.settings();
                tracing::debug!(upstream = &*settings.name, data, "message of the upstream");
            }
        }
        _ => {}
    }
}

/// Sets the log level again in a new session of the upstream.
fn restore_log_level(connection: &Arc<Connection>) {
    if let Some(level) = connection.forget_log_level() {
        let of = Arc::downgrade(connection);
        connection.spawn(async move {
            if let Some(connection) = of.upgrade() {
                connection.raise_log_level(level).await;
            }
        });
    }
}

/// Listens for changes of the lists, where the protocol version needs a request for that.
async fn listen(state: Weak<UpstreamState>, connection: Weak<Connection>, client: Client) {
    // Legacy servers notify all clients.
    if client.is_older().await.unwrap_or(true) {
        return;
    }
    let filter = ListenFilter::new().tools().prompts().resources();
    if let Ok(mut subscription) = client.listen(filter).await {
        while let Some(notification) = subscription.next().await {
            let (Some(state), Some(connection)) = (state.upgrade(), connection.upgrade()) else {
                return;
            };
            handle(&state, &connection, notification);
        }
    }
    // An upstream without subscriptions is listed again from time to time, while a client listens.
    if let Some(connection) = connection.upgrade() {
        connection.set_unwatched();
    }
}
