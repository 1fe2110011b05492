//! Files that make a tool worker reload when they change.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use crate::settings::WorkerSettings;

/// Maximum number of watched files.
const MAX_FILES: usize = 10_000;

/// Modification times and sizes of the watched files.
pub(crate) type Stamps = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// Returns the stamps of the watched files of a tool worker.
pub(crate) async fn read(settings: &Arc<WorkerSettings>) -> Stamps {
    if settings.watch.is_empty() {
        return Stamps::new();
    }
    let settings = Arc::clone(settings);
    let look = move || {
        let folder = settings.working_dir.as_deref().unwrap_or(Path::new("."));
        stamps(folder, &settings.watch)
    };
    // Reading a folder blocks.
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// Returns the stamps of the files that match one of the patterns, which are relative to a folder.
///
/// Files are polled: that works where change notifications do not, on network drives and in
/// containers.
fn stamps(folder: &Path, patterns: &[String]) -> Stamps {
    let mut stamps = Stamps::new();
    for pattern in patterns {
        let (subfolder, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
        let entries = fs::read_dir(folder.join(subfolder)).into_iter().flatten().flatten();
        for entry in entries.take(MAX_FILES) {
            let is_meant = entry.file_name().to_str().is_some_and(|file| matches(name, file));
            // `metadata` of an entry does not follow links, which editors and deployments replace.
            if let Ok(file) = fs::metadata(entry.path()).as_ref()
                && is_meant
                && file.is_file()
            {
                stamps.insert(entry.path(), (file.modified().ok(), file.len()));
            }
        }
    }
    stamps
}

/// Returns whether a name matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{matches, stamps};

    #[test]
    fn star_matches_any_text() {
        for (pattern, name) in [
            ("*.py", "tools.py"),
            ("tools.py", "tools.py"),
            ("a*b*c", "aXbYc"),
            ("*", ""),
            ("a*", "a"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.py", "tools.pyc"), ("tools.py", "xtools.py"), ("a*b*c", "acb"), ("ab*ba", "aba")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn stamps_change_with_files_that_match() {
        let folder = std::env::temp_dir().join(format!("outlive-watch-{}", std::process::id()));
        fs::create_dir_all(folder.join("lib")).unwrap();
        let patterns = ["*.py".to_owned(), "lib/*.py".to_owned()];
        fs::write(folder.join("tools.py"), "1").unwrap();
        fs::write(folder.join("lib/a.py"), "1").unwrap();
        fs::write(folder.join("notes.txt"), "1").unwrap();
        let before = stamps(&folder, &patterns);
        assert_eq!(before.len(), 2);
        fs::write(folder.join("notes.txt"), "12").unwrap();
        assert_eq!(stamps(&folder, &patterns), before);
        fs::write(folder.join("lib/a.py"), "12").unwrap();
        assert_ne!(stamps(&folder, &patterns), before);
        fs::remove_dir_all(&folder).unwrap();
    }
}
