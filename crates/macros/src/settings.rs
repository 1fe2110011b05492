//! Parser of the settings in an attribute: `title = "…", read_only, scopes("…")`.
//!
//! Every key except `name` becomes a call of the builder method with that name. The call has the
//! span of the key, so that "go to definition" leads to the method.

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

use crate::{approve, errors::Errors};

/// A key of an attribute.
pub(crate) struct Key {
    name: &'static str,
    takes: Takes,
}

/// Kind of value of a key.
enum Takes {
    Text,
    Nothing,
    Bool,
    /// One of these words, each of which represents an expression.
    Word(&'static [Word]),
    /// Names without spaces, in parentheses.
    Names,
    /// The word `caller`, or settings in parentheses, of which the first ones name the approvers.
    Approve,
}

/// A word and the path that it represents, in the module `server`.
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

    /// `key = "caller"` or `key(scope = "…", count = 2)`
    pub(crate) const fn approve(name: &'static str) -> Self {
        Self { name, takes: Takes::Approve }
    }

    /// `key("one", "two")`
    pub(crate) const fn names(name: &'static str) -> Self {
        Self { name, takes: Takes::Names }
    }
}

/// Parsed settings of an attribute.
#[derive(Default)]
pub(crate) struct Settings {
    name: Option<Expr>,
    /// Builder calls, in source order.
    pub(crate) calls: Vec<TokenStream>,
    /// Whether `description` is set.
    pub(crate) described: bool,
}

impl Settings {
    /// Parses the settings. Omits invalid keys.
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
                errors.push(&pair.key, format_args!("duplicate key `{}`; remove one", pair.key));
                continue;
            }
            seen.push(&pair.key);
            if let Err(error) = settings.take(pair, keys) {
                errors.add(error);
            }
        }
        settings
    }

    /// Returns the name, or the name of the function if it is not set.
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
                    "`{key}` needs at least one {singular}; write `{key}(\"one\", \"two\")`"
                ));
            }
            (Takes::Text, Value::One(value)) if may_be_text(value) => match known.name {
                "name" => self.name = Some(value.clone()),
                name => {
                    self.described |= name == "description";
                    self.calls.push(quote!(.#key(#value)));
                }
            },
            (Takes::Text, _) => {
                return wrong(format!("`{key}` must be a string; write `{key} = \"…\"`"));
            }
            (Takes::Nothing, Value::None) => self.calls.push(quote!(.#key())),
            (Takes::Nothing, _) => {
                return wrong(format!("`{key}` takes no value; write `{key}` or remove it"));
            }
            (Takes::Bool, Value::None) => self.calls.push(quote!(.#key(true))),
            (Takes::Bool, Value::One(Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }))) => {
                self.calls.push(quote!(.#key(#value)));
            }
            (Takes::Bool, _) => return wrong(format!("write `{key}` or `{key} = false`")),
            (Takes::Approve, value) => {
                let rule = match value {
                    Value::List(settings) => approve::rule(key, settings)?,
                    Value::One(word) => approve::word(key, word)?,
                    Value::None => return Err(approve::unknown(key)),
                };
                self.calls.push(quote!(.#key(#rule)));
            }
            (Takes::Word(words), value) => match meaning(words, value) {
                Some(meaning) => self.calls.push(quote!(.#key(#meaning))),
                None => {
                    let all = words.iter().map(|(word, _)| format!("`{key} = \"{word}\"`"));
                    let all = all.collect::<Vec<_>>().join(", ");
                    return wrong(format!("`{key}` has an unknown value; use {all}"));
                }
            },
        }
        Ok(())
    }
}

/// Returns the expression that a word represents.
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

/// Value of a key.
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

/// Checks a literal name. Whitespace would make it two names.
fn check_name(name: &Expr) -> syn::Result<()> {
    let Expr::Lit(ExprLit { lit, .. }) = name else { return Ok(()) };
    let message = match lit {
        Lit::Str(text) => match text.value() {
            text if text.is_empty() => "the name is empty; write a name or remove it".to_owned(),
            text if text.contains(|char: char| char.is_whitespace() || "\"\\".contains(char)) => {
                let parts: Vec<String> =
                    text.split_whitespace().map(|part| format!("{part:?}")).collect();
                format!(
                    "a name cannot contain spaces, quotes or backslashes; write {}",
                    parts.join(", ")
                )
            }
            _ => return Ok(()),
        },
        _ => "a name must be a string; put it in quotes".to_owned(),
    };
    Err(syn::Error::new_spanned(name, message))
}

/// Returns whether an expression may be a string. The compiler checks constants and macros such as
/// `include_str!`.
fn may_be_text(value: &Expr) -> bool {
    !matches!(value, Expr::Lit(literal) if !matches!(literal.lit, Lit::Str(_)))
}

fn unknown(key: &Ident, keys: &[Key]) -> syn::Error {
    let text = key.to_string();
    let near = keys.iter().map(|known| (difference(&text, known.name), known.name)).min();
    let meant = match near {
        // A swap counts as two changes, which is too many for a short name.
        Some((wrong, name)) if wrong <= name.len().saturating_sub(3).min(2) => {
            format!("did you mean `{name}`? ")
        }
        _ => String::new(),
    };
    let known = keys.iter().map(|known| format!("`{}`", known.name)).collect::<Vec<_>>().join(", ");
    syn::Error::new(key.span(), format!("unknown key `{text}`; {meant}known keys: {known}"))
}

/// Returns the edit distance of a key to a known key. A prefix has distance 0.
fn difference(written: &str, meant: &str) -> usize {
    match written.len() > 2 && meant.starts_with(written) {
        true => 0,
        false => distance(written, meant),
    }
}

/// Returns the Levenshtein distance.
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
