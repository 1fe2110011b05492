//! Files and folders: whether others than this user can read or write what must be this user's alone.

use std::{fs, path::Path};

use outlive::server::{SealKeys, http::StaticTokens};

use super::{Check, Level};

const DATA: &str = "data";
const STORE: &str = "store";
const TOKENS: &str = "tokens";
const KEYS: &str = "keys";

/// Checks who can get at the data folder, and at what commands are kept in. Whoever can write it can
/// run commands as this user.
pub(crate) fn data_folder(data: &Path) -> Vec<Check> {
    let mut checks = Vec::new();
    let place = data.display();
    match Access::to(data) {
        None => {}
        Some(access) if access.anyone_writes() => checks.push(Check::new(
            DATA,
            Level::Refused,
            format!("anyone may write {place} (mode {:03o})", access.mode),
            format!("chmod 700 {place}; or --data-dir FOLDER for another one, which is made if it is not there"),
        )),
        Some(Access { owner: Some(owner), user, .. }) => checks.push(Check::new(
            DATA,
            Level::Warning,
            format!("{place} belongs to user {owner}, and this is user {user}"),
            "run this program as the user that it belongs to",
        )),
        Some(Access { mode, .. }) if mode & 0o077 != 0 => checks.push(Check::new(
            DATA,
            Level::Warning,
            format!("others may look into {place} (mode {mode:03o})"),
            format!("chmod 700 {place}"),
        )),
        Some(Access { mode, .. }) => {
            checks.push(Check::ok(DATA, format!("nobody else may look into it (mode {mode:03o})")));
        }
    }
    // The target of a link may belong to another user: its mode is not changed.
    let jobs = data.join("jobs");
    if fs::symlink_metadata(&jobs).is_ok_and(|about| about.is_symlink()) {
        checks.push(Check::new(
            DATA,
            Level::Refused,
            format!("{} is a symbolic link, and has to be a folder", jobs.display()),
            "remove the link; --data-dir FOLDER puts all of it elsewhere",
        ));
    }
    checks
}

/// Checks who can get at the file of a store, if it is one.
pub(crate) fn store_file(url: &str) -> Option<Check> {
    let path = url.strip_prefix("sqlite:")?;
    let path = Path::new(path.strip_prefix("//").unwrap_or(path));
    let (place, access) = (path.display(), Access::to(path)?);
    let mode = access.mode;
    let remedy = format!("chmod 600 {place}");
    if access.anyone_writes() {
        let what = format!("anyone may write the store {place} (mode {mode:03o})");
        return Some(Check::new(STORE, Level::Refused, what, remedy));
    }
    (mode & 0o077 != 0).then(|| {
        let what = format!("others may read or write the store {place} (mode {mode:03o})");
        Check::new(STORE, Level::Warning, what, remedy)
    })
}

/// Checks a file with tokens.
pub(crate) fn tokens(file: &Path) -> Check {
    let place = file.display();
    let tokens = match StaticTokens::from_file(file) {
        Ok(tokens) => tokens,
        Err(error) => {
            let remedy = "a `name token` on each line";
            return Check::new(TOKENS, Level::Refused, error.to_string(), remedy);
        }
    };
    if tokens.is_empty() {
        let what = format!("{place} has no tokens, so nobody would be let in");
        return Check::new(TOKENS, Level::Refused, what, "a `name token` on each line");
    }
    match Access::to(file) {
        Some(access) if access.anyone_writes() => Check::new(
            TOKENS,
            Level::Refused,
            format!(
                "anyone may write {place} (mode {:03o}), and so let themselves in",
                access.mode
            ),
            format!("chmod 600 {place}"),
        ),
        Some(access) => match access.of_others(file) {
            Some(why) => Check::new(TOKENS, Level::Broken, why, format!("chmod 600 {place}")),
            None => Check::ok(
                TOKENS,
                format!("{place} is its owner's alone: {}", callers(tokens.len())),
            ),
        },
        None => Check::ok(TOKENS, format!("{place}: {}", callers(tokens.len()))),
    }
}

fn callers(count: usize) -> String {
    if count == 1 { "1 caller".to_owned() } else { format!("{count} callers") }
}

/// Checks a file with keys that seal.
pub(crate) fn keys(file: &Path) -> Check {
    let place = file.display();
    if !file.exists() {
        return Check::ok(KEYS, format!("{place} will be made"));
    }
    if let Some(why) = Access::to(file).and_then(|access| access.of_others(file)) {
        return Check::new(KEYS, Level::Refused, why, format!("chmod 600 {place}"));
    }
    match SealKeys::from_file(file) {
        Ok(_) => Check::ok(KEYS, format!("{place} is its owner's alone, and has keys")),
        Err(error) => {
            let remedy = "restore it, or name another with `seal_key_file`";
            Check::new(KEYS, Level::Refused, error.to_string(), remedy)
        }
    }
}

/// Who may do what with a file or folder.
struct Access {
    mode: u32,
    /// Whose it is, if it is not this user's.
    owner: Option<u32>,
    user: u32,
}

impl Access {
    /// What the system says of a file; `None` if there is none, or the system does not say it so.
    #[cfg(unix)]
    fn to(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let about = fs::metadata(path).ok()?;
        let user = rustix::process::geteuid().as_raw();
        let owner = (about.uid() != user).then(|| about.uid());
        Some(Self { mode: about.mode() & 0o777, owner, user })
    }

    #[cfg(not(unix))]
    fn to(_path: &Path) -> Option<Self> {
        None
    }

    fn anyone_writes(&self) -> bool {
        self.mode & 0o002 != 0
    }

    /// Why a file is not this user's alone.
    fn of_others(&self, file: &Path) -> Option<String> {
        let Self { mode, owner, user } = self;
        let place = file.display();
        match owner {
            Some(owner) => {
                Some(format!("{place} belongs to user {owner}, and this is user {user}"))
            }
            None => (mode & 0o077 != 0)
                .then(|| format!("others may read or write {place} (mode {mode:03o})")),
        }
    }
}
