//! Pages as HTML, and text that is safe in them.

use std::fmt;

use askama::{Template, filters::Escaper};
use outlive::text;

/// A page. The response adds status and headers.
#[derive(Debug)]
pub(crate) struct Html(String);

impl Html {
    /// Renders a page.
    pub(crate) fn new(page: &impl Template) -> Self {
        Self(page.render().expect("values of a page are displayed without errors"))
    }

    #[cfg(test)]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// A part of a page that is already HTML. A template shows it with the filter `safe`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Markup(String);

impl Markup {
    /// Renders a part of a page.
    pub(crate) fn new(part: &impl Template) -> Self {
        Self(Html::new(part).into_string())
    }

    /// Escapes a value that a form repeats. Its invisible characters stay as they are, so the form
    /// submits what the person typed.
    pub(crate) fn exact(value: &str) -> Self {
        Self(text::html(value))
    }

    /// Marks a text as HTML. Every value in it must be escaped.
    pub(crate) fn from_html(html: String) -> Self {
        Self(html)
    }
}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The escaper of all templates: values keep their lines, and invisible characters appear as their
/// code. So a template cannot show the text of a caller unescaped by mistake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: fmt::Write>(&self, mut to: W, text: &str) -> fmt::Result {
        to.write_str(&lines(text))
    }
}

/// Returns a text as HTML on one line. Invisible characters appear as their code.
pub(crate) fn line(text: &str) -> String {
    text::html(&text::line(text))
}

/// Returns a text as HTML with its line breaks. Invisible characters appear as their code.
pub(crate) fn lines(text: &str) -> String {
    text::html(&text::lines(text))
}

#[cfg(test)]
mod tests {
    use askama::Template;

    use super::{Html, line, lines};

    #[derive(Template)]
    #[template(source = "<p title=\"{{ text }}\">{{ text }}{{ number }}</p>", ext = "html")]
    struct Page {
        text: &'static str,
        number: usize,
    }

    #[test]
    fn markup_and_invisible_characters_are_shown_as_text() {
        assert_eq!(line("<b a='\"'>&\u{202e}x\n"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;\\u{202e}x ");
        assert_eq!(lines("a\n<i>\u{200b}"), "a\n&lt;i&gt;\\u{200b}");
    }

    #[test]
    fn template_value_is_escaped_and_visible() {
        let page = Html::new(&Page { text: "<b>\"\u{202e}\u{7}", number: 5 });
        let text = "&lt;b&gt;&quot;\\u{202e}\\u{7}";
        assert_eq!(page.as_str(), format!("<p title=\"{text}\">{text}5</p>"));
    }
}
