//! The folder `target/release-artifacts` and the files that this run made in it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::archive::sha256;
use xtask::process::target_folder;

/// Version of the release; all packages have the version of the workspace.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

const CHECKSUMS: &str = "SHA256SUMS";

pub(super) struct Artifacts {
    folder: PathBuf,
    /// Names of the files that this run made.
    made: Vec<String>,
}

impl Artifacts {
    pub(super) fn open() -> Result<Self> {
        Self::open_in(&target_folder().join("release-artifacts"))
    }

    fn open_in(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("could not create {}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), made: Vec::new() })
    }

    /// Returns the path of a file in the folder, which may not exist.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file.
    pub(super) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        fs::write(self.path(name), bytes).with_context(|| format!("could not write {name}"))?;
        self.add(name);
        Ok(())
    }

    /// Adds a file that another program wrote to the folder.
    pub(super) fn add(&mut self, name: &str) {
        eprintln!("made {name}");
        self.made.push(name.to_owned());
    }

    /// Writes `SHA256SUMS` for all published files in the folder, in the format of `sha256sum`.
    pub(super) fn write_checksums(&mut self) -> Result<()> {
        let mut names: Vec<String> = Vec::new();
        for entry in fs::read_dir(&self.folder).context("could not list the files")? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.retain(|name| name != CHECKSUMS);
        names.sort();
        let mut text = String::new();
        for name in &names {
            text += &format!("{}  {name}\n", sha256(&self.read(name)?));
        }
        if names.is_empty() { Ok(()) } else { self.write(CHECKSUMS, text.as_bytes()) }
    }

    /// Returns a table of the files that this run made.
    pub(super) fn table(&self) -> Result<String> {
        let width = self.made.iter().map(String::len).max().unwrap_or(0).max("file".len());
        let mut text = format!("{:<width$} {:>11}  SHA-256\n", "file", "bytes");
        for name in &self.made {
            let bytes = self.read(name)?;
            text += &format!("{name:<width$} {:>11}  {}\n", bytes.len(), sha256(&bytes));
        }
        Ok(text)
    }

    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>> {
        fs::read(self.path(name)).with_context(|| format!("could not read {name}"))
    }
}

/// Returns an empty folder in the target folder, in place of that of an earlier run.
pub(super) fn empty_folder(name: &str) -> Result<PathBuf> {
    let folder = target_folder().join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("could not delete {}", folder.display()))?;
    }
    fs::create_dir_all(&folder)
        .with_context(|| format!("could not create {}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Artifacts;

    #[test]
    fn checksums_have_format_of_sha256sum() {
        let folder = std::env::temp_dir().join(format!("outlive-sums-{}", std::process::id()));
        let mut artifacts = Artifacts::open_in(&folder).unwrap();
        artifacts.write("b", b"").unwrap();
        artifacts.write("a", b"abc").unwrap();
        artifacts.write_checksums().unwrap();
        let sums = String::from_utf8(artifacts.read("SHA256SUMS").unwrap()).unwrap();
        let table = artifacts.table().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            sums,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
        );
        assert_eq!(table.lines().count(), 4, "{table}");
    }
}
