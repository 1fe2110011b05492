//! Names of tools and prompts, and URIs of resources: which one an upstream's item is shown under.

mod glob;
mod shown;
mod ui;
mod uri;

pub(crate) use glob::{Filter, Glob};
pub(crate) use shown::{Names, RESERVED};
pub(crate) use ui::{change_ui_uri, ui_uri};
pub(crate) use uri::{UriTemplate, qualified, split_qualified};
