//! Creation, sharing and validation of key files.

use std::path::{Path, PathBuf};
use std::{
    fs,
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{file::user_file, keys::*};

/// A folder that is deleted on drop.
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

    /// Creates a key file with this content, for its owner only.
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
fn from_file_creates_file_once_and_then_reads_it() {
    let folder = Folder::new();
    let path = folder.0.join("deep").join("down").join("server.key");
    let made = SealKeys::from_file(&path).unwrap();
    assert_eq!(all(&SealKeys::from_file(&path).unwrap()), all(&made));
    assert!(made.previous.is_empty());
    // No temporary file is left.
    let files: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let other = SealKeys::from_file(folder.0.join("other.key")).unwrap();
    assert_ne!(all(&other), all(&made));
}

#[cfg(unix)]
#[test]
fn from_file_creates_file_for_owner_only() {
    let folder = Folder::new();
    let path = folder.0.join("state").join("server.key");
    SealKeys::from_file(&path).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn from_file_in_concurrent_processes_returns_same_key() {
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
fn from_file_uses_first_key_as_current_and_skips_comments() {
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
fn from_file_with_bad_line_reports_line_number_without_content() {
    let folder = Folder::new();
    let good = "5e".repeat(32);
    for bad in ["5e".repeat(31), "5e".repeat(33), good[1..].into(), good.replace('e', "g")] {
        let error = refused(&folder.file(format!("# one\n{good}\n{bad}\n")));
        assert!(error.contains("given.key:3 is not a key"), "{error}");
        assert!(
            error.contains("64 hex digits") && !error.contains("5e5e") && !error.contains("5g")
        );
    }
    let error = refused(&folder.file([0xC3; 32]));
    assert!(error.contains("given.key:1 is not a key"), "{error}");
    let error = refused(&folder.file(format!("{good} {good}")));
    assert!(error.contains("given.key:1 is not a key"), "{error}");
}

#[test]
fn from_file_without_key_fails_and_keeps_file() {
    let folder = Folder::new();
    for text in ["", "\n\n", "# nothing yet\n"] {
        let path = folder.file(text);
        let error = refused(&path);
        assert!(error.contains("contains no key") && error.contains("remove the file"), "{error}");
        assert_eq!(fs::read_to_string(path).unwrap(), text);
    }
}

#[cfg(unix)]
#[test]
fn from_file_accessible_to_other_users_fails() {
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
fn from_file_with_path_that_is_not_a_file_fails() {
    let folder = Folder::new();
    refused(&folder.0);
    // A file in place of the parent folder.
    refused(&folder.file("").join("server.key"));
    #[cfg(unix)]
    {
        let dangling = folder.0.join("dangling.key");
        std::os::unix::fs::symlink(folder.0.join("nowhere"), &dangling).unwrap();
        refused(&dangling);
    }
}

#[test]
fn for_user_with_unsafe_name_fails() {
    for name in ["", ".", "..", ".hidden", "a/b", "../a", "a\\b", "a b", "ü", "a\n", "C:", "a\0"] {
        let error = SealKeys::for_user(name).unwrap_err().to_string();
        assert!(
            error.contains("is not a valid key file name") && error.contains("letters"),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn user_file_is_in_state_folder() {
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
