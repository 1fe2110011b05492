//! Messages of notifications, built from the store and the tools of the server.

use std::sync::Arc;

use outlive_protocol::rfc3339;
use outlive_tasks::store::{
    Delivery, IndexedTask, InputRequestDetail, InputRequestState, StoreError, StoreFuture,
};
use outlive_wire::{ElicitAction, ElicitRequestParams, InputRequest, OrderedMap};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{arguments::shown, state::People};
use crate::{
    deliveries::{Body, Composer, Data, Link, Target},
    server::{Notifications, ServerBuilder, WeakServer},
};

/// State in the messages of tasks that were deleted before the message was sent.
const DELETED: &str = "deleted";

impl ServerBuilder {
    /// Notifies a target of events of tasks: a webhook, or a [`Target`] with a custom transport.
    /// Needs [`ServerBuilder::tasks`] with a [`PeopleStore`](crate::store::PeopleStore).
    ///
    /// A task stores its subscriptions when it is created. So a new target gets events of new tasks,
    /// and the deliveries of a removed target stay in the store until they are too old.
    pub fn notify(mut self, target: impl Into<Target>) -> Self {
        let composer = |server| Arc::new(MessageComposer(server)) as Arc<dyn Composer>;
        let notifications =
            self.notify.get_or_insert_with(|| Notifications { targets: Vec::new(), composer });
        notifications.targets.push(target.into());
        self
    }
}

/// Builds messages when they are sent.
struct MessageComposer(WeakServer);

impl Composer for MessageComposer {
    fn compose<'a>(&'a self, delivery: &'a Delivery, target: &'a Target) -> StoreFuture<'a, Body> {
        Box::pin(async move {
            let stopped = || StoreError::Unavailable("the server has shut down".to_owned());
            let people = self.0.upgrade().and_then(|server| People::new(&server).ok());
            compose(&people.ok_or_else(stopped)?, delivery, target).await
        })
    }
}

async fn compose(
    people: &People,
    delivery: &Delivery,
    target: &Target,
) -> Result<Body, StoreError> {
    let Delivery { task, input_request, .. } = delivery;
    let mut is_approval = false;
    let found = match input_request {
        Some(name) => {
            let detail = people.store().input_request(task, name).await?;
            is_approval = detail.as_ref().is_some_and(|detail| detail.item.binding.is_some());
            detail.map(|detail| of_input_request(people, &detail, target))
        }
        None => people.store().task(task).await?.map(of_task),
    };
    let page = || people.env()?.address.page(task.as_str(), input_request.as_deref());
    let data = Data {
        task: task.as_str().to_owned(),
        input_request: input_request.clone(),
        url: page().filter(|_| found.is_some()),
        ..found.unwrap_or_else(|| Data { state: DELETED, ..Data::default() })
    };
    Ok(Body { event: delivery.event, at: delivery.at, data, is_approval })
}

/// Describes a task.
fn of_task(task: IndexedTask) -> Data {
    Data { tool: Some(task.summary.view.tool), state: task.state.as_str(), ..Data::default() }
}

/// Describes an input request, with links and texts that the target gets.
fn of_input_request(people: &People, detail: &InputRequestDetail, target: &Target) -> Data {
    let item = &detail.item;
    let mut data = Data {
        tool: Some(item.tool.clone()),
        state: state_of(detail),
        until: item.due.map(rfc3339),
        ..Data::default()
    };
    if target.has_links() {
        let links = people.links_for(item, target.name()).into_iter();
        data.links = links.map(|(to, url)| Link { to, url }).collect();
    }
    // Without its tool, no schema says which arguments are secret.
    if let Some(tool) = people.tool(&item.tool).filter(|_| target.has_summary()) {
        data.message = message_of(&item.request);
        let arguments = shown(Some(&tool), &item.call).into_iter();
        let arguments = arguments.filter(|argument| !argument.is_hidden);
        let raw = arguments.filter_map(|it| Some((it.name, RawValue::from_string(it.json).ok()?)));
        data.arguments = Some(OrderedMap(raw.collect()));
    }
    data
}

/// Returns the state of an input request.
fn state_of(detail: &InputRequestDetail) -> &'static str {
    #[derive(Deserialize)]
    struct Response {
        action: ElicitAction,
    }

    match detail.item.state {
        InputRequestState::Open => "open",
        InputRequestState::Withdrawn => "withdrawn",
        InputRequestState::Answered => {
            let raw = detail.response.as_ref();
            let response = raw.and_then(|raw| serde_json::from_str::<Response>(raw.get()).ok());
            match response.map(|response| response.action) {
                Some(ElicitAction::Decline) => "declined",
                Some(ElicitAction::Cancel) => "cancelled",
                // Responses to other requests have no action.
                _ => "accepted",
            }
        }
    }
}

/// Returns the text of an input request for people.
fn message_of(request: &InputRequest) -> Option<String> {
    match request {
        InputRequest::Elicit(ElicitRequestParams::Form(form)) => Some(form.message.clone()),
        InputRequest::Elicit(ElicitRequestParams::Url(url)) => Some(url.message.clone()),
        _ => None,
    }
}
