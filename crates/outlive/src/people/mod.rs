//! Functions for people who act outside an MCP client: on the pages of a console, through its HTTP
//! API, or on the command line.
//!
//! - [`People`]: inbox, decisions, tasks, bulk actions, audit log and overview.
//! - [`Visitor`]: who calls these functions, with which role and credential.
//! - [`AnswerLinks`]: addresses at which the holder responds to one input request of a client.
//! - [`Vault`]: sealed values and expiring entries, for the sessions of a console and the logins of a
//!   gateway.

mod arguments;
mod audit;
mod bulk;
mod changes;
mod cursors;
mod error;
mod hint;
mod inbox;
mod inputs;
mod links;
mod metrics;
mod notification;
mod people_links;
mod rerun;
mod roles;
mod selected;
mod state;
mod tasks;
mod timeline;
mod vault;

pub use arguments::ShownArgument;
pub use audit::{AuditFilter, AuditPage, bulk_name};
pub use bulk::{BulkAction, BulkId, BulkRequest, BulkStatus};
pub use changes::Changes;
pub use cursors::Cursor;
pub use error::{FieldError, PeopleError};
pub use hint::TaskHint;
pub use inbox::{InboxEntry, InboxPage};
pub use inputs::{Answer, AnswerReceipt, InputView};
pub use links::{AnswerError, AnswerLinks, OpenLink};
pub use metrics::WorkerInfo;
pub use people_links::PersonLink;
pub use roles::{Channel, PeopleConfig, Role, Visitor};
pub use state::People;
pub use tasks::TaskView;
pub use timeline::{Timeline, TimerSpan, WorkerSpan};
pub use vault::{Purpose, Vault};
