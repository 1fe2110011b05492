//! What stands in the parentheses of an attribute: `title = "…", read_only, scopes("…")`.
//!
//! Every key but `name` is a method of the builder and becomes a call of it, with the key's own
//! span: whoever asks an editor about a key gets to the method.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Expr, ExprLit, Ident, Lit, LitStr, Token,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream, Parser},
    punctuated::Punctuated,
    token::Paren,
};

use crate::errors::Errors;

/// A key that an attribute knows.
pub(crate) struct Key {
    name: &'static str,
    takes: Takes,
}

/// What may stand after a key.
enum Takes {
    Text,
    Nothing,
    Bool,
    /// One of these words, each of which stands for an expression.
    Word(&'static [Word]),
    /// Names without spaces, in parentheses.
    Names,
}

/// A word, and what it stands for: a path below the crate's `server`.
pub(crate) type Word = (&'static str, &'static str);

impl Key {
    /// `key = "…"`
    pub(crate) const fn text(name: &'static str) -> Self {
        Self { name, takes: Takes::Text }
    }

    /// `key`
    pub(crate) const fn flag(name: &'static str) -> Self {
        Self { name, takes: Takes::Nothing }
    }

    /// `key` or `key = false`
    pub(crate) const fn switch(name: &'static str) -> Self {
        Self { name, takes: Takes::Bool }
    }

    /// `key = "one of these"`
    pub(crate) const fn word(name: &'static str, words: &'static [Word]) -> Self {
        Self { name, takes: Takes::Word(words) }
    }

    /// `key("one", "two")`
    pub(crate) const fn names(name: &'static str) -> Self {
        Self { name, takes: Takes::Names }
    }
}

/// What an attribute says.
#[derive(Default)]
pub(crate) struct Settings {
    name: Option<Expr>,
    /// Calls on the builder, in the order in which they were written.
    pub(crate) calls: Vec<TokenStream>,
    /// Whether `description` is among them.
    pub(crate) described: bool,
}

impl Settings {
    /// Reads what stands in the parentheses. Bad keys are left out of the result.
    pub(crate) fn read(attribute: TokenStream, keys: &[Key], errors: &mut Errors) -> Self {
        let mut settings = Self::default();
        let pairs = match Punctuated::<Pair, Token![,]>::parse_terminated.parse2(attribute) {
            Ok(pairs) => pairs,
            Err(error) => {
                errors.add(error);
                return settings;
            }
        };
        let mut seen: Vec<&Ident> = Vec::new();
        for pair in &pairs {
            if seen.contains(&&pair.key) {
                errors
                    .push(&pair.key, format_args!("`{}` is there twice; leave one out", pair.key));
                continue;
            }
            seen.push(&pair.key);
            if let Err(error) = settings.take(pair, keys) {
                errors.add(error);
            }
        }
        settings
    }

    /// The name, or else that of the function.
    pub(crate) fn name_or(&self, function: &LitStr) -> TokenStream {
        match &self.name {
            Some(name) => name.to_token_stream(),
            None => function.to_token_stream(),
        }
    }

