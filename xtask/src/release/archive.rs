//! Tar, gzip and SHA-256. The same files always give the same bytes.

use std::io::Write;

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

/// Modification time of every entry, 2000-01-01: the time of the build would change the checksum, and
/// tar warns about 1970.
const MODIFIED: u64 = 946_684_800;

/// A file or folder of an archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    path: String,
    mode: u32,
    /// Numeric ID of the user and group.
    owner: u64,
    /// Content of a file; `None` for a folder.
    content: Option<Vec<u8>>,
}

impl Entry {
    pub(super) fn file(path: &str, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.to_owned(), mode: 0o644, owner: 0, content: Some(content.into()) }
    }

    pub(super) fn program(path: &str, content: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o755, ..Self::file(path, content) }
    }

    pub(super) fn folder(path: &str, mode: u32, owner: u64) -> Self {
        Self { path: path.to_owned(), mode, owner, content: None }
    }
}

/// Returns a tar archive with these entries, in this order.
pub(super) fn tar(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for entry in entries {
        let content = entry.content.as_deref().unwrap_or_default();
        let mut header = Header::new_gnu();
        header.set_entry_type(match entry.content {
            Some(_) => EntryType::Regular,
            None => EntryType::Directory,
        });
        header.set_mode(entry.mode);
        header.set_uid(entry.owner);
        header.set_gid(entry.owner);
        header.set_mtime(MODIFIED);
        header.set_size(content.len() as u64);
        builder
            .append_data(&mut header, &entry.path, content)
            .with_context(|| format!("could not add {} to the archive", entry.path))?;
    }
    builder.into_inner().context("could not write the archive")
}

/// Compresses with gzip.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes).context("could not compress")?;
    encoder.finish().context("could not compress")
}

/// Returns the SHA-256 as lower-case hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use tar::Archive;

    use super::{Entry, gzip, sha256, tar};

    #[test]
    fn archive_keeps_modes_owners_and_content() {
        let entries = [Entry::folder("data", 0o700, 65532), Entry::program("bin/a", "run")];
        let packed = gzip(&tar(&entries).unwrap()).unwrap();
        let mut archive = Archive::new(GzDecoder::new(packed.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            let header = entry.header();
            let path = entry.path().unwrap().display().to_string();
            found.push((path, header.mode().unwrap(), header.uid().unwrap(), content));
        }
        assert_eq!(
            found,
            [
                ("data".to_owned(), 0o700, 65532, String::new()),
                ("bin/a".to_owned(), 0o755, 0, "run".to_owned())
            ]
        );
    }

    #[test]
    fn same_files_give_same_checksum() {
        let sum = || sha256(&gzip(&tar(&[Entry::file("a", "b")]).unwrap()).unwrap());
        assert_eq!(sum(), sum());
    }
}
