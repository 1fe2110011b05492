//! [`Webhook`]: sends messages as POST requests.
//!
//! Addresses come from the configuration, never from a caller. The HTTP client checks each address
//! that it connects to, and follows no redirect.

use std::{fmt, path::PathBuf, sync::OnceLock, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use outlive_transport::client::{
    NetworkPolicy, SecretString, TransportErrorKind,
    http::{Address, HttpClient, HttpOptions},
};
use tokio::time::timeout;

use super::{
    sign::Signer,
    target::Target,
    transport::{DeliveryTransport, Message, SendError, SendFuture},
};

/// Bytes of a response that are read. Its content has no meaning.
const RESPONSE_BYTES: usize = 16 << 10;

/// Time to read the body of a response; then the connection is closed.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// A receiver of POST requests, with signatures as in Standard Webhooks.
///
/// `.notify(webhook)` names the target `webhook`, and reports all events. [`Target::new`] sets
/// another name, and selects events and tools:
///
/// ```
/// use outlive::deliveries::{Target, TaskEvent, Webhook};
///
/// let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// let webhook = Webhook::new("https://hooks.example.com/outlive").secret(secret);
/// let target = Target::new("chat", webhook).events([TaskEvent::TaskQuarantined]);
/// ```
#[must_use]
pub struct Webhook {
    url: String,
    secrets: Vec<SecretString>,
    unsigned: bool,
    network: NetworkPolicy,
    ca_file: Option<PathBuf>,
    connection: OnceLock<Result<Connection, String>>,
}

/// The settings, read and checked.
struct Connection {
    address: Address,
    client: HttpClient,
    signer: Signer,
}

impl Webhook {
    /// Creates a webhook for an `https:` URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            secrets: Vec::new(),
            unsigned: false,
            network: NetworkPolicy::Public,
            ca_file: None,
            connection: OnceLock::new(),
        }
    }

    /// Adds a secret that starts with `whsec_`, or several with spaces in between. Each secret adds a
    /// signature, so that the receiver can change its secret.
    pub fn secret(mut self, secret: impl Into<SecretString>) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// Sends messages without a signature, for a receiver that cannot verify one. Such a receiver
    /// must keep its URL secret.
    pub fn unsigned(mut self) -> Self {
        self.unsigned = true;
        self
    }

    /// Sets the addresses that the webhook may reach; public ones over TLS by default.
    /// [`NetworkPolicy::Local`] permits a local receiver, also without TLS.
    pub fn network(mut self, policy: NetworkPolicy) -> Self {
        self.network = policy;
        self
    }

    /// Sets a PEM file with the root certificates to trust; those of the platform by default.
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(file.into());
        self
    }

    fn connection(&self) -> Result<&Connection, &str> {
        self.connection.get_or_init(|| self.connect()).as_ref().map_err(String::as_str)
    }

    fn connect(&self) -> Result<Connection, String> {
        let address = Address::parse(&self.url).map_err(|error| error.to_string())?;
        if !address.is_tls() && self.network < NetworkPolicy::Local {
            return Err(
                "the URL must start with https://; only a local network allows http://".into()
            );
        }
        let signer = Signer::new(&self.secrets)?;
        if signer.is_empty() && !self.unsigned {
            return Err("the webhook has no secret; set one that starts with `whsec_`".into());
        }
        let mut options = HttpOptions::default();
        options.network_policy = self.network;
        options.message_bytes = RESPONSE_BYTES;
        options.ca_file.clone_from(&self.ca_file);
        let client = HttpClient::new(&options, address.is_tls());
        let client = client.map_err(|error| error.to_string())?;
        Ok(Connection { address, client, signer })
    }
}

impl Connection {
    async fn post(&self, message: &Message) -> Result<(), SendError> {
        let body = Bytes::from(message.body.clone());
        let headers = self.headers(message).map_err(SendError::Failed)?;
        let sent = self.client.send(&self.address, Method::POST, headers, body).await;
        let mut reply = sent.map_err(|error| {
            SendError::Failed(match error.kind() {
                // Says which setting to change.
                TransportErrorKind::BlockedAddress(_) => {
                    format!(
                        "{error}; a receiver in a local network needs the network policy `local`"
                    )
                }
                _ => error.to_string(),
            })
        })?;
        let reason = format!("the receiver returned HTTP {}", reply.status.as_u16());
        match reply.status {
            status if status.is_success() => {
                // Reads the rest, so that the next message can use the connection. The receiver has
                // accepted this one, however long the rest takes.
                let _ = timeout(BODY_TIMEOUT, reply.bytes()).await;
                Ok(())
            }
            StatusCode::GONE => Err(SendError::Gone(reason)),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Err(match reply.retry_after() {
                    Some(delay) => SendError::Busy(reason, delay),
                    None => SendError::Failed(reason),
                })
            }
            status if status.is_redirection() => {
                Err(SendError::Failed(format!("{reason}; redirects are not followed")))
            }
            _ => Err(SendError::Failed(reason)),
        }
    }

    fn headers(&self, message: &Message) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let agent = concat!("outlive/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        let mut add = |name: &'static str, value: &str| {
            let value = HeaderValue::from_str(value);
            let value = value.map_err(|_| format!("the header `{name}` has an invalid value"))?;
            headers.insert(HeaderName::from_static(name), value);
            Ok::<_, String>(())
        };
        add("webhook-id", &message.id)?;
        add("webhook-timestamp", &message.timestamp.to_string())?;
        if !self.signer.is_empty() {
            add("webhook-signature", &self.signer.sign(message))?;
        }
        Ok(headers)
    }
}

impl DeliveryTransport for Webhook {
    fn send<'a>(&'a self, message: &'a Message) -> SendFuture<'a> {
        Box::pin(async move {
            let connection = self.connection();
            let connection = connection.map_err(|error| SendError::Failed(error.to_owned()))?;
            connection.post(message).await
        })
    }

    fn check(&self) -> Result<(), String> {
        self.connection().map(|_| ()).map_err(str::to_owned)
    }
}

impl From<Webhook> for Target {
    fn from(webhook: Webhook) -> Self {
        Self::new("webhook", webhook)
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL of a chat is a secret.
        f.debug_struct("Webhook").field("network", &self.network).finish_non_exhaustive()
    }
}
