//! Checks the permissions of files and folders that only the current user may access.

use std::{fs, path::Path};

use outlive::server::{SealKeys, http::StaticTokens};

use super::{Check, Level};

const DATA: &str = "data";
const STORE: &str = "store";
const TOKENS: &str = "tokens";
const KEYS: &str = "keys";

/// Lines of a token file.
const TOKEN_LINES: &str =
    "write one `name token` per line, and `name token decide` for the console";

/// Checks the permissions of the data folder and its job folder. A user who can write to them can
/// run commands as the current user.
pub(crate) fn data_folder(data: &Path) -> Vec<Check> {
    let mut checks = Vec::new();
    let place = data.display();
    match Access::to(data) {
        None => {}
        Some(access) if access.anyone_writes() => checks.push(Check::new(
            DATA,
            Level::Refused,
            format!("all users can write to {place} (mode {:03o})", access.mode),
            format!("chmod 700 {place}; or choose another folder with --data-dir FOLDER, which is created if missing"),
        )),
        Some(Access { owner: Some(owner), user, .. }) => checks.push(Check::new(
            DATA,
            Level::Warning,
            format!("{place} belongs to user {owner}, but this program runs as user {user}"),
            "run this program as the owner of the folder",
        )),
        Some(Access { mode, .. }) if mode & 0o077 != 0 => checks.push(Check::new(
            DATA,
            Level::Warning,
            format!("other users can access {place} (mode {mode:03o})"),
            format!("chmod 700 {place}"),
        )),
        Some(Access { mode, .. }) => {
            checks.push(Check::ok(DATA, format!("only its owner can access the folder (mode {mode:03o})")));
        }
    }
    // Never change the mode of a link's target: it may belong to another user.
    let jobs = data.join("jobs");
    if fs::symlink_metadata(&jobs).is_ok_and(|about| about.is_symlink()) {
        checks.push(Check::new(
            DATA,
            Level::Refused,
            format!("{} is a symbolic link, but must be a folder", jobs.display()),
            "remove the link; to use another disk, move the whole data folder with --data-dir FOLDER",
        ));
    }
    checks
}

/// Checks the permissions of a SQLite store's file.
pub(crate) fn store_file(url: &str) -> Option<Check> {
    let path = url.strip_prefix("sqlite:")?;
    let path = Path::new(path.strip_prefix("//").unwrap_or(path));
    let (place, access) = (path.display(), Access::to(path)?);
    let mode = access.mode;
    let remedy = format!("chmod 600 {place}");
    if access.anyone_writes() {
        let what = format!("all users can write to the store {place} (mode {mode:03o})");
        return Some(Check::new(STORE, Level::Refused, what, remedy));
    }
    (mode & 0o077 != 0).then(|| {
        let what = format!("other users can read or write the store {place} (mode {mode:03o})");
        Check::new(STORE, Level::Warning, what, remedy)
    })
}

/// Checks a token file.
pub(crate) fn tokens(file: &Path) -> Check {
    let place = file.display();
    let tokens = match StaticTokens::from_file(file) {
        Ok(tokens) => tokens,
        Err(error) => {
            return Check::new(TOKENS, Level::Refused, error.to_string(), TOKEN_LINES);
        }
    };
    if tokens.is_empty() {
        let what = format!("{place} has no tokens, so the server would reject every caller");
        return Check::new(TOKENS, Level::Refused, what, TOKEN_LINES);
    }
    match Access::to(file) {
        Some(access) if access.anyone_writes() => Check::new(
            TOKENS,
            Level::Refused,
            format!(
                "all users can write to {place} (mode {:03o}) and add their own tokens",
                access.mode
            ),
            format!("chmod 600 {place}"),
        ),
        Some(access) => match access.of_others(file) {
            Some(why) => Check::new(TOKENS, Level::Broken, why, format!("chmod 600 {place}")),
            None => Check::ok(
                TOKENS,
                format!("only its owner can access {place}: {}", callers(tokens.len())),
            ),
        },
        None => Check::ok(TOKENS, format!("{place}: {}", callers(tokens.len()))),
    }
}

fn callers(count: usize) -> String {
    if count == 1 { "1 caller".to_owned() } else { format!("{count} callers") }
}

/// Checks a file with seal keys.
pub(crate) fn keys(file: &Path) -> Check {
    let place = file.display();
    if !file.exists() {
        return Check::ok(KEYS, format!("{place} will be created"));
    }
    if let Some(why) = Access::to(file).and_then(|access| access.of_others(file)) {
        return Check::new(KEYS, Level::Refused, why, format!("chmod 600 {place}"));
    }
    match SealKeys::from_file(file) {
        Ok(_) => Check::ok(KEYS, format!("{place} has keys, and only its owner can access it")),
        Err(error) => {
            let remedy = "restore the file, or set `seal_key_file` to another one";
            Check::new(KEYS, Level::Refused, error.to_string(), remedy)
        }
    }
}

/// Permissions of a file or folder.
struct Access {
    mode: u32,
    /// Owner, if it is not the current user.
    owner: Option<u32>,
    user: u32,
}

impl Access {
    /// Reads the permissions. Returns `None` if the file does not exist or the system has no Unix
    /// modes.
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

    /// Describes why the file is accessible to other users, if it is.
    fn of_others(&self, file: &Path) -> Option<String> {
        let Self { mode, owner, user } = self;
        let place = file.display();
        match owner {
            Some(owner) => Some(format!(
                "{place} belongs to user {owner}, but this program runs as user {user}"
            )),
            None => (mode & 0o077 != 0)
                .then(|| format!("other users can read or write {place} (mode {mode:03o})")),
        }
    }
}
