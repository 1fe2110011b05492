//! Challenges in rejected responses: they tell a client how to authenticate, and do not disclose
//! why a token is invalid. Spec: RFC 6750, RFC 9728 section 5.1, RFC 9449 section 7.1.

use std::fmt::Write as _;

use http::{HeaderName, HeaderValue};
use outlive_protocol::Scopes;
use outlive_transport::http::AuthRejection;

const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Authentication scheme of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Bearer,
    /// With a proof of possession of the key.
    Dpop,
}

/// Precomputed challenges of a server.
#[derive(Debug)]
pub(super) struct Challenges {
    /// Parameters at the end of every challenge: the metadata URL and the required scopes.
    bearer: String,
    dpop: String,
    /// Scheme in the response to a request without a token.
    preferred: Scheme,
    scopes: Scopes,
    metadata: String,
    algorithms: String,
    no_token: HeaderValue,
    invalid: [HeaderValue; 2],
}

impl Challenges {
    pub(super) fn new(metadata: &str, scopes: Scopes, algorithms: &str, preferred: Scheme) -> Self {
        let mut bearer = format!(r#"resource_metadata="{metadata}""#);
        if !scopes.is_empty() {
            let _ = write!(bearer, r#", scope="{scopes}""#);
        }
        let dpop = format!(r#"algs="{algorithms}", {bearer}"#);
        let mut challenges = Self {
            bearer,
            dpop,
            preferred,
            scopes,
            metadata: metadata.to_owned(),
            algorithms: algorithms.to_owned(),
            no_token: HeaderValue::from_static(""),
            invalid: [HeaderValue::from_static(""), HeaderValue::from_static("")],
        };
        let (name, rest) = challenges.parts(preferred);
        challenges.no_token = value(format!("{name} {rest}"));
        let why = "the token is not valid for this server; get a new one";
        challenges.invalid = [Scheme::Bearer, Scheme::Dpop]
            .map(|scheme| challenges.error(scheme, "invalid_token", why));
        challenges
    }

    /// Returns the 401 response to a request without a token.
    pub(super) fn no_token(&self) -> AuthRejection {
        AuthRejection::unauthenticated(self.no_token.clone())
    }

    /// Returns the 401 response to an invalid token, whatever the reason.
    pub(super) fn invalid_token(&self, scheme: Scheme) -> AuthRejection {
        AuthRejection::unauthenticated(self.invalid[scheme as usize].clone())
    }

    /// Returns the 400 response to a malformed request.
    pub(super) fn invalid_request(&self, why: &'static str) -> AuthRejection {
        let challenge = self.error(self.preferred, "invalid_request", why);
        AuthRejection::malformed(why).with_challenge(challenge)
    }

    /// Returns the 403 response to a token without the scopes that every request requires.
    pub(super) fn insufficient(&self, scheme: Scheme, needed: &Scopes) -> AuthRejection {
        AuthRejection::forbidden().with_challenge(self.insufficient_scope(scheme, needed))
    }

    /// Returns the challenge for missing scopes. Includes the scopes that every request requires.
    pub(super) fn insufficient_scope(&self, scheme: Scheme, needed: &Scopes) -> HeaderValue {
        let all = self.scopes.with(needed);
        let why = "the token lacks a required scope; request all of these scopes";
        let (metadata, algorithms) = (&self.metadata, &self.algorithms);
        let mut text = format!(
            r#"{} error="insufficient_scope", error_description="{why}", scope="{all}", resource_metadata="{metadata}""#,
            self.parts(scheme).0
        );
        if scheme == Scheme::Dpop {
            let _ = write!(text, r#", algs="{algorithms}""#);
        }
        value(text)
    }

    /// Returns the 401 response to an invalid proof.
    pub(super) fn invalid_proof(&self) -> AuthRejection {
        let why = "the DPoP proof is not valid for this request; create a new one for each request";
        AuthRejection::unauthenticated(self.error(Scheme::Dpop, "invalid_dpop_proof", why))
    }

    /// Returns the 401 response to a proof without a valid nonce.
    pub(super) fn use_nonce(&self, nonce: &str) -> AuthRejection {
        let why = "include the nonce of the DPoP-Nonce header in the proof";
        let challenge = self.error(Scheme::Dpop, "use_dpop_nonce", why);
        AuthRejection::unauthenticated(challenge).with_header(DPOP_NONCE, value(nonce.to_owned()))
    }

    pub(super) fn preferred(&self) -> Scheme {
        self.preferred
    }

    fn error(&self, scheme: Scheme, error: &str, why: &str) -> HeaderValue {
        let (name, rest) = self.parts(scheme);
        value(format!(r#"{name} error="{error}", error_description="{why}", {rest}"#))
    }

    fn parts(&self, scheme: Scheme) -> (&'static str, &str) {
        match scheme {
            Scheme::Bearer => ("Bearer", &self.bearer),
            Scheme::Dpop => ("DPoP", &self.dpop),
        }
    }
}

fn value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("URIs, scopes and descriptions are visible ASCII")
}
