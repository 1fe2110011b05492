//! Limit of open files: every connection uses one.

/// Enough for the default number of connections. Commands inherit the limit, and some programs loop
/// over every possible descriptor.
#[cfg(unix)]
const ENOUGH: u64 = 65_536;

/// Raises the soft limit of open files, up to the hard limit. Many systems default to 1,024.
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
        tracing::warn!(%error, ?current, wanted, "cannot raise the limit of open files");
    }
}

/// Does nothing: only Unix limits the open files of a process.
#[cfg(not(unix))]
pub(super) fn raise_limit() {}
