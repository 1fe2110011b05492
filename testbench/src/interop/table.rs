//! The table of results, and its unexpected cells.

use std::fmt::Write as _;

use super::excuses::{self, Excuse};
use super::legs::{FEATURES, Leg, Side};

/// A leg, and the error of each tested feature.
pub(super) struct Row {
    pub(super) leg: Leg,
    pub(super) row: Vec<(String, Option<String>)>,
}

/// The result of a feature.
enum Cell<'a> {
    Works,
    /// The feature does not exist on this leg.
    Absent,
    Excused(&'static Excuse, Option<&'a str>),
    Broken(Option<&'a str>),
    /// The feature works, but has an excuse.
    Outdated,
}

impl Row {
    fn cell(&self, feature: &str) -> Cell<'_> {
        if !self.leg.has(feature) {
            return Cell::Absent;
        }
        let excuse = excuses::of(&self.leg, feature);
        let tried = self.row.iter().find(|(it, _)| it == feature).map(|(_, why)| why.as_deref());
        match (tried, excuse) {
            (Some(None), None) => Cell::Works,
            (Some(None), Some(_)) => Cell::Outdated,
            (tried, Some(excuse)) if tried.flatten().unwrap_or_default().contains(excuse.says) => {
                Cell::Excused(excuse, tried.flatten())
            }
            (tried, _) => Cell::Broken(tried.flatten()),
        }
    }

    /// Every cell that fails the command.
    pub(super) fn wrong(&self) -> Vec<String> {
        let wrong = FEATURES.iter().filter_map(|feature| match self.cell(feature) {
            Cell::Broken(why) => {
                Some(format!("{}, {feature}: {}", self.leg, why.unwrap_or("was not tested")))
            }
            Cell::Outdated => Some(format!("{}, {feature}: works; remove its excuse", self.leg)),
            _ => None,
        });
        wrong.collect()
    }
}

/// The section about packages.
const PACKAGES: &str = "
## Packages

`conformance/interop` and `peers` pin all Node, Python and Rust packages with their dependencies. One pin differs from its requirement: FastMCP 4.1.4 requires
`certifi>=2026.10.19`, which the index did not offer (pip: “No matching distribution found for certifi>=2026.10.19; extra == \"server\"”), so it runs with
2026.10.18. No test uses certificates.

## Logins

`cargo xtask logins` tests logins of the same clients to Outlive servers, in a browser, through `oidc-provider`: [authorization.md](authorization.md).
";

/// `docs/interop.md`.
pub(super) fn page(rows: &[Row]) -> String {
    let mut page = String::from(
        "# Interoperability\n\n\
         This page is for people who combine Outlive with another SDK: it shows which features work together. \
         `cargo xtask interop` writes it, with real processes on\npipes and sockets and the package versions named \
         here. ✓ means that the feature works, – that the peer or transport does not have it; a number refers to \
         the\nreason below.\n\n\
         The Outlive server accepts requests about tasks without the `Mcp-Name` header, which some clients omit, \
         and rejects a header that names another task.\n",
    );
    let mut notes: Vec<String> = Vec::new();
    for (side, title) in [
        (Side::Server, "Outlive client with other servers"),
        (Side::Client, "Other clients with the Outlive server"),
    ] {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.leg.side() == side).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = write!(page, "\n## {title}\n\n| peer | transport | version |");
        for feature in FEATURES {
            let _ = write!(page, " {feature} |");
        }
        let _ = writeln!(page, "\n|{}", "---|".repeat(FEATURES.len() + 3));
        for row in rows {
            let Leg { peer, transport, era } = row.leg;
            let _ = write!(page, "| {} | {transport} | {era} |", peer.name());
            for feature in FEATURES {
                let cell = match row.cell(feature) {
                    Cell::Works | Cell::Outdated => "✓".to_owned(),
                    Cell::Absent => "–".to_owned(),
                    Cell::Excused(excuse, said) => note(&mut notes, excuse.because, said),
                    Cell::Broken(why) => note(&mut notes, "NOT EXPLAINED", why),
                };
                let _ = write!(page, " {cell} |");
            }
            page.push('\n');
        }
    }
    if !notes.is_empty() {
        page.push_str("\n## Missing features\n\n");
    }
    for (number, note) in notes.iter().enumerate() {
        let _ = writeln!(page, "{}. {note}", number + 1);
    }
    page.push_str(PACKAGES);
    page
}

/// Returns the number of a note. Equal notes share a number.
fn note(notes: &mut Vec<String>, because: &str, said: Option<&str>) -> String {
    let note = match said {
        Some(said) => {
            let said: String = said.lines().next().unwrap_or_default().chars().take(200).collect();
            format!("{because} Seen: “{said}”")
        }
        None => because.to_owned(),
    };
    let at = notes.iter().position(|it| *it == note).unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    });
    (at + 1).to_string()
}
