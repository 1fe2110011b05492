//! Grants without user interaction.

use outlive_transport::client::SecretString;

use super::{
    assertion::Assertion,
    error::{OAuthError, OAuthRequest},
    registration::{By, Method, Registered},
    scopes::Scopes,
    token_endpoint::{Fields, Given, TokenEndpoint},
    token_exchange::TokenExchange,
};
use crate::fetch::Fetcher;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// OAuth grant that acquires tokens.
#[derive(Debug)]
pub(super) enum Grant {
    /// Authorization code grant: a user logs in.
    Code,
    /// Client credentials grant.
    ClientCredentials,
    /// JWT bearer grant with an assertion of the platform.
    Workload(Assertion),
    /// Token exchange at the identity provider of an enterprise.
    Enterprise(EnterpriseAuthorization),
    /// Exchange of the user's token at a configured token endpoint.
    Exchange(TokenExchange),
}

/// The identity provider of an enterprise, which decides which users may access which servers.
///
/// A user who is logged in there does not log in at each server. The provider exchanges the user's
/// ID token for an assertion that the authorization server of the MCP server accepts.
#[derive(Clone, Debug)]
pub struct EnterpriseAuthorization {
    token_endpoint: String,
    client_id: String,
    client_secret: Option<SecretString>,
    id_token: Assertion,
}

impl EnterpriseAuthorization {
    /// Creates a configuration from the provider's token endpoint, the client ID at the provider,
    /// and the user's ID token.
    pub fn new(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        id_token: Assertion,
    ) -> Self {
        let (token_endpoint, client_id) = (token_endpoint.into(), client_id.into());
        Self { token_endpoint, client_id, client_secret: None, id_token }
    }

    /// Sets the client secret at the provider.
    #[must_use]
    pub fn client_secret(mut self, secret: impl Into<SecretString>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }

    /// Exchanges the ID token for an assertion that the authorization server of the MCP server
    /// accepts.
    async fn exchange(
        &self,
        fetch: &Fetcher,
        at: &TokenEndpoint<'_>,
        asked: &Asked<'_>,
    ) -> Result<SecretString, OAuthError> {
        let client = Registered {
            id: self.client_id.clone(),
            secret: self.client_secret.clone(),
            method: if self.client_secret.is_some() { Method::Basic } else { Method::None },
            redirect_uri: None,
            secret_expires: 0,
            by: By::Hand,
        };
        let provider = TokenEndpoint {
            fetch,
            url: &self.token_endpoint,
            issuer: &self.token_endpoint,
            client: &client,
            key: None,
            prover: None,
            now: at.now,
        };
        let mut fields: Fields<'_> = vec![
            ("grant_type", TOKEN_EXCHANGE.to_owned()),
            ("requested_token_type", ID_JAG.to_owned()),
            ("audience", at.issuer.to_owned()),
            ("resource", asked.resource.to_owned()),
            ("subject_token", self.id_token.get().await?.expose().to_owned()),
            ("subject_token_type", ID_TOKEN.to_owned()),
        ];
        asked.put_scopes(&mut fields);
        let given = provider.ask(OAuthRequest::TokenExchange, fields).await?;
        match given.issued_token_type.as_deref() {
            Some(ID_JAG) | None => Ok(given.access_token),
            Some(_) => Err(OAuthError::Assertion(
                "the identity provider returned a token of another type; check that it supports ID-JAG"
                    .to_owned(),
            )),
        }
    }
}

/// Resource and scopes of a token request.
pub(super) struct Asked<'a> {
    pub(super) resource: &'a str,
    pub(super) scopes: &'a Scopes,
}

impl Asked<'_> {
    pub(super) fn put_scopes(&self, fields: &mut Fields<'_>) {
        if !self.scopes.is_empty() {
            fields.push(("scope", self.scopes.to_string()));
        }
    }
}

impl Grant {
    /// Acquires a token without user interaction. `own` fetches from endpoints that are configured
    /// locally.
    pub(super) async fn run(
        &self,
        own: &Fetcher,
        at: &TokenEndpoint<'_>,
        asked: &Asked<'_>,
    ) -> Result<Given, OAuthError> {
        let assertion = match self {
            // An exchange needs no metadata, so it does not reach this function.
            Self::Code | Self::ClientCredentials | Self::Exchange(_) => None,
            Self::Workload(assertion) => Some(assertion.get().await?),
            Self::Enterprise(enterprise) => Some(enterprise.exchange(own, at, asked).await?),
        };
        let mut fields: Fields<'_> = match assertion {
            None => vec![("grant_type", "client_credentials".to_owned())],
            Some(jwt) => {
                vec![("grant_type", JWT_BEARER.to_owned()), ("assertion", jwt.expose().to_owned())]
            }
        };
        fields.push(("resource", asked.resource.to_owned()));
        asked.put_scopes(&mut fields);
        at.ask(OAuthRequest::Token, fields).await
    }
}