    fn take(&mut self, Pair { key, value }: &Pair, keys: &[Key]) -> syn::Result<()> {
        let Some(known) = keys.iter().find(|known| key == known.name) else {
            return Err(unknown(key, keys));
        };
        let wrong = |message: String| Err(syn::Error::new(key.span(), message));
        match (&known.takes, value) {
            (Takes::Names, Value::List(names)) if !names.is_empty() => {
                names.iter().try_for_each(check_name)?;
                self.calls.push(quote!(.#key([#names])));
            }
            (Takes::Names, _) => {
                let singular = known.name.trim_end_matches('s');
                return wrong(format!(
                    "`{key}` names at least one {singular}; write `{key}(\"one\", \"two\")`"
                ));
            }
            (Takes::Text, Value::One(value)) if may_be_text(value) => match known.name {
                "name" => self.name = Some(value.clone()),
                name => {
                    self.described |= name == "description";
                    self.calls.push(quote!(.#key(#value)));
                }
            },
            (Takes::Text, _) => return wrong(format!("`{key}` is a text; write `{key} = \"…\"`")),
            (Takes::Nothing, Value::None) => self.calls.push(quote!(.#key())),
            (Takes::Nothing, _) => {
                return wrong(format!("`{key}` takes no value; write `{key}`, or leave it out"));
            }
            (Takes::Bool, Value::None) => self.calls.push(quote!(.#key(true))),
            (Takes::Bool, Value::One(Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }))) => {
                self.calls.push(quote!(.#key(#value)));
            }
            (Takes::Bool, _) => return wrong(format!("write `{key}` or `{key} = false`")),
            (Takes::Word(words), value) => match meaning(words, value) {
                Some(meaning) => self.calls.push(quote!(.#key(#meaning))),
                None => {
                    let all = words.iter().map(|(word, _)| format!("`{key} = \"{word}\"`"));
                    let all = all.collect::<Vec<_>>().join(", ");
                    return wrong(format!("`{key}` is one of a few words; there are {all}"));
                }
            },
        }
        Ok(())
    }
}

/// What a word stands for, if it is one of those.
fn meaning(words: &[Word], value: &Value) -> Option<TokenStream> {
    let Value::One(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) = value else { return None };
    let (_, path) = words.iter().find(|(word, _)| *word == text.value())?;
    let path: TokenStream = path.parse().ok()?;
    Some(quote!(::outlive::server::#path))
}

/// `key`, `key = value` or `key(value, value)`.
struct Pair {
    key: Ident,
    value: Value,
}

/// What stands after a key.
enum Value {
    None,
    One(Expr),
    List(Punctuated<Expr, Token![,]>),
}

impl Parse for Pair {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key = input.call(Ident::parse_any)?;
        let value = if input.peek(Paren) {
            let list;
            parenthesized!(list in input);
            Value::List(Punctuated::parse_terminated(&list)?)
        } else if input.parse::<Option<Token![=]>>()?.is_some() {
            Value::One(input.parse()?)
        } else {
            Value::None
        };
        Ok(Self { key, value })
    }
}

/// A name that is written out has no spaces in it: with some it would be two, or none.
fn check_name(name: &Expr) -> syn::Result<()> {
    let Expr::Lit(ExprLit { lit, .. }) = name else { return Ok(()) };
    let message = match lit {
        Lit::Str(text) => match text.value() {
            text if text.is_empty() => "this name is empty; write one, or leave it out".to_owned(),
            text if text.contains(|char: char| char.is_whitespace() || "\"\\".contains(char)) => {
                let parts: Vec<String> =
                    text.split_whitespace().map(|part| format!("{part:?}")).collect();
                format!("a name has no spaces, quotes or backslashes; write {}", parts.join(", "))
            }
            _ => return Ok(()),
        },
        _ => "a name is a text; write it in quotes".to_owned(),
    };
    Err(syn::Error::new_spanned(name, message))
}

/// Constants and macros such as `include_str!` are texts too; what they really are, the compiler
/// will say.
fn may_be_text(value: &Expr) -> bool {
    !matches!(value, Expr::Lit(literal) if !matches!(literal.lit, Lit::Str(_)))
}

fn unknown(key: &Ident, keys: &[Key]) -> syn::Error {
    let text = key.to_string();
    let near = keys.iter().map(|known| (difference(&text, known.name), known.name)).min();
    let meant = match near {
        // Two letters swapped count as two; in a short name that is a guess.
        Some((wrong, name)) if wrong <= name.len().saturating_sub(3).min(2) => {
            format!("did you mean `{name}`? ")
        }
        _ => String::new(),
    };
    let known = keys.iter().map(|known| format!("`{}`", known.name)).collect::<Vec<_>>().join(", ");
    syn::Error::new(key.span(), format!("unknown key `{text}`; {meant}there are {known}"))
}

/// How much has to be changed to make `meant` of `written`; nothing, if only the end is missing.
fn difference(written: &str, meant: &str) -> usize {
    match written.len() > 2 && meant.starts_with(written) {
        true => 0,
        false => distance(written, meant),
    }
}

/// How many letters have to be changed, added or removed to make `b` of `a` (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
