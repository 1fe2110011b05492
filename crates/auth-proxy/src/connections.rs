//! Logins of users at other servers: the interface to the program that uses them.

use outlive_auth::client::OAuth;
use outlive_protocol::Principal;

/// Other servers at which each user logs in, such as the upstreams of a gateway.
///
/// A user opens the page that [`AuthProxy::connect_url`](super::AuthProxy::connect_url) returns,
/// agrees there, and logs in at the other server. The tokens go to the credential store of the OAuth
/// client, and never to the browser.
pub trait Connections: Send + Sync + 'static {
    /// Returns a server by its name, or `None` if users cannot log in there.
    fn server(&self, name: &str) -> Option<ConnectedServer>;

    /// Returns the OAuth client of a principal at a server. Its tokens belong to the principal.
    fn client(&self, name: &str, principal: &Principal) -> Option<OAuth>;

    /// A principal has logged in at a server.
    fn connected(&self, name: &str, principal: &Principal);
}

/// A server at which users log in, as the consent page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectedServer {
    /// Host of the server.
    pub host: String,
    /// Scopes that are requested if the server does not specify any.
    pub scopes: Vec<String>,
}

impl ConnectedServer {
    /// Creates a server.
    pub fn new<S: Into<String>>(
        host: impl Into<String>,
        scopes: impl IntoIterator<Item = S>,
    ) -> Self {
        Self { host: host.into(), scopes: scopes.into_iter().map(Into::into).collect() }
    }
}
