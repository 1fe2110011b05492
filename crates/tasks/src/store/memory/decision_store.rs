//! [`DecisionStore`] of the memory store.

use std::cmp::Reverse;

use super::{
    input_row::InputRow,
    row::Row,
    state::{MemoryStore, done},
};
use crate::{
    JournalEntry,
    store::{
        ChangeSource, Decision, DecisionOutcome, DecisionStore, InboxCursor, InboxItem,
        InboxReader, InputRequestDetail, InputRequestState, RawJson, SettledResponse, StoreFuture,
        TaskId, UnixMillis,
        ballot::{approvals, is_in_inbox},
    },
    time::millis,
};

impl DecisionStore for MemoryStore {
    fn open_for<'a>(
        &'a self,
        reader: &'a InboxReader,
        after: Option<&'a InboxCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<InboxItem>> {
        let tasks = self.lock();
        let is_after = |id: &TaskId, input: &InputRow| {
            after.is_none_or(|after| {
                let place = (input.opened_at, id, &input.asked.name);
                place > (after.opened_at, &after.task, &after.name)
            })
        };
        let open = tasks.asking().flat_map(|(id, row)| {
            let open = row.open_for(reader).filter(move |input| is_after(id, input));
            open.filter_map(move |input| row.inbox_item(id, input))
        });
        let mut open: Vec<InboxItem> = open.collect();
        open.sort_by_key(|item| (item.opened_at, item.task.clone(), item.name.clone()));
        open.truncate(limit);
        done(Ok(open))
    }

    fn count_open<'a>(&'a self, reader: &'a InboxReader, limit: usize) -> StoreFuture<'a, usize> {
        let tasks = self.lock();
        let open = tasks.asking().flat_map(|(_, row)| row.open_for(reader));
        done(Ok(open.take(limit).count()))
    }

    fn settled_since<'a>(
        &'a self,
        denial: &'a str,
        since: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SettledResponse>> {
        let tasks = self.lock();
        let settled = tasks.settled(denial).flat_map(|row| {
            let inputs = row.input_requests.iter();
            inputs.filter(|input| input.denial() == Some(denial)).filter_map(|input| {
                let response = row.response(input)?;
                Some(SettledResponse::new(response, input.settled_at?))
            })
        });
        let mut settled: Vec<_> = settled.filter(|one| one.settled_at >= since).collect();
        settled.sort_by_key(|one| Reverse(one.settled_at));
        settled.truncate(limit);
        done(Ok(settled))
    }

    fn voted_by<'a>(&'a self, person: &'a str, limit: usize) -> StoreFuture<'a, Vec<InboxItem>> {
        let tasks = self.lock();
        let voted = tasks.voted().flat_map(|(id, row)| {
            row.input_requests.iter().filter_map(move |input| {
                let vote = input.votes.iter().find(|vote| vote.person == person)?;
                Some((vote.at, row.inbox_item(id, input)?))
            })
        });
        let mut voted: Vec<_> = voted.collect();
        voted.sort_by_key(|(at, _)| Reverse(*at));
        done(Ok(voted.into_iter().take(limit).map(|(_, item)| item).collect()))
    }

    fn input_request<'a>(
        &'a self,
        task: &'a TaskId,
        name: &'a str,
    ) -> StoreFuture<'a, Option<InputRequestDetail>> {
        let tasks = self.lock();
        let detail = tasks.get(task).and_then(|row| {
            let input = row.asked(name)?;
            let item = row.inbox_item(task, input)?;
            let response = row.response(input);
            Some(InputRequestDetail { item, votes: input.votes.clone(), response })
        });
        done(Ok(detail))
    }

    fn decide<'a>(
        &'a self,
        task: &'a TaskId,
        name: &'a str,
        decision: &'a Decision,
    ) -> StoreFuture<'a, DecisionOutcome> {
        let now = self.now();
        let mut tasks = self.lock();
        let Some(row) = tasks.get(task) else { return done(Ok(DecisionOutcome::Unknown)) };
        let (outcome, growth) = row.judge(name, decision, now);
        if !outcome.is_recorded() {
            return done(Ok(outcome));
        }
        if !tasks.has_room_for(growth, &row.principal, decision.max_bytes) {
            return done(Ok(DecisionOutcome::BytesExceeded));
        }
        let settles = outcome == DecisionOutcome::Settled;
        tasks.change(task, |row| row.vote(name, decision, settles, now));
        if let Some((event, retention)) = &decision.audit {
            let until = (now, millis(*retention));
            tasks.audit_events.append(vec![event.clone()], until, u64::MAX);
        }
        drop(tasks);
        self.notify(task, ChangeSource::Other);
        done(Ok(outcome))
    }
}

impl Row {
    /// Returns the open input requests in an inbox, except external events.
    fn open_for<'a>(&'a self, reader: &'a InboxReader) -> impl Iterator<Item = &'a InputRow> {
        let of = (self.principal.as_str(), self.person.as_deref());
        let open = self.open().filter(|input| input.asked.request.is_some());
        open.filter(move |input| is_in_inbox(reader, &input.asked.audience, of, self.indexed))
    }

    /// Returns the response to an input request; `None` unless it was answered.
    fn response(&self, input: &InputRow) -> Option<RawJson> {
        match self.journal.entries.get(&input.asked.key) {
            Some(JournalEntry::Answer(raw)) if input.state == InputRequestState::Answered => {
                Some(raw.clone())
            }
            _ => None,
        }
    }

    /// Returns an input request in the form for inboxes; `None` for an external event.
    fn inbox_item(&self, id: &TaskId, input: &InputRow) -> Option<InboxItem> {
        let asked = &input.asked;
        Some(InboxItem {
            task: id.clone(),
            name: asked.name.clone(),
            tool: self.kind.clone(),
            principal: self.principal.clone(),
            person: self.person.clone(),
            call: self.request.clone(),
            request: asked.request.clone()?,
            audience: asked.audience.clone(),
            binding: asked.binding.clone(),
            state: input.state,
            opened_at: input.opened_at,
            settled_at: input.settled_at,
            due: asked.due,
            approvals: approvals(&input.votes),
        })
    }
}
