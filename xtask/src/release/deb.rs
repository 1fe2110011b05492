//! The step `deb`: a Debian package, which is installed into a Debian root and started there.

use std::env::consts::ARCH;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::archive::gzip;
use super::artifacts::{Artifacts, VERSION, empty_folder};
use super::payload::{LICENSES, Payload};
use super::{binary, roots, smoke};
use xtask::process;

/// Where the service file of the repository expects the program, and where the package has it.
const SERVICE_PROGRAM: (&str, &str) = ("/usr/local/bin/outlive", "/usr/bin/outlive");

pub(super) fn run(artifacts: &mut Artifacts) -> Result<()> {
    let program = binary::built()?;
    let folder = empty_folder("release-deb")?;
    fill(&folder, &program)?;
    let name = format!("outlive_{VERSION}_{}.deb", architecture());
    let mut build = Command::new("dpkg-deb");
    // The same files give the same package: `SOURCE_DATE_EPOCH` is the time of every entry.
    build.env("SOURCE_DATE_EPOCH", "946684800");
    build.args(["--root-owner-group", "--build"]).arg(&folder).arg(artifacts.path(&name));
    process::run(build.stdout(std::process::Stdio::null()))?;
    artifacts.add(&name);
    let root = roots::debian()?;
    eprintln!("installing the package into the Debian root");
    let mut install = Command::new("dpkg");
    install.arg(format!("--root={}", root.display())).arg("--install").arg(artifacts.path(&name));
    process::run(install.stdout(std::process::Stdio::null()))?;
    smoke::check_in_root(&root, "/usr/bin/outlive", None)
}

/// Writes the files of the package.
fn fill(folder: &Path, program: &Path) -> Result<()> {
    let repository = |path: &str| {
        fs::read_to_string(process::root().join(path)).with_context(|| format!("no {path}"))
    };
    let write = |path: &str, content: &[u8], mode: &str| -> Result<()> {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().context("a path in a folder has a parent")?)?;
        fs::write(&path, content)?;
        process::run(Command::new("chmod").arg(mode).arg(&path))
    };
    let bytes = fs::read(program)?;
    write("usr/bin/outlive", &bytes, "755")?;
    let payload = Payload::read(program)?;
    for (name, page) in &payload.man_pages {
        write(&format!("usr/share/man/man1/{name}.gz"), &gzip(page)?, "644")?;
    }
    for (shell, script) in &payload.completions {
        if let Some(path) = shell.debian_path {
            write(path, script, "644")?;
        }
    }
    let service = service(&repository("deploy/outlive.service")?)?;
    write("usr/lib/systemd/system/outlive.service", service.as_bytes(), "644")?;
    let mut copyright = String::new();
    for name in LICENSES {
        copyright += &format!("{name}\n\n{}\n", repository(name)?);
    }
    write("usr/share/doc/outlive/copyright", copyright.as_bytes(), "644")?;
    fs::create_dir_all(folder.join("etc/outlive"))?;
    write("DEBIAN/postinst", repository("deploy/debian/postinst")?.as_bytes(), "755")?;
    write("DEBIAN/control", control(bytes.len() / 1024).as_bytes(), "644")
}

/// Returns the control file. `kilobytes` is the installed size.
fn control(kilobytes: usize) -> String {
    format!(
        "Package: outlive\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: The Outlive authors <outlive@users.noreply.github.com>\n\
         Installed-Size: {kilobytes}\nDepends: passwd\nRecommends: ca-certificates\nSection: net\nPriority: optional\n\
         Homepage: {}\nDescription: commands as MCP tools that survive restarts\n \
         Serves commands as tools of the Model Context Protocol. Calls and tasks\n \
         resume after a crash or a restart of the server.\n",
        architecture(),
        env!("CARGO_PKG_REPOSITORY"),
    )
}

/// Returns the service file with the path of the packaged program.
fn service(text: &str) -> Result<String> {
    let (from, to) = SERVICE_PROGRAM;
    ensure!(text.contains(from), "deploy/outlive.service does not start {from}");
    Ok(text.replace(from, to).replace("# /etc/systemd/system/", "# /usr/lib/systemd/system/"))
}

/// Debian's name of this architecture.
fn architecture() -> &'static str {
    if ARCH == "aarch64" { "arm64" } else { "amd64" }
}

#[cfg(test)]
mod tests {
    use super::{control, service};

    #[test]
    fn control_file_has_required_fields_and_final_newline() {
        let control = control(7);
        for field in ["Package", "Version", "Architecture", "Maintainer", "Description"] {
            let field = format!("{field}: ");
            assert!(control.lines().any(|line| line.starts_with(&field)), "{field}{control}");
        }
        assert!(control.contains("\nInstalled-Size: 7\n") && control.ends_with(".\n"));
        let continued = control.lines().skip_while(|line| !line.starts_with("Description"));
        assert!(continued.skip(1).all(|line| line.starts_with(' ')), "{control}");
    }

    #[test]
    fn service_of_package_starts_packaged_program() {
        assert_eq!(
            service("ExecStart=/usr/local/bin/outlive serve").unwrap(),
            "ExecStart=/usr/bin/outlive serve"
        );
        assert!(service("ExecStart=/opt/outlive").is_err());
    }
}
