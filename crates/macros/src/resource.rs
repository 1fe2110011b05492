//! `#[resource]`: its URI, its keys and the generated call of `Resource::new` or
//! `ResourceTemplate::new`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{
    LitStr, Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

use crate::{
    errors::Errors,
    field::Field,
    function::{Function, Product},
    settings::{Key, Settings},
    template,
};

const RESOURCE: Product = Product { built: "Resource", function: "resource", doc: "Resource" };

const TEMPLATE: Product =
    Product { built: "ResourceTemplate", function: "resource_template", doc: "Resource template" };

const KEYS: &[Key] = &[
    Key::text("name"),
    Key::text("title"),
    Key::text("description"),
    Key::text("mime_type"),
    Key::names("scopes"),
    Key::flag("always_listed"),
];

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let Some(mut function) = Function::read("resource", &item, &mut errors) else {
        return errors.beside(item);
    };
    let (uri, attribute) = split(attribute, &mut errors);
    let settings = Settings::read(attribute, KEYS, &mut errors);
    function.refuse_headers(&mut errors);
    let name = settings.name_or(&function.name());
    let product = match uri.value().contains('{') {
        true => {
            check_variables(&uri, &mut function, &mut errors);
            &TEMPLATE
        }
        false => {
            function.decide(|_| false);
            refuse_arguments(&function, &mut errors);
            &RESOURCE
        }
    };
    errors.beside(function.expand(product, &quote!(#uri, #name), &settings))
}

/// Splits off the URI. Returns an empty URI if it is missing.
fn split(attribute: TokenStream, errors: &mut Errors) -> (LitStr, TokenStream) {
    let none = || LitStr::new("", Span::call_site());
    let parser = |input: ParseStream<'_>| {
        if !input.peek(LitStr) {
            let message = "the URI comes first: `#[resource(\"config://app\")]`";
            errors.add(syn::Error::new(Span::call_site(), message));
            return Ok((none(), input.parse()?));
        }
        let uri = input.parse()?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        Ok((uri, input.parse()?))
    };
    parser.parse2(attribute).unwrap_or_else(|error| {
        errors.add(error);
        (none(), TokenStream::new())
    })
}

/// Checks that each argument is a variable of the template.
fn check_variables(uri: &LitStr, function: &mut Function, errors: &mut Errors) {
    let template = uri.value();
    let variables = match template::variables(&template) {
        Ok(variables) => variables,
        Err(reason) => return errors.push(uri, reason),
    };
    let known = variables.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let fills = |field: &Field| {
        field.name_for_clients().is_some_and(|name| variables.contains(&name.as_str()))
    };
    function.decide(fills);
    for field in function.fields() {
        if let Some(name) = field.name_for_clients()
            && !variables.contains(&name.as_str())
        {
            let message =
                format!("the template `{template}` has no variable `{name}`; it has {known}");
            errors.push(field.parameter(), message);
        }
    }
}

/// Reports arguments of a resource with a fixed URI, which cannot fill them.
fn refuse_arguments(function: &Function, errors: &mut Errors) {
    for name in function.arguments() {
        let text = name.unraw();
        let message = format!(
            "a resource with a fixed URI has no arguments; add `{{{text}}}` to the URI, or mark an \
             extractor with `#[extract]`"
        );
        errors.push(name, message);
    }
}
