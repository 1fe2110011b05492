//! What a server offers, by name and in order, while it runs.

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

/// Something that is registered by name.
pub(crate) trait Entry: Send + Sync + 'static {
    /// Its name, unique in its registry.
    fn key(&self) -> &str;

    /// Who may know of it, and who may use it.
    fn access(&self) -> &Access;
}

/// Tools, resources, templates or prompts. Lists come in the order of registration; replacing an
/// entry keeps its place.
pub(crate) struct Registry<E> {
    // Read for every call, written when the application changes what it offers.
    entries: RwLock<Entries<E>>,
    /// How many there are. Every call asks whether there are any, and needs no lock for that.
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

    /// Adds or replaces an entry and tells; `true` if there was one of that name.
    pub(crate) fn insert(&self, entry: E) -> bool {
        let known = self.place(entry);
        self.notifier.notify();
        known
    }

    /// Adds or replaces an entry without a word: before a server is served, nothing has changed.
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

    /// Takes an entry out; `false` if there was none.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let Some((place, _)) = entries.by_name.remove(name) else { return false };
        entries.in_order.remove(&place);
        self.count.store(entries.by_name.len(), Ordering::Relaxed);
        drop(entries);
        self.notifier.notify();
        true
    }

    /// The entry of this name, if the caller may know of it. Whether it may use it is another question.
    pub(crate) fn get(&self, name: &str, principal: &Principal) -> Option<Arc<E>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let (_, entry) = entries.by_name.get(name)?;
        entry.access().is_visible_to(principal).then(|| Arc::clone(entry))
    }

    /// What `read` makes of each entry, in their order.
    pub(crate) fn map<T>(&self, read: impl FnMut(&E) -> T) -> Vec<T> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.in_order.values().map(|entry| &**entry).map(read).collect()
    }

    /// Whether there is an entry of this name, for anyone.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).by_name.contains_key(name)
    }

    /// Up to `size` entries after the given place, and the place to go on from if there are more.
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

    /// The first entry, in order, for which `pick` finds something.
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

    /// A visible name that is close to a wrong one, for the message about it.
    pub(crate) fn close_to(&self, wrong: &str, principal: &Principal) -> Option<String> {
        // Comparing costs the product of the lengths: not for what is no name anyway.
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

/// Tells that a list has changed: once for changes that come together.
pub(crate) struct Notifier {
    change: Change,
    bus: ChangeBus,
    clock: Arc<dyn Clock>,
    pause: Duration,
    waiting: AtomicBool,
    /// Who was there at the newest change.
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
        // Outside of a runtime nobody can wait. Feeds remember only that something has changed,
        // so that many changes told at once are still few messages.
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
        // Owned by nobody, because it ends by itself after the pause.
        runtime.spawn(async move {
            notifier.clock.sleep(notifier.pause).await;
            // Before telling: a change that comes while we tell must be told again.
            notifier.waiting.store(false, Ordering::Release);
            let mark = *notifier.mark.lock().unwrap_or_else(PoisonError::into_inner);
            notifier.bus.publish_to(&notifier.change, mark);
        });
    }
}

/// How many letters have to be changed, added or removed to get from one name to the other; two
/// letters that changed places count once.
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
    fn swapped_letters_are_one_slip() {
        assert_eq!(distance("serach", "search"), 1);
        assert_eq!(distance("search", "search"), 0);
        assert_eq!(distance("add", "multiply"), 8);
    }
}
