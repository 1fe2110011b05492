//! Acquires tokens by token exchange: the client exchanges the token of a user for one at the MCP
//! server.
//!
//! The token endpoint is configured, so no metadata is fetched. The user's token goes only there.

use super::{
    acquire::Granted,
    error::{OAuthError, OAuthRequest},
    metadata::ServerMetadata,
    oauth::Source,
    token_endpoint::Given,
    token_exchange::{ACCESS_TOKEN, JWT, TokenExchange},
};

impl Source {
    /// Exchanges the token of the user, and stores the new one. The caller must hold `gate`.
    pub(super) async fn exchange(&self, exchange: &TokenExchange) -> Result<(), OAuthError> {
        let server = ServerMetadata {
            issuer: exchange.token_endpoint.clone(),
            token_endpoint: Some(exchange.token_endpoint.clone()),
            ..ServerMetadata::default()
        };
        let missing = || OAuthError::NoRegistration { issuer: server.issuer.clone() };
        let client = self.configured(&server)?.ok_or_else(missing)?;
        let scopes = self.settings.scopes.clone();
        let subject = exchange.subject.get().await?;
        let fields = exchange.fields(subject.expose(), &scopes.to_string());
        let fetch = self.own_fetch();
        let at = self.endpoint(&fetch, &server, &exchange.token_endpoint, &client, None);
        let given = at.ask(OAuthRequest::TokenExchange, fields).await?;
        if !matches!(given.issued_token_type.as_deref(), None | Some(ACCESS_TOKEN | JWT)) {
            return Err(OAuthError::Unsuitable {
                issuer: server.issuer.clone(),
                lacks: "returned no access token for the exchange; check that it may exchange tokens for this server",
            });
        }
        // A refresh token would outlive the user's own token.
        let given = Given { refresh_token: None, ..given };
        let resource = exchange.resource.clone().unwrap_or_else(|| self.settings.server.clone());
        let (server, client_id, prover) = (&server, client.id, None);
        self.keep_granted(Granted { server, client_id, resource, scopes, prover }, given).await
    }
}
