//! Change notifications as a stream, for all protocol versions.
//!
//! Since 2026-07-28 a subscription is a request whose stream stays open. Legacy servers notify all
//! clients of list changes, and clients subscribe to each resource.

use std::{pin::Pin, sync::Arc, time::Duration};

use outlive_protocol::{Incoming, IncomingKind, era::client::Outgoing};
use outlive_wire::{
    Method, SubscribeRequestParams, SubscriptionFilter,
    SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams,
};
use tokio::sync::broadcast;

use super::{
    attempt::Wanted,
    core::Core,
    error::{ClientError, Error, Result},
    exchange::{Exchange, Failed},
    notice::ServerNotification,
    send::{jitter, send},
};

/// Delay before a broken subscription is reopened. Doubles with each attempt.
const PAUSE: Duration = Duration::from_millis(200);

/// Changes to subscribe to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ListenFilter {
    wanted: SubscriptionFilter,
}

impl ListenFilter {
    /// Creates an empty filter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds changes of the tool list.
    pub fn tools(mut self) -> Self {
        self.wanted.tools_list_changed = Some(true);
        self
    }

    /// Adds changes of the prompt list.
    pub fn prompts(mut self) -> Self {
        self.wanted.prompts_list_changed = Some(true);
        self
    }

    /// Adds changes of the resource list.
    pub fn resources(mut self) -> Self {
        self.wanted.resources_list_changed = Some(true);
        self
    }

    /// Adds changes of a resource.
    pub fn resource(mut self, uri: impl Into<String>) -> Self {
        self.wanted.resource_subscriptions.get_or_insert_default().push(uri.into());
        self
    }

    fn wants(&self, notice: &ServerNotification) -> bool {
        match notice {
            ServerNotification::ToolsChanged => self.wanted.tools_list_changed == Some(true),
            ServerNotification::PromptsChanged => self.wanted.prompts_list_changed == Some(true),
            ServerNotification::ResourcesChanged => {
                self.wanted.resources_list_changed == Some(true)
            }
            ServerNotification::ResourceUpdated(uri) => self
                .wanted
                .resource_subscriptions
                .iter()
                .flatten()
                .any(|wanted| uri == wanted || uri.starts_with(wanted.as_str())),
            ServerNotification::Reconnected => true,
            _ => false,
        }
    }
}

/// Stream of changes. Changes may be lost before [`ServerNotification::Reconnected`], so read the
/// affected lists and resources again.
#[derive(Debug)]
pub struct Subscription {
    core: Arc<Core>,
    filter: ListenFilter,
    agreed: SubscriptionFilter,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Stream(Box<Exchange>),
    Told(broadcast::Receiver<ServerNotification>),
}

impl Subscription {
    pub(crate) async fn open(core: &Arc<Core>, filter: ListenFilter) -> Result<Self> {
        // Subscribed before the request, so that no notification is lost.
        let told = core.dispatch.notices();
        let here = core.established().await?;
        if here.rules.has(Method::Listen) {
            let (exchange, agreed) = listen(core, &filter).await?;
            let way = Way::Stream(Box::new(exchange));
            return Ok(Self { core: Arc::clone(core), filter, agreed, way });
        }
        let agreed = subscribe(core, &filter).await?;
        Ok(Self { core: Arc::clone(core), filter, agreed, way: Way::Told(told) })
    }

    /// Returns the filter that the server accepted, which may be smaller than requested.
    pub fn accepted_filter(&self) -> &SubscriptionFilter {
        &self.agreed
    }

