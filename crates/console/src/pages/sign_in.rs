//! The sign-in page.

use askama::Template;

use super::plain::Plain;
use crate::html::Html;

/// Ways to sign in that the server offers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SignIn<'a> {
    /// Whether the server has a token file.
    pub(crate) accepts_token: bool,
    /// Address that starts the authorization, relative to the page.
    pub(crate) authorize: Option<&'a str>,
    /// Sealed for the cookie of the sign-in page, so that another site cannot sign a browser in.
    pub(crate) form_token: &'a str,
    /// Reason why the last attempt failed.
    pub(crate) error: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    plain: &'a Plain<'a>,
    sign_in: SignIn<'a>,
    is_local: bool,
}

/// Returns the sign-in page. Without a token file and without OAuth, it names the command that
/// creates a link.
pub(crate) fn render(plain: &Plain<'_>, sign_in: SignIn<'_>) -> Html {
    let is_local = !sign_in.accepts_token && sign_in.authorize.is_none();
    Html::new(&SignInPage { plain, sign_in, is_local })
}

#[cfg(test)]
mod tests {
    use super::{SignIn, render};
    use crate::pages::{
        context::Theme,
        plain::Plain,
        testing::{check_page, hostile},
    };

    const PLAIN: Plain<'_> = Plain { base: "./", theme: Theme::System };

    #[test]
    fn every_way_to_sign_in_has_a_page() {
        let token = SignIn { accepts_token: true, form_token: "f", ..SignIn::default() };
        let page = render(&PLAIN, token);
        check_page(&page);
        assert!(page.as_str().contains("autocomplete=\"current-password\""));
        let page = render(&PLAIN, SignIn { authorize: Some("in/start"), ..SignIn::default() });
        check_page(&page);
        assert!(page.as_str().contains("href=\"in/start\""));
        let page = render(&PLAIN, SignIn::default());
        check_page(&page);
        assert!(page.as_str().contains("<code>outlive console</code>"));
    }

    #[test]
    fn error_is_connected_with_its_field() {
        let error = hostile("wrong");
        let sign_in = SignIn { accepts_token: true, error: Some(&error), ..SignIn::default() };
        let page = render(&PLAIN, sign_in);
        check_page(&page);
        assert!(page.as_str().contains("aria-describedby=\"token-hint token-error\""));
    }
}
