//! `#[resource]`: the URI, the keys it knows, and the call of `Resource::new` or
//! `ResourceTemplate::new`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{
    LitStr, Token,
    parse::{ParseStream, Parser},
};

use crate::{
    errors::Errors,
    function::Function,
    settings::{Key, Settings},
    template,
};

const KEYS: &[Key] =
    &[Key::text("name"), Key::text("title"), Key::text("description"), Key::text("mime_type")];

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let Some(function) = Function::read("resource", &item, &mut errors) else {
        return errors.beside(item);
    };
    let (uri, attribute) = split(attribute, &mut errors);
    let settings = Settings::read(attribute, KEYS, &mut errors);
    function.refuse_headers(&mut errors);
    let name = settings.name_or(&function);
    let product = match &uri {
        Some(uri) if uri.value().contains('{') => {
            check_variables(uri, &function, &mut errors);
            "ResourceTemplate"
        }
        Some(_) => {
            refuse_arguments(&function, &mut errors);
            "Resource"
        }
        None => "Resource",
    };
    errors.beside(function.expand(product, &quote!(#uri, #name), &settings))
}

/// Takes the URI off the front.
fn split(attribute: TokenStream, errors: &mut Errors) -> (Option<LitStr>, TokenStream) {
    let parser = |input: ParseStream<'_>| {
        if !input.peek(LitStr) {
            return Ok((None, input.parse()?));
        }
        let uri = input.parse()?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        Ok((Some(uri), input.parse()?))
    };
    match parser.parse2(attribute) {
        Ok((None, rest)) => {
            errors.push(Span::call_site(), "the URI comes first: `#[resource(\"config://app\")]`");
            (None, rest)
        }
        Ok(split) => split,
        Err(error) => {
            errors.add(error);
            (None, TokenStream::new())
        }
    }
}

/// Each argument must be a variable of the template.
fn check_variables(uri: &LitStr, function: &Function, errors: &mut Errors) {
    let template = uri.value();
    let variables = match template::variables(&template) {
        Ok(variables) => variables,
        Err(reason) => return errors.push(uri.span(), reason),
    };
    let known = variables.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    for field in function.fields() {
        if let Some(name) = field.name_for_clients()
            && !variables.contains(&name.as_str())
        {
            let message =
                format!("the template `{template}` has no variable `{name}`; it has {known}");
            errors.push(field.span(), message);
        }
    }
}

/// A single URI has nothing to fill arguments from.
fn refuse_arguments(function: &Function, errors: &mut Errors) {
    for (span, name) in function.arguments() {
        let message = format!(
            "a resource with one URI has no arguments; put `{{{name}}}` into the URI, or mark an \
             extractor with `#[extract]`"
        );
        errors.push(span, message);
    }
}
