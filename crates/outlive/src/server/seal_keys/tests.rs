//! Key files: how they are made, shared and refused.

use std::path::{Path, PathBuf};
use std::{
    fs,
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{file::user_file, keys::*};

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outlive-seal-keys-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// A key file with this text, for its owner only.
    fn file(&self, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join("given.key");
        fs::write(&path, text).unwrap();
        set_mode(&path, 0o600);
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) {}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn all(keys: &SealKeys) -> Vec<Key> {
    [&[keys.current], &keys.previous[..]].concat()
}

fn refused(path: &Path) -> String {
    let error = SealKeys::from_file(path).unwrap_err().to_string();
    assert!(error.contains(&path.display().to_string()), "{error}");
    error
}

#[test]
fn a_file_is_made_on_first_use_and_read_from_then_on() {
    let folder = Folder::new();
    let path = folder.0.join("deep").join("down").join("server.key");
    let made = SealKeys::from_file(&path).unwrap();
    assert_eq!(all(&SealKeys::from_file(&path).unwrap()), all(&made));
    assert!(made.previous.is_empty());
    // Nothing else is left behind.
    let files: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let other = SealKeys::from_file(folder.0.join("other.key")).unwrap();
    assert_ne!(all(&other), all(&made));
}

#[cfg(unix)]
#[test]
fn a_file_that_is_made_is_for_its_owner_only() {
    let folder = Folder::new();
    let path = folder.0.join("state").join("server.key");
    SealKeys::from_file(&path).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn processes_that_start_at_once_get_the_same_key() {
    const THREADS: usize = 16;
    for _ in 0..20 {
        let folder = Folder::new();
        let path = folder.0.join("new").join("server.key");
        let start = Barrier::new(THREADS);
        let keys: Vec<Vec<Key>> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        all(&SealKeys::from_file(&path).unwrap())
                    })
                })
                .collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(all(&SealKeys::from_file(&path).unwrap()), keys[0]);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}

#[test]
fn the_first_key_is_the_current_one_and_remarks_are_skipped() {
    let folder = Folder::new();
    let (a, b, c) = ("0a".repeat(32), "0B".repeat(32), "ff".repeat(32));
    let path = folder.file(format!("# keys\n\n  {a}  # since May\r\n{b}\n\t\n#{a}\n{c}"));
    let keys = SealKeys::from_file(path).unwrap();
    assert_eq!(all(&keys), [[0x0A; 32], [0x0B; 32], [0xFF; 32]]);
    let sealed = SealKeys::new([0x0B; 32]).into_seal().seal(b"x", &[]).unwrap();
    let seal = keys.into_seal();
    assert!(seal.open(&sealed, &[]).is_some());
    let sealed = seal.seal(b"x", &[]).unwrap();
    assert!(SealKeys::new([0x0A; 32]).into_seal().open(&sealed, &[]).is_some());
}

#[test]
fn a_line_that_is_no_key_is_named_and_not_shown() {
    let folder = Folder::new();
    let good = "5e".repeat(32);
    for bad in ["5e".repeat(31), "5e".repeat(33), good[1..].into(), good.replace('e', "g")] {
        let error = refused(&folder.file(format!("# one\n{good}\n{bad}\n")));
        assert!(error.contains("given.key:3 is no key"), "{error}");
        assert!(
            error.contains("64 hex digits") && !error.contains("5e5e") && !error.contains("5g")
        );
    }
    let error = refused(&folder.file([0xC3; 32]));
    assert!(error.contains("given.key:1 is no key"), "{error}");
    let error = refused(&folder.file(format!("{good} {good}")));
    assert!(error.contains("given.key:1 is no key"), "{error}");
}

#[test]
fn a_file_without_a_key_is_refused_and_left_alone() {
    let folder = Folder::new();
    for text in ["", "\n\n", "# nothing yet\n"] {
        let path = folder.file(text);
        let error = refused(&path);
        assert!(error.contains("there is no key") && error.contains("remove the file"), "{error}");
        assert_eq!(fs::read_to_string(path).unwrap(), text);
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_others_may_use_is_refused() {
    let folder = Folder::new();
    let path = folder.file("5e".repeat(32));
    for open in [0o644, 0o640, 0o604, 0o620, 0o602, 0o601, 0o666, 0o777] {
        set_mode(&path, open);
        let error = refused(&path);
        let advice = format!("chmod 600 '{}'", path.display());
        assert!(error.contains(&format!("mode {open:o}")) && error.contains(&advice), "{error}");
    }
    for closed in [0o600, 0o400, 0o700] {
        set_mode(&path, closed);
        SealKeys::from_file(&path).unwrap();
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = Folder::new();
    refused(&folder.0);
    // A file where a folder would have to be.
    refused(&folder.file("").join("server.key"));
    #[cfg(unix)]
    {
        let dangling = folder.0.join("dangling.key");
        std::os::unix::fs::symlink(folder.0.join("nowhere"), &dangling).unwrap();
        refused(&dangling);
    }
}

#[test]
fn names_that_could_lead_elsewhere_are_refused() {
    for name in ["", ".", "..", ".hidden", "a/b", "../a", "a\\b", "a b", "ü", "a\n", "C:", "a\0"] {
        let error = SealKeys::for_user(name).unwrap_err().to_string();
        assert!(error.contains("cannot name a key file") && error.contains("letters"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn a_users_file_is_in_the_state_folder() {
    let file = |name: &str, xdg: Option<&str>, home: Option<&str>| {
        user_file(name, |variable| match variable {
            "XDG_STATE_HOME" => xdg.map(Into::into),
            "HOME" => home.map(Into::into),
            _ => None,
        })
    };
    let state = file("a-B_1.2", Some("/state"), Some("/home/anna")).unwrap();
    assert_eq!(state, Path::new("/state/outlive/a-B_1.2.key"));
    for xdg in [None, Some(""), Some("relative")] {
        let home = file("notes", xdg, Some("/home/anna")).unwrap();
        assert_eq!(home, Path::new("/home/anna/.local/state/outlive/notes.key"));
    }
    for home in [None, Some("")] {
        let error = file("notes", None, home).unwrap_err().to_string();
        assert!(error.contains("HOME") && error.contains("SealKeys::from_file"), "{error}");
    }
}

#[test]
fn debug_shows_no_key() {
    let keys = SealKeys::new([0x5E; 32]).with_previous([0x5F; 32]);
    assert_eq!(format!("{keys:?}"), "SealKeys(1 previous)");
    assert_ne!(all(&SealKeys::random().unwrap()), all(&SealKeys::random().unwrap()));
}
