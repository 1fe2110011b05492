//! The file in which the tools under test record their executions.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file with one line per execution: the key of the call. Commands append to it with `>>`, which
/// opens it with `O_APPEND`, so that concurrent lines stay whole.
#[derive(Clone, Debug)]
pub(crate) struct Executions(PathBuf);

impl Executions {
    pub(crate) fn new(path: PathBuf) -> Result<Self> {
        fs::write(&path, "").with_context(|| format!("could not write {}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the number of executions by key.
    pub(crate) fn count(&self) -> Result<HashMap<String, usize>> {
        let text = fs::read_to_string(&self.0)
            .with_context(|| format!("could not read {}", self.0.display()))?;
        let mut counts = HashMap::new();
        for key in text.lines() {
            *counts.entry(key.to_owned()).or_insert(0) += 1;
        }
        Ok(counts)
    }
}
