//! Pages of the authorization proxy on which users log in at upstreams.

use std::sync::{Arc, OnceLock};

use outlive::{
    auth::{client::OAuth, server::Delegates},
    auth_proxy::{ConnectedServer, Connections},
    server::Principal,
};
use outlive_gateway::Gateway;

/// Pages on which users log in at upstreams. They are created before their gateway.
#[derive(Clone, Default)]
pub(crate) struct LoginPages(Arc<OnceLock<Gateway>>);

/// Parts of the authentication of callers that the gateway needs.
pub(crate) struct ForGateway {
    /// Collects the newest access token of each caller.
    pub(crate) delegates: Delegates,
    pub(crate) pages: LoginPages,
}

impl LoginPages {
    /// Sets the gateway.
    pub(super) fn serve(&self, gateway: &Gateway) {
        let _ = self.0.set(gateway.clone());
    }
}

impl Connections for LoginPages {
    fn server(&self, name: &str) -> Option<ConnectedServer> {
        let target = self.0.get()?.user_login_target(name)?;
        Some(ConnectedServer::new(target.host, target.scopes))
    }

    fn client(&self, name: &str, principal: &Principal) -> Option<OAuth> {
        self.0.get()?.user_login(name, principal)
    }

    fn connected(&self, name: &str, principal: &Principal) {
        if let Some(gateway) = self.0.get() {
            gateway.user_logged_in(name, principal);
        }
    }
}
