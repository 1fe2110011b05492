//! Writes the fields of a form as HTML.
//!
//! The server validates every value, so controls have no constraints that a browser checks: a wrong
//! value stays in the page, with its error beside it.

use std::{collections::BTreeMap, fmt::Write as _};

use outlive::text;

use super::field::{Choice, Control, Field};
use crate::{
    html::{line, lines},
    urlencoded::Values,
};

/// Returns the fields of a form as HTML, with the submitted values and their errors. Without
/// submitted values, the fields have their initial values.
pub(crate) fn render(
    fields: &[Field],
    submitted: Option<&Values>,
    errors: &BTreeMap<String, String>,
) -> String {
    let field = |field: &Field| {
        let error = errors.get(&field.name).map(String::as_str);
        Shown { field, submitted, error }.html()
    };
    fields.iter().map(field).collect()
}

/// Returns the summary of all errors, with links to their fields.
pub(crate) fn errors(fields: &[Field], errors: &BTreeMap<String, String>) -> String {
    if fields.iter().all(|field| !errors.contains_key(&field.name)) {
        return String::new();
    }
    let mut html = String::from(
        "<div class=\"errors\" role=\"alert\"><h2>Your answer was not sent</h2>\n<ul>\n",
    );
    for field in fields {
        if let Some(error) = errors.get(&field.name) {
            let (id, label) = (field.focus_id(), line(field.label()));
            // Writing to memory does not fail.
            let _ = writeln!(html, "<li><a href=\"#{id}\">{label} {}</a></li>", line(error));
        }
    }
    html.push_str("</ul></div>\n");
    html
}

impl Field {
    /// Returns the ID of the control that gets the focus.
    fn focus_id(&self) -> String {
        match &self.control {
            Control::YesNo { .. } | Control::Many { .. } => format!("{}-0", self.id),
            _ => self.id.clone(),
        }
    }
}

/// A field with its submitted value and its error.
struct Shown<'a> {
    field: &'a Field,
    submitted: Option<&'a Values>,
    error: Option<&'a str>,
}

