//! HTML pages for users. They have no scripts, images or external resources, and cannot be framed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use outlive_protocol::{
    Scopes,
    text::{html, is_visible},
};
use ring::digest::{SHA256, digest};

use super::reply::{Reply, guard};

const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;\
padding:0 1rem;color-scheme:light dark}dt{font-size:.85rem;opacity:.7;margin-top:.8rem}\
dd{margin:0;overflow-wrap:anywhere}button{font:inherit;padding:.5rem 1.2rem;margin:1.5rem .5rem 0 0}";

/// Content of the consent page.
pub(super) struct ConsentPage<'a> {
    /// Name of the client, as it declares it.
    pub(super) client: &'a str,
    /// Host that publishes the client's metadata document.
    pub(super) vouched_by: Option<&'a str>,
    /// Name of the server.
    pub(super) server: &'a str,
    /// Scopes that the client gets.
    pub(super) scopes: &'a Scopes,
    /// Scopes that the client gets only if a rule grants them to the user.
    pub(super) if_granted: &'a Scopes,
    /// Host of the redirect URI.
    pub(super) goes_to: &'a str,
    pub(super) is_loopback: bool,
    /// Host of the provider.
    pub(super) provider: &'a str,
    /// URL of the form.
    pub(super) action: &'a str,
    /// Sealed login in the form.
    pub(super) request: &'a str,
}

/// Returns the consent page.
pub(super) fn consent(asked: &ConsentPage<'_>) -> String {
    let client = escaped(asked.client);
    let origin = match asked.vouched_by {
        Some(host) => format!("published by {}", escaped(host)),
        None => "this name is not verified".to_owned(),
    };
    let place = match asked.is_loopback {
        true => format!("a program on this computer ({})", escaped(asked.goes_to)),
        false => escaped(asked.goes_to),
    };
    let list = |scopes: &Scopes| scopes.iter().map(escaped).collect::<Vec<_>>().join(", ");
    let scopes = match asked.scopes.is_empty() {
        true => "no specific scopes".to_owned(),
        false => list(asked.scopes),
    };
    let if_granted = match asked.if_granted.is_empty() {
        true => String::new(),
        false => {
            let scopes = list(asked.if_granted);
            format!("<dt>Only if your account is permitted</dt><dd>{scopes}</dd>")
        }
    };
    let (server, provider) = (escaped(asked.server), escaped(asked.provider));
    let (action, request) = (escaped(asked.action), escaped(asked.request));
    page(
        "Allow access?",
        &format!(
            "<p><strong>{client}</strong> wants to use <strong>{server}</strong> on your behalf.</p>\
             <dl><dt>Application</dt><dd>{client}<br><small>{origin}</small></dd>\
             <dt>Requested access</dt><dd>{scopes}</dd>{if_granted}\
             <dt>You are sent back to</dt><dd>{place}</dd></dl>\
             <p>Continue only if you have just started this yourself, in that application. You log in at \
             {provider} next.</p>\
             <form method=\"post\" action=\"{action}\">\
             <input type=\"hidden\" name=\"request\" value=\"{request}\">\
             <button name=\"decision\" value=\"allow\">Allow</button>\
             <button name=\"decision\" value=\"deny\">Deny</button></form>"
        ),
    )
}

/// Content of the consent page for a login at another server.
pub(super) struct ConnectPage<'a> {
    /// Name of this server.
    pub(super) server: &'a str,
    /// Name of the other server, as the operator chose it.
    pub(super) name: &'a str,
    pub(super) host: &'a str,
    pub(super) scopes: &'a [String],
    /// Person who has signed in.
    pub(super) person: &'a str,
    /// URL of the form.
    pub(super) action: &'a str,
    /// Sealed target in the form.
    pub(super) request: &'a str,
}

/// Returns the consent page for a login at another server.
pub(super) fn connect(asked: &ConnectPage<'_>) -> String {
    let (server, name, host) = (escaped(asked.server), escaped(asked.name), escaped(asked.host));
    let (action, request) = (escaped(asked.action), escaped(asked.request));
    let person = escaped(asked.person);
    let scopes = match asked.scopes {
        [] => "what its login page names".to_owned(),
        scopes => scopes.iter().map(|scope| escaped(scope)).collect::<Vec<_>>().join(", "),
    };
    page(
        "Connect your account?",
        &format!(
            "<p><strong>{server}</strong> wants to use <strong>{name}</strong> ({host}) with your \
             account there.</p>\
             <dl><dt>Your account here</dt><dd>{person}</dd>\
             <dt>Requested access</dt><dd>{scopes}</dd></dl>\
             <p>Only calls of your own applications use this login. Continue only if you have just \
             started this yourself. You log in at {host} next.</p>\
             <form method=\"post\" action=\"{action}\">\
             <input type=\"hidden\" name=\"request\" value=\"{request}\">\
             <button name=\"decision\" value=\"allow\">Continue</button>\
             <button name=\"decision\" value=\"deny\">Cancel</button></form>"
        ),
    )
}

/// Returns the page after a login at another server.
pub(super) fn connected(name: &str) -> String {
    let name = escaped(name);
    page(
        "Connected",
        &format!("<p>You are logged in at <strong>{name}</strong>. You may close this page.</p>"),
    )
}

/// Returns the page after a user has cancelled a login at another server.
pub(super) fn not_connected(name: &str) -> String {
    let name = escaped(name);
    page(
        "Not connected",
        &format!(
            "<p>Nothing has changed for <strong>{name}</strong>. You may close this page.</p>"
        ),
    )
}

/// Returns a page with an error.
pub(super) fn problem(what: &str) -> String {
    page("Login failed", &format!("<p>{}</p>", escaped(what)))
}

/// Returns a page with an error in a client's request, and a link that returns the error to the
/// client at `host`.
pub(super) fn mistake(what: &str, host: &str, link: &str) -> String {
    let (what, host, link) = (escaped(what), escaped(host), escaped(link));
    page(
        "Login failed",
        &format!(
            "<p>The request of the application is invalid: {what}.</p>\
             <p>If you started this login yourself, in an application of <strong>{host}</strong>, \
             <a rel=\"noreferrer\" href=\"{link}\">return to {host}</a>. Otherwise close this page.</p>"
        ),
    )
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style></head><body><h1>{title}</h1>{body}</body></html>"
    )
}

/// Returns a response with a page.
pub(super) fn reply(status: StatusCode, html: &str) -> Reply {
    let mut reply = Response::new(Bytes::from(html.to_owned()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    guard(headers);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // No `form-action`: browsers apply it to every redirect after a form, and these lead to the
    // provider and to the client.
    let style = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; frame-ancestors 'none'; base-uri 'none'"
    );
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    reply
}

/// Escapes a text for HTML. Removes invisible characters and those that change the text direction.
pub(super) fn escaped(text: &str) -> String {
    let visible: String = text.chars().filter(|char| is_visible(*char)).collect();
    html(&visible)
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn name_with_markup_is_escaped() {
        let text = "<b onload='x'>&\"\u{202e}\u{200b}\n é";
        assert_eq!(escaped(text), "&lt;b onload=&#39;x&#39;&gt;&amp;&quot; é");
    }
}
