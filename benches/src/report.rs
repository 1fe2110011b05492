//! How the figures are told: tables as they come, and at the end a line for each bar.

use std::fmt::{self, Write};

use crate::slices::{Ratio, Series, Slice, Spread};

/// What has been found out.
#[derive(Debug, Default)]
pub(crate) struct Report {
    text: String,
    bars: Vec<Bar>,
}

/// Something that is promised.
#[derive(Debug)]
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
    pub(crate) fn title(&mut self, title: &str) {
        self.say(format!("\n{title}"));
    }

    pub(crate) fn say(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// A line with the ratio of two targets.
    pub(crate) fn ratio(&mut self, name: &str, ratio: Ratio) {
        let Ratio { spread: Spread { p25, median, p75 }, rounds, disturbed, judged_rounds } = ratio;
        let mut line = format!(
            "{name:<52} {median:>5.2}  ({p25:.2}–{p75:.2})  {judged_rounds} of {rounds} rounds"
        );
        if disturbed > 0 {
            let taken =
                if judged_rounds == rounds { "counted, too few were quiet" } else { "left out" };
            let _ = write!(line, ", {disturbed} disturbed: {taken}");
        }
        self.say(line);
    }

    /// A table with the targets' own figures. These are of the machine as it was; compare ratios.
    pub(crate) fn series(&mut self, all: &[Series]) {
        let head = ["calls/s", "CPU µs", "(p25–p75)", "others' CPU", "disturbed"];
        self.say(format!(
            "{:<30} {:>9} {:>8} {:>15} {:>12} {:>10}",
            "", head[0], head[1], head[2], head[3], head[4]
        ));
        for series in all {
            let rate = series.spread(|slice: &Slice| slice.rate).median;
            let Spread { p25, median, p75 } = series.spread(|slice: &Slice| slice.cpu);
            let others = series.spread(|slice: &Slice| slice.foreign).median * 100.0;
            let quartiles = format!("({p25:.2}–{p75:.2})");
            self.say(format!(
                "{:<30} {rate:>9.0} {median:>8.2} {quartiles:>15} {others:>10.0} % {:>10}",
                series.name,
                series.disturbed()
            ));
        }
    }

    pub(crate) fn bar(&mut self, bar: Bar) {
        self.bars.push(bar);
    }

    /// Whether everything that was measured is as promised.
    pub(crate) fn is_good(&self) -> bool {
        self.bars.iter().all(Bar::is_kept)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.bars.iter().try_for_each(|bar| writeln!(f, "{bar}"))
    }
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