impl Shown<'_> {
    fn html(&self) -> String {
        let Field { id, control, .. } = self.field;
        let label = line(self.field.label());
        let required = if self.field.is_required { "required" } else { "optional" };
        let label = format!("{label} <span class=\"required\">({required})</span>");
        let notes = self.notes();
        match control {
            Control::YesNo { initial } => self.group(&label, &notes, &self.yes_no(*initial)),
            Control::Many { choices, initial } => {
                self.group(&label, &notes, &self.boxes(choices, initial))
            }
            _ => format!(
                "<div class=\"field\"><label for=\"{id}\">{label}</label>\n{notes}{}</div>\n",
                self.control()
            ),
        }
    }

    fn group(&self, label: &str, notes: &str, controls: &str) -> String {
        let about = self.described_by();
        format!(
            "<fieldset class=\"field\"{about}><legend>{label}</legend>\n{notes}{controls}</fieldset>\n"
        )
    }

    /// Returns description, hint and error.
    fn notes(&self) -> String {
        let Field { id, description, hint, .. } = self.field;
        let mut html = String::new();
        let hidden = self.unsafe_initial().map(|it| format!("suggested: {it}"));
        let notes: Vec<&str> =
            [description, hint, &hidden].into_iter().filter_map(|note| note.as_deref()).collect();
        if !notes.is_empty() {
            let notes = lines(&notes.join("\n"));
            // Writing to memory does not fail.
            let _ = writeln!(html, "<p class=\"hint\" id=\"{id}-hint\">{notes}</p>");
        }
        if let Some(error) = self.error {
            let error = line(error);
            let _ = writeln!(html, "<p class=\"error\" id=\"{id}-error\">This field {error}</p>");
        }
        html
    }

    /// Returns the attributes that connect a control with its notes.
    fn described_by(&self) -> String {
        let Field { id, description, hint, .. } = self.field;
        let has_hint = description.is_some() || hint.is_some() || self.unsafe_initial().is_some();
        let mut ids = Vec::new();
        ids.extend(has_hint.then(|| format!("{id}-hint")));
        ids.extend(self.error.map(|_| format!("{id}-error")));
        match ids.is_empty() {
            true => String::new(),
            false => format!(" aria-describedby=\"{}\"", ids.join(" ")),
        }
    }

    /// Returns a single control.
    fn control(&self) -> String {
        let Field { id, is_required, control, .. } = self.field;
        let name = text::html(&self.field.input_name());
        let about = self.described_by();
        let required = if *is_required { " required" } else { "" };
        let invalid = if self.error.is_some() { " aria-invalid=\"true\"" } else { "" };
        let common = format!("id=\"{id}\" name=\"{name}\"{required}{invalid}{about}");
        let value = text::html(&self.text());
        match control {
            Control::Date { .. } => format!("<input type=\"date\" {common} value=\"{value}\">"),
            Control::Line { mode, .. } => input(mode, &common, &value),
            Control::Number { is_integer, .. } => {
                input(if *is_integer { "numeric" } else { "decimal" }, &common, &value)
            }
            Control::One { choices, initial } => self.select(&common, choices, initial.as_deref()),
            // A line break at the start is not part of the text.
            _ => format!("<textarea {common} spellcheck=\"false\">\n{value}</textarea>"),
        }
    }

    fn select(&self, common: &str, choices: &[Choice], initial: Option<&str>) -> String {
        let empty = if self.field.is_required { "Choose one" } else { "No answer" };
        let mut html = format!("<select {common}><option value=\"\">{empty}</option>\n");
        let name = self.field.input_name();
        for (at, choice) in choices.iter().enumerate() {
            let is_chosen = match self.submitted {
                Some(values) => values.get(&name) == Some(at.to_string().as_str()),
                None => initial == Some(choice.value.as_str()),
            };
            let selected = if is_chosen { " selected" } else { "" };
            let title = line(&choice.title);
            // Writing to memory does not fail.
            let _ = writeln!(html, "<option value=\"{at}\"{selected}>{title}</option>");
        }
        html.push_str("</select>\n");
        html
    }

    fn yes_no(&self, initial: Option<bool>) -> String {
        let name = self.field.input_name();
        let initial = initial.map(|yes| if yes { "yes" } else { "no" });
        let chosen = match self.submitted {
            Some(values) => values.get(&name),
            None => initial,
        };
        let mut choices = vec![("yes", "Yes"), ("no", "No")];
        if !self.field.is_required {
            choices.push(("", "No answer"));
        }
        let choices = choices.into_iter().enumerate();
        choices
            .map(|(at, (value, title))| {
                self.choice("radio", at, value, title, chosen == Some(value))
            })
            .collect()
    }

    fn boxes(&self, choices: &[Choice], initial: &[String]) -> String {
        let name = self.field.input_name();
        let choices = choices.iter().enumerate();
        choices
            .map(|(at, choice)| {
                let value = at.to_string();
                let is_chosen = match self.submitted {
                    Some(values) => values.all(&name).any(|it| it == value),
                    None => initial.contains(&choice.value),
                };
                self.choice("checkbox", at, &value, &choice.title, is_chosen)
            })
            .collect()
    }

    fn choice(&self, kind: &str, at: usize, value: &str, title: &str, is_chosen: bool) -> String {
        let (id, name, title) = (&self.field.id, text::html(&self.field.input_name()), line(title));
        let checked = if is_chosen { " checked" } else { "" };
        format!(
            "<label class=\"choice\"><input type=\"{kind}\" id=\"{id}-{at}\" name=\"{name}\" \
             value=\"{value}\"{checked}> {title}</label>\n"
        )
    }

    /// Returns the text of a control: the submitted one, else the initial one.
    fn text(&self) -> String {
        match self.submitted {
            Some(values) => values.get(&self.field.input_name()).unwrap_or_default().to_owned(),
            None if self.unsafe_initial().is_some() => String::new(),
            None => initial_text(&self.field.control).unwrap_or_default().to_owned(),
        }
    }

    /// Returns an initial text with invisible characters. A person must not send it unread.
    fn unsafe_initial(&self) -> Option<&str> {
        let is_unsafe = |initial: &&str| text::lines(initial) != *initial;
        initial_text(&self.field.control).filter(is_unsafe)
    }
}

fn input(mode: &str, common: &str, value: &str) -> String {
    format!(
        "<input type=\"text\" inputmode=\"{mode}\" autocomplete=\"off\" {common} value=\"{value}\">"
    )
}

