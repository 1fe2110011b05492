//! Who hears of changes: `subscriptions/listen`, and the legacy way of subscribing to resources.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Answer, Call, Fault, Lists, Notify, Outcome, Wants, Work};
use outlive_wire::{SubscriptionFilter, SubscriptionsListenRequestParams};

use super::{core::Core, resource};

/// Answers `subscriptions/listen`: tells what is honoured, then every change, until the client
/// leaves or the server shuts down.
pub(super) fn listen(core: &Arc<Core>, call: Arc<Call>) -> Work {
    let params: SubscriptionsListenRequestParams = match serde_json::from_str(call.params()) {
        Ok(params) => params,
        Err(error) => {
            let fault =
                Fault::invalid_params(format!("`params.notifications` must be an object: {error}"));
            return Box::pin(ready(Err(fault)));
        }
    };
    let (wants, honoured) = match honour(core, &call, params.notifications) {
        Ok(honoured) => honoured,
        Err(fault) => return Box::pin(ready(Err(fault))),
    };
    let feed = core.profile.bus.subscribe(wants);
    let bound = core.profile.limits.queued_notifications;
    call.port().say(Notify::Acknowledged(honoured), bound);
    Box::pin(async move {
        while let Some(change) = feed.next().await {
            call.port().say(Notify::Changed(change), bound);
        }
        Ok(Outcome::Complete(Answer::ListenEnded))
    })
}

/// What of a wish can be fulfilled: only what the server offers, only resources that this caller
/// can read.
fn honour(
    core: &Core,
    call: &Call,
    wish: SubscriptionFilter,
) -> Result<(Wants, SubscriptionFilter), Fault> {
    let lists = Lists {
        tools: wish.tools_list_changed == Some(true) && core.has_tools(),
        prompts: wish.prompts_list_changed == Some(true) && core.has_prompts(),
        resources: wish.resources_list_changed == Some(true) && core.has_resources(),
    };
    let limit = core.profile.limits.subscriptions;
    let mut uris = wish.resource_subscriptions.filter(|_| core.has_subscriptions());
    if uris.as_ref().is_some_and(|uris| uris.len() > limit) {
        return Err(Fault::invalid_params(format!(
            "at most {limit} resources can be subscribed to at once"
        )));
    }
    if let Some(uris) = &mut uris {
        uris.retain(|uri| resource::exists(core, uri, call.principal()));
    }
    let wants = Wants {
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
    Ok((wants, honoured))
}

/// Answers the legacy `resources/subscribe`.
pub(super) fn subscribe(core: &Core, call: &Call) -> Result<Answer, Fault> {
    let uri = call.uri()?;
    if !resource::exists(core, &uri, call.principal()) {
        return Err(Fault::UnknownResource { uri: uri.into_owned() });
    }
    let limit = core.profile.limits.subscriptions;
    match call.session() {
        Some(session) if !session.feed().add_resource(&uri, limit) => Err(Fault::invalid_params(
            format!("at most {limit} resources can be subscribed to at once"),
        )),
        _ => Ok(Answer::Empty),
    }
}

/// Answers the legacy `resources/unsubscribe`.
pub(super) fn unsubscribe(call: &Call) -> Result<Answer, Fault> {
    let uri = call.uri()?;
    if let Some(session) = call.session() {
        session.feed().remove_resource(&uri);
    }
    Ok(Answer::Empty)
}