    /// Returns the next change, or `None` after the server ended the subscription or the client is
    /// dropped.
    pub async fn next(&mut self) -> Option<ServerNotification> {
        loop {
            let notice = match &mut self.way {
                Way::Stream(exchange) => match exchange.next().await {
                    Ok(Some(message)) => match self.heard(&message) {
                        Heard::Notice(notice) => notice,
                        Heard::Nothing => continue,
                        Heard::End => return None,
                    },
                    _ => self.reopen().await?,
                },
                Way::Told(told) => match told.recv().await {
                    Ok(ServerNotification::Reconnected) => {
                        // A new session has no subscriptions.
                        let _ = subscribe(&self.core, &self.filter).await;
                        ServerNotification::Reconnected
                    }
                    Ok(notice) => notice,
                    Err(broadcast::error::RecvError::Lagged(_)) => ServerNotification::Reconnected,
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
            };
            if self.filter.wants(&notice) {
                return Some(notice);
            }
        }
    }

    fn heard(&mut self, message: &Incoming) -> Heard {
        match message.kind() {
            IncomingKind::Notification { method: Some(Method::Cancelled), .. } => Heard::End,
            IncomingKind::Notification { .. } => match ServerNotification::read(message) {
                Some(notice) => {
                    self.core.dispatch.tell(notice.clone());
                    Heard::Notice(notice)
                }
                None => Heard::Nothing,
            },
            _ => {
                if let Way::Stream(exchange) = &mut self.way {
                    exchange.settle();
                }
                Heard::End
            }
        }
    }

    /// Reopens the stream after a disconnect.
    async fn reopen(&mut self) -> Option<ServerNotification> {
        for times in 0..self.core.limits().max_stream_resumptions {
            let wait = PAUSE * (1 << times.min(7));
            tokio::time::sleep(wait + jitter(wait / 4)).await;
            match listen(&self.core, &self.filter).await {
                Ok((exchange, agreed)) => {
                    self.agreed = agreed;
                    self.way = Way::Stream(Box::new(exchange));
                    self.core.dispatch.tell(ServerNotification::Reconnected);
                    return Some(ServerNotification::Reconnected);
                }
                Err(error) if error.is_transient() => {}
                Err(_) => return None,
            }
        }
        None
    }
}

enum Heard {
    Notice(ServerNotification),
    Nothing,
    End,
}

impl futures_core::Stream for Subscription {
    type Item = ServerNotification;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<ServerNotification>> {
        // `next` keeps its state in the subscription. Recreating its future for every poll loses
        // only the delay before a reconnect.
        let next = std::pin::pin!(self.next());
        next.poll(cx)
    }
}

/// Opens the stream of a subscription and waits for the acknowledgment.
async fn listen(core: &Arc<Core>, filter: &ListenFilter) -> Result<(Exchange, SubscriptionFilter)> {
    let params =
        SubscriptionsListenRequestParams { notifications: filter.wanted.clone(), meta: None };
    let params = serde_json::to_string(&params)
        .map_err(|error| ClientError::BadArguments(error.to_string()))?;
    let here = core.established().await?;
    let request = Outgoing {
        id: Some(core.next_id()),
        method: Method::Listen.as_str(),
        params: &params,
        ..Outgoing::default()
    };
    let opening = async {
        let mut exchange = Exchange::open(&here, &request).await?;
        while let Some(message) = exchange.next().await? {
            match message.kind() {
                IncomingKind::Notification { method: Some(Method::Acknowledged), .. } => {
                    let said: SubscriptionsAcknowledgedNotificationParams =
                        message.params().map_err(|error| {
                            Error::broke(format!(
                                "the acknowledgment of the subscription cannot be parsed: {error}"
                            ))
                        })?;
                    return Ok((exchange, said.notifications));
                }
                IncomingKind::Error { error, .. } => {
                    exchange.settle();
                    let refused = super::ServerError::of(error.clone(), exchange.status());
                    return Err(Failed::Error(refused.into()));
                }
                _ => {}
            }
        }
        Err(Error::broke("it closed a subscription without an acknowledgment").into())
    };
    // The timeout covers only the acknowledgment; the stream may last for days.
    let patience = core.limits().request_timeout;
    match tokio::time::timeout(patience, opening).await {
        Ok(opened) => Ok(opened?),
        Err(_) => Err(ClientError::TimedOut(patience).into()),
    }
}

/// Subscribes to each resource. Legacy servers send list changes to all clients.
async fn subscribe(core: &Arc<Core>, filter: &ListenFilter) -> Result<SubscriptionFilter> {
    let here = core.established().await?;
    let offered = &here.server.capabilities;
    let lists = |changed: Option<Option<bool>>| changed.flatten().filter(|changed| *changed);
    let mut agreed = SubscriptionFilter {
        tools_list_changed: filter
            .wanted
            .tools_list_changed
            .and(lists(offered.tools.as_ref().map(|it| it.list_changed))),
        prompts_list_changed: filter
            .wanted
            .prompts_list_changed
            .and(lists(offered.prompts.as_ref().map(|it| it.list_changed))),
        resources_list_changed: filter
            .wanted
            .resources_list_changed
            .and(lists(offered.resources.as_ref().map(|it| it.list_changed))),
        ..SubscriptionFilter::default()
    };
    let subscribes = offered.resources.as_ref().is_some_and(|it| it.subscribe == Some(true));
    for uri in filter.wanted.resource_subscriptions.iter().flatten() {
        if !subscribes {
            return Err(Error::not_offered("the server does not support resource subscriptions"));
        }
        let params = SubscribeRequestParams { uri: uri.clone(), meta: None };
        let params = serde_json::to_string(&params)
            .map_err(|error| ClientError::BadArguments(error.to_string()))?;
        send(core, &Wanted::new(core, Method::ResourcesSubscribe, params)).await?.result()?;
        agreed.resource_subscriptions.get_or_insert_default().push(uri.clone());
    }
    Ok(agreed)
}
