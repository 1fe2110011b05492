//! Checks that every YAML file of the project can be parsed.

use std::fs;
use std::path::{Path, PathBuf};

use saphyr_parser::{Event, Parser};

use super::kubernetes;
use xtask::process;

/// Number of documents in a YAML text.
fn documents(text: &str) -> Result<usize, String> {
    let mut count = 0;
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| error.to_string())?;
        count += usize::from(matches!(event, Event::DocumentStart(_)));
    }
    Ok(count)
}

fn yaml_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|it| it == "yml")).collect()
}

#[test]
fn workflows_and_issue_templates_are_yaml() {
    let github = process::root().join(".github");
    for (folder, least) in [("workflows", 2), ("ISSUE_TEMPLATE", 2)] {
        let files = yaml_in(&github.join(folder));
        assert!(files.len() >= least, "{folder}: {files:?}");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            assert_eq!(documents(&text), Ok(1), "{}", file.display());
        }
    }
}

#[test]
fn kubernetes_manifests_have_one_document_each() {
    for file in kubernetes::manifests().unwrap() {
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(documents(&text), Ok(1), "{}", file.display());
    }
}

#[test]
fn broken_yaml_is_error() {
    assert!(documents("a: [1, 2\nb: 3").is_err());
}
