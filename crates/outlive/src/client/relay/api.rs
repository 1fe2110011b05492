//! State of a connection, for programs that relay requests.

use std::{process::ExitStatus, time::Duration};

use outlive_transport::client::TransportError;
use outlive_wire::{Method, SubscribeRequestParams, Version};

use crate::client::{
    attempt::Wanted,
    core::Client,
    error::{ClientError, Error, Result},
    link::Link,
    send::send,
    server_info::ServerInfo,
};

/// Time that a process has to exit after its output ended.
const EXIT_WAIT: Duration = Duration::from_secs(1);

/// State of the current connection of a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionState {
    /// Negotiated protocol version.
    pub protocol_version: Version,
    /// Name, capabilities and instructions of the server.
    pub server: ServerInfo,
    /// Whether requests can be sent. Always true over HTTP.
    pub is_open: bool,
    /// ID of the server's process, if the client started it and it runs.
    pub process_id: Option<u32>,
    /// Whether the server assigned a session over HTTP.
    pub has_session: bool,
}

impl Client {
    /// Returns the state of the current connection, without connecting.
    pub async fn connection(&self) -> Option<ConnectionState> {
        let here = self.core.current()?;
        let (process_id, has_session) = match &here.link {
            Link::Http { session, .. } => (None, session.is_some()),
            Link::Pipe { process, .. } => {
                (process.lock().await.as_ref().and_then(|process| process.id()), false)
            }
        };
        Some(ConnectionState {
            protocol_version: here.rules.version,
            server: here.server.clone(),
            is_open: here.is_open(),
            process_id,
            has_session,
        })
    }

    /// Completes when the pipe of the current connection has closed, with the status of its
    /// process if it has exited. Over HTTP it never completes. Does not keep the connection open.
    pub async fn closed(&self) -> Option<ExitStatus> {
        let here = self.core.current()?;
        let closed = match &here.link {
            Link::Http { .. } => return std::future::pending().await,
            Link::Pipe { pipe, .. } => pipe.closed(),
        };
        let weak = std::sync::Arc::downgrade(&here);
        drop(here);
        closed.await;
        let here = weak.upgrade()?;
        let Link::Pipe { process, .. } = &here.link else { return None };
        process.lock().await.as_mut()?.exited(EXIT_WAIT).await
    }

    /// Closes the connection as [`Client::close`] does, but leaves the session of a legacy server, in
    /// which another process continues requests: [`Client::resume_at`].
    pub async fn close_and_leave_session(&self) {
        self.core.close(false).await;
    }

    /// Returns why the client itself closed the pipe of the current connection, because the server
    /// broke the protocol. Returns `None` if the pipe is open, or has closed in another way.
    pub fn pipe_error(&self) -> Option<TransportError> {
        let here = self.core.current()?;
        match &here.link {
            Link::Pipe { pipe, .. } => pipe.error().map(TransportError::after_sending),
            Link::Http { .. } => None,
        }
    }

    /// Subscribes to the changes of a resource of a legacy server, which arrive as
    /// [`Client::notifications`]. Since 2026-07-28 see [`Client::listen`].
    ///
    /// # Errors
    ///
    /// If the server or its protocol version does not support it.
    pub async fn subscribe_resource(&self, uri: impl Into<String>) -> Result<()> {
        self.about_resource(Method::ResourcesSubscribe, uri.into()).await
    }

    /// Ends a subscription of [`Client::subscribe_resource`].
    ///
    /// # Errors
    ///
    /// If the server or its protocol version does not support it.
    pub async fn unsubscribe_resource(&self, uri: impl Into<String>) -> Result<()> {
        self.about_resource(Method::ResourcesUnsubscribe, uri.into()).await
    }

    /// Waits until [`Client::notifications`] has the notifications that the server wrote to a pipe
    /// before a response. To be called after the response was received.
    pub async fn flush_notifications(&self) {
        if let Some(here) = self.core.current()
            && let Link::Pipe { pipe, .. } = &here.link
        {
            pipe.others_handled().await;
        }
    }

    /// Returns the number of messages that the server should not have sent.
    pub fn unexpected_messages(&self) -> crate::client::unexpected::UnexpectedMessages {
        let mut unexpected = self.core.dispatch.unexpected.get();
        if let Some(here) = self.core.current()
            && let Link::Pipe { pipe, .. } = &here.link
        {
            unexpected.responses += pipe.unread_responses();
        }
        unexpected
    }

    async fn about_resource(&self, method: Method, uri: String) -> Result<()> {
        let here = self.core.established().await?;
        let resources = here.server.capabilities.resources.as_ref();
        if !here.rules.has(method) || resources.is_none_or(|it| it.subscribe != Some(true)) {
            return Err(Error::not_offered(
                "the server does not support subscriptions to single resources",
            ));
        }
        let params = serde_json::to_string(&SubscribeRequestParams { uri, meta: None })
            .map_err(|error| ClientError::BadArguments(error.to_string()))?;
        send(&self.core, &Wanted::new(&self.core, method, params)).await?.result()?;
        Ok(())
    }
}
