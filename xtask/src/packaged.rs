//! Hello world as a user's project, which depends on the packaged crates alone.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use xtask::process::{self, target_folder};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The transport of hello world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

const OVER_STDIO: &str = r#"//! Hello world over stdio.

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

const OVER_HTTP: &str = include_str!("../../crates/outlive/examples/hello.rs");

impl Transport {
    fn source(self) -> &'static str {
        match self {
            Self::Stdio => OVER_STDIO,
            Self::Http => OVER_HTTP,
        }
    }

    /// The dependency on our crate.
    fn dependency(self) -> String {
        match self {
            Self::Stdio => format!(
                "{{ version = \"{VERSION}\", default-features = false, features = [\"macros\", \"server\"] }}"
            ),
            Self::Http => format!("\"{VERSION}\""),
        }
    }
}

/// Packages every published crate and unpacks it into a folder. Returns the package files.
pub(crate) fn unpack(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let names = published(&metadata()?);
    ensure!(!names.is_empty(), "no crate of the workspace is published");
    eprintln!("packaging {} crates", names.len());
    package(&names)?;
    let unpacked = names.iter().map(|name| {
        let file = format!("{name}-{VERSION}.crate");
        let bytes = fs::read(target_folder().join("package").join(&file))
            .with_context(|| format!("cargo made no {file}"))?;
        tar::Archive::new(GzDecoder::new(bytes.as_slice()))
            .unpack(folder)
            .with_context(|| format!("could not unpack {file}"))?;
        Ok((file, bytes))
    });
    unpacked.collect()
}

/// Writes hello world into a folder with unpacked crates, which are the only ones it finds.
pub(crate) fn write_hello(folder: &Path, transport: Transport) -> Result<()> {
    let names = published(&metadata()?);
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/main.rs"), transport.source())?;
    fs::write(folder.join("Cargo.toml"), manifest(&names, transport))?;
    // The same versions of other crates as in the workspace, which are downloaded already.
    fs::copy(process::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
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

fn manifest(names: &[String], transport: Transport) -> String {
    let dependency = transport.dependency();
    let mut text = format!(
        "[workspace]\nexclude = [\"*\"]\n\n\
         [package]\nname = \"hello\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\noutlive = {dependency}\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n\n\
         [patch.crates-io]\n"
    );
    for name in names.iter().filter(|name| *name != "outlive-cli") {
        text += &format!("{name} = {{ path = \"{name}-{VERSION}\" }}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Transport, manifest, published};

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
        let manifest: toml::Table = manifest(&names, Transport::Http).parse().unwrap();
        let patches = manifest["patch"]["crates-io"].as_table().unwrap();
        assert_eq!(patches.keys().collect::<Vec<_>>(), ["outlive", "outlive-wire"]);
    }
}
