//! The report: Markdown with a table for each suite and one line per bar at the end. The JSON form
//! has every slice. The figures of the plots are separate files.

use std::{fmt, path::Path};

use anyhow::Result;
use outlive_plots::data;
use serde::Serialize;
use serde_json::Value;

use crate::slices::{Ratio, Series, Slice, Spread};

/// The results of a run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    sections: Vec<Section>,
    bars: Vec<Bar>,
    /// Suites that failed, with the error.
    failures: Vec<String>,
    /// The figures of plots, by file.
    #[serde(skip)]
    plotted: Vec<(&'static str, Value)>,
}

/// A suite, or one figure of it.
#[derive(Debug, Default, Serialize)]
struct Section {
    title: String,
    parts: Vec<Part>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Note(String),
    Ratios(Vec<RatioRow>),
    Series(Vec<Series>),
    Figures(Vec<Figure>),
}

#[derive(Debug, Serialize)]
struct RatioRow {
    name: String,
    #[serde(flatten)]
    ratio: Ratio,
}

#[derive(Debug, Serialize)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
}

/// A limit that a figure must meet.
#[derive(Debug, Serialize)]
pub(crate) struct Bar {
    name: String,
    /// `None` if it was not measured.
    value: Option<f64>,
    limit: f64,
    at_least: bool,
    unit: &'static str,
}

impl Bar {
    pub(crate) fn at_most(name: &str, value: Option<f64>, limit: f64, unit: &'static str) -> Self {
        Self { name: name.to_owned(), value, limit, at_least: false, unit }
    }

    pub(crate) fn at_least(name: &str, value: Option<f64>, limit: f64, unit: &'static str) -> Self {
        Self { name: name.to_owned(), value, limit, at_least: true, unit }
    }

    fn is_kept(&self) -> bool {
        self.value.is_some_and(|value| {
            if self.at_least { value >= self.limit } else { value <= self.limit }
        })
    }
}

impl Report {
    /// Starts a section.
    pub(crate) fn title(&mut self, title: &str) {
        self.sections.push(Section { title: title.to_owned(), parts: Vec::new() });
    }

    /// Adds a paragraph.
    pub(crate) fn say(&mut self, line: impl AsRef<str>) {
        self.parts().push(Part::Note(line.as_ref().to_owned()));
    }

    /// Adds a row with the ratio of two targets. Consecutive rows form one table.
    pub(crate) fn ratio(&mut self, name: &str, ratio: Ratio) {
        let row = RatioRow { name: name.to_owned(), ratio };
        match self.parts().last_mut() {
            Some(Part::Ratios(rows)) => rows.push(row),
            _ => self.parts().push(Part::Ratios(vec![row])),
        }
    }

    /// Adds a row with one figure. Consecutive rows form one table.
    pub(crate) fn figure(&mut self, name: &str, value: f64, unit: &'static str) {
        let row = Figure { name: name.to_owned(), value, unit };
        match self.parts().last_mut() {
            Some(Part::Figures(rows)) => rows.push(row),
            _ => self.parts().push(Part::Figures(vec![row])),
        }
    }

    /// Adds a table with absolute figures. They depend on the state of the machine; compare ratios.
    pub(crate) fn series(&mut self, all: &[Series]) {
        self.parts().push(Part::Series(all.to_vec()));
    }

    pub(crate) fn bar(&mut self, bar: Bar) {
        self.bars.push(bar);
    }

    /// Adds the figures of a plot, for one of the files of [`data`].
    pub(crate) fn plot<T: Serialize>(&mut self, file: &'static str, rows: &[T]) -> Result<()> {
        self.plotted.push((file, serde_json::to_value(rows)?));
        Ok(())
    }

    /// Writes the figures of the plots to their files.
    pub(crate) fn write_plotted(&self) -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        self.plotted.iter().try_for_each(|(file, rows)| data::write(&root, file, rows))
    }

    /// Adds a suite that failed.
    pub(crate) fn fail(&mut self, suite: &str, error: &anyhow::Error) {
        eprintln!("{suite}: {error:?}");
        self.failures.push(format!("`{suite}` failed: {error:#}"));
    }

    /// Whether every suite succeeded and every measured bar is met.
    pub(crate) fn is_good(&self) -> bool {
        self.failures.is_empty() && self.bars.iter().all(Bar::is_kept)
    }

    /// The parts of the current section.
    fn parts(&mut self) -> &mut Vec<Part> {
        if self.sections.is_empty() {
            self.sections.push(Section::default());
        }
        let last = self.sections.len() - 1;
        &mut self.sections[last].parts
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for section in &self.sections {
            if !section.title.is_empty() {
                writeln!(f, "## {}\n", section.title)?;
            }
            for part in &section.parts {
                writeln!(f, "{part}")?;
            }
        }
        if !self.bars.is_empty() || !self.failures.is_empty() {
            writeln!(f, "## Bars\n")?;
        }
        self.bars.iter().try_for_each(|bar| writeln!(f, "- {bar}"))?;
        self.failures.iter().try_for_each(|failure| writeln!(f, "- FAIL  {failure}"))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(line) => writeln!(f, "{line}"),
            Self::Ratios(rows) => {
                writeln!(f, "| ratio | median | p25–p75 | rounds | disturbed |")?;
                writeln!(f, "|---|---:|---:|---:|---|")?;
                rows.iter().try_for_each(|row| write_ratio(f, row))
            }
            Self::Series(all) => {
                writeln!(
                    f,
                    "| target | per second | CPU µs each | p25–p75 | CPU of other processes | disturbed |"
                )?;
                writeln!(f, "|---|---:|---:|---:|---:|---:|")?;
                all.iter().try_for_each(|series| write_series(f, series))
            }
            Self::Figures(rows) => {
                writeln!(f, "| figure | value |\n|---|---:|")?;
                rows.iter().try_for_each(|Figure { name, value, unit }| {
                    writeln!(f, "| {name} | {value:.2}{unit} |")
                })
            }
        }
    }
}

fn write_ratio(f: &mut fmt::Formatter<'_>, row: &RatioRow) -> fmt::Result {
    let Ratio { spread: Spread { p25, median, p75 }, rounds, disturbed, judged_rounds } = row.ratio;
    let what = match disturbed {
        0 => "none".to_owned(),
        _ if judged_rounds == rounds => format!("{disturbed}, counted: too few undisturbed"),
        _ => format!("{disturbed}, excluded"),
    };
    writeln!(
        f,
        "| {} | {median:.2} | {p25:.2}–{p75:.2} | {judged_rounds} of {rounds} | {what} |",
        row.name
    )
}

fn write_series(f: &mut fmt::Formatter<'_>, series: &Series) -> fmt::Result {
    let rate = series.spread(|slice: &Slice| slice.rate).median;
    let Spread { p25, median, p75 } = series.spread(|slice: &Slice| slice.cpu);
    let others = series.spread(|slice: &Slice| slice.foreign).median * 100.0;
    let digits = if rate < 100.0 { 2 } else { 0 };
    writeln!(
        f,
        "| {} | {rate:.digits$} | {median:.2} | {p25:.2}–{p75:.2} | {others:.0} % | {} of {} |",
        series.name,
        series.disturbed(),
        series.slices.len()
    )
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, limit, unit, .. } = self;
        let verdict = if self.is_kept() { "PASS" } else { "FAIL" };
        let side = if self.at_least { "at least" } else { "at most" };
        match self.value {
            Some(value) => write!(f, "{verdict}  {name}: {value:.2}{unit}, {side} {limit}{unit}"),
            None => write!(f, "{verdict}  {name}: not measured"),
        }
    }
}
