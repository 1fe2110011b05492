//! Runs the steps of a release in order, and prints a table of the files that they made.

use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::artifacts::Artifacts;
use super::{binary, deb, homebrew, image, kubernetes, packages, roots};
use xtask::args::Args;

/// Exit code for a command line that asks for something that this command does not do.
const USAGE_ERROR: i32 = 2;

struct Step {
    name: &'static str,
    run: fn(&mut Artifacts) -> Result<()>,
}

/// Every step can run alone: it builds what it needs, and cargo reuses earlier builds.
const STEPS: &[Step] = &[
    Step { name: "packages", run: packages::run },
    Step { name: "binary", run: binary::run },
    Step { name: "image", run: image::run },
    Step { name: "roots", run: roots::run },
    Step { name: "deb", run: deb::run },
    Step { name: "homebrew", run: homebrew::run },
    Step { name: "kubernetes", run: kubernetes::run },
];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let dry_run = args.flag("--dry-run");
    let only = args.values("--only")?;
    args.finish()?;
    if let Some(name) = only.iter().find(|name| !names().contains(&name.as_str())) {
        bail!("unknown step `{name}`; the steps are {}", names().join(", "));
    }
    if !dry_run {
        eprintln!(
            "xtask: the hosted CI publishes a release when a tag `v*` is pushed (.github/workflows/release.yml); pass --dry-run to make and test its files here"
        );
        std::process::exit(USAGE_ERROR);
    }
    let start = Instant::now();
    let mut artifacts = Artifacts::open()?;
    let chosen = |step: &&Step| only.is_empty() || only.iter().any(|name| name == step.name);
    for step in STEPS.iter().filter(chosen) {
        eprintln!("\n== {} ({:.1} s so far)", step.name, start.elapsed().as_secs_f64());
        (step.run)(&mut artifacts).with_context(|| {
            format!(
                "step `{}` failed; repeat it with `cargo xtask release --dry-run --only {}`",
                step.name, step.name
            )
        })?;
    }
    artifacts.write_checksums()?;
    print!("\n{}", artifacts.table()?);
    Ok(())
}

fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

#[cfg(test)]
mod tests {
    use super::{Args, run};

    #[test]
    fn unknown_release_step_is_rejected_with_list_of_steps() {
        let error = run(Args::from_words(&["--dry-run", "--only", "bianry"])).unwrap_err();
        assert!(error.to_string().contains("packages, binary, image"), "{error}");
    }
}
