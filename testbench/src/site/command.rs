//! The command: copies the pages, has the generator build them, and has a browser check the result.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use xtask::args::Args;
use xtask::packages::{self, CHROMIUM};
use xtask::process;

use super::links::{IMAGES, Project};
use super::pages::{self, Page};
use crate::conformance::suite::{self, Suite};

/// Address of the project on its code host.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

pub(crate) fn run(mut args: Args) -> Result<()> {
    let without_browser = args.flag("--no-browser");
    // Every step of the tests is built with them; this one needs nothing that is built.
    args.flag("--with-tests");
    args.finish()?;
    let root = process::root();
    let source = root.join("site");
    suite::install_once(&source, suite::LENIENTLY)?;
    let folder = target().join("site");
    let pages = copy_pages(root, &folder)?;
    copy_generator(&source, &folder)?;
    let node = Suite::ready(&root.join("conformance"))?.node().to_owned();
    build(&node, &source, &folder)?;
    let built = folder.join(".vitepress/dist");
    if !without_browser {
        check(&node, &source, &built, &pages)?;
    }
    println!("site: {} pages in {}", pages.len(), built.display());
    Ok(())
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| process::root().join("target"), PathBuf::from)
}

/// Writes the pages and pictures into an empty folder, with the links of the site.
fn copy_pages(root: &Path, folder: &Path) -> Result<Vec<Page>> {
    if folder.exists() {
        fs::remove_dir_all(folder).context("could not empty the folder of the site")?;
    }
    let read = |page: Page| {
        let text = fs::read_to_string(root.join(&page.file));
        let text = text.with_context(|| format!("could not read {}", page.file))?;
        anyhow::Ok((page, text))
    };
    let pages: Vec<(Page, String)> =
        pages::read(root)?.into_iter().map(read).collect::<Result<_>>()?;
    let project = Project::new(root, REPOSITORY, &pages);
    let mut broken = Vec::new();
    for (page, text) in &pages {
        let text = project.rewritten(page, text, &mut broken);
        let path = folder.join(format!("{}.md", page.url));
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(&path, pages::readable(&text))?;
    }
    ensure!(broken.is_empty(), "links lead nowhere:\n  {}", broken.join("\n  "));
    let images = folder.join("public/images");
    fs::create_dir_all(&images)?;
    for image in fs::read_dir(root.join(IMAGES)).context("could not read the pictures")? {
        let image = image?;
        fs::copy(image.path(), images.join(image.file_name()))?;
    }
    Ok(pages.into_iter().map(|(page, _)| page).collect())
}

/// The generator reads its configuration and theme beside the pages.
fn copy_generator(source: &Path, folder: &Path) -> Result<()> {
    let theme = folder.join(".vitepress/theme");
    fs::create_dir_all(&theme)?;
    for file in ["config.mjs", "theme/index.mjs", "theme/style.css"] {
        let from = source.join(".vitepress").join(file);
        fs::copy(&from, folder.join(".vitepress").join(file))
            .with_context(|| format!("could not copy {}", from.display()))?;
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(source.join("node_modules"), folder.join("node_modules"))?;
    Ok(())
}

/// Builds the site. A warning of the generator is an error.
fn build(node: &Path, source: &Path, folder: &Path) -> Result<()> {
    let mut vitepress = Command::new(node);
    vitepress
        .arg(source.join("node_modules/vitepress/bin/vitepress.js"))
        .arg("build")
        .arg(folder)
        .env("OUTLIVE_SITE", source)
        .env("OUTLIVE_REPOSITORY", REPOSITORY);
    let output = vitepress.output().context("could not start the generator of the site")?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let warned = said.lines().find(|line| line.to_lowercase().contains("warn"));
    if !output.status.success() || warned.is_some() {
        bail!("the site was not built without a warning:\n{said}");
    }
    Ok(())
}

/// Has a browser open every page, light and dark, on a desktop and on a phone.
fn check(node: &Path, source: &Path, built: &Path, pages: &[Page]) -> Result<()> {
    let chromium = packages::ensure(&CHROMIUM)?;
    let addresses: Vec<String> = pages.iter().map(Page::address).collect();
    let mut script = Command::new(node);
    script
        .arg("check.mjs")
        .arg(chromium)
        .arg(built)
        .arg(serde_json::to_string(&addresses)?)
        .current_dir(source);
    process::run(&mut script).context("the pages have defects")
}
