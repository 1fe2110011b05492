//! `#[tool]`: its keys and the generated call of `Tool::new`.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    errors::Errors,
    function::{Function, Product},
    settings::{Key, Settings, Word},
};

const TOOL: Product = Product { built: "Tool", function: "tool", doc: "Tool" };

const KEYS: &[Key] = &[
    Key::text("name"),
    Key::text("title"),
    Key::text("description"),
    Key::flag("read_only"),
    Key::flag("idempotent"),
    Key::switch("destructive"),
    Key::switch("open_world"),
    Key::word("task", POLICIES),
    Key::word("resume_policy", RESUMES),
    Key::flag("streams_content"),
    Key::switch("promote_at_first_step"),
    Key::approve("approve"),
    Key::names("scopes"),
    Key::flag("always_listed"),
];

/// Values of `task`.
const POLICIES: &[Word] = &[
    ("never", "tasks::TaskPolicy::Never"),
    ("auto", "tasks::TaskPolicy::auto()"),
    ("always", "tasks::TaskPolicy::Always"),
];

/// Values of `resume_policy`.
const RESUMES: &[Word] = &[
    ("any-revision", "durable::ResumePolicy::AnyRevision"),
    ("same-revision", "durable::ResumePolicy::SameRevision"),
];

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let Some(function) = Function::read("tool", &item, &mut errors) else {
        return errors.beside(item);
    };
    let settings = Settings::read(attribute, KEYS, &mut errors);
    let name = settings.name_or(&function.name());
    errors.beside(function.expand(&TOOL, &quote!(#name), &settings))
}
