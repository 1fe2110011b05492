//! Every plot is drawn from its figures: neither is edited or left behind without the other.

use outlive_plots::{PLOTS, data};

use super::findings::Findings;
use super::tree::Tree;

pub(super) const PATHS: &[&str] = &[data::FOLDER, IMAGES];

const IMAGES: &str = "docs/images/";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for plot in PLOTS {
        match plot.draw(|file| tree.get(file).map(|file| file.text.clone())) {
            Ok(drawn) if tree.get(plot.image).is_some_and(|image| image.text == drawn) => {}
            Ok(_) => {
                let message = "is not the plot of its figures; run `cargo xtask bench --plot`";
                findings.add(plot.image, 1, message);
            }
            Err(error) => findings.add(plot.image, 1, format!("cannot be drawn: {error:#}")),
        }
    }
    for file in tree.files().iter().filter(|file| file.path.starts_with(data::FOLDER)) {
        if !PLOTS.iter().any(|plot| plot.files.contains(&file.path.as_str())) {
            findings.add(&file.path, 1, "belongs to no plot; delete it");
        }
    }
}

#[cfg(test)]
mod tests {
    use outlive_plots::PLOTS;

    use super::super::rules::found;
    use super::check;

    const CALLS: &str =
        r#"[{"target": "a", "kind": "peer", "cpu_us": {"p25": 1, "median": 2, "p75": 3}}]"#;
    const TASKS: &str = r#"[{"target": "a", "kind": "peer", "stored": 9, "per_second": 2}]"#;
    const STREAMS: &str = r#"[{"name": "a", "kib": 1, "max_kib": 2}]"#;
    const TAKEOVER: &str =
        r#"{"store": "a", "replicas": 3, "lease_ms": 1, "max_p99_ms": 1, "stopped_ms": [5]}"#;

    fn figures(file: &str) -> &'static str {
        let all =
            [("calls", CALLS), ("stored", TASKS), ("streams", STREAMS), ("takeover", TAKEOVER)];
        all.into_iter().find(|(name, _)| file.contains(name)).unwrap().1
    }

    /// Figures for every plot, and the plots of them.
    fn files() -> Vec<(String, String)> {
        let mut files = Vec::new();
        for plot in PLOTS {
            files
                .extend(plot.files.iter().map(|&file| (file.to_owned(), figures(file).to_owned())));
            let drawn = plot.draw(|file| Some(figures(file).to_owned())).unwrap();
            files.push((plot.image.to_owned(), drawn));
        }
        files
    }

    fn findings(files: &[(String, String)]) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        found(check, &files)
    }

    #[test]
    fn plot_of_its_figures_passes() {
        assert_eq!(findings(&files()), Vec::<String>::new());
    }

    #[test]
    fn plot_of_other_figures_is_finding() {
        let mut files = files();
        let takeover = files.iter_mut().find(|(path, _)| path.ends_with("takeover-sqlite.json"));
        let figures = &mut takeover.unwrap().1;
        *figures = figures.replace("[5]", "[6]");
        let findings = findings(&files);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("docs/images/plot-takeover.svg:1: "), "{findings:?}");
    }

    #[test]
    fn missing_and_unknown_figures_are_findings() {
        let mut files = files();
        files.retain(|(path, _)| !path.ends_with("streams.json"));
        files.push(("docs/performance/data/old.json".to_owned(), "[]".to_owned()));
        let findings = findings(&files);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].contains("plot-streams.svg:1: cannot be drawn"), "{findings:?}");
        assert!(findings[1].contains("old.json:1: belongs to no plot"), "{findings:?}");
    }
}
