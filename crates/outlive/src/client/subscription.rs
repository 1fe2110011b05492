//! Changes as a stream, on every wire.
//!
//! Since 2026-07-28 a subscription is a request whose stream stays open; before it, servers tell
//! whoever is there, and resources are subscribed to one by one. Here both are the same.

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

/// How long to wait before a subscription that broke is opened again; longer each time.
const PAUSE: Duration = Duration::from_millis(200);

/// What to hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ListenFilter {
    wanted: SubscriptionFilter,
}

impl ListenFilter {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// That the list of tools changed.
    pub fn tools(mut self) -> Self {
        self.wanted.tools_list_changed = Some(true);
        self
    }

    /// That the list of prompts changed.
    pub fn prompts(mut self) -> Self {
        self.wanted.prompts_list_changed = Some(true);
        self
    }

    /// That the list of resources changed.
    pub fn resources(mut self) -> Self {
        self.wanted.resources_list_changed = Some(true);
        self
    }

    /// That a resource changed.
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

/// Changes, as they are told. After [`ServerNotification::Reconnected`] some may have been missed: read again
/// what matters.
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
        // Before anything is asked, so that nothing is missed.
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

    /// What the server agreed to; less than was wanted, maybe.
    pub fn accepted_filter(&self) -> &SubscriptionFilter {
        &self.agreed
    }

    /// The next change, or `None` when the server has ended the subscription or the client has gone.
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
                        // The new session knows nothing of what the old one had subscribed to.
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

    /// Listens again after the stream broke.
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
        // Waiting for the next one keeps everything in the subscription, so a future that is made
        // anew for every poll loses nothing but the pause before a reconnection.
        let next = std::pin::pin!(self.next());
        next.poll(cx)
    }
}

/// Opens the stream of a subscription and waits for the server's agreement.
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
        meta: "",
        name: None,
        repeated: &[],
        holds_tasks: false,
    };
    let opening = async {
        let mut exchange = Exchange::open(&here, &request).await?;
        while let Some(message) = exchange.next().await? {
            match message.kind() {
                IncomingKind::Notification { method: Some(Method::Acknowledged), .. } => {
                    let said: SubscriptionsAcknowledgedNotificationParams = message
                        .params()
                        .map_err(|error| Error::broke(format!("its agreement is none: {error}")))?;
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
        Err(Error::broke("it ended a subscription without agreeing to it").into())
    };
    // Only the agreement has a time-out; the stream may last for days.
    let patience = core.limits().request_timeout;
    match tokio::time::timeout(patience, opening).await {
        Ok(opened) => Ok(opened?),
        Err(_) => Err(ClientError::TimedOut(patience).into()),
    }
}

/// Subscribes to resources one by one; lists are told of to everybody.
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
            return Err(Error::not_offered("the server does not tell when resources change"));
        }
        let params = SubscribeRequestParams { uri: uri.clone(), meta: None };
        let params = serde_json::to_string(&params)
            .map_err(|error| ClientError::BadArguments(error.to_string()))?;
        send(core, &Wanted::new(core, Method::ResourcesSubscribe, params)).await?.result()?;
        agreed.resource_subscriptions.get_or_insert_default().push(uri.clone());
    }
    Ok(agreed)
}
