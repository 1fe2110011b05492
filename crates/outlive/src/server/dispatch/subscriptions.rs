//! Subscriptions: `subscriptions/listen`, and the legacy `resources/subscribe`.

use std::{
    collections::HashMap,
    future::{poll_fn, ready},
    sync::Arc,
};

use outlive_protocol::{
    Call, CallFuture, ChangeFeed, ChangeFilter, Lists, MethodResult, Notify, Outcome, ProtocolError,
};
use outlive_tasks::store::TaskId;
use outlive_wire::{SubscriptionFilter, SubscriptionsListenRequestParams};

use crate::server::{
    dispatch::{
        core::ServerCore,
        resources::{readable, readable_anywhere},
        sessions::remembered,
    },
    tasks::{
        lookup::{LOOK, gate, look_at},
        watch::Following,
    },
};

/// Handles `subscriptions/listen`: acknowledges the accepted filter, then sends every change until
/// the client disconnects or the server shuts down.
pub(crate) fn listen(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    let params: SubscriptionsListenRequestParams = match serde_json::from_str(call.params()) {
        Ok(params) => params,
        Err(error) => {
            let fault = ProtocolError::invalid_params(format!(
                "`params.notifications` must be an object: {error}"
            ));
            return Box::pin(ready(Err(fault)));
        }
    };
    let ids = match wanted_tasks(core, &call, &params.notifications) {
        Ok(ids) => ids,
        Err(fault) => return Box::pin(ready(Err(fault))),
    };
    let following = match Following::of(&core.env, &call, &params.notifications) {
        Ok(following) => following,
        Err(fault) => return Box::pin(ready(Err(fault))),
    };
    let following = Wanted { ids, following };
    if core.catalog.is_some() && params.notifications.resource_subscriptions.is_some() {
        let core = Arc::clone(core);
        return Box::pin(async move {
            let mut wish = params.notifications;
            check_uris(&core, &wish)?;
            let mut uris = Vec::new();
            for uri in wish.resource_subscriptions.take().into_iter().flatten() {
                if readable_anywhere(&core, &call, &uri).await.unwrap_or(false) {
                    uris.push(uri);
                }
            }
            wish.resource_subscriptions = Some(uris);
            listen_to(&core, call, wish, following).await
        });
    }
    let mut wish = params.notifications;
    if let Err(fault) = check_uris(core, &wish) {
        return Box::pin(ready(Err(fault)));
    }
    if let Some(uris) = &mut wish.resource_subscriptions {
        uris.retain(|uri| readable(core, uri, call.principal()).unwrap_or(false));
    }
    listen_to(core, call, wish, following)
}

/// Tasks that a subscription wants to follow.
struct Wanted {
    ids: Option<Vec<TaskId>>,
    following: Option<Following>,
}

/// Acknowledges the accepted filter, whose resources are readable, and sends every change.
fn listen_to(
    core: &Arc<ServerCore>,
    call: Arc<Call>,
    wish: SubscriptionFilter,
    Wanted { ids, following }: Wanted,
) -> CallFuture {
    let (wants, honoured) = honour(core, wish);
    let feed = core.env.profile.bus.subscribe(call.principal(), wants);
    let bound = core.env.profile.limits.max_queued_notifications;
    if ids.is_some() || following.is_some() {
        let tasks = Listened { ids, following };
        return Box::pin(listen_to_tasks(Arc::clone(core), call, feed, honoured, tasks));
    }
    call.port().send(Notify::Acknowledged(honoured), bound);
    Box::pin(async move {
        while let Some(change) = feed.next().await {
            call.port().send(Notify::Changed(change), bound);
        }
        Ok(Outcome::Complete(MethodResult::ListenEnded))
    })
}

/// Returns the tasks that a client wants to follow, after a check of its capabilities.
fn wanted_tasks(
    core: &ServerCore,
    call: &Call,
    wish: &SubscriptionFilter,
) -> Result<Option<Vec<TaskId>>, ProtocolError> {
    let Some(ids) = wish.extensions.get(TASK_IDS).filter(|_| core.env.tasks.is_some()) else {
        return Ok(None);
    };
    gate(call)?;
    let ids: Vec<String> = serde_json::from_value(ids.clone()).map_err(|error| {
        ProtocolError::invalid_params(format!(
            "`params.notifications.taskIds` must be strings: {error}"
        ))
    })?;
    let limit = core.env.profile.limits.max_subscriptions;
    match ids.len() > limit {
        true => Err(ProtocolError::invalid_params(format!(
            "a subscription can follow at most {limit} tasks"
        ))),
        false => Ok(Some(ids.into_iter().map(TaskId::new).collect())),
    }
}

/// Tasks that a subscription follows: their status and their segments.
struct Listened {
    ids: Option<Vec<TaskId>>,
    following: Option<Following>,
}

