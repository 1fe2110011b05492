//! Registered items of one kind, by name and in order.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive_protocol::{Change, ChangeBus, Clock, Mark, Principal};

use crate::server::access::Access;

/// An item that is registered by name.
pub(crate) trait Entry: Send + Sync + 'static {
    /// Returns the name, which is unique in its registry.
    fn key(&self) -> &str;

    /// Returns the visibility and required scopes.
    fn access(&self) -> &Access;
}

/// Registry of tools, resources, templates or prompts. Lists have the order of registration. A
/// replacement keeps the position of the replaced item.
pub(crate) struct Registry<E> {
    // Every call reads the entries. They change only when the application adds or removes items.
    entries: RwLock<Entries<E>>,
    /// Number of entries. Every call checks whether the registry is empty, and needs no lock for
    /// it.
    count: AtomicUsize,
    notifier: Arc<Notifier>,
}

struct Entries<E> {
    next: u64,
    by_name: HashMap<Box<str>, (u64, Arc<E>)>,
    in_order: BTreeMap<u64, Arc<E>>,
}

impl<E: Entry> Registry<E> {
    pub(crate) fn new(notifier: Arc<Notifier>) -> Self {
        let entries = Entries { next: 0, by_name: HashMap::new(), in_order: BTreeMap::new() };
        Self { entries: RwLock::new(entries), count: AtomicUsize::new(0), notifier }
    }

    /// Adds or replaces an entry and notifies clients. Returns `true` if an entry with this name
    /// existed.
    pub(crate) fn insert(&self, entry: E) -> bool {
        let known = self.place(entry);
        self.notifier.notify();
        known
    }

    /// Adds or replaces an entry without a notification, for entries of a server that is not
    /// serving yet.
    pub(crate) fn place(&self, entry: E) -> bool {
        let entry = Arc::new(entry);
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let known = entries.by_name.get(entry.key()).map(|(place, _)| *place);
        let place = known.unwrap_or(entries.next);
        entries.next = entries.next.max(place + 1);
        entries.by_name.insert(entry.key().into(), (place, Arc::clone(&entry)));
        entries.in_order.insert(place, entry);
        self.count.store(entries.by_name.len(), Ordering::Relaxed);
        known.is_some()
    }

    /// Removes an entry. Returns `false` if the entry does not exist.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let Some((place, _)) = entries.by_name.remove(name) else { return false };
        entries.in_order.remove(&place);
        self.count.store(entries.by_name.len(), Ordering::Relaxed);
        drop(entries);
        self.notifier.notify();
        true
    }

    /// Returns the entry with this name if the principal can see it. Does not check scopes.
    pub(crate) fn get(&self, name: &str, principal: &Principal) -> Option<Arc<E>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let (_, entry) = entries.by_name.get(name)?;
        entry.access().is_visible_to(principal).then(|| Arc::clone(entry))
    }

    /// Returns the entry with this name, visible or not, for people who decide about its calls.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<E>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.by_name.get(name).map(|(_, entry)| Arc::clone(entry))
    }

    /// Applies `read` to each entry, in order.
    pub(crate) fn map<T>(&self, read: impl FnMut(&E) -> T) -> Vec<T> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.in_order.values().map(|entry| &**entry).map(read).collect()
    }

    /// Returns whether an entry with this name exists, visible or not.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).by_name.contains_key(name)
    }

    /// Returns up to `size` entries after position `after`, and the last position if there are
    /// more.
    pub(crate) fn page(
        &self,
        after: Option<u64>,
        size: usize,
        principal: &Principal,
    ) -> (Vec<Arc<E>>, Option<u64>) {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let from = after.map_or(0, |place| place.saturating_add(1));
        let mut visible = entries
            .in_order
            .range(from..)
            .filter(|(_, entry)| entry.access().is_listed_for(principal));
        let mut page = Vec::new();
        let mut last = None;
        for (place, entry) in visible.by_ref().take(size) {
            page.push(Arc::clone(entry));
            last = Some(*place);
        }
        let more = visible.next().is_some();
        (page, last.filter(|_| more))
    }

    /// Returns the first match of `pick`, in order, among the visible entries.
    pub(crate) fn find<T>(
        &self,
        principal: &Principal,
        pick: impl Fn(&Arc<E>) -> Option<T>,
    ) -> Option<T> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let mut visible =
            entries.in_order.values().filter(|entry| entry.access().is_visible_to(principal));
        visible.find_map(pick)
    }

    /// Returns a visible name similar to an unknown one, for the error message.
    pub(crate) fn close_to(&self, wrong: &str, principal: &Principal) -> Option<String> {
        // The comparison costs the product of the lengths, so longer names are not compared.
        if wrong.len() > 64 {
            return None;
        }
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries
            .in_order
            .values()
            .take(1_000)
            .filter(|entry| entry.access().is_listed_for(principal))
            .map(|entry| (distance(wrong, entry.key()), entry))
            .filter(|(distance, _)| *distance <= 1 + wrong.len() / 5)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, entry)| entry.key().to_owned())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }
}

/// Sends `list_changed` notifications, one for all changes within the debounce interval.
pub(crate) struct Notifier {
    change: Change,
    bus: ChangeBus,
    clock: Arc<dyn Clock>,
    pause: Duration,
    waiting: AtomicBool,
    /// Subscribers that existed at the newest change.
    mark: Mutex<Mark>,
}

impl Notifier {
    pub(crate) fn new(
        change: Change,
        bus: ChangeBus,
        clock: Arc<dyn Clock>,
        pause: Duration,
    ) -> Arc<Self> {
        let (waiting, mark) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Self { change, bus, clock, pause, waiting, mark })
    }

    fn notify(self: &Arc<Self>) {
        // Without a runtime, changes cannot be debounced. Feeds store only the fact of a change, so
        // several changes still become few messages.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return self.bus.publish(&self.change);
        };
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        *mark = self.bus.mark();
        drop(mark);
        if self.waiting.swap(true, Ordering::AcqRel) {
            return;
        }
        let notifier = Arc::clone(self);
        // Detached: it ends after the debounce interval.
        runtime.spawn(async move {
            notifier.clock.sleep(notifier.pause).await;
            // Reset before publishing: a change during the publication needs another notification.
            notifier.waiting.store(false, Ordering::Release);
            let mark = *notifier.mark.lock().unwrap_or_else(PoisonError::into_inner);
            notifier.bus.publish_to(&notifier.change, mark);
        });
    }
}

/// Returns the edit distance between two names. A swap of adjacent letters counts as one edit.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let same = usize::from(a[i - 1] != b[j - 1]);
                    let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    let edit =
                        (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
                    if swapped { edit.min(rows[i - 2][j - 2] + 1) } else { edit }
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distance_with_swapped_letters_is_one() {
        assert_eq!(distance("serach", "search"), 1);
        assert_eq!(distance("search", "search"), 0);
        assert_eq!(distance("add", "multiply"), 8);
    }
}
