//! Checks the data folder: existence, owner, mode, free space, and a path short enough for Unix
//! sockets.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
};

use super::Finding;
use crate::checks;

const DATA: &str = "data";

/// Returns the nearest existing ancestor of a data folder that does not exist yet.
fn nearest(data: &Path) -> Option<PathBuf> {
    let full = std::path::absolute(data).ok()?;
    full.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned)
}

pub(super) fn check(data: &Path) -> Vec<Finding> {
    let place = data.display();
    let another = "choose another folder with --data-dir FOLDER or OUTLIVE_DATA_DIR";
    let (folder, there) = match (data.is_dir(), data.exists()) {
        (true, _) => (data.to_owned(), true),
        (false, true) => {
            return vec![Finding::failure(DATA, format!("{place} is not a folder"), another)];
        }
        (false, false) => match nearest(data) {
            Some(above) => (above, false),
            None => {
                return vec![Finding::failure(DATA, format!("cannot create {place}"), another)];
            }
        },
    };
    let mut findings = vec![match (writable(&folder), there) {
        (Ok(()), true) => Finding::ok(DATA, format!("{place} is writable")),
        (Ok(()), false) => Finding::ok(DATA, format!("{place} will be created")),
        (Err(error), _) => Finding::failure(
            DATA,
            format!("cannot write to {}: {error}", folder.display()),
            format!("give this user write permission, or {another}"),
        ),
    }];
    findings.extend(space(&folder));
    if there {
        findings.extend(checks::data_folder(&folder).into_iter().map(Finding::from));
    }
    findings.extend(socket(data, &folder, there));
    findings
}

/// A test file or socket with a unique name, deleted on drop.
struct Trial(PathBuf);

impl Trial {
    fn in_folder(folder: &Path, end: &str) -> Self {
        Self(folder.join(format!(".doctor-{}{end}", process::id())))
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn writable(folder: &Path) -> io::Result<()> {
    let trial = Trial::in_folder(folder, "");
    fs::OpenOptions::new().write(true).create_new(true).open(&trial.0)?;
    Ok(())
}

#[cfg(unix)]
fn space(folder: &Path) -> Option<Finding> {
    const MIB: u64 = 1 << 20;
    let disk = rustix::fs::statvfs(folder).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize) / MIB;
    let what = format!("{free} MiB free on the disk of the data folder");
    Some(match free {
        0..64 => {
            Finding::failure("disk", what, "free some space: tasks cannot record their progress")
        }
        64..1_024 => Finding::warning("disk", what, "free some space"),
        _ => Finding::ok("disk", what),
    })
}

#[cfg(not(unix))]
fn space(_folder: &Path) -> Option<Finding> {
    None
}

/// Checks that the supervisors of commands can open their sockets in the data folder.
#[cfg(unix)]
fn socket(data: &Path, folder: &Path, there: bool) -> Option<Finding> {
    use std::os::unix::net::{UnixListener, UnixStream};

    use outlive_jobs::ShortPath;
    const LONGEST: &str = "jobs/.ctl/01234567";
    const CHECK: &str = "socket";
    let full = std::path::absolute(data).ok()?;
    if let Err(error) = ShortPath::new(&full.join(LONGEST)) {
        return Some(Finding::failure(
            CHECK,
            format!("the path {} is too long for Unix sockets: {error}", full.display()),
            "choose a shorter path with --data-dir FOLDER or OUTLIVE_DATA_DIR, or set TMPDIR to a folder for temporary files",
        ));
    }
    if !there {
        return Some(Finding::ok(CHECK, "supervisors can open sockets in the data folder"));
    }
    let trial = Trial::in_folder(folder, ".s");
    let opened = ShortPath::new(&trial.0).and_then(|short| {
        let _listener = UnixListener::bind(short.path())?;
        UnixStream::connect(short.path())
    });
    Some(match opened {
        Ok(_) => Finding::ok(CHECK, "supervisors can open sockets in the data folder"),
        Err(error) => Finding::failure(
            CHECK,
            format!("cannot open a socket in {}: {error}", folder.display()),
            "choose a folder on a local disk with --data-dir FOLDER or OUTLIVE_DATA_DIR",
        ),
    })
}

#[cfg(not(unix))]
fn socket(_data: &Path, _folder: &Path, _there: bool) -> Option<Finding> {
    None
}
