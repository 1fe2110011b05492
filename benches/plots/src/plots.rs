//! The list of plots.

use anyhow::{Context, Result, ensure};

use crate::{
    calls,
    data::{
        CALLS, CallCost, STORED_TASKS_POSTGRES, STORED_TASKS_SQLITE, STREAMS, StreamMemory,
        TAKEOVER_POSTGRES, TAKEOVER_SQLITE, TaskRate, read,
    },
    stored_tasks, streams, takeover,
};

/// A plot: a file that is drawn from files.
#[derive(Debug)]
pub struct Plot {
    /// The drawn file, from the root of the project.
    pub image: &'static str,
    /// The files with the figures.
    pub files: &'static [&'static str],
    draw: fn(&[(&str, String)]) -> Result<String>,
}

/// All plots.
pub const PLOTS: &[Plot] = &[
    Plot { image: "docs/images/plot-calls.svg", files: &[CALLS], draw: calls },
    Plot {
        image: "docs/images/plot-stored-tasks.svg",
        files: &[STORED_TASKS_SQLITE, STORED_TASKS_POSTGRES],
        draw: stored_tasks,
    },
    Plot { image: "docs/images/plot-streams.svg", files: &[STREAMS], draw: streams },
    Plot {
        image: "docs/images/plot-takeover.svg",
        files: &[TAKEOVER_SQLITE, TAKEOVER_POSTGRES],
        draw: takeover,
    },
];

impl Plot {
    /// Draws the plot from its files, which `text` reads.
    ///
    /// # Errors
    ///
    /// Returns an error if a file is missing or has other fields.
    pub fn draw(&self, text: impl Fn(&str) -> Option<String>) -> Result<String> {
        let read = |&file: &&'static str| {
            let text = text(file).with_context(|| {
                format!("{file} is missing; `cargo xtask bench --write` writes it")
            })?;
            Ok((file, text))
        };
        let files = self.files.iter().map(read).collect::<Result<Vec<_>>>()?;
        (self.draw)(&files)
    }
}

fn calls(files: &[(&str, String)]) -> Result<String> {
    Ok(calls::draw(&rows::<CallCost>(files)?))
}

fn stored_tasks(files: &[(&str, String)]) -> Result<String> {
    Ok(stored_tasks::draw(&rows::<TaskRate>(files)?))
}

fn streams(files: &[(&str, String)]) -> Result<String> {
    Ok(streams::draw(&rows::<StreamMemory>(files)?))
}

fn takeover(files: &[(&str, String)]) -> Result<String> {
    let stores = files.iter().map(|(file, text)| read(file, text)).collect::<Result<Vec<_>>>()?;
    Ok(takeover::draw(&stores))
}

/// The rows of all files.
fn rows<T: serde::de::DeserializeOwned>(files: &[(&str, String)]) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    for (file, text) in files {
        let more: Vec<T> = read(file, text)?;
        ensure!(!more.is_empty(), "{file} has no rows");
        rows.extend(more);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::PLOTS;

    const CALL: &str = r#"[{"target": "control", "kind": "control",
        "cpu_us": {"p25": 16.2, "median": 17.3, "p75": 18.0}}]"#;

    #[test]
    fn plot_has_title_units_and_text_alternative() {
        let plot = PLOTS[0].draw(|_| Some(CALL.to_owned())).unwrap();
        for part in ["<title id='t'>CPU time per call", "µs of CPU per call", "control 17.3."] {
            assert!(plot.contains(part), "{part} is missing in {plot}");
        }
    }

    #[test]
    fn missing_file_is_named_with_its_command() {
        let error = PLOTS[0].draw(|_| None).unwrap_err().to_string();
        assert!(error.contains("calls.json") && error.contains("bench --write"), "{error}");
    }

    #[test]
    fn file_without_rows_is_named() {
        let error = PLOTS[0].draw(|_| Some("[]".to_owned())).unwrap_err().to_string();
        assert!(error.ends_with("calls.json has no rows"), "{error}");
    }

    #[test]
    fn file_with_other_fields_is_named() {
        let error = PLOTS[2].draw(|_| Some(CALL.to_owned())).unwrap_err();
        assert!(format!("{error:#}").contains("streams.json is not a figure"), "{error:#}");
    }
}
