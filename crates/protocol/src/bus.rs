//! Delivers changes of lists and resources to subscribers.
//!
//! A [`ChangeFeed`] stores *that* a list or resource changed, not how often. Its size is therefore
//! bounded by its subscriptions, and a subscriber that does not read blocks no other code.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    future::poll_fn,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use crate::{Change, Principal};

/// Maximum total bytes of the URIs that one legacy session subscribes to. The session keeps them in
/// memory and in the store.
const URI_BYTES: usize = 64 << 10;

/// Publisher of changes to all feeds that subscribe to them. Cheap to clone.
#[derive(Clone, Default)]
pub struct ChangeBus(Arc<Mutex<Feeds>>);

#[derive(Default)]
struct Feeds {
    next: u64,
    open: HashMap<u64, Weak<Mutex<State>>>,
    closed: bool,
    watcher: Option<Arc<dyn SubscriptionWatcher>>,
}

/// Observer of the resources that clients subscribe to. Called without a lock. Must not block.
pub trait SubscriptionWatcher: Send + Sync + 'static {
    /// A client of a principal has subscribed to a resource.
    fn subscribed(&self, principal: &str, uri: &str);

    /// A subscription has ended: by request, or because its session or its call has ended.
    fn unsubscribed(&self, principal: &str, uri: &str);
}

/// A position in the order in which feeds were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// One subscriber's queue of changes.
pub struct ChangeFeed {
    bus: ChangeBus,
    key: u64,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Principal of the subscriber; `None` for a feed without subscriptions.
    principal: Option<Principal>,
    wants: ChangeFilter,
    lists: Lists,
    resources: BTreeSet<Arc<str>>,
    waker: Option<Waker>,
    closed: bool,
}

/// The changes that a feed subscribes to.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the four of the specification")]
pub struct ChangeFilter {
    /// Lists whose changes the feed receives.
    pub lists: Lists,
    /// URIs of the resources whose changes the feed receives.
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
    /// Opens a feed without subscriptions: it only learns when the bus closes. After
    /// [`ChangeBus::close`], the new feed is already closed.
    pub fn closing(&self) -> ChangeFeed {
        self.open(State::default())
    }

    /// Opens a feed for a principal. After [`ChangeBus::close`], the new feed is already closed.
    pub fn subscribe(&self, principal: &Principal, wants: ChangeFilter) -> ChangeFeed {
        let uris = wants.resources.clone();
        let principal = Some(principal.clone());
        let feed = self.open(State { principal, wants, ..State::default() });
        feed.report(&uris, &BTreeSet::new());
        feed
    }

    fn open(&self, state: State) -> ChangeFeed {
        let mut feeds = lock(&self.0);
        let state = Arc::new(Mutex::new(State { closed: feeds.closed, ..state }));
        let key = feeds.next;
        feeds.next += 1;
        feeds.open.insert(key, Arc::downgrade(&state));
        ChangeFeed { bus: self.clone(), key, state }
    }

    /// Sets the observer of subscribed resources. It sees later subscriptions only.
    pub fn watch_subscriptions(&self, watcher: Arc<dyn SubscriptionWatcher>) {
        lock(&self.0).watcher = Some(watcher);
    }

    /// Publishes a change to every feed that subscribes to it.
    pub fn publish(&self, change: &Change) {
        self.publish_to(change, self.mark());
    }

    /// Returns a mark that lies after every feed that is open now.
    pub fn mark(&self) -> Mark {
        Mark(lock(&self.0).next)
    }

    /// Publishes a change to the feeds that subscribe to it and were opened before `mark`.
    ///
    /// A client that subscribes after a change does not need the notification: it lists the new
    /// state.
    pub fn publish_to(&self, change: &Change, mark: Mark) {
        self.publish_where(change, mark, |_| true);
    }

    /// Publishes a change to the feeds that subscribe to it and whose principal has a key for which
    /// `is_meant` returns true.
    pub fn publish_for(&self, change: &Change, is_meant: impl Fn(&str) -> bool) {
        self.publish_where(change, self.mark(), |state| {
            state.principal.as_ref().is_some_and(|principal| is_meant(principal.key()))
        });
    }

