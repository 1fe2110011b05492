//! The response of the answer page, which contains its style and refers to nothing else.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use sha2::{Digest as _, Sha256};

use crate::{assets::CSS, html::Html};

/// The policy of the answer page: its own style, and nothing else.
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

    /// Returns a response with a page.
    pub(crate) fn page(&self, status: StatusCode, page: Html) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(page.into_string()));
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
