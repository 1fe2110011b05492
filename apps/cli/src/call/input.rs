//! Input requests of a server: answered from command-line options, or passed to the user at the
//! terminal.

use std::{collections::BTreeSet, fs, path::PathBuf};

use outlive::{
    client::input::{InputCapabilities, InputHandler, InputKind, InputResponse, PendingInput},
    schema::{self, Field},
};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::arguments::typed;
use crate::error::{CliError, Result};

/// Input responses from the command line.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Answers")]
pub(crate) struct Prepared {
    /// Answers a field of a form that the server sends; may be repeated
    #[arg(long = "answer", value_name = "FIELD=VALUE")]
    answers: Vec<String>,
    /// JSON file with answers, by field name
    #[arg(long = "answers", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Declines every input request that has no answer
    #[arg(long)]
    decline: bool,
}

impl Prepared {
    /// Returns the complete input response for a request, or the prepared fields if some are
    /// missing.
    pub(crate) fn fill(&self, question: &PendingInput) -> Result<Filled> {
        let InputKind::Form(form) = &question.request else { return Ok(self.without_words()) };
        let fields = fields(question);
        let mut values = self.on_file()?;
        values.retain(|name, _| fields.iter().any(|field| field.name == *name));
        let words: Vec<String> = self
            .answers
            .iter()
            .filter(|word| fields.iter().any(|field| names(word) == field.name))
            .cloned()
            .collect();
        values.extend(typed(&fields, &words)?);
        for (name, value) in &values {
            question.check_field(name, value).map_err(|why| {
                CliError::usage(format!("invalid answer: `{name}` {why}")).remedy(&form.message)
            })?;
        }
        let is_whole = |field: &Field| {
            !field.is_required || field.default.is_some() || values.contains_key(&field.name)
        };
        // Never submit a form for which the user gave no answer, even if all its fields are
        // optional.
        if values.is_empty() || !fields.iter().all(is_whole) {
            return Ok(match self.without_words() {
                Filled::Partly(_) => Filled::Partly(values),
                answer => answer,
            });
        }
        for field in &fields {
            if let (Some(default), false) = (&field.default, values.contains_key(&field.name)) {
                values.insert(field.name.clone(), default.clone());
            }
        }
        Ok(Filled::Answer(InputResponse::accept(values)))
    }

    /// Returns the first answer on the command line that matches none of the fields.
    pub(crate) fn unknown(&self, fields: &BTreeSet<String>) -> Option<&str> {
        self.answers.iter().map(|word| names(word)).find(|name| !fields.contains(*name))
    }

    fn without_words(&self) -> Filled {
        match self.decline {
            true => Filled::Answer(InputResponse::Decline),
            false => Filled::Partly(Map::new()),
        }
    }

    fn on_file(&self) -> Result<Map<String, Value>> {
        let Some(file) = &self.file else { return Ok(Map::new()) };
        let place = file.display();
        let text = fs::read_to_string(file).map_err(|error| {
            CliError::usage(format!("cannot read the answers in {place}: {error}"))
        })?;
        serde_json::from_str(&text).map_err(|error| {
            CliError::usage(format!("{place}, line {}: {error}", error.line()))
                .remedy("write the answers as a JSON object: {\"field\": value}")
        })
    }
}

/// Completeness of a prepared input response.
#[derive(Debug)]
pub(crate) enum Filled {
    Answer(InputResponse),
    /// Only these fields have values.
    Partly(Map<String, Value>),
}

/// Returns the name of the field in a `FIELD=VALUE` argument.
fn names(word: &str) -> &str {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    name.strip_suffix(':').unwrap_or(name)
}

/// Returns the fields of a form. Returns none for other input requests.
pub(crate) fn fields(question: &PendingInput) -> Vec<Field> {
    match &question.request {
        InputKind::Form(form) => {
            let schema = serde_json::to_value(&form.requested_schema).unwrap_or_default();
            schema::fields(&schema)
        }
        _ => Vec::new(),
    }
}

/// An input request and the channel for its response.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) question: PendingInput,
    pub(crate) reply: oneshot::Sender<InputResponse>,
}

/// Input handler that queues input requests. Unanswered requests stay open: a task waits, and
/// accepts a response later.
#[derive(Debug)]
pub(crate) struct Desk(mpsc::Sender<Asked>);

impl Desk {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Asked>) {
        // Capacity 1, because a terminal shows one form at a time.
        let (desk, asked) = mpsc::channel(1);
        (Self(desk), asked)
    }
}

impl InputHandler for Desk {
    fn capabilities(&self) -> InputCapabilities {
        InputCapabilities { form: true, url: true, ..InputCapabilities::default() }
    }

    async fn handle(&self, question: PendingInput) -> InputResponse {
        let (reply, answer) = oneshot::channel();
        if self.0.send(Asked { question, reply }).await.is_ok()
            && let Ok(answer) = answer.await
        {
            return answer;
        }
        // An error response would cancel the task.
        std::future::pending().await
    }
}
