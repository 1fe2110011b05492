//! Subscriptions to the segments of tasks, each from a sequence number on. Specified in
//! `docs/extensions/task-partials.md`.

use std::{collections::BTreeMap, future::poll_fn};

use outlive_protocol::{Call, Notify, ProtocolError, era};
use outlive_tasks::store::TaskId;
use outlive_wire::SubscriptionFilter;
use serde::{Deserialize, Serialize};

use crate::server::{
    env::{environment::Env, task_error::unavailable},
    tasks::{
        lookup::gate,
        segments::{emitted, is_all, page_at_hand, page_of},
    },
};

/// Member of the subscription filter that lists tasks and sequence numbers.
const FILTER: &str = "dev.outlive/taskPartials";

/// Tasks that a subscription follows, with the sequence number of the last sent segment.
#[derive(Default)]
pub(crate) struct Following(BTreeMap<TaskId, u64>);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    task_id: String,
    after_seq: u64,
}

impl Following {
    /// Reads the tasks that a client wants to follow. Returns `None` if the client does not declare
    /// the extension or the server does not enable it.
    pub(crate) fn of(
        env: &Env,
        call: &Call,
        wish: &SubscriptionFilter,
    ) -> Result<Option<Self>, ProtocolError> {
        let is_on = env.tasks.as_ref().is_some_and(|tasks| tasks.config.partials);
        let Some(places) = wish.extensions.get(FILTER).filter(|_| is_on) else { return Ok(None) };
        if !era::codec(call.rules().era).task_request(call)?.reads_segments {
            return Ok(None);
        }
        gate(call)?;
        let places: Vec<Place> = serde_json::from_value(places.clone()).map_err(|error| {
            ProtocolError::invalid_params(format!(
                "`params.notifications` `{FILTER}` must be objects with `taskId` and `afterSeq`: {error}"
            ))
        })?;
        let limit = env.profile.limits.max_subscriptions;
        if places.len() > limit {
            return Err(ProtocolError::invalid_params(format!(
                "a subscription can follow at most {limit} tasks"
            )));
        }
        let places = places.into_iter();
        Ok(Some(Self(places.map(|it| (TaskId::new(it.task_id), it.after_seq)).collect())))
    }

    /// Removes tasks that do not exist for this principal, in the same way as tasks of other
    /// principals.
    pub(crate) async fn admit(&mut self, env: &Env, call: &Call) -> Result<(), ProtocolError> {
        let engine = env.tasks()?.engine();
        let mut admitted = BTreeMap::new();
        for (id, after) in std::mem::take(&mut self.0) {
            let view = engine.get(call.principal().key(), &id).await;
            if view.map_err(|error| unavailable(&error))?.is_some() {
                admitted.insert(id, after);
            }
        }
        self.0 = admitted;
        Ok(())
    }

    /// Adds the accepted tasks to the acknowledged filter.
    pub(crate) fn acknowledge(&self, honoured: &mut SubscriptionFilter) {
        let place = |(id, after): (&TaskId, &u64)| Place {
            task_id: id.as_str().to_owned(),
            after_seq: *after,
        };
        let places: Vec<Place> = self.0.iter().map(place).collect();
        if let Ok(places) = serde_json::to_value(places) {
            honoured.extensions.insert(FILTER.to_owned(), places);
        }
    }

    /// Returns the IDs of the followed tasks.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &TaskId> {
        self.0.keys()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends the new segments of all followed tasks.
    pub(crate) async fn send_all(&mut self, env: &Env, call: &Call) -> Result<(), ProtocolError> {
        let ids: Vec<TaskId> = self.0.keys().cloned().collect();
        for id in ids {
            self.send(env, call, &id).await?;
        }
        Ok(())
    }

    /// Sends the new segments of a task. Stops following a task that has ended.
    pub(crate) async fn send(
        &mut self,
        env: &Env,
        call: &Call,
        id: &TaskId,
    ) -> Result<(), ProtocolError> {
        let tasks = env.tasks()?;
        while let Some(after) = self.0.get(id).copied() {
            // Backpressure: segments are read only when the stream can accept them.
            poll_fn(|cx| call.port().poll_room(cx)).await;
            let at_hand = page_at_hand(tasks, call, id, after);
            let is_at_hand = at_hand.is_some();
            let page = match at_hand {
                Some(page) => Some(page),
                None => page_of(tasks, call, id, after).await?,
            };
            let Some(page) = page else {
                self.0.remove(id);
                return Ok(());
            };
            let ended = page.ended;
            let news = emitted(id, after, page, ended);
            // A change notification announces later segments, so no further read is needed.
            let enough = is_at_hand && is_all(&news.blocks, news.last);
            let count = news.blocks.blocks.len() as u64;
            if count == 0 && !news.complete {
                return Ok(());
            }
            match news.complete {
                true => self.0.remove(id),
                false => self.0.insert(id.clone(), after + count),
            };
            let bound = env.profile.limits.max_queued_notifications;
            call.port().send(Notify::Emitted(Box::new(news)), bound);
            if enough {
                return Ok(());
            }
        }
        Ok(())
    }
}
