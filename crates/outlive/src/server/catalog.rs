//! Items of a server that depend on the call, such as the tools of other servers.
//!
//! A [`Catalog`] is set with [`ServerBuilder::catalog`](super::ServerBuilder::catalog). Its entries
//! have the policies of registered items. [`Tool::relayed`](super::Tool::relayed) and its kin accept
//! the definitions of other servers as they are.

pub use super::register::{
    catalog::{Catalog, CatalogPage, Lookup, LookupFuture, PageRequest},
    catalog_handle::CatalogHandle,
    entry::{PromptEntry, ResourceEntry, TemplateEntry, ToolEntry},
};
pub use outlive_protocol::{Call, Change};
