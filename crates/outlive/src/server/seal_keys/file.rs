//! Reads key files, and makes them so that nobody else ever sees one, or half of one.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    fs::{self, File},
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
};

use crate::server::seal_keys::keys::{Key, SealKeys, SealKeysError};

impl SealKeys {
    /// Reads a key file, or makes it on first use, for its owner only.
    ///
    /// It has one key per line, as 64 hex digits; the first one seals, the others are previous ones.
    /// Empty lines are skipped, and so is what stands behind a `#`. Processes that start at the same
    /// time end up with the same key.
    ///
    /// # Errors
    ///
    /// When the file can be neither read nor made, when others than its owner may read or write it,
    /// and when a line is no key. The message says what to do.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, SealKeysError> {
        read_or_make(path.as_ref())
    }

    /// [`SealKeys::from_file`] in the folder where the user's programs keep their state:
    /// `$XDG_STATE_HOME/outlive/<name>.key`, or `~/.local/state/outlive/<name>.key` where that is
    /// not set, or `%LOCALAPPDATA%\outlive\<name>.key` on Windows.
    ///
    /// This is for servers on stdio, which clients end and start as they like.
    ///
    /// # Errors
    ///
    /// As with [`SealKeys::from_file`], and when the name is not plain (letters, digits, `-`, `_`
    /// and `.`, not beginning with a dot) or the user has no such folder.
    pub fn for_user(name: &str) -> Result<Self, SealKeysError> {
        Self::from_file(user_file(name, |variable| std::env::var_os(variable))?)
    }
}

pub(crate) fn user_file(
    name: &str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, SealKeysError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_plain) {
        return Err(SealKeysError::BadName { name: name.to_owned() });
    }
    // The convention for these variables is that a relative path counts as none.
    let folder = |of| variable(of).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = match cfg!(windows) {
        true => folder("LOCALAPPDATA"),
        false => folder("XDG_STATE_HOME")
            .or_else(|| folder("HOME").map(|home| home.join(".local").join("state"))),
    };
    let state = state.ok_or(SealKeysError::NoStateFolder)?;
    Ok(state.join("outlive").join(format!("{name}.key")))
}

fn read_or_make(path: &Path) -> Result<SealKeys, SealKeysError> {
    match File::open(path) {
        Ok(file) => read(path, file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path),
        Err(source) => Err(SealKeysError::Unreadable { path: path.to_owned(), source }),
    }
}

fn read(path: &Path, mut file: File) -> Result<SealKeys, SealKeysError> {
    let unreadable = |source| SealKeysError::Unreadable { path: path.to_owned(), source };
    // Of the file that is open, not of its name, which may be another's by the time it is read.
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unreadable(io::Error::other("it is not a regular file")));
    }
    if let Some(mode) = private::open_to_others(&metadata) {
        return Err(SealKeysError::OpenToOthers { path: path.to_owned(), mode });
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(unreadable)?;
    parse(path, &text)
}

/// Takes bytes, so that a key in binary is a bad line like any other.
fn parse(path: &Path, text: &[u8]) -> Result<SealKeys, SealKeysError> {
    let mut keys: Option<SealKeys> = None;
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
        if line.is_empty() {
            continue;
        }
        let Some(key) = from_hex(line) else {
            return Err(SealKeysError::BadLine { path: path.to_owned(), line: index + 1 });
        };
        keys = Some(match keys {
            None => SealKeys::new(key),
            Some(keys) => keys.with_previous(key),
        });
    }
    keys.ok_or_else(|| SealKeysError::NoKey { path: path.to_owned() })
}

/// Makes the file under a name of its own and then links it to the right one, which fails if
/// another process was faster: then its key counts. Nothing is ever replaced.
fn make(path: &Path) -> Result<SealKeys, SealKeysError> {
    let not_made = |source| SealKeysError::NotMade { path: path.to_owned(), source };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let keys = SealKeys::random()?;
    // Of no use as a key: it only makes the name one that nobody else has.
    let suffix = to_hex(&SealKeys::random()?.current);
    private::make_folder(folder).map_err(not_made)?;
    let temporary = Temporary::named(folder, path.file_name(), &suffix);
    temporary.write(&format!("{}\n", to_hex(&keys.current))).map_err(not_made)?;
    match fs::hard_link(&temporary.0, path) {
        Ok(()) => {
            // So that the name outlasts a power cut. Not every file system can do this for folders,
            // and nothing is wrong where it cannot.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
            Ok(keys)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match File::open(path) {
            Ok(file) => read(path, file),
            Err(source) => Err(SealKeysError::Unreadable { path: path.to_owned(), source }),
        },
        Err(source) => Err(not_made(source)),
    }
}

/// A file that is gone when this is dropped, however far it got.
struct Temporary(PathBuf);

impl Temporary {
    fn named(folder: &Path, beside: Option<&OsStr>, suffix: &str) -> Self {
        let mut name = beside.unwrap_or_default().to_owned();
        name.push(format!(".{}.new", &suffix[..16]));
        Self(folder.join(name))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut file = private::make_file(&self.0)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn from_hex(text: &[u8]) -> Option<Key> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    bytes.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

fn to_hex(key: &Key) -> String {
    key.iter().fold(String::with_capacity(2 * key.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("memory takes everything");
        text
    })
}

#[cfg(unix)]
mod private {
    //! Files and folders that only their owner can look into.

    use std::{
        fs::{DirBuilder, File, Metadata, OpenOptions},
        io,
        os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
        path::Path,
    };

    pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    pub(crate) fn make_file(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
    }

    /// The permissions of a file that others may read or write.
    pub(crate) fn open_to_others(metadata: &Metadata) -> Option<u32> {
        let mode = metadata.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }
}

#[cfg(not(unix))]
mod private {
    //! Files and folders as their folder hands on its permissions: the user's own folders are closed
    //! to others, and what else there is cannot be told from a mode.

    use std::{
        fs::{self, File, Metadata},
        io,
        path::Path,
    };

    pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    pub(crate) fn make_file(path: &Path) -> io::Result<File> {
        File::create_new(path)
    }

    pub(crate) fn open_to_others(_: &Metadata) -> Option<u32> {
        None
    }
}
