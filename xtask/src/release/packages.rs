//! The step `packages`: packages every published crate, and runs hello world in an empty project
//! that depends on the packages alone.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::artifacts::{Artifacts, VERSION, empty_folder, target_folder};
use xtask::process;

/// Hello world over stdio. Only packaged files are visible to it.
const HELLO: &str = r#"//! Hello world over stdio.

use outlive::{server::Server, tool};

/// Greets a person.
#[tool(read_only)]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("hello", "1.0.0").tool(greet::tool()).build()?;
    Ok(server.serve_stdio().await?)
}
"#;

pub(super) fn run(artifacts: &mut Artifacts) -> Result<()> {
    let names = published(&metadata()?);
    ensure!(!names.is_empty(), "no crate of the workspace is published");
    eprintln!("packaging {} crates", names.len());
    package(&names)?;
    let project = empty_folder("release-packages")?;
    for name in &names {
        let file = format!("{name}-{VERSION}.crate");
        let bytes = fs::read(target_folder().join("package").join(&file))
            .with_context(|| format!("cargo made no {file}"))?;
        tar::Archive::new(GzDecoder::new(bytes.as_slice()))
            .unpack(&project)
            .with_context(|| format!("could not unpack {file}"))?;
        artifacts.write(&file, &bytes)?;
    }
    let program = built_hello(&project, &names)?;
    let name = greeted(&program)?;
    eprintln!("hello world from the packages initialized: server `{name}`");
    Ok(())
}

/// Packages the crates. Changes that are not committed are included, as in the other checks.
fn package(names: &[String]) -> Result<()> {
    let command = |options: &[&str]| {
        let mut package = process::cargo(&["package", "--no-verify", "--allow-dirty", "--quiet"]);
        package.args(options);
        for name in names {
            package.args(["--package", name]);
        }
        package
    };
    // Without the network it takes seconds. The network is needed if a dependency is not downloaded yet.
    if process::answer(&mut command(&["--offline"])).is_some() {
        return Ok(());
    }
    eprintln!("packaging without the network failed; retrying with it");
    process::run(&mut command(&[]))
}

fn metadata() -> Result<Value> {
    let text =
        process::answer(&mut process::cargo(&["metadata", "--no-deps", "--format-version", "1"]));
    serde_json::from_str(&text.context("`cargo metadata` failed")?)
        .context("`cargo metadata` printed no JSON")
}

/// Returns the names of the published crates. `publish` is an empty list for all others.
fn published(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let published = packages.filter(|package| package["publish"] != json!([]));
    published.filter_map(|package| package["name"].as_str().map(str::to_owned)).collect()
}

/// Builds hello world in a project that finds our crates only as unpacked packages.
fn built_hello(project: &Path, names: &[String]) -> Result<PathBuf> {
    eprintln!("building hello world from the packages");
    fs::create_dir_all(project.join("src"))?;
    fs::write(project.join("src/main.rs"), HELLO)?;
    fs::write(project.join("Cargo.toml"), manifest(names))?;
    // The same versions of other crates as in the workspace, which are downloaded already.
    fs::copy(process::root().join("Cargo.lock"), project.join("Cargo.lock"))?;
    let mut build = process::cargo(&["build", "--quiet", "--manifest-path"]);
    build.arg(project.join("Cargo.toml"));
    // Outside of the project, so that the next run reuses the build of other crates.
    build.arg("--target-dir").arg(target_folder().join("release-packages-target"));
    build.env_remove("RUSTFLAGS").env("CARGO_INCREMENTAL", "0");
    process::reported(&mut build, "hello")?.context("cargo did not report the binary `hello`")
}

fn manifest(names: &[String]) -> String {
    let mut text = format!(
        "[workspace]\nexclude = [\"*\"]\n\n\
         [package]\nname = \"hello\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\noutlive = \"{VERSION}\"\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n\n\
         [profile.dev]\ndebug = false\n\n[patch.crates-io]\n"
    );
    for name in names.iter().filter(|name| *name != "outlive-cli") {
        text += &format!("{name} = {{ path = \"{name}-{VERSION}\" }}\n");
    }
    text
}

/// Sends `initialize` over stdio and returns the name of the server.
fn greeted(program: &Path) -> Result<String> {
    let mut hello = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("could not start hello world")?;
    let request = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "xtask", "version": VERSION },
        },
    });
    let mut input = hello.stdin.take().context("hello world has no input")?;
    let output = hello.stdout.take().context("hello world has no output")?;
    writeln!(input, "{request}").context("hello world does not read")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).context("hello world does not write")?;
    // The end of the input stops the server.
    drop(input);
    let status = hello.wait()?;
    ensure!(status.success(), "hello world failed: {status}");
    let response: Value = serde_json::from_str(&line)
        .with_context(|| format!("hello world wrote no JSON, but `{}`", line.trim()))?;
    let name = response["result"]["serverInfo"]["name"].as_str();
    name.map(str::to_owned).with_context(|| format!("`initialize` failed: {}", line.trim()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{manifest, published};

    #[test]
    fn crates_with_empty_publish_list_are_not_published() {
        let metadata = json!({ "packages": [
            { "name": "a", "publish": null },
            { "name": "b", "publish": [] },
        ] });
        assert_eq!(published(&metadata), ["a"]);
    }

    #[test]
    fn manifest_of_hello_world_replaces_every_library() {
        let names = ["outlive", "outlive-wire", "outlive-cli"].map(str::to_owned);
        let manifest: toml::Table = manifest(&names).parse().unwrap();
        let patches = manifest["patch"]["crates-io"].as_table().unwrap();
        assert_eq!(patches.keys().collect::<Vec<_>>(), ["outlive", "outlive-wire"]);
    }
}
