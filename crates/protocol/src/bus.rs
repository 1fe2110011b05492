//! Who hears that a list or a resource has changed.
//!
//! A [`ChangeFeed`] remembers *that* something changed, not how often: what waits in it is bounded by
//! what it subscribed to, so a reader that does not read costs nothing and stalls nobody.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    future::poll_fn,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use crate::Change;

/// Bytes of the URIs that one legacy session may be subscribed to: they are kept in memory and in the
/// store for as long as it lasts.
const URI_BYTES: usize = 64 << 10;

/// Carries changes to every feed that wants them. Cheap to clone.
#[derive(Clone, Default)]
pub struct ChangeBus(Arc<Mutex<Feeds>>);

#[derive(Default)]
struct Feeds {
    next: u64,
    open: HashMap<u64, Weak<Mutex<State>>>,
    closed: bool,
}

/// A point in time between the openings of two feeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// One subscriber's share of the changes.
pub struct ChangeFeed {
    bus: ChangeBus,
    key: u64,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    wants: ChangeFilter,
    lists: Lists,
    resources: BTreeSet<Arc<str>>,
    waker: Option<Waker>,
    closed: bool,
}

/// What a feed wants to hear of.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the four of the specification")]
pub struct ChangeFilter {
    /// Changes of lists.
    pub lists: Lists,
    /// Changes of these resources.
    pub resources: BTreeSet<Arc<str>>,
}

/// A set of lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the three of the specification")]
pub struct Lists {
    /// The list of tools.
    pub tools: bool,
    /// The list of prompts.
    pub prompts: bool,
    /// The list of resources and of their templates.
    pub resources: bool,
}

impl ChangeBus {
    /// Opens a feed. After [`ChangeBus::close`] it is born closed.
    pub fn subscribe(&self, wants: ChangeFilter) -> ChangeFeed {
        let mut feeds = lock(&self.0);
        let state = State { wants, closed: feeds.closed, ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let key = feeds.next;
        feeds.next += 1;
        feeds.open.insert(key, Arc::downgrade(&state));
        ChangeFeed { bus: self.clone(), key, state }
    }

    /// Tells every feed that wants it.
    pub fn publish(&self, change: &Change) {
        self.publish_to(change, self.mark());
    }

    /// A mark in the order in which feeds are opened: those that are open now are before it.
    pub fn mark(&self) -> Mark {
        Mark(lock(&self.0).next)
    }

    /// Tells every feed that wants it and was opened before the mark. One that was opened after a
    /// change has seen it: its client lists what is there now.
    pub fn publish_to(&self, change: &Change, mark: Mark) {
        // The feeds are collected first: a woken reader may subscribe or leave at once.
        let open: Vec<_> = {
            let feeds = lock(&self.0);
            let before = feeds.open.iter().filter(|(key, _)| **key < mark.0);
            before.filter_map(|(_, state)| state.upgrade()).collect()
        };
        for state in open {
            let mut state = lock(&state);
            if state.note(change) {
                state.wake();
            }
        }
    }

    /// Whether [`ChangeBus::close`] was called.
    pub fn is_closed(&self) -> bool {
        lock(&self.0).closed
    }

    /// Ends every feed, once what waits in it has been taken.
    pub fn close(&self) {
        let open: Vec<_> = {
            let mut feeds = lock(&self.0);
            feeds.closed = true;
            feeds.open.values().filter_map(Weak::upgrade).collect()
        };
        for state in open {
            let mut state = lock(&state);
            state.closed = true;
            state.wake();
        }
    }
}

impl ChangeFeed {
    /// The next change, or `None` when the bus has closed.
    pub async fn next(&self) -> Option<Change> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next change.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        let mut state = lock(&self.state);
        if let Some(change) = state.take() {
            return Poll::Ready(Some(change));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Starts to listen for one more resource; `false` if there are `bound` of them already, or
    /// their URIs are too long together.
    pub fn add_resource(&self, uri: &str, bound: usize) -> bool {
        let mut state = lock(&self.state);
        let known = &state.wants.resources;
        if known.contains(uri) {
            return true;
        }
        let bytes: usize = known.iter().map(|uri| uri.len()).sum();
        if known.len() >= bound || bytes + uri.len() > URI_BYTES {
            return false;
        }
        state.wants.resources.insert(uri.into());
        true
    }

    /// Stops listening for a resource.
    pub fn remove_resource(&self, uri: &str) {
        let mut state = lock(&self.state);
        state.wants.resources.remove(uri);
        state.resources.remove(uri);
    }

    /// The resources that it listens for.
    pub fn resources(&self) -> BTreeSet<Arc<str>> {
        lock(&self.state).wants.resources.clone()
    }

    /// Listens for these resources and no others.
    pub fn set_resources(&self, uris: BTreeSet<Arc<str>>) {
        let mut state = lock(&self.state);
        state.resources.retain(|uri| uris.contains(uri));
        state.wants.resources = uris;
    }

    /// Ends this feed alone.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.wake();
    }
}

impl Drop for ChangeFeed {
    fn drop(&mut self) {
        lock(&self.bus.0).open.remove(&self.key);
    }
}

impl State {
    /// Remembers a change; `true` if it was wanted and is news.
    fn note(&mut self, change: &Change) -> bool {
        let (wanted, waiting) = match change {
            Change::Tools => (self.wants.lists.tools, &mut self.lists.tools),
            Change::Prompts => (self.wants.lists.prompts, &mut self.lists.prompts),
            Change::Resources => (self.wants.lists.resources, &mut self.lists.resources),
            Change::Resource(uri) => {
                return self.wants.resources.contains(uri) && self.resources.insert(uri.clone());
            }
        };
        wanted && !mem::replace(waiting, true)
    }

    fn take(&mut self) -> Option<Change> {
        if mem::take(&mut self.lists.tools) {
            return Some(Change::Tools);
        }
        if mem::take(&mut self.lists.prompts) {
            return Some(Change::Prompts);
        }
        if mem::take(&mut self.lists.resources) {
            return Some(Change::Resources);
        }
        self.resources.pop_first().map(Change::Resource)
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl fmt::Debug for ChangeBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").field("feeds", &lock(&self.0).open.len()).finish()
    }
}

impl fmt::Debug for ChangeFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("wants", &lock(&self.state).wants).finish_non_exhaustive()
    }
}

/// Nothing here can be left half-changed by a panic, so a poisoned lock is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
