//! The rows of the report.

use serde_json::{Value, json};

/// A measured case and its bar.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) figure: String,
    pub(crate) bar: String,
    pub(crate) is_met: bool,
}

impl Row {
    pub(crate) fn new(
        case: impl Into<String>,
        figure: impl Into<String>,
        bar: impl Into<String>,
        is_met: bool,
    ) -> Self {
        Self { case: case.into(), figure: figure.into(), bar: bar.into(), is_met }
    }

    /// A row of a campaign that could not run.
    pub(crate) fn failed(campaign: &str, error: &anyhow::Error) -> Self {
        Self::new(campaign, format!("{error:#}"), "runs", false)
    }

    pub(crate) fn print(&self) {
        let Self { case, figure, bar, is_met } = self;
        let verdict = if *is_met { "met" } else { "NOT MET" };
        println!("{verdict:<8} {case}\n           {figure}\n           bar: {bar}");
    }

    pub(crate) fn to_json(&self, campaign: &str) -> Value {
        let Self { case, figure, bar, is_met } = self;
        json!({"campaign": campaign, "case": case, "figure": figure, "bar": bar, "met": is_met})
    }
}
