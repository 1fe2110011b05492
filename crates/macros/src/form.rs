//! `#[derive(Form)]`: a struct that a user can fill in, or an enum that one can choose from.
//!
//! Nothing is made but proofs: what the form looks like is said by the type's JSON schema. Each
//! field is proved to be possible where it stands, so that the compiler points at the one that
//! is not.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Data, DeriveInput, Fields, spanned::Spanned};

use crate::errors::Errors;

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    if !input.generics.params.is_empty() {
        errors.push(&input.generics, "a form is one type; it has no parameters");
    }
    let name = &input.ident;
    let made = match &input.data {
        Data::Struct(data) => {
            let Fields::Named(fields) = &data.fields else {
                errors.push(name, "a form has fields with names: `struct Name { field: … }`");
                return errors.beside(TokenStream::new());
            };
            let proofs = fields.named.iter().map(|field| {
                let kind = &field.ty;
                quote_spanned!(kind.span()=> can_be_a_field::<#kind>();)
            });
            quote! {
                impl ::outlive::server::Form for #name {}
                const _: () = {
                    const fn can_be_a_field<T: ::outlive::server::FormField>() {}
                    #(#proofs)*
                };
            }
        }
        Data::Enum(data) => {
            for variant in
                data.variants.iter().filter(|variant| !matches!(variant.fields, Fields::Unit))
            {
                let message = format!(
                    "the variant `{}` has data; only an enum without any can be chosen from",
                    variant.ident
                );
                errors.push(variant, message);
            }
            quote! {
                impl ::outlive::server::FormField for #name {}
                impl ::outlive::server::Choice for #name {}
            }
        }
        Data::Union(_) => {
            errors.push(name, "a form is a struct with named fields, or an enum without data");
            TokenStream::new()
        }
    };
    match errors.is_empty() {
        true => made,
        false => errors.beside(TokenStream::new()),
    }
}
