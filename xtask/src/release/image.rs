//! The step `image`: a container image with only the program, CA roots and a user, which is then run.

use std::env::consts::ARCH;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::archive::{Entry, tar};
use super::artifacts::{Artifacts, VERSION, empty_folder};
use super::oci::Image;
use super::{binary, smoke};
use xtask::process;

/// Largest image, compressed.
const MAX_BYTES: usize = 25_000_000;

/// Numeric ID of the user in deploy/image/passwd.
const USER: u32 = 65532;

/// Files with the CA roots of the system.
const CA_ROOTS: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Container runtimes with the same command line.
const RUNTIMES: &[&str] = &["docker", "podman"];

pub(super) fn run(artifacts: &mut Artifacts) -> Result<()> {
    let files = files(&binary::built()?)?;
    let name = format!("outlive:{VERSION}");
    let architecture = if ARCH == "aarch64" { "arm64" } else { "amd64" };
    let image = Image { name: &name, architecture, config: config(), files: &files };
    let archive = image.archive()?;
    let file = format!("outlive-{VERSION}-{ARCH}-image.tar");
    artifacts.write(&file, &archive)?;
    eprintln!("the image has {} bytes, at most {MAX_BYTES}", archive.len());
    ensure!(archive.len() <= MAX_BYTES, "the image has more than {MAX_BYTES} bytes");
    let works = |runtime: &&&str| process::answer(Command::new(runtime).arg("info")).is_some();
    match RUNTIMES.iter().find(works) {
        Some(runtime) => run_container(runtime, &artifacts.path(&file), &name),
        None => run_root(&files),
    }
}

/// Returns the files of the image.
fn files(program: &Path) -> Result<Vec<Entry>> {
    let deploy = process::root().join("deploy/image");
    let roots = CA_ROOTS.iter().find(|path| Path::new(path).exists());
    let roots = roots.context("this machine has no file with CA roots; install ca-certificates")?;
    let read =
        |path: &Path| fs::read(path).with_context(|| format!("could not read {}", path.display()));
    Ok(vec![
        Entry::program("outlive", read(program)?),
        Entry::folder("etc", 0o755, 0),
        Entry::file("etc/passwd", read(&deploy.join("passwd"))?),
        Entry::file("etc/group", read(&deploy.join("group"))?),
        Entry::folder("etc/ssl", 0o755, 0),
        Entry::folder("etc/ssl/certs", 0o755, 0),
        Entry::file("etc/ssl/certs/ca-certificates.crt", read(Path::new(roots))?),
        Entry::folder("data", 0o700, u64::from(USER)),
        Entry::folder("tmp", 0o1777, 0),
    ])
}

/// Returns the settings of a container. A file `/data/outlive.toml` is found without an argument.
fn config() -> Value {
    json!({
        "User": format!("{USER}:{USER}"),
        "Env": ["PATH=/", "HOME=/data", "OUTLIVE_DATA_DIR=/data"],
        "Entrypoint": ["/outlive", "serve"],
        "ExposedPorts": { "8000/tcp": {} },
        "Volumes": { "/data": {} },
        "WorkingDir": "/data",
        "Labels": {
            "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
            "org.opencontainers.image.version": VERSION,
        },
    })
}

/// Runs the image in a container, which is removed afterwards.
fn run_container(runtime: &str, archive: &Path, image: &str) -> Result<()> {
    eprintln!("running the image with {runtime}");
    process::run(Command::new(runtime).args(["load", "--input"]).arg(archive))?;
    let container = format!("outlive-release-{}", std::process::id());
    let checked = smoke::check(&|words| {
        let mut command = Command::new(runtime);
        command.args(["run", "--rm", "--name", &container, "--network", "host"]);
        command.args(["--entrypoint", "/outlive", image]).args(words);
        command
    });
    // Killing the client of a runtime leaves its container running.
    process::answer(Command::new(runtime).args(["rm", "--force", &container]));
    checked
}

/// Runs the root file system of the image with `chroot`.
fn run_root(files: &[Entry]) -> Result<()> {
    eprintln!("no container runtime works here; running the image's root file system with chroot");
    let root = empty_folder("release-image")?;
    let mut archive = tar::Archive::new(std::io::Cursor::new(tar(files)?));
    archive.set_preserve_permissions(true);
    archive.set_preserve_ownerships(xtask::packages::is_root());
    archive.unpack(&root).context("could not unpack the image")?;
    smoke::check_in_root(&root, "/outlive", Some(USER))
}
