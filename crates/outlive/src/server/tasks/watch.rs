//! Who listens to what tasks emit, by our own extension: each task from after a number on.
//! Specified in `docs/extensions/task-partials.md`.

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

/// The member of a filter that names tasks and numbers.
const FILTER: &str = "dev.outlive/taskPartials";

/// The tasks that a subscription follows, and the number of the last block that was sent of each.
#[derive(Default)]
pub(crate) struct Following(BTreeMap<TaskId, u64>);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    task_id: String,
    after_seq: u64,
}

impl Following {
    /// What a client wants to follow; nothing, if it does not say that it knows the extension, or the
    /// server has not switched it on.
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
                "at most {limit} tasks can be followed"
            )));
        }
        let places = places.into_iter();
        Ok(Some(Self(places.map(|it| (TaskId::new(it.task_id), it.after_seq)).collect())))
    }

    /// Leaves out what is not there for this caller: nobody learns whether it is somebody else's.
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

    /// Says what is honoured.
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

    /// Which tasks are followed.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &TaskId> {
        self.0.keys()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends what all tasks have emitted meanwhile.
    pub(crate) async fn send_all(&mut self, env: &Env, call: &Call) -> Result<(), ProtocolError> {
        let ids: Vec<TaskId> = self.0.keys().cloned().collect();
        for id in ids {
            self.send(env, call, &id).await?;
        }
        Ok(())
    }

    /// Sends what a task has emitted meanwhile. One that has ended is not followed any longer.
    pub(crate) async fn send(
        &mut self,
        env: &Env,
        call: &Call,
        id: &TaskId,
    ) -> Result<(), ProtocolError> {
        let tasks = env.tasks()?;
        while let Some(after) = self.0.get(id).copied() {
            // Nothing is read that could not be sent.
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
            // Of what comes after these we are told.
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
