//! The entries of a catalog: validated definitions that calls share.

use std::{fmt, sync::Arc};

use crate::server::register::{
    prompt::RegisteredPrompt,
    registered_tool::RegisteredTool,
    registry::Entry as _,
    resource::{RegisteredResource, RegisteredTemplate},
};

macro_rules! entries {
    ($($(#[$doc:meta])* $entry:ident, $item:ident, $definition:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Created once per definition, with
        /// [`CatalogHandle`](crate::server::catalog::CatalogHandle). Clones share it.
        #[derive(Clone)]
        pub struct $entry(pub(crate) Arc<$item>);

        impl $entry {
            /// Returns the definition that clients receive.
            pub fn definition(&self) -> &outlive_wire::$definition {
                &self.0.info
            }
        }

        impl fmt::Debug for $entry {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($entry)).field(&self.0.key()).finish()
            }
        }
    )*};
}

entries! {
    /// A tool in a catalog.
    ToolEntry, RegisteredTool, Tool;
    /// A prompt in a catalog.
    PromptEntry, RegisteredPrompt, Prompt;
    /// A resource in a catalog.
    ResourceEntry, RegisteredResource, Resource;
    /// A resource template in a catalog.
    TemplateEntry, RegisteredTemplate, ResourceTemplate;
}
