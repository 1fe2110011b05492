//! The four kinds of items that servers list.

use std::sync::Arc;

use outlive_protocol::{Call, MethodResult, Page};

use crate::server::{
    dispatch::{core::ServerCore, fallback_tools, results},
    register::{
        catalog::{Catalog, CatalogPage, Lookup, PageRequest},
        entry::{PromptEntry, ResourceEntry, TemplateEntry, ToolEntry},
        prompt::RegisteredPrompt,
        registered_tool::RegisteredTool,
        registries::Registries,
        registry::{Entry, Registry},
        resource::{RegisteredResource, RegisteredTemplate},
    },
};

/// A kind of items, by the entry that catalogs have of it.
pub(crate) trait Listed: Sized + Send + 'static {
    type Item: Entry;
    type Definition: Send + Sync + 'static;

    /// Returns the validated item.
    fn item(&self) -> &Arc<Self::Item>;

    /// Returns the registered items of this kind.
    fn registry(registries: &Registries) -> &Registry<Self::Item>;

    /// Requests a page from a catalog.
    fn page(
        catalog: &dyn Catalog,
        call: &Arc<Call>,
        request: PageRequest,
    ) -> Lookup<CatalogPage<Self>>;

    /// Returns the definition that clients receive. `is_bridged`: the client has no tasks.
    fn shown(item: &Self::Item, is_bridged: bool) -> Arc<Self::Definition>;

    /// Adds the server's own items to the last page.
    fn add_own(_core: &ServerCore, _call: &Call, _items: &mut Vec<Arc<Self::Definition>>) {}

    /// Returns a page as the result of a method.
    fn result(page: Page<Self::Definition>) -> MethodResult;
}

macro_rules! listed {
    ($entry:ident, $item:ident, $definition:ident, $list:ident, $result:ident { $($rest:tt)* }) => {
        impl Listed for $entry {
            type Item = $item;
            type Definition = outlive_wire::$definition;

            fn item(&self) -> &Arc<$item> {
                &self.0
            }

            fn registry(registries: &Registries) -> &Registry<$item> {
                &registries.$list
            }

            fn page(
                catalog: &dyn Catalog,
                call: &Arc<Call>,
                request: PageRequest,
            ) -> Lookup<CatalogPage<Self>> {
                catalog.$list(call, request)
            }

            fn result(page: Page<Self::Definition>) -> MethodResult {
                MethodResult::$result(page)
            }

            $($rest)*
        }
    };
}

listed!(ToolEntry, RegisteredTool, Tool, tools, Tools {
    fn shown(item: &RegisteredTool, is_bridged: bool) -> Arc<outlive_wire::Tool> {
        match is_bridged {
            true => Arc::clone(&item.bridged_info),
            false => Arc::clone(&item.info),
        }
    }

    fn add_own(core: &ServerCore, call: &Call, items: &mut Vec<Arc<outlive_wire::Tool>>) {
        items.extend(fallback_tools::listed(core, call));
    }
});

listed!(PromptEntry, RegisteredPrompt, Prompt, prompts, Prompts {
    fn shown(item: &RegisteredPrompt, _: bool) -> Arc<outlive_wire::Prompt> {
        Arc::clone(&item.info)
    }
});

listed!(ResourceEntry, RegisteredResource, Resource, resources, Resources {
    fn shown(item: &RegisteredResource, _: bool) -> Arc<outlive_wire::Resource> {
        Arc::clone(&item.info)
    }
});

listed!(TemplateEntry, RegisteredTemplate, ResourceTemplate, templates, ResourceTemplates {
    fn shown(item: &RegisteredTemplate, _: bool) -> Arc<outlive_wire::ResourceTemplate> {
        Arc::clone(&item.info)
    }

    fn add_own(
        core: &ServerCore,
        call: &Call,
        items: &mut Vec<Arc<outlive_wire::ResourceTemplate>>,
    ) {
        if results::are_listed(core, call) {
            items.push(results::template());
        }
    }
});
