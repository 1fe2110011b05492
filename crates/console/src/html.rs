//! Parts of every page: the document, its headers, and text that is safe in HTML.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use outlive::text;
use sha2::{Digest as _, Sha256};

const CSS: &str = include_str!("../assets/console.css");

/// The style sheet of every page, and the policy that permits nothing else.
pub(crate) struct Style {
    policy: HeaderValue,
}

impl Style {
    pub(crate) fn new() -> Self {
        let digest = STANDARD.encode(Sha256::digest(CSS));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; \
             frame-ancestors 'none'; base-uri 'none'"
        );
        let policy = HeaderValue::try_from(policy).expect("base64 is valid in a header");
        Self { policy }
    }

    /// Returns a response with a page. `body` is the HTML of its main part.
    pub(crate) fn page(&self, status: StatusCode, title: &str, body: &str) -> Response<Bytes> {
        let title = text::html(title);
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\
             <style>{CSS}</style></head>\n<body><main>\n{body}</main></body></html>\n"
        );
        let mut response = Response::new(Bytes::from(html));
        *response.status_mut() = status;
        self.set(response.headers_mut());
        response
    }

    fn set(&self, headers: &mut HeaderMap) {
        let fixed: [(HeaderName, &'static str); 8] = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::X_FRAME_OPTIONS, "DENY"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
        ];
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
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
    use super::{CSS, line, lines};

    #[test]
    fn markup_and_invisible_characters_are_shown_as_text() {
        assert_eq!(line("<b a='\"'>&\u{202e}x\n"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;\\u{202e}x ");
        assert_eq!(lines("a\n<i>\u{200b}"), "a\n&lt;i&gt;\\u{200b}");
    }

    #[test]
    fn style_sheet_needs_no_escaping_and_no_other_origin() {
        assert!(!CSS.contains('<') && !CSS.contains("url(") && !CSS.contains("@import"));
        assert!(CSS.len() <= 16 << 10, "{}", CSS.len());
    }
}
