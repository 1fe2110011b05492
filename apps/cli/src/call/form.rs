//! Input requests as terminal forms: one field after another, each validated against its schema.

use std::io;

use console::Term;
use dialoguer::{
    Confirm, Input, MultiSelect, Select,
    theme::{ColorfulTheme, SimpleTheme, Theme},
};
use outlive::{
    client::input::{InputKind, InputResponse, PendingInput},
    schema::{Field, FieldChoice, FieldKind, plain_text},
};
use serde_json::{Map, Value};

use super::{
    arguments,
    input::fields,
    link,
    screen::{short, shown},
};
use crate::print::{self, Paint, paint};

/// Maximum width of a server's label, so that a prompt fits on one line.
const LABEL: usize = 60;

/// Result of a form; `None` if the user pressed Ctrl-C.
pub(crate) type Filled = io::Result<Option<InputResponse>>;

/// The user's choice after Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    GoOn,
    Detach,
    Cancel,
    Decline,
    Dismiss,
}

/// Shows an input request as a form. Skips the fields in `known`.
pub(crate) fn ask(question: &PendingInput, known: &Map<String, Value>) -> Filled {
    let term = Term::stderr();
    let theme = theme();
    print::say_painted(&paint(
        Paint::Bold,
        &format!("{} requests input:", shown(&question.server)),
    ));
    let asked = match &question.request {
        InputKind::Form(form) => {
            print::say(&print::quoted(&form.message));
            fill(question, known, &*theme, &term)
        }
        InputKind::Url(url) => {
            print::say(&print::quoted(&url.message));
            consent(&url.url, &*theme, &term)
        }
        other => {
            Ok(InputResponse::Error(format!("a terminal client does not support {}", other.kind())))
        }
    };
    interruptible(asked)
}

/// Shows the menu after Ctrl-C. Returns `None` if the user pressed Ctrl-C again.
pub(crate) fn wish(wishes: &[(Wish, String)]) -> io::Result<Option<Wish>> {
    let labels: Vec<&str> = wishes.iter().map(|(_, label)| label.as_str()).collect();
    let chosen = Select::with_theme(&*theme())
        // Kept short: redrawing a prompt that wraps leaves an old line behind.
        .with_prompt("What now? (Ctrl-C exits)")
        .items(&labels)
        .default(0)
        .interact_on(&Term::stderr())
        .map_err(io::Error::from);
    Ok(interruptible(chosen)?.and_then(|at| wishes.get(at)).map(|(wish, _)| *wish))
}

pub(crate) fn interruptible<T>(asked: io::Result<T>) -> io::Result<Option<T>> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            // Ends the line of the prompt, so that the next output starts on a new line.
            let term = Term::stderr();
            term.show_cursor()?;
            term.write_line("")?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn theme() -> Box<dyn Theme> {
    match console::colors_enabled_stderr() {
        true => Box::new(ColorfulTheme::default()),
        false => Box::new(SimpleTheme),
    }
}

fn fill(
    question: &PendingInput,
    known: &Map<String, Value>,
    theme: &dyn Theme,
    term: &Term,
) -> io::Result<InputResponse> {
    let mut content = known.clone();
    for field in fields(question).iter().filter(|field| !known.contains_key(&field.name)) {
        let asking = Asking { question, field, theme, term };
        if let Some(value) = asking.value()? {
            content.insert(field.name.clone(), value);
        }
    }
    Ok(InputResponse::accept(content))
}

/// Shows a URL in full and asks for consent. The program never opens it.
fn consent(url: &str, theme: &dyn Theme, term: &Term) -> io::Result<InputResponse> {
    print::say(&link::shown(url));
    let chosen = Select::with_theme(theme)
        .with_prompt("Visit this URL?")
        .items(["yes, I will open it in my browser", "no, decline", "not now"])
        .default(2)
        .interact_on(term)
        .map_err(io::Error::from)?;
    Ok(match chosen {
        0 => InputResponse::accept_url(),
        1 => InputResponse::Decline,
        _ => InputResponse::Cancel,
    })
}

/// Prompt for one field.
struct Asking<'a> {
    question: &'a PendingInput,
    field: &'a Field,
    theme: &'a dyn Theme,
    term: &'a Term,
}

