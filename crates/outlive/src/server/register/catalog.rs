//! [`Catalog`]: items of a server that depend on the call.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use outlive_protocol::{Call, ProtocolError};

use crate::server::register::{
    catalog_handle::CatalogHandle,
    entry::{PromptEntry, ResourceEntry, TemplateEntry, ToolEntry},
};

/// Items of a server that depend on the call.
///
/// A server asks its catalog for every item that is not registered: for the tool of a call, and for
/// the pages of lists after the registered items. A registered item has precedence over an item of
/// the catalog with the same name, and so have the tools for clients without tasks.
///
/// No method may block. A result that is not in memory is [`Lookup::Pending`].
pub trait Catalog: Send + Sync + 'static {
    /// Receives the handle that creates entries and notifies clients. Called once, while the server
    /// is built.
    fn attach(&self, handle: CatalogHandle);

    /// Finds a tool.
    ///
    /// The call is a `tools/call`, a call of a tool for clients without tasks, or the restored call
    /// of a stored task: its principal, capabilities and protocol version are those of the original
    /// call.
    fn tool(&self, call: &Arc<Call>, name: &str) -> Lookup<ToolEntry>;

    /// Finds a prompt.
    fn prompt(&self, call: &Arc<Call>, name: &str) -> Lookup<PromptEntry>;

    /// Finds the entry that reads a URI. It can be the entry of one resource, or an entry for many
    /// URIs. A client cannot subscribe to an unknown URI.
    fn resource(&self, call: &Arc<Call>, uri: &str) -> Lookup<ResourceEntry>;

    /// Finds a resource template by its text, to complete its variables.
    fn template(&self, call: &Arc<Call>, uri_template: &str) -> Lookup<TemplateEntry>;

    /// Returns a page of tools.
    fn tools(&self, call: &Arc<Call>, request: PageRequest) -> Lookup<CatalogPage<ToolEntry>>;

    /// Returns a page of prompts.
    fn prompts(&self, call: &Arc<Call>, request: PageRequest) -> Lookup<CatalogPage<PromptEntry>>;

    /// Returns a page of resources.
    fn resources(
        &self,
        call: &Arc<Call>,
        request: PageRequest,
    ) -> Lookup<CatalogPage<ResourceEntry>>;

    /// Returns a page of resource templates.
    fn templates(
        &self,
        call: &Arc<Call>,
        request: PageRequest,
    ) -> Lookup<CatalogPage<TemplateEntry>>;

    /// Returns the definition of a tool for people who decide about its calls. It is the same for all
    /// callers.
    fn shown_tool(&self, _name: &str) -> Option<ToolEntry> {
        None
    }

    /// Returns instructions for the model, which follow those of the server. They may depend on the
    /// principal of the call.
    fn instructions(&self, _call: &Call) -> Option<String> {
        None
    }

    /// A client of a principal has subscribed to a resource. Called once for each client and URI,
    /// of registered resources too.
    fn subscribed(&self, _principal: &str, _uri: &str) {}

    /// A subscription has ended: by request, or because its session or its call has ended.
    fn unsubscribed(&self, _principal: &str, _uri: &str) {}
}

/// Result of a request to a [`Catalog`].
#[expect(clippy::exhaustive_enums, reason = "these three are complete")]
pub enum Lookup<T> {
    /// The item.
    Found(T),
    /// The item does not exist.
    Unknown,
    /// The result is not in memory.
    Pending(LookupFuture<T>),
}

/// A result of a [`Catalog`] that is not in memory. `None` means that the item does not exist.
pub type LookupFuture<T> = Pin<Box<dyn Future<Output = Result<Option<T>, ProtocolError>> + Send>>;

/// The page that a client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and catalogs read it")]
pub struct PageRequest {
    /// [`CatalogPage::next`] of the previous page; `None` for the first page.
    pub after: Option<String>,
    /// Maximum number of items; at least 1.
    pub max: usize,
}

/// One page of a catalog's list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CatalogPage<T> {
    /// Entries of the page. A page may be shorter than requested, or empty.
    pub items: Vec<T>,
    /// Position after which the list continues; `None` for the last page. At most 1 KiB.
    ///
    /// The server seals it into its pagination cursor. A position such as the name of the last item
    /// stays right when the catalog changes between two pages.
    pub next: Option<String>,
}

impl<T> CatalogPage<T> {
    /// Creates a page.
    pub fn new(items: Vec<T>, next: Option<String>) -> Self {
        Self { items, next }
    }
}

impl<T> Default for CatalogPage<T> {
    fn default() -> Self {
        Self { items: Vec::new(), next: None }
    }
}

impl<T> Lookup<T> {
    /// Converts the item.
    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U + Send + 'static) -> Lookup<U>
    where
        T: 'static,
    {
        match self {
            Self::Found(item) => Lookup::Found(convert(item)),
            Self::Unknown => Lookup::Unknown,
            Self::Pending(pending) => {
                Lookup::Pending(Box::pin(async move { Ok(pending.await?.map(convert)) }))
            }
        }
    }

    /// Returns the item. Waits if it is not in memory.
    ///
    /// # Errors
    ///
    /// Returns the error of the catalog.
    pub(crate) async fn found(self) -> Result<Option<T>, ProtocolError> {
        match self {
            Self::Found(item) => Ok(Some(item)),
            Self::Unknown => Ok(None),
            Self::Pending(pending) => pending.await,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Lookup<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(item) => f.debug_tuple("Found").field(item).finish(),
            Self::Unknown => f.write_str("Unknown"),
            Self::Pending(_) => f.write_str("Pending"),
        }
    }
}
