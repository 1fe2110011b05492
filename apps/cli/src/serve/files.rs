//! How many files the server may have open: every connection is one.

/// Enough for the connections that a server takes by default. More would be inherited by commands, of
/// which some look at every file that they could have.
#[cfg(unix)]
const ENOUGH: u64 = 65_536;

/// Raises the soft limit of open files as far as the hard one allows. Many systems begin with 1,024,
/// for programs that could not have more.
#[cfg(unix)]
pub(super) fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(ENOUGH, |maximum| maximum.min(ENOUGH));
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = Rlimit { current: Some(wanted), maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, ?current, wanted, "the limit of open files could not be raised");
    }
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub(super) fn raise_limit() {}
