//! Requests of programs that stand between clients and servers.
//!
//! [`Client::relay`](super::Client::relay) sends the parameters of a client unchanged and returns
//! the result as bytes. Its owner gets progress, log messages and input requests as events, and
//! forwards them. Each modern request declares the [`CapabilityClass`] of its client.
//!
//! ```no_run
//! use outlive::client::{
//!     Client,
//!     relay::{CapabilityClass, RelayEvent, RelayRequest, input_channel},
//!     transport::ChildProcess,
//! };
//!
//! # async fn run() -> outlive::client::Result<()> {
//! let (sender, _routed) = input_channel(64);
//! let client = Client::builder("my-gateway", "1.0.0")
//!     .capability_class(CapabilityClass::FORM)
//!     .input_channel(sender)
//!     .connect(ChildProcess::new("my-server"))
//!     .await?;
//! let members = [r#""name":"echo","arguments":"#, r#"{"text":"hi"}"#];
//! let request = RelayRequest::new("tools/call").params(&members).name("echo").progress(true);
//! let mut exchange = client.relay(&request).await?;
//! loop {
//!     match exchange.next().await? {
//!         RelayEvent::Input(input) => input.reject(-32603, "no user is connected", None).await?,
//!         RelayEvent::Outcome(outcome) => {
//!             println!("{outcome:?}");
//!             break;
//!         }
//!         event => println!("{event:?}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod api;
mod attach;
mod channel;
mod clock;
mod event;
mod exchange;
mod input;
mod list;
mod open_inputs;
mod param_headers;
mod point;
mod request;
mod resume;
mod send;

pub use super::{error::ErrorCategory, server_info::Handshake};
pub use api::ConnectionState;
pub use channel::{InputSender, RoutedInputs, input_channel};
pub use event::{RelayEvent, RelayOutcome, RelayRound, RelayedTask};
pub use exchange::RelayExchange;
pub use input::{RelayInput, read_input_request};
pub use list::{ListKind, RelayPage, RelayPages};
pub use open_inputs::RoutedEvent;
pub use outlive_protocol::era::client::CapabilityClass;
pub use param_headers::ParamHeaders;
pub use point::{StreamPoint, StreamPosition};
pub use request::{RelayRequest, RelayTasks};

pub use super::unexpected::UnexpectedMessages;

pub(crate) use input::{ReplyPath, required_class};
pub(crate) use open_inputs::{Destination, NotOpened, OpenInputs, Watched};
pub(crate) use point::{OpenStream, PointCell};
