//! The questions of a command and their answers, in the order of the questions, whatever the order of the answers.

use std::collections::BTreeMap;

use super::{Error, Result};

/// The longest answer.
pub(super) const MAX_ANSWER: usize = 1 << 20;

/// Refuses what a command could not read as one answer.
pub(super) fn check_answer(line: &str) -> Result<()> {
    if line.contains(['\n', '\r']) {
        return Err(Error::Refused("an answer is one line".to_owned()));
    }
    if line.len() > MAX_ANSWER {
        return Err(Error::Refused(format!("an answer is at most {MAX_ANSWER} bytes long")));
    }
    Ok(())
}

/// What has been asked and answered.
#[derive(Debug, Default)]
pub(super) struct Dialogue {
    asked: u32,
    answered: u32,
    /// Answers to later questions than the next.
    early: BTreeMap<u32, String>,
}

impl Dialogue {
    pub(super) fn ask(&mut self, count: u32) {
        self.asked += count;
    }

    /// Whether a question waits for its answer.
    pub(super) fn is_open(&self) -> bool {
        self.answered < self.asked
    }

    /// Takes an answer, the first to each question: it may have been read. Returns the lines that the command is to find
    /// now, or why the answer cannot be one.
    pub(super) fn answer(&mut self, number: u32, line: String) -> Result<Vec<String>, String> {
        if number == 0 || number > self.asked {
            let asked = self.asked;
            return Err(format!("question {number} has not been asked; there were {asked}"));
        }
        if number > self.answered {
            self.early.entry(number).or_insert(line);
        }
        let mut lines = Vec::new();
        while let Some(line) = self.early.remove(&(self.answered + 1)) {
            self.answered += 1;
            lines.push(line);
        }
        Ok(lines)
    }
}
