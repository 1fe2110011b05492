//! What those are told who are not let in: how to get in, and nothing about why a token is bad that
//! whoever made it up could learn from.
//! Spec: RFC 6750, RFC 9728 section 5.1, RFC 9449 section 7.1.

use std::fmt::Write as _;

use http::{HeaderName, HeaderValue};
use outlive_protocol::Scopes;
use outlive_transport::http::AuthRejection;

const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The two ways to show a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Bearer,
    /// With a proof that one has its key.
    Dpop,
}

/// The challenges of a server, written once.
#[derive(Debug)]
pub(super) struct Challenges {
    /// What stands behind every error: where the metadata is, and what to ask for.
    bearer: String,
    dpop: String,
    /// The scheme for those who have shown nothing.
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
        let why = "the token is not valid here; get a new one";
        challenges.invalid = [Scheme::Bearer, Scheme::Dpop]
            .map(|scheme| challenges.error(scheme, "invalid_token", why));
        challenges
    }

    /// 401, to somebody who has shown no token.
    pub(super) fn no_token(&self) -> AuthRejection {
        AuthRejection::unauthenticated(self.no_token.clone())
    }

    /// 401, to somebody whose token is not good, for whatever reason.
    pub(super) fn invalid_token(&self, scheme: Scheme) -> AuthRejection {
        AuthRejection::unauthenticated(self.invalid[scheme as usize].clone())
    }

    /// 400, to somebody whose request cannot be understood.
    pub(super) fn invalid_request(&self, why: &'static str) -> AuthRejection {
        let challenge = self.error(self.preferred, "invalid_request", why);
        AuthRejection::malformed(why).with_challenge(challenge)
    }

    /// 403, to somebody whose token allows too little for anything here.
    pub(super) fn insufficient(&self, scheme: Scheme, needed: &Scopes) -> AuthRejection {
        AuthRejection::forbidden().with_challenge(self.insufficient_scope(scheme, needed))
    }

    /// What needs these scopes, and everything that is needed anyway.
    pub(super) fn insufficient_scope(&self, scheme: Scheme, needed: &Scopes) -> HeaderValue {
        let all = self.scopes.with(needed);
        let why = "the token does not allow this; ask for all of these scopes";
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

    /// 401, to somebody whose proof is not good.
    pub(super) fn invalid_proof(&self) -> AuthRejection {
        let why = "the DPoP proof is not valid for this request; make a new one for each request";
        AuthRejection::unauthenticated(self.error(Scheme::Dpop, "invalid_dpop_proof", why))
    }

    /// 401, to somebody whose proof needs our nonce.
    pub(super) fn use_nonce(&self, nonce: &str) -> AuthRejection {
        let why = "put the nonce of the DPoP-Nonce header into the proof";
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
    HeaderValue::try_from(text).expect("URIs, scopes and our own words are visible ASCII")
}
