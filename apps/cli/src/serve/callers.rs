//! Authentication of callers by access tokens, and the tokens that the gateway exchanges.

use std::sync::Arc;

use outlive::{
    auth::{
        client::Assertion,
        server::{Delegates, ResourceServer},
    },
    auth_proxy::AuthProxy,
    server::{Principal, http::HttpConfig},
    store::Store,
};
use outlive_gateway::{Gateway, GatewayBuilder};

use super::{
    config::Config,
    user_logins::{ForGateway, LoginPages},
};
use crate::error::Result;

/// Authentication of callers by the access tokens of issuers.
pub(super) struct Callers {
    resource_server: ResourceServer,
    proxy: Option<AuthProxy>,
    delegates: Delegates,
    pages: LoginPages,
}

impl Callers {
    /// Creates the authentication of `[auth]`, if the file has it.
    pub(super) fn new(config: &Config, store: Arc<dyn Store>) -> Result<Option<Self>> {
        let Some(auth) = &config.auth else { return Ok(None) };
        let name = config.server.title.as_ref().unwrap_or(&config.server.name);
        let client = config.console.client_id.as_deref().filter(|_| config.has_console());
        let (delegates, pages) = (Delegates::new(), LoginPages::default());
        // A reload can add `auth` to upstreams, but only in a server that has upstreams.
        let gateway = (!config.upstreams.is_empty())
            .then(|| ForGateway { delegates: delegates.clone(), pages: pages.clone() });
        let (resource_server, proxy) = auth.servers(name, store, client, gateway)?;
        Ok(Some(Self { resource_server, proxy, delegates, pages }))
    }

    /// Adds the tokens of callers to a gateway.
    pub(super) fn add_to_gateway(&self, gateway: GatewayBuilder) -> GatewayBuilder {
        let gateway = gateway.delegates(self.delegates.clone());
        let Some(proxy) = self.proxy.clone() else { return gateway };
        let pages = proxy.clone();
        gateway
            .provider_tokens(move |caller| provider_token(&proxy, caller))
            .connect_url(move |upstream, caller| pages.connect_url(upstream, caller))
    }

    /// Serves the pages on which users log in at the upstreams of a gateway.
    pub(super) fn serve_pages(&self, gateway: &Gateway) {
        self.pages.serve(gateway);
    }

    /// Adds the authentication to an HTTP server.
    pub(super) fn add_to_http(self, http: HttpConfig) -> HttpConfig {
        let http = http.authenticator(self.resource_server);
        match self.proxy {
            Some(proxy) => http.routes(proxy),
            None => http,
        }
    }
}

/// Returns the token of a caller at the identity provider.
fn provider_token(proxy: &AuthProxy, caller: &Principal) -> Assertion {
    let (proxy, caller) = (proxy.clone(), caller.clone());
    Assertion::from_fn(move || {
        let (proxy, caller) = (proxy.clone(), caller.clone());
        async move { proxy.provider_token(&caller).await.map_err(|error| error.to_string()) }
    })
}
