//! Reads a folder of skills.
//!
//! The tree is walked once, with limits on depth, files and bytes. A link that points outside the
//! folder is an error, and so is an entry that is neither a file nor a folder.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use bytes::Bytes;

use crate::server::skills::{
    error::SkillError,
    skill::{MAX_FILE_BYTES, MAX_TOTAL_BYTES, Origin, SKILL_MD, Skill},
};

/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 16;

/// Maximum number of files and folders in a folder of skills.
const MAX_ENTRIES: usize = 16_384;

/// A walk through a folder.
struct Walk {
    /// Canonical path of the folder, without links.
    root: PathBuf,
    entries: usize,
    bytes: usize,
    /// Contents of all files, by path relative to the root.
    files: BTreeMap<String, Bytes>,
}

/// Reads the skills of a folder.
pub(crate) fn read(folder: &Path) -> Result<Vec<Skill>, SkillError> {
    let failed = |error: io::Error| unreadable(folder, &error);
    let root = folder.canonicalize().map_err(failed)?;
    if !root.metadata().map_err(failed)?.is_dir() {
        return Err(SkillError::at(
            folder.display(),
            "is not a folder; pass a folder that contains skills",
        ));
    }
    let mut walk = Walk { root: root.clone(), entries: 0, bytes: 0, files: BTreeMap::new() };
    walk.folder(&root, "", 0)?;
    let mut paths: Vec<&str> = Vec::new();
    for file in walk.files.keys() {
        match file.strip_suffix(SKILL_MD) {
            Some("") => return Err(at_the_root(folder)),
            Some(path) => paths.extend(path.strip_suffix('/')),
            None => {}
        }
    }
    Ok(paths.into_iter().map(|path| skill(folder, path, &walk.files)).collect())
}

fn at_the_root(folder: &Path) -> SkillError {
    let what = "is a skill itself; pass its parent folder, or move the skill into a subfolder";
    SkillError::at(folder.display(), what)
}

/// Returns the skill of a folder with a `SKILL.md`. Nested skills are also part of it.
fn skill(folder: &Path, path: &str, files: &BTreeMap<String, Bytes>) -> Skill {
    let (prefix, name) = path.rsplit_once('/').unwrap_or(("", path));
    let inside = files.iter().filter_map(|(file, contents)| {
        let file = file.strip_prefix(path)?.strip_prefix('/')?;
        Some((file.to_owned(), contents.clone()))
    });
    let place = folder.join(path).display().to_string();
    Skill {
        prefix: prefix.to_owned(),
        files: inside.collect(),
        origin: Some(Origin { name: name.to_owned(), place }),
    }
}

impl Walk {
    fn folder(&mut self, folder: &Path, path: &str, depth: usize) -> Result<(), SkillError> {
        if depth > MAX_DEPTH {
            return Err(SkillError::at(
                folder.display(),
                format_args!("folders are nested deeper than {MAX_DEPTH}"),
            ));
        }
        let failed = |error: io::Error| unreadable(folder, &error);
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                let what = format!(
                    "has more than {MAX_ENTRIES} files; pass a folder that contains only skills"
                );
                return Err(SkillError::at(self.root.display(), what));
            }
            let Some(name) = name.to_str() else {
                return Err(SkillError::at(entry.path().display(), "its name is not UTF-8"));
            };
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            self.entry(&entry.path(), path, depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, place: &Path, path: String, depth: usize) -> Result<(), SkillError> {
        let failed = |error: io::Error| unreadable(place, &error);
        let target = place.canonicalize().map_err(failed)?;
        if !target.starts_with(&self.root) {
            let what =
                "is a link that points outside the folder; copy the file, or remove the link";
            return Err(SkillError::at(place.display(), what));
        }
        // The type is checked on the resolved path, so that no pipe or device is opened.
        let kind = fs::symlink_metadata(&target).map_err(failed)?.file_type();
        if kind.is_dir() {
            return self.folder(&target, &path, depth + 1);
        }
        if !kind.is_file() {
            return Err(SkillError::at(place.display(), "is neither a file nor a folder"));
        }
        let mut contents = Vec::new();
        let file = File::open(&target).map_err(failed)?;
        file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut contents).map_err(failed)?;
        if contents.len() > MAX_FILE_BYTES {
            let what = format!("the file has more than {MAX_FILE_BYTES} bytes");
            return Err(SkillError::at(place.display(), what));
        }
        self.bytes += contents.len();
        if self.bytes > MAX_TOTAL_BYTES {
            let what = format!("all files together have more than {MAX_TOTAL_BYTES} bytes");
            return Err(SkillError::at(self.root.display(), what));
        }
        self.files.insert(path, Bytes::from(contents));
        Ok(())
    }
}

fn unreadable(place: &Path, error: &io::Error) -> SkillError {
    SkillError::at(place.display(), format_args!("cannot be read: {error}"))
}
