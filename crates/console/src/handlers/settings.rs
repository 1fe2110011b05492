//! The settings of a visitor, and sign out.

use http::{HeaderValue, Method, StatusCode, header};

use super::visit::{KEYS, PageError, Visit};
use crate::{
    cookies::{SESSION, THEME},
    http::{Reply, page, redirect},
    pages::{context::Theme, settings},
};

/// Seconds for which a browser keeps the settings.
const AGE: u32 = 31_536_000;

/// Shows the settings, or stores those of the form.
pub(crate) async fn respond(visit: &Visit<'_>) -> Result<Reply, PageError> {
    if *visit.request.method() != Method::POST {
        let html = settings::render(&visit.context().await?);
        return Ok(page(StatusCode::OK, html.into_string()));
    }
    let values = visit.form()?;
    let sign_in = &visit.state.sign_in;
    if values.get("action") == Some("sign-out") {
        if let Some(session) = &visit.signed_in.session {
            sign_in.end(session).await?;
        }
        let mut reply = redirect("./in");
        let cookie = sign_in.cookies(visit.request).unset(SESSION);
        reply.headers_mut().append(header::SET_COOKIE, cookie);
        return Ok(reply);
    }
    let theme = values.get("theme").and_then(Theme::from_name).unwrap_or_default();
    let keys = if values.get("keys") == Some("on") { "on" } else { "off" };
    let mut reply = redirect("./settings");
    for (name, value) in [(THEME, theme.as_str()), (KEYS, keys)] {
        // Without a path, the browser uses the folder of the console, as the script does.
        let cookie = format!("{name}={value}; Max-Age={AGE}; SameSite=Lax");
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            reply.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    Ok(reply)
}
