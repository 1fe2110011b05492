//! The data folder: there, ours, private, with room, and with a path that is short enough for the
//! sockets of those who watch over commands.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
};

use super::Finding;
use crate::checks;

const DATA: &str = "data";

/// What is asked for when nothing is there yet: the nearest folder above that is.
fn nearest(data: &Path) -> Option<PathBuf> {
    let full = std::path::absolute(data).ok()?;
    full.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned)
}

pub(super) fn check(data: &Path) -> Vec<Finding> {
    let place = data.display();
    let another = "--data-dir FOLDER, or OUTLIVE_DATA_DIR, for another one";
    let (folder, there) = match (data.is_dir(), data.exists()) {
        (true, _) => (data.to_owned(), true),
        (false, true) => {
            return vec![Finding::failure(DATA, format!("{place} is no folder"), another)];
        }
        (false, false) => match nearest(data) {
            Some(above) => (above, false),
            None => {
                return vec![Finding::failure(DATA, format!("{place} cannot be made"), another)];
            }
        },
    };
    let mut findings = vec![match (writable(&folder), there) {
        (Ok(()), true) => Finding::ok(DATA, format!("{place} can be written")),
        (Ok(()), false) => Finding::ok(DATA, format!("{place} will be made")),
        (Err(error), _) => Finding::failure(
            DATA,
            format!("{} cannot be written: {error}", folder.display()),
            format!("let this user write it, or {another}"),
        ),
    }];
    findings.extend(space(&folder));
    if there {
        findings.extend(checks::data_folder(&folder).into_iter().map(Finding::from));
    }
    findings.extend(socket(data, &folder, there));
    findings
}

/// A file with a name of its own, gone when it is not looked at any more.
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
    let what = format!("{free} MiB are free where it is");
    Some(match free {
        0..64 => {
            Finding::failure("disk", what, "free some space: what tasks record would be refused")
        }
        64..1_024 => Finding::warning("disk", what, "free some space"),
        _ => Finding::ok("disk", what),
    })
}

#[cfg(not(unix))]
fn space(_folder: &Path) -> Option<Finding> {
    None
}

/// Commands are watched over through sockets in the data folder, whose paths must be short.
#[cfg(unix)]
fn socket(data: &Path, folder: &Path, there: bool) -> Option<Finding> {
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    const LONGEST: &str = "jobs/.ctl/01234567";
    const CHECK: &str = "socket";
    let full = std::path::absolute(data).ok()?;
    if SocketAddr::from_pathname(full.join(LONGEST)).is_err() {
        return Some(Finding::failure(
            CHECK,
            format!("the path of {} is too long for sockets in it", full.display()),
            "--data-dir FOLDER, or OUTLIVE_DATA_DIR, for one with a shorter path",
        ));
    }
    if !there {
        return Some(Finding::ok(CHECK, "its path is short enough for sockets"));
    }
    let trial = Trial::in_folder(folder, ".s");
    let opened = UnixListener::bind(&trial.0).and_then(|_listener| UnixStream::connect(&trial.0));
    Some(match opened {
        Ok(_) => Finding::ok(CHECK, "commands can be watched over: a socket in it can be opened"),
        Err(error) => Finding::failure(
            CHECK,
            format!("no socket can be opened in {}: {error}", folder.display()),
            "--data-dir FOLDER, or OUTLIVE_DATA_DIR, for one on a local disk",
        ),
    })
}

#[cfg(not(unix))]
fn socket(_data: &Path, _folder: &Path, _there: bool) -> Option<Finding> {
    None
}