impl Asking<'_> {
    /// Asks for the value. Returns `None` if the field stays empty.
    fn value(&self) -> io::Result<Option<Value>> {
        if let Some(description) = &self.field.description {
            // The prefix marks the description as text of the server.
            let said = format!("{}: {description}", self.prompt());
            print::say_painted(&paint(Paint::Dim, &print::quoted(&said)));
        }
        match &self.field.kind {
            FieldKind::Boolean if self.field.is_required || self.field.default.is_some() => {
                self.confirmed().map(Some)
            }
            FieldKind::One(choices) => self.chosen(choices),
            FieldKind::Many(choices) => self.several(choices),
            _ => self.typed(),
        }
    }

    fn prompt(&self) -> String {
        short(self.field.label(), LABEL)
    }

    fn confirmed(&self) -> io::Result<Value> {
        let mut confirm = Confirm::with_theme(self.theme).with_prompt(self.prompt());
        if let Some(default) = self.field.default.as_ref().and_then(Value::as_bool) {
            confirm = confirm.default(default);
        }
        Ok(confirm.interact_on(self.term)?.into())
    }

    fn chosen(&self, choices: &[FieldChoice]) -> io::Result<Option<Value>> {
        let mut labels: Vec<String> =
            choices.iter().map(|choice| short(&choice.label, LABEL)).collect();
        if !self.field.is_required {
            labels.push("(none)".to_owned());
        }
        let default = self.field.default.as_ref();
        let at = choices.iter().position(|choice| Some(&choice.value) == default).unwrap_or(0);
        let chosen = Select::with_theme(self.theme)
            .with_prompt(self.prompt())
            .items(&labels)
            .default(at)
            .interact_on(self.term)?;
        Ok(choices.get(chosen).map(|choice| choice.value.clone()))
    }

    fn several(&self, choices: &[FieldChoice]) -> io::Result<Option<Value>> {
        let labels: Vec<String> =
            choices.iter().map(|choice| short(&choice.label, LABEL)).collect();
        let wanted = self.field.default.as_ref().and_then(Value::as_array);
        let ticked: Vec<bool> = choices
            .iter()
            .map(|choice| wanted.is_some_and(|wanted| wanted.contains(&choice.value)))
            .collect();
        loop {
            let chosen = MultiSelect::with_theme(self.theme)
                .with_prompt(format!("{} (space selects, enter confirms)", self.prompt()))
                .items(&labels)
                .defaults(&ticked)
                .interact_on(self.term)?;
            if chosen.is_empty() && !self.field.is_required {
                return Ok(None);
            }
            let value = chosen.into_iter().filter_map(|at| choices.get(at));
            let value = value.map(|choice| choice.value.clone()).collect();
            match self.question.check_field(&self.field.name, &value) {
                Ok(()) => return Ok(Some(value)),
                Err(why) => print::say(&print::quoted(&format!("the value {why}"))),
            }
        }
    }

    fn typed(&self) -> io::Result<Option<Value>> {
        let optional = if self.field.is_required { "" } else { ", optional" };
        let mut input: Input<'_, String> = Input::with_theme(self.theme)
            .with_prompt(format!(
                "{} ({}{optional})",
                self.prompt(),
                short(&self.field.hint, LABEL)
            ))
            .allow_empty(true);
        if let Some(default) = &self.field.default {
            // A default with escaped characters must not be accepted by pressing Enter.
            let default = plain_text(default);
            match shown(&default) == default {
                true => input = input.default(default),
                false => print::say(&print::quoted(&format!("suggested: {default}"))),
            }
        }
        let input = input.validate_with(|text: &String| self.read(text).map(|_| ()));
        let text = input.interact_on(self.term)?;
        self.read(&text).map_err(io::Error::other)
    }

    /// Parses and validates the typed text.
    fn read(&self, text: &str) -> Result<Option<Value>, String> {
        if text.is_empty() {
            return match self.field.is_required && !matches!(self.field.kind, FieldKind::Text) {
                true => Err("a value is required".to_owned()),
                // An empty string is a valid value if the schema allows it.
                false if self.field.is_required => self.checked(Value::from("")).map(Some),
                false => Ok(None),
            };
        }
        let value = arguments::value(self.field.label(), &self.field.kind, text);
        self.checked(value.map_err(|trouble| shown(&trouble.to_string()))?).map(Some)
    }

    fn checked(&self, value: Value) -> Result<Value, String> {
        match self.question.check_field(&self.field.name, &value) {
            Ok(()) => Ok(value),
            Err(why) => Err(shown(&format!("the value {why} ({})", self.field.hint))),
        }
    }
}