/// Sends changes of tasks and all other accepted changes.
async fn listen_to_tasks(
    core: Arc<ServerCore>,
    call: Arc<Call>,
    feed: ChangeFeed,
    mut honoured: SubscriptionFilter,
    listened: Listened,
) -> Result<Outcome, ProtocolError> {
    let bound = core.env.profile.limits.max_queued_notifications;
    let wants_status = listened.ids.is_some();
    let mut ids = listened.ids.unwrap_or_default();
    let wants_emitted = listened.following.is_some();
    let mut following = listened.following.unwrap_or_default();
    let all: Vec<TaskId> = ids.iter().chain(following.ids()).cloned().collect();
    let news = core.env.tasks()?.engine().changes(&all);
    let mut seen: HashMap<TaskId, u64> = HashMap::new();
    let mut first = Vec::new();
    for id in &ids {
        if let Some(view) = look_at(&core.env, &call, id).await? {
            seen.insert(id.clone(), view.updated);
            first.push(view);
        }
    }
    // Unknown tasks are left out, in the same way as tasks of other principals.
    ids.retain(|id| seen.contains_key(id));
    let names: Vec<&str> = ids.iter().map(TaskId::as_str).collect();
    if wants_status {
        honoured.extensions.insert(TASK_IDS.to_owned(), names.into());
    }
    if wants_emitted {
        following.admit(&core.env, &call).await?;
        following.acknowledge(&mut honoured);
    }
    call.port().send(Notify::Acknowledged(honoured), bound);
    for view in first {
        call.port().send(Notify::Task(Box::new(view)), bound);
    }
    following.send_all(&core.env, &call).await?;
    loop {
        tokio::select! {
            change = feed.next() => match change {
                Some(change) => call.port().send(Notify::Changed(change), bound),
                None => return Ok(Outcome::Complete(MethodResult::ListenEnded)),
            },
            id = news.next() => {
                following.send(&core.env, &call, &id).await?;
                let Some(last) = seen.get_mut(&id) else { continue };
                // Backpressure: a task may change more often than the client reads.
                poll_fn(|cx| call.port().poll_room(cx)).await;
                let Some(view) = look_at(&core.env, &call, &id).await? else { continue };
                if view.updated > *last {
                    *last = view.updated;
                    call.port().send(Notify::Task(Box::new(view)), bound);
                }
            }
            // Change notifications are hints, so segments are also polled.
            () = tokio::time::sleep(LOOK), if !following.is_empty() => {
                following.send_all(&core.env, &call).await?;
            }
        }
    }
}

/// Member of the subscription filter that lists task IDs.
const TASK_IDS: &str = "taskIds";

/// Returns the part of a filter that the server accepts: features that it offers. Its resources are
/// readable.
fn honour(core: &ServerCore, wish: SubscriptionFilter) -> (ChangeFilter, SubscriptionFilter) {
    let lists = Lists {
        tools: wish.tools_list_changed == Some(true) && core.has_tools(),
        prompts: wish.prompts_list_changed == Some(true) && core.has_prompts(),
        resources: wish.resources_list_changed == Some(true) && core.has_resources(),
    };
    let uris = wish.resource_subscriptions.filter(|_| core.has_subscriptions());
    let wants = ChangeFilter {
        lists,
        resources: uris.iter().flatten().map(|uri| Arc::from(uri.as_str())).collect(),
    };
    let honoured = SubscriptionFilter {
        tools_list_changed: lists.tools.then_some(true),
        prompts_list_changed: lists.prompts.then_some(true),
        resources_list_changed: lists.resources.then_some(true),
        resource_subscriptions: uris,
        ..SubscriptionFilter::default()
    };
    (wants, honoured)
}

/// Checks the number of resources in a filter.
fn check_uris(core: &ServerCore, wish: &SubscriptionFilter) -> Result<(), ProtocolError> {
    let limit = core.env.profile.limits.max_subscriptions;
    let uris = wish.resource_subscriptions.as_ref().filter(|_| core.has_subscriptions());
    match uris.is_some_and(|uris| uris.len() > limit) {
        true => Err(ProtocolError::invalid_params(format!(
            "a subscription can include at most {limit} resources"
        ))),
        false => Ok(()),
    }
}

/// Handles the legacy `resources/subscribe`.
pub(crate) fn subscribe(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    if core.catalog.is_none() {
        return remembered(core, call, |core, call| {
            let uri = call.uri()?;
            let is_readable = readable(core, &uri, call.principal())?;
            add(core, call, &uri, is_readable)
        });
    }
    let core = Arc::clone(core);
    Box::pin(async move {
        let uri = call.uri()?.into_owned();
        let is_readable = readable_anywhere(&core, &call, &uri).await?;
        remembered(&core, call, move |core, call| add(core, call, &uri, is_readable)).await
    })
}

/// Adds a resource to the session of a call.
fn add(
    core: &ServerCore,
    call: &Call,
    uri: &str,
    is_readable: bool,
) -> Result<MethodResult, ProtocolError> {
    if !is_readable {
        return Err(ProtocolError::UnknownResource { uri: uri.to_owned() });
    }
    let limit = core.env.profile.limits.max_subscriptions;
    match call.session() {
        Some(session) if !session.feed().add_resource(uri, limit) => {
            Err(ProtocolError::invalid_params(format!(
                "a session can subscribe to at most {limit} resources (`max_subscriptions`) with 64 KiB of URIs"
            )))
        }
        _ => Ok(MethodResult::Empty),
    }
}

/// Handles the legacy `resources/unsubscribe`.
pub(crate) fn unsubscribe(call: &Call) -> Result<MethodResult, ProtocolError> {
    let uri = call.uri()?;
    if let Some(session) = call.session() {
        session.feed().remove_resource(&uri);
    }
    Ok(MethodResult::Empty)
}
