//! The fields of an elicitation form, as a page shows them.

use outlive::wire::{
    EnumOption, NumberKind, NumberSchema, PrimitiveSchemaDefinition as Schema, RequestedSchema,
    StringFormat, StringSchema,
};

/// Maximum length of a text that a page edits on one line.
const MAX_LINE: u64 = 200;

/// One field of a form.
pub(crate) struct Field {
    /// Name in the form.
    pub(crate) name: String,
    /// ID of its control in the page, which is unique and contains no text of the server.
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// Description of the valid values.
    pub(crate) hint: Option<String>,
    pub(crate) is_required: bool,
    pub(crate) control: Control,
}

/// The control for a field, with the initial value from the form.
pub(crate) enum Control {
    /// A text on one line. `mode` is the keyboard of a phone.
    Line { mode: &'static str, initial: Option<String> },
    /// A text with several lines.
    Lines { initial: Option<String> },
    /// A day.
    Date { initial: Option<String> },
    /// A number, which is edited as text so that a wrong value stays visible.
    Number { is_integer: bool, initial: Option<String> },
    /// Yes or no.
    YesNo { initial: Option<bool> },
    /// One of several choices.
    One { choices: Vec<Choice>, initial: Option<String> },
    /// Several choices.
    Many { choices: Vec<Choice>, initial: Vec<String> },
    /// Any JSON, for a field of an unknown shape.
    Json,
}

/// A choice. The page refers to it by its position.
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) title: String,
}

impl Field {
    /// Creates a field of a page itself, a text on one line whose control has the ID `name`.
    pub(crate) fn own(name: &str, title: &str) -> Self {
        Self {
            name: name.to_owned(),
            id: name.to_owned(),
            title: Some(title.to_owned()),
            description: None,
            hint: None,
            is_required: false,
            control: Control::Line { mode: "text", initial: None },
        }
    }

    /// Returns the title, or the name if the field has no title.
    pub(crate) fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Returns the name of its value in a submitted form.
    pub(crate) fn input_name(&self) -> String {
        format!("field.{}", self.name)
    }
}

/// Returns the fields of a form, in their order.
pub(crate) fn fields(form: &RequestedSchema) -> Vec<Field> {
    let required = form.required.as_deref().unwrap_or_default();
    let properties = form.properties.0.iter().enumerate();
    let field = |(at, (name, schema)): (usize, &(String, Schema))| {
        let (title, description, hint, control) = parts(schema);
        let (name, id) = (name.clone(), format!("field{at}"));
        let is_required = required.contains(&name);
        Field { name, id, title, description, hint, is_required, control }
    };
    properties.map(field).collect()
}

type Parts = (Option<String>, Option<String>, Option<String>, Control);

fn parts(schema: &Schema) -> Parts {
    match schema {
        Schema::String(it) => {
            (it.title.clone(), it.description.clone(), text_hint(it), text_control(it))
        }
        Schema::Number(it) => {
            let is_integer = it.kind == NumberKind::Integer;
            let initial = it.default.as_ref().map(ToString::to_string);
            let control = Control::Number { is_integer, initial };
            (it.title.clone(), it.description.clone(), Some(number_hint(it)), control)
        }
        Schema::Boolean(it) => {
            let control = Control::YesNo { initial: it.default };
            (it.title.clone(), it.description.clone(), None, control)
        }
        Schema::UntitledSingleSelect(it) => {
            let control = one(untitled(&it.values), it.default.as_ref());
            (it.title.clone(), it.description.clone(), None, control)
        }
        Schema::TitledSingleSelect(it) => {
            let control = one(titled(&it.options), it.default.as_ref());
            (it.title.clone(), it.description.clone(), None, control)
        }
        Schema::LegacyTitled(it) => {
            let mut choices = untitled(&it.values);
            for (choice, title) in choices.iter_mut().zip(it.enum_names.iter().flatten()) {
                choice.title.clone_from(title);
            }
            let control = one(choices, it.default.as_ref());
            (it.title.clone(), it.description.clone(), None, control)
        }
        Schema::UntitledMultiSelect(it) => {
            let control = many(untitled(&it.items.values), it.default.as_ref());
            let hint = count_hint(it.min_items, it.max_items);
            (it.title.clone(), it.description.clone(), hint, control)
        }
        Schema::TitledMultiSelect(it) => {
            let control = many(titled(&it.items.options), it.default.as_ref());
            let hint = count_hint(it.min_items, it.max_items);
            (it.title.clone(), it.description.clone(), hint, control)
        }
        _ => (None, None, Some("a JSON value, such as \"text\" or 5".to_owned()), Control::Json),
    }
}

fn text_control(schema: &StringSchema) -> Control {
    let initial = schema.default.clone();
    match schema.format {
        Some(StringFormat::Date) => Control::Date { initial },
        Some(StringFormat::Email) => Control::Line { mode: "email", initial },
        Some(StringFormat::Uri) => Control::Line { mode: "url", initial },
        Some(_) => Control::Line { mode: "text", initial },
        None if schema.max_length.is_some_and(|most| most <= MAX_LINE) => {
            Control::Line { mode: "text", initial }
        }
        None => Control::Lines { initial },
    }
}

fn text_hint(schema: &StringSchema) -> Option<String> {
    let format = match schema.format {
        Some(StringFormat::Email) => Some("an e-mail address".to_owned()),
        Some(StringFormat::Uri) => Some("a URI, as in https://example.com".to_owned()),
        Some(StringFormat::DateTime) => {
            Some("a date and time, as in 2026-07-28T12:00:00Z".to_owned())
        }
        _ => None,
    };
    let length = range(schema.min_length, schema.max_length).map(|it| format!("{it} characters"));
    let hints: Vec<String> = format.into_iter().chain(length).collect();
    (!hints.is_empty()).then(|| hints.join(", "))
}

fn number_hint(schema: &NumberSchema) -> String {
    let kind = if schema.kind == NumberKind::Integer { "a whole number" } else { "a number" };
    match range(schema.minimum.as_ref(), schema.maximum.as_ref()) {
        Some(range) => format!("{kind}, {range}"),
        None => kind.to_owned(),
    }
}

fn count_hint(least: Option<u64>, most: Option<u64>) -> Option<String> {
    range(least.filter(|least| *least > 0), most).map(|range| format!("{range} choices"))
}

fn range(
    least: Option<impl std::fmt::Display>,
    most: Option<impl std::fmt::Display>,
) -> Option<String> {
    match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    }
}

fn one(choices: Vec<Choice>, initial: Option<&String>) -> Control {
    Control::One { choices, initial: initial.cloned() }
}

fn many(choices: Vec<Choice>, initial: Option<&Vec<String>>) -> Control {
    Control::Many { choices, initial: initial.cloned().unwrap_or_default() }
}

fn untitled(values: &[String]) -> Vec<Choice> {
    let choice = |value: &String| Choice { value: value.clone(), title: value.clone() };
    values.iter().map(choice).collect()
}

fn titled(options: &[EnumOption]) -> Vec<Choice> {
    let choice = |it: &EnumOption| Choice { value: it.value.clone(), title: it.title.clone() };
    options.iter().map(choice).collect()
}
