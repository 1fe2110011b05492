//! The ways to a token that no person is needed for.

use outlive_transport::client::SecretString;

use super::{
    assertion::Assertion,
    error::OAuthError,
    registration::{By, Method, Registered},
    scopes::Scopes,
    token_endpoint::{Fields, Given, TokenEndpoint},
};
use crate::fetch::Fetcher;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// How tokens are got.
#[derive(Debug)]
pub(super) enum Grant {
    /// A person logs in.
    Code,
    /// The client shows who it is.
    ClientCredentials,
    /// A platform vouches for the program.
    Workload(Assertion),
    /// A company's identity provider vouches for the user.
    Enterprise(EnterpriseAuthorization),
}

/// The identity provider of a company, which decides on who may use which server.
///
/// A user who is logged in there need not log in anywhere else: the provider exchanges the user's
/// ID token for an assertion that the server's authorization server takes.
#[derive(Clone, Debug)]
pub struct EnterpriseAuthorization {
    token_endpoint: String,
    client_id: String,
    client_secret: Option<SecretString>,
    id_token: Assertion,
}

impl EnterpriseAuthorization {
    /// The provider's token endpoint, this client's id at the provider, and the user's ID token.
    pub fn new(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        id_token: Assertion,
    ) -> Self {
        let (token_endpoint, client_id) = (token_endpoint.into(), client_id.into());
        Self { token_endpoint, client_id, client_secret: None, id_token }
    }

    /// This client's secret at the provider, if it has one.
    #[must_use]
    pub fn client_secret(mut self, secret: impl Into<SecretString>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }

    /// The assertion that the server's authorization server takes.
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
        let given = provider.ask("the identity provider's assertion", fields).await?;
        match given.issued_token_type.as_deref() {
            Some(ID_JAG) | None => Ok(given.access_token),
            Some(_) => Err(OAuthError::Assertion(
                "the identity provider gave a token of another kind; check that it supports ID-JAG"
                    .to_owned(),
            )),
        }
    }
}

/// What a token is asked for.
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
    /// Gets a token without anybody's help. `own` fetches what is configured here.
    pub(super) async fn run(
        &self,
        own: &Fetcher,
        at: &TokenEndpoint<'_>,
        asked: &Asked<'_>,
    ) -> Result<Given, OAuthError> {
        let assertion = match self {
            Self::Code | Self::ClientCredentials => None,
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
        at.ask("the token", fields).await
    }
}
