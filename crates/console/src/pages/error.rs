//! Pages for requests that have no result.

use askama::Template;

use super::plain::Plain;
use crate::{
    html::{Html, Markup},
    urlencoded::Values,
};

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    plain: &'a Plain<'a>,
    title: &'a str,
    text: &'a str,
    /// Submitted values, which *Retry* submits again.
    retry: Option<Vec<(Markup, Markup)>>,
    can_reload: bool,
}

/// Returns the page for every unknown and every foreign address. It has one text, so it says nothing
/// about the address.
pub(crate) fn not_found(plain: &Plain<'_>) -> Html {
    page(plain, "Not found", "This page does not exist, or you may not see it.")
}

/// Returns the page for an action that the visitor may not do, with the reason.
pub(crate) fn forbidden(plain: &Plain<'_>, reason: &str) -> Html {
    page(plain, "Not allowed", reason)
}

/// Returns the page for a form of another session, of another page or of another day.
pub(crate) fn stale_form(plain: &Plain<'_>) -> Html {
    let text = "This form has expired or belongs to another session. Go back, reload the page and \
                send the form again. Nothing was changed.";
    page(plain, "Form expired", text)
}

/// Returns the page for a request with an invalid value, with the reason.
pub(crate) fn invalid(plain: &Plain<'_>, reason: &str) -> Html {
    page(plain, "Invalid request", reason)
}

/// Returns the page for a method that an address does not support.
pub(crate) fn method_not_allowed(plain: &Plain<'_>) -> Html {
    page(plain, "Method not allowed", "This address does not support the method of the request.")
}

/// Returns the page for a visitor who sends more requests than the limit allows.
pub(crate) fn too_many_requests(plain: &Plain<'_>) -> Html {
    let text = "You sent many requests in a short time. Wait a moment, then try again.";
    Html::new(&ErrorPage { can_reload: true, ..ErrorPage::new(plain, "Too many requests", text) })
}

/// Returns the page for a store that cannot be read or written. *Retry* repeats the request with
/// everything that was typed.
pub(crate) fn unavailable(plain: &Plain<'_>, submitted: Option<&Values>) -> Html {
    let text = match submitted {
        Some(_) => "The task store is unavailable, so nothing was changed. Your input is not lost.",
        None => "The task store is unavailable.",
    };
    let exact = |(name, value)| (Markup::exact(name), Markup::exact(value));
    let retry = submitted.map(|values| values.pairs().map(exact).collect());
    let page = ErrorPage::new(plain, "Try again later", text);
    Html::new(&ErrorPage { can_reload: retry.is_none(), retry, ..page })
}

fn page(plain: &Plain<'_>, title: &str, text: &str) -> Html {
    Html::new(&ErrorPage::new(plain, title, text))
}

impl<'a> ErrorPage<'a> {
    fn new(plain: &'a Plain<'a>, title: &'a str, text: &'a str) -> Self {
        Self { plain, title, text, retry: None, can_reload: false }
    }
}

#[cfg(test)]
mod tests {
    use super::{forbidden, not_found, unavailable};
    use crate::{
        pages::{
            context::Theme,
            plain::Plain,
            testing::{check_page, hostile},
        },
        urlencoded::Values,
    };

    const PLAIN: Plain<'_> = Plain { base: "../../", theme: Theme::Dark };

    #[test]
    fn error_pages_are_valid() {
        check_page(&not_found(&PLAIN));
        check_page(&forbidden(&PLAIN, &hostile("reason")));
        check_page(&unavailable(&PLAIN, None));
    }

    #[test]
    fn retry_repeats_everything_that_was_typed() {
        let values = Values::decode(b"reason=not+%22now%22%0A&field.a=1&field.a=2");
        let page = unavailable(&PLAIN, Some(&values));
        check_page(&page);
        for input in [
            "name=\"reason\" value=\"not &quot;now&quot;\n\"",
            "name=\"field.a\" value=\"1\"",
            "name=\"field.a\" value=\"2\"",
        ] {
            assert!(page.as_str().contains(input), "{input}: {}", page.as_str());
        }
    }
}
