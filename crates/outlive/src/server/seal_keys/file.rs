//! Reads key files, and creates them atomically with access for the owner only.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    fs::{self, File},
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
};

use crate::server::seal_keys::keys::{Key, SealKeys, SealKeysError};

impl SealKeys {
    /// Reads a key file, or creates it on first use with access for its owner only.
    ///
    /// The file has one key per line, as 64 hex digits. The first key is current, the others are
    /// previous keys. Empty lines and comments after `#` are ignored. Processes that start at the
    /// same time get the same key.
    ///
    /// # Errors
    ///
    /// Returns an error if the file can be neither read nor created, other users can read or write
    /// it, or a line is not a key. The message names the remedy.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, SealKeysError> {
        read_or_make(path.as_ref())
    }

    /// Calls [`SealKeys::from_file`] with a file in the user's state folder:
    /// `$XDG_STATE_HOME/outlive/<name>.key`, or `~/.local/state/outlive/<name>.key` if the variable
    /// is not set, or `%LOCALAPPDATA%\outlive\<name>.key` on Windows.
    ///
    /// Use this for stdio servers, which clients stop and start at any time.
    ///
    /// # Errors
    ///
    /// Fails as [`SealKeys::from_file`] does. Also returns an error if the user has no state
    /// folder, or if the name has a leading dot or characters other than letters, digits, `-`, `_`
    /// and `.`.
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
    // By convention, a relative path in these variables is ignored.
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
    // Checks the open file, not its path, because another file may replace the path meanwhile.
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

/// Parses bytes, so that a binary key is reported as a bad line.
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

/// Creates a temporary file and links it to `path`. The link fails if another process was faster;
/// then the key of that process is used. An existing file is never replaced.
fn make(path: &Path) -> Result<SealKeys, SealKeysError> {
    let not_made = |source| SealKeysError::NotMade { path: path.to_owned(), source };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let keys = SealKeys::random()?;
    // Used only for a unique file name, never as a key.
    let suffix = to_hex(&SealKeys::random()?.current);
    private::make_folder(folder).map_err(not_made)?;
    let temporary = Temporary::named(folder, path.file_name(), &suffix);
    temporary.write(&format!("{}\n", to_hex(&keys.current))).map_err(not_made)?;
    match fs::hard_link(&temporary.0, path) {
        Ok(()) => {
            // Makes the new name durable across a power failure. Errors are ignored, because some
            // file systems cannot sync folders.
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

/// A temporary file that is deleted on drop.
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
        write!(text, "{byte:02x}").expect("writing to a `String` cannot fail");
        text
    })
}

#[cfg(unix)]
mod private {
    //! Files and folders that only their owner can access.

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

    /// Returns the permission bits if users other than the owner can read or write the file.
    pub(crate) fn open_to_others(metadata: &Metadata) -> Option<u32> {
        let mode = metadata.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }
}

#[cfg(not(unix))]
mod private {
    //! Files and folders with the inherited permissions of their parent. The user's folders are
    //! private, and a mode cannot describe other permissions.

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