    fn publish_where(&self, change: &Change, mark: Mark, is_meant: impl Fn(&State) -> bool) {
        // The feeds are collected first: a woken reader may subscribe or drop its feed at once.
        let open: Vec<_> = {
            let feeds = lock(&self.0);
            let before = feeds.open.iter().filter(|(key, _)| **key < mark.0);
            before.filter_map(|(_, state)| state.upgrade()).collect()
        };
        for state in open {
            let mut state = lock(&state);
            if is_meant(&state) && state.note(change) {
                state.wake();
            }
        }
    }

    /// Returns whether a feed subscribes to changes of a list.
    pub fn has_list_subscribers(&self) -> bool {
        let open: Vec<_> = {
            let feeds = lock(&self.0);
            feeds.open.values().filter_map(Weak::upgrade).collect()
        };
        open.iter().any(|state| lock(state).wants.lists != Lists::default())
    }

    /// Returns whether [`ChangeBus::close`] was called.
    pub fn is_closed(&self) -> bool {
        lock(&self.0).closed
    }

    /// Closes every feed. Readers still receive the changes that are already queued.
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
    /// Returns the next change, or `None` after the feed was closed.
    pub async fn next(&self) -> Option<Change> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next change. Stores the waker of the last caller only.
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

    /// Subscribes to one more resource.
    ///
    /// Returns `false` if the feed already has `bound` resources, or if its URIs would exceed 64
    /// KiB in total.
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
        drop(state);
        self.report(&[Arc::from(uri)].into(), &BTreeSet::new());
        true
    }

    /// Unsubscribes from a resource and drops its queued change.
    pub fn remove_resource(&self, uri: &str) {
        let mut state = lock(&self.state);
        state.resources.remove(uri);
        let removed: BTreeSet<_> = state.wants.resources.take(uri).into_iter().collect();
        drop(state);
        self.report(&BTreeSet::new(), &removed);
    }

    /// Returns the URIs of the subscribed resources.
    pub fn resources(&self) -> BTreeSet<Arc<str>> {
        lock(&self.state).wants.resources.clone()
    }

    /// Replaces the set of subscribed resources.
    pub fn set_resources(&self, uris: BTreeSet<Arc<str>>) {
        let mut state = lock(&self.state);
        state.resources.retain(|uri| uris.contains(uri));
        let before = mem::replace(&mut state.wants.resources, uris);
        let added = state.wants.resources.difference(&before).cloned().collect();
        let removed = before.difference(&state.wants.resources).cloned().collect();
        drop(state);
        self.report(&added, &removed);
    }

    /// Reports changed subscriptions to the observer of the bus.
    fn report(&self, added: &BTreeSet<Arc<str>>, removed: &BTreeSet<Arc<str>>) {
        if added.is_empty() && removed.is_empty() {
            return;
        }
        let Some(watcher) = lock(&self.bus.0).watcher.clone() else { return };
        let Some(principal) = lock(&self.state).principal.clone() else { return };
        added.iter().for_each(|uri| watcher.subscribed(principal.key(), uri));
        removed.iter().for_each(|uri| watcher.unsubscribed(principal.key(), uri));
    }

    /// Closes this feed only.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.wake();
    }
}

impl Drop for ChangeFeed {
    fn drop(&mut self) {
        lock(&self.bus.0).open.remove(&self.key);
        let resources = mem::take(&mut lock(&self.state).wants.resources);
        self.report(&BTreeSet::new(), &resources);
    }
}

impl State {
    /// Queues a change. Returns `true` if the feed subscribes to it and it was not queued yet.
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
        f.debug_struct("ChangeBus").field("feeds", &lock(&self.0).open.len()).finish()
    }
}

impl fmt::Debug for ChangeFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeFeed")
            .field("wants", &lock(&self.state).wants)
            .finish_non_exhaustive()
    }
}

/// Ignores poisoning: no critical section in this file can panic halfway through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
