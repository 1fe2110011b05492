//! Delegates: the newest access token of each caller, for its exchange.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use outlive_protocol::{Clock, Principal};
use outlive_transport::{TokioClock, client::SecretString};

use super::digest::Digest;
use crate::client::Assertion;

/// Maximum number of callers. The one without a request for the longest time is forgotten.
const MAX_CALLERS: usize = 10_000;

/// Time without a request after which a caller is forgotten.
const UNUSED: Duration = Duration::from_secs(86_400);

/// The newest access token of each caller, which a program on the server may exchange for a token at
/// another server (RFC 8693).
///
/// Pass clones to [`ResourceServerBuilder::delegates`](super::ResourceServerBuilder::delegates) and
/// to the program. No method returns a token: only the OAuth client of this crate can open a
/// [`Delegates::subject`], and it sends the token to the configured token endpoint. The tokens are in
/// memory only.
///
/// ```
/// use outlive_auth::{
///     client::{OAuth, TokenExchange},
///     server::{Delegates, Issuer, ResourceServer},
/// };
///
/// let delegates = Delegates::new();
/// let auth = ResourceServer::builder("https://mcp.example.com/mcp")
///     .issuer(Issuer::new("https://id.example.com"))
///     .delegates(delegates.clone())
///     .build()?;
/// # let principal = outlive_protocol::Principal::named("ann");
/// let subject = delegates.subject(&principal);
/// let exchange = TokenExchange::new("https://id.example.com/token", subject).audience("tracker");
/// let oauth = OAuth::builder("https://tracker.example.com/mcp")
///     .client_id("gateway")
///     .client_secret("…")
///     .token_exchange(exchange)
///     .build();
/// # Ok::<(), outlive_auth::server::ResourceServerBuildError>(())
/// ```
#[derive(Clone)]
pub struct Delegates(Arc<State>);

struct State {
    clock: Arc<dyn Clock>,
    // A std mutex: no code awaits while it is held.
    callers: Mutex<HashMap<Box<str>, Delegate>>,
}

/// The newest token of one caller.
struct Delegate {
    token: SecretString,
    digest: Digest,
    /// Time of the last request.
    seen_at: Instant,
    /// Whether there was a request since [`Delegates::take_active`] returned the caller.
    is_active: bool,
    /// Time at which [`Delegates::take_active`] returned the caller.
    taken_at: Option<Instant>,
}

impl Default for Delegates {
    fn default() -> Self {
        Self::new()
    }
}

impl Delegates {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(TokioClock::new()))
    }

    /// Creates an empty collection with this clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(State { clock, callers: Mutex::default() }))
    }

    /// Returns the newest token of a caller as the subject of an exchange. The exchange fails if the
    /// caller has sent no request.
    pub fn subject(&self, caller: &Principal) -> Assertion {
        let (delegates, caller) = (self.clone(), caller.key().to_owned());
        Assertion::from_fn(move || {
            let token = delegates.token(&caller);
            async move {
                token.ok_or_else(|| {
                    "the user has sent no request to this server recently; send one".to_owned()
                })
            }
        })
    }

    /// Returns callers with a request since the last time that this method returned them, at most
    /// once in `interval` each.
    pub fn take_active(&self, interval: Duration, max: usize) -> Vec<Principal> {
        let now = self.0.clock.now();
        let mut callers = self.callers();
        let is_due = |delegate: &Delegate| {
            let taken = delegate.taken_at.map(|at| now.saturating_duration_since(at));
            delegate.is_active && taken.is_none_or(|span| span >= interval)
        };
        let due = callers.iter_mut().filter(|(_, delegate)| is_due(delegate)).take(max);
        due.filter_map(|(key, delegate)| {
            (delegate.is_active, delegate.taken_at) = (false, Some(now));
            Principal::from_key(key)
        })
        .collect()
    }

    /// Notes the token of a request.
    pub(super) fn note(&self, caller: &Principal, sent: &[u8], sent_digest: &Digest) {
        let now = self.0.clock.now();
        let mut callers = self.callers();
        if let Some(known) = callers.get_mut(caller.key())
            && known.digest == *sent_digest
        {
            (known.seen_at, known.is_active) = (now, true);
            return;
        }
        let Ok(token) = str::from_utf8(sent) else { return };
        if callers.len() >= MAX_CALLERS {
            callers.retain(|_, known| now.saturating_duration_since(known.seen_at) < UNUSED);
            let oldest = callers.iter().min_by_key(|(_, known)| known.seen_at);
            let oldest = oldest.map(|(key, _)| key.clone());
            if let Some(oldest) = oldest.filter(|_| callers.len() >= MAX_CALLERS) {
                callers.remove(&oldest);
            }
        }
        let delegate = Delegate {
            token: SecretString::new(token),
            digest: *sent_digest,
            seen_at: now,
            is_active: true,
            taken_at: callers.get(caller.key()).and_then(|known| known.taken_at),
        };
        callers.insert(caller.key().into(), delegate);
    }

    fn token(&self, caller: &str) -> Option<SecretString> {
        let now = self.0.clock.now();
        let callers = self.callers();
        let known = callers.get(caller)?;
        let is_recent = now.saturating_duration_since(known.seen_at) < UNUSED;
        is_recent.then(|| known.token.clone())
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<Box<str>, Delegate>> {
        self.0.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Delegates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Delegates(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::digest::digest;

    fn note(delegates: &Delegates, caller: &Principal, token: &str) {
        delegates.note(caller, token.as_bytes(), &digest(token.as_bytes()));
    }

    #[test]
    fn newest_token_of_each_caller_is_the_subject() {
        let delegates = Delegates::new();
        let (ada, bob) = (Principal::named("ada"), Principal::named("bob"));
        note(&delegates, &ada, "first");
        note(&delegates, &bob, "other");
        note(&delegates, &ada, "second");
        assert_eq!(delegates.token(ada.key()), Some(SecretString::new("second")));
        assert_eq!(delegates.token(bob.key()), Some(SecretString::new("other")));
        assert_eq!(delegates.token(Principal::named("eve").key()), None);
        let shown = format!("{delegates:?} {:?}", delegates.subject(&ada));
        assert!(!shown.contains("second"), "{shown}");
    }

    #[test]
    fn active_caller_is_returned_once_per_request_and_interval() {
        let delegates = Delegates::new();
        let ada = Principal::named("ada");
        note(&delegates, &ada, "token");
        assert_eq!(delegates.take_active(Duration::ZERO, 9), std::slice::from_ref(&ada));
        assert!(delegates.take_active(Duration::ZERO, 9).is_empty());
        note(&delegates, &ada, "token");
        assert!(delegates.take_active(Duration::from_secs(60), 9).is_empty());
        assert_eq!(delegates.take_active(Duration::ZERO, 9), [ada]);
    }
}
