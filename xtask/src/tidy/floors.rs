//! The allowed dependencies between crates: a crate uses only crates below it, and some external
//! crates are forbidden.
//!
//! Dependencies of tests are exempt.

use super::tree::Tree;
use super::{findings::Findings, manifest};

struct Floor {
    manifest: &'static str,
    /// The workspace crates that this crate may use.
    uses: &'static [&'static str],
    /// External crates that this crate must not use, including crates named `crate-…`.
    never: &'static [&'static str],
}

const FLOORS: &[Floor] = &[
    Floor { manifest: MANIFESTS[0], uses: &[], never: &["tokio", "hyper", "http"] },
    Floor {
        manifest: MANIFESTS[1],
        uses: &["outlive-wire"],
        never: &["tokio", "hyper", "rusqlite"],
    },
    Floor { manifest: MANIFESTS[2], uses: &["outlive-wire", "outlive-protocol"], never: &[] },
    Floor {
        manifest: MANIFESTS[3],
        uses: &[
            "outlive-wire",
            "outlive-protocol",
            "outlive-schema",
            "outlive-transport",
            "outlive-tasks",
            "outlive-macros",
            "outlive-auth",
            "outlive-auth-proxy",
        ],
        never: &[],
    },
    Floor { manifest: MANIFESTS[4], uses: &[], never: &[] },
    Floor { manifest: MANIFESTS[5], uses: &["outlive-wire"], never: &["hyper", "http"] },
    // Authorization handles requests and principals, but neither tasks nor handlers.
    Floor {
        manifest: MANIFESTS[7],
        uses: &["outlive-wire", "outlive-protocol", "outlive-transport"],
        never: &["rusqlite"],
    },
    // The authorization server issues the tokens that `outlive-auth` verifies.
    Floor {
        manifest: MANIFESTS[9],
        uses: &["outlive-wire", "outlive-protocol", "outlive-transport", "outlive-auth"],
        never: &["rusqlite"],
    },
    // Pages and the program use the facade: if they need more, the facade is incomplete.
    Floor { manifest: MANIFESTS[11], uses: &["outlive"], never: &["hyper", "rusqlite"] },
    // The gateway uses the facade for both of its sides, and supervisors for its processes.
    Floor {
        manifest: MANIFESTS[12],
        uses: &["outlive", "outlive-jobs"],
        never: &["hyper", "rusqlite"],
    },
    // Tool workers are processes whose calls are handlers of the facade.
    Floor {
        manifest: MANIFESTS[13],
        uses: &["outlive", "outlive-jobs"],
        never: &["hyper", "rusqlite"],
    },
    // The program also calls the API of a console. The HTTP client for that is not part of MCP, so
    // the facade does not export it.
    Floor {
        manifest: MANIFESTS[6],
        uses: &[
            "outlive",
            "outlive-console",
            "outlive-gateway",
            "outlive-jobs",
            "outlive-transport",
            "outlive-workers",
        ],
        never: &[],
    },
    // Schemas, forms and URI templates are pure functions over text and JSON.
    Floor {
        manifest: MANIFESTS[10],
        uses: &["outlive-wire"],
        never: &["tokio", "hyper", "http", "rusqlite"],
    },
    // Jobs are processes and files, independent of the protocol.
    Floor { manifest: MANIFESTS[8], uses: &[], never: &["hyper", "http", "rusqlite"] },
];

pub(super) const MANIFESTS: &[&str] = &[
    "crates/wire/Cargo.toml",
    "crates/protocol/Cargo.toml",
    "crates/transport/Cargo.toml",
    "crates/outlive/Cargo.toml",
    "crates/macros/Cargo.toml",
    "crates/tasks/Cargo.toml",
    "apps/cli/Cargo.toml",
    "crates/auth/Cargo.toml",
    "crates/jobs/Cargo.toml",
    "crates/auth-proxy/Cargo.toml",
    "crates/schema/Cargo.toml",
    "crates/console/Cargo.toml",
    "crates/gateway/Cargo.toml",
    "crates/workers/Cargo.toml",
];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.files().iter().filter(|file| is_manifest(&file.path)) {
        let Some(floor) = FLOORS.iter().find(|floor| floor.manifest == file.path) else {
            findings.add(
                &file.path,
                1,
                "the crate has no floor; add it in xtask/src/tidy/floors.rs",
            );
            continue;
        };
        for dependency in
            manifest::dependencies(&file.text).iter().filter(|dependency| !dependency.for_tests)
        {
            let name = dependency.name.as_str();
            if is(name, "outlive") && !floor.uses.contains(&name) {
                findings.add(
                    &file.path,
                    dependency.line,
                    format!("{name} is not below this crate; a crate uses only crates below it"),
                );
            }
            if floor.never.iter().any(|never| is(name, never)) {
                findings.add(
                    &file.path,
                    dependency.line,
                    format!("this crate must not use {name}"),
                );
            }
        }
    }
}

fn is_manifest(path: &str) -> bool {
    path.strip_prefix("crates/")
        .or_else(|| path.strip_prefix("apps/"))
        .and_then(|rest| rest.strip_suffix("/Cargo.toml"))
        .is_some_and(|name| !name.contains('/'))
}

/// Whether a crate is `family` or starts with `family-`, as `hyper-util` does.
fn is(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::check;

    #[test]
    fn dependency_on_higher_crate_is_finding() {
        let wire = "[dependencies]\noutlive-protocol.workspace = true\n";
        let protocol = "[dependencies]\noutlive-wire.workspace = true\n";
        let found = found(
            check,
            &[("crates/wire/Cargo.toml", wire), ("crates/protocol/Cargo.toml", protocol)],
        );
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/wire/Cargo.toml:2:"));
    }

    #[test]
    fn protocol_depending_on_runtime_is_finding() {
        let manifest = "[dependencies]\nhttp = \"1\"\ntokio-util = \"0.7\"\n[dev-dependencies]\ntokio = \"1\"\n";
        let found = found(check, &[("crates/protocol/Cargo.toml", manifest)]);
        assert_eq!(found, ["crates/protocol/Cargo.toml:3: this crate must not use tokio-util"]);
    }

    #[test]
    fn crate_without_floor_is_finding() {
        assert_eq!(found(check, &[("crates/attic/Cargo.toml", "")]).len(), 1);
    }
}