fn initial_text(control: &Control) -> Option<&str> {
    match control {
        Control::Line { initial, .. }
        | Control::Lines { initial }
        | Control::Date { initial }
        | Control::Number { initial, .. } => initial.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use outlive::wire::RequestedSchema;
    use serde_json::{Value, json};

    use super::{errors, render};
    use crate::{
        form::{Field, fields},
        urlencoded::Values,
    };

    #[expect(clippy::needless_pass_by_value, reason = "callers pass a `json!` value in place")]
    fn form(properties: Value, required: &[&str]) -> Vec<Field> {
        let form = json!({"type": "object", "properties": properties, "required": required});
        fields(&serde_json::from_value::<RequestedSchema>(form).expect("is a form"))
    }

    fn html(properties: Value, required: &[&str], body: Option<&str>) -> String {
        let values = body.map(|body| Values::decode(body.as_bytes()));
        render(&form(properties, required), values.as_ref(), &BTreeMap::new())
    }

    #[test]
    fn text_of_a_form_is_escaped_and_visible() {
        let field = json!({"a\"><b>": {"type": "string", "title": "<i>\u{202e}",
            "description": "</p>\u{200b}", "enum": ["<u>"]}});
        let html = html(field, &[], None);
        for markup in ["<b>", "<i>", "</p>\u{200b}", "<u>", "\u{202e}", "name=\"field.a\""] {
            assert!(!html.contains(markup), "{markup}: {html}");
        }
        assert!(html.contains("&lt;i&gt;\\u{202e}") && html.contains("\\u{200b}"), "{html}");
        assert!(html.contains("name=\"field.a&quot;&gt;&lt;b&gt;\""), "{html}");
    }

    #[test]
    fn initial_values_are_preselected() {
        let form = json!({
            "t": {"type": "string", "maxLength": 9, "default": "<x>"},
            "n": {"type": "integer", "default": 5},
            "b": {"type": "boolean", "default": true},
            "e": {"type": "string", "enum": ["s", "l"], "default": "l"},
            "m": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "default": ["y"]},
        });
        let html = html(form, &[], None);
        for part in [
            "value=\"&lt;x&gt;\"",
            "value=\"5\"",
            "value=\"yes\" checked",
            "<option value=\"1\" selected>l",
            "value=\"1\" checked",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn choice_without_initial_value_is_not_preselected() {
        let form = json!({"b": {"type": "boolean"}, "e": {"type": "string", "enum": ["s"]},
            "m": {"type": "array", "items": {"type": "string", "enum": ["x"]}}});
        let html = html(form, &["b"], None);
        assert!(!html.contains("checked") && !html.contains("selected"), "{html}");
        assert!(!html.contains("value=\"\" "), "a required choice has no empty answer: {html}");
    }

    #[test]
    fn initial_text_with_invisible_characters_is_shown_but_not_preselected() {
        let field = json!({"a": {"type": "string", "maxLength": 9, "default": "a\u{202e}b"}});
        let html = html(field, &[], None);
        assert!(html.contains("suggested: a\\u{202e}b") && html.contains("value=\"\""), "{html}");
    }

    #[test]
    fn submitted_values_stay_in_the_form() {
        let form = json!({
            "n": {"type": "integer", "default": 5},
            "b": {"type": "boolean", "default": true},
            "e": {"type": "string", "enum": ["s", "l"], "default": "l"},
            "m": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "default": ["y"]},
            "l": {"type": "string"},
        });
        let body = "field.n=thr%22ee&field.b=no&field.e=0&field.m=0&field.l=%0Aa%3C";
        let html = html(form, &[], Some(body));
        for part in [
            "value=\"thr&quot;ee\"",
            "value=\"no\" checked",
            "<option value=\"0\" selected>s",
            "value=\"0\" checked",
            ">\n\na&lt;</textarea>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert_eq!((html.matches(" checked").count(), html.matches(" selected").count()), (2, 1));
    }

    #[test]
    fn error_stands_beside_its_field_and_in_the_summary() {
        let fields = form(
            json!({"a": {"type": "integer", "title": "Count"}, "b": {"type": "boolean"}}),
            &["a"],
        );
        let wrong = BTreeMap::from([
            ("a".to_owned(), "must be <5".to_owned()),
            ("b".to_owned(), "is required".to_owned()),
        ]);
        let html = render(&fields, None, &wrong);
        assert!(
            html.contains("<p class=\"error\" id=\"field0-error\">This field must be &lt;5</p>"),
            "{html}"
        );
        assert!(
            html.contains("aria-invalid=\"true\" aria-describedby=\"field0-hint field0-error\""),
            "{html}"
        );
        assert!(
            html.contains("<fieldset class=\"field\" aria-describedby=\"field1-error\">"),
            "{html}"
        );
        let summary = errors(&fields, &wrong);
        assert!(summary.contains("<a href=\"#field0\">Count must be &lt;5</a>"), "{summary}");
        assert!(summary.contains("<a href=\"#field1-0\">b is required</a>"), "{summary}");
        assert_eq!(errors(&fields, &BTreeMap::new()), "");
    }
}
