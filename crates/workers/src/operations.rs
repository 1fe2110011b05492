//! Open requests of one call: steps, input requests, timers, external events and segments.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use outlive::server::Error;

/// Maximum number of open steps, input requests, timers and external events of one call.
pub(crate) const MAX_OPEN: usize = 1_024;

/// Maximum number of segments that a tool worker may be ahead of the journal.
pub(crate) const MAX_SEGMENTS_AHEAD: usize = 64;

/// Work of one request. Its output is the response.
pub(crate) type Work = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Step,
    /// The run waits for a client, for time or for another system.
    Wait,
    Segment,
}

/// Response to a request.
pub(crate) enum Reply {
    /// The request has no response.
    Nothing,
    Line(String),
    /// A step was recorded.
    Recorded(String),
    /// The request was rejected.
    Rejected {
        line: String,
        key: String,
        error: Error,
    },
    /// The journal has another kind of entry under the key.
    Mismatch {
        key: String,
        reason: String,
    },
    /// A segment was accepted, or rejected with this line.
    Segment(Option<String>),
}

/// An open request.
struct Operation {
    number: u64,
    kind: Kind,
    key: String,
    work: Work,
}

/// A request that has completed.
pub(crate) struct Completed {
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    pub(crate) key: String,
    pub(crate) reply: Reply,
}

/// Open requests of one call, in the order of their arrival.
///
/// All of them are polled with the waker of the handler. A handler is polled as a whole when its call
/// becomes a task or is cancelled, so requests with wakers of their own would miss that.
#[derive(Default)]
pub(crate) struct Operations {
    open: Vec<Operation>,
    next: u64,
}

impl Operations {
    /// Adds a request. Returns its number.
    pub(crate) fn add(&mut self, kind: Kind, key: String, work: Work) -> u64 {
        self.next += 1;
        self.open.push(Operation { number: self.next, kind, key, work });
        self.next
    }

    /// Returns the number of open requests of a kind.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.open.iter().filter(|operation| operation.kind == kind).count()
    }

    /// Returns whether another request is above the limit.
    pub(crate) fn is_full(&self, kind: Kind) -> bool {
        match kind {
            Kind::Segment => self.count(Kind::Segment) > MAX_SEGMENTS_AHEAD,
            Kind::Step | Kind::Wait => self.open.len() - self.count(Kind::Segment) >= MAX_OPEN,
        }
    }

    /// Drops the open request of a key. Returns whether there was one.
    pub(crate) fn remove(&mut self, kind: Kind, key: &str) -> bool {
        let at =
            self.open.iter().position(|operation| operation.kind == kind && operation.key == key);
        at.map(|at| self.open.remove(at)).is_some()
    }

    /// Polls all requests in order, and moves the completed ones to `completed`.
    pub(crate) fn poll(&mut self, task: &mut Context<'_>, completed: &mut Vec<Completed>) {
        self.open.retain_mut(|operation| match operation.work.as_mut().poll(task) {
            Poll::Pending => true,
            Poll::Ready(reply) => {
                let Operation { number, kind, .. } = *operation;
                let key = std::mem::take(&mut operation.key);
                completed.push(Completed { number, kind, key, reply });
                false
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::{Kind, Operations, Reply};

    #[test]
    fn requests_complete_in_order_and_are_removed() {
        let mut operations = Operations::default();
        let ready = || Box::pin(async { Reply::Nothing });
        let first = operations.add(Kind::Step, "a".to_owned(), ready());
        operations.add(Kind::Wait, "b".to_owned(), Box::pin(std::future::pending()));
        let third = operations.add(Kind::Segment, String::new(), ready());
        assert_eq!((operations.count(Kind::Wait), operations.is_full(Kind::Step)), (1, false));
        let mut completed = Vec::new();
        operations.poll(&mut Context::from_waker(Waker::noop()), &mut completed);
        let numbers: Vec<u64> = completed.iter().map(|completed| completed.number).collect();
        assert_eq!(numbers, [first, third]);
        assert!(!operations.remove(Kind::Step, "b"));
        assert!(operations.remove(Kind::Wait, "b") && !operations.remove(Kind::Wait, "b"));
    }
}
