//! Sign-in to the console, and the check of every request.
//!
//! A browser signs in by a one-time link (`link`), a deciding token (`token`) or OAuth (`oauth`), and
//! gets a `session`. The session holds the credential itself, so `check` authenticates every request
//! with the authenticator of the MCP endpoint, and a revoked credential ends the session. `roles`
//! maps a credential to a role. `form_token` protects forms.

pub(crate) mod check;
pub(crate) mod form_token;
pub(crate) mod link;
pub(crate) mod oauth;
pub(crate) mod roles;
pub(crate) mod session;
pub(crate) mod token;
