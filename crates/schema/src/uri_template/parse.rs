//! Parses templates and URIs.

use std::{error, fmt};

use super::part::{Operator, Part, Unit, Variable, encode, is_reserved, is_unreserved};

/// Maximum bytes of a template. Hand-written templates have tens of bytes, and the matching time is
/// proportional.
const MAX_TEMPLATE: usize = 2048;

/// Maximum bytes of a URI. Servers commonly reject longer URIs in a request line.
const MAX_URI: usize = 8192;

/// Upper bound of `:n` in the RFC, exclusive.
const MAX_LIMIT: usize = 10_000;

/// The reason why a template is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UriTemplateError {
    /// Position of the error, in bytes from the start.
    pub position: usize,
    /// Description of the error and the remedy.
    pub reason: String,
}

impl fmt::Display for UriTemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the URI template is invalid at byte {}: {}", self.position, self.reason)
    }
}

impl error::Error for UriTemplateError {}

type Result<T> = std::result::Result<T, UriTemplateError>;

/// Parses a template.
pub(super) fn parse(template: &str) -> Result<Vec<Part>> {
    if template.len() > MAX_TEMPLATE {
        let reason = format!("it is longer than {MAX_TEMPLATE} bytes; shorten it");
        return Err(UriTemplateError { position: MAX_TEMPLATE, reason });
    }
    let mut parts = Vec::new();
    let mut at = 0;
    while at < template.len() {
        let rest = &template[at..];
        if let Some(inner) = rest.strip_prefix('{') {
            let Some(length) = inner.find('}') else {
                return Err(error(at, "this `{` is never closed; add a `}`"));
            };
            parts.push(expression(&inner[..length], at + 1)?);
            at += length + 2;
        } else {
            let length = rest.find('{').unwrap_or(rest.len());
            parts.push(Part::Literal(literal(&rest[..length], at)?));
            at += length;
        }
    }
    Ok(parts)
}

/// Parses a URI. Returns `None` if it is invalid or too long.
pub(super) fn uri(uri: &str) -> Option<Vec<Unit>> {
    if uri.len() > MAX_URI {
        return None;
    }
    units(uri).ok()
}

/// Parses text without expressions. The error is the position of an invalid `%`.
fn units(text: &str) -> std::result::Result<Vec<Unit>, usize> {
    let mut units = Vec::with_capacity(text.len());
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        if character != '%' {
            units.push(Unit::plain(character));
            continue;
        }
        let decoded = encoded_character(&text[at..]).ok_or(at)?;
        units.push(Unit::decoded(decoded));
        // Each byte of the character takes three bytes; the first `%` is already consumed.
        characters.nth(decoded.len_utf8() * 3 - 2);
    }
    Ok(units)
}

/// Decodes the character at the start of `text`, encoded as `%XX%XX…`.
fn encoded_character(text: &str) -> Option<char> {
    let mut bytes = [0; 4];
    for (have, triplet) in text.as_bytes().chunks(3).take(4).enumerate() {
        let [b'%', high, low] = triplet else { return None };
        let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
        bytes[have] = digit(high)? << 4 | digit(low)?;
        if let Ok(character) = std::str::from_utf8(&bytes[..=have]) {
            return character.chars().next();
        }
    }
    None
}

fn literal(text: &str, start: usize) -> Result<Vec<Unit>> {
    if let Some((at, character)) =
        text.char_indices().find(|(_, character)| !is_literal(*character))
    {
        let reason = match character {
            '}' => "this `}` has no matching `{`; write `%7D` for the character".to_owned(),
            other => {
                let mut encoded = String::new();
                encode(other, &mut encoded);
                format!("{other:?} is not allowed in a URI; write `{encoded}`")
            }
        };
        return Err(error(start + at, reason));
    }
    units(text).map_err(|at| {
        error(start + at, "this `%` does not encode a character in UTF-8; write `%25` for `%`")
    })
}

fn is_literal(character: char) -> bool {
    character == '%'
        || is_unreserved(character)
        || is_reserved(character)
        || (!character.is_ascii() && !character.is_control())
}

fn expression(text: &str, start: usize) -> Result<Part> {
    let (operator, skipped) = match text.chars().next() {
        None => return Err(error(start, "the expression is empty; name a variable: `{name}`")),
        Some('+') => (Operator::Reserved, 1),
        Some('#') => (Operator::Fragment, 1),
        Some('.') => (Operator::Label, 1),
        Some('/') => (Operator::Path, 1),
        Some(';') => (Operator::Parameter, 1),
        Some('?') => (Operator::Query, 1),
        Some('&') => (Operator::Continuation, 1),
        Some(reserved @ ('=' | ',' | '!' | '@' | '|')) => {
            let reason = format!(
                "the operator `{reserved}` is reserved; use one of `+ # . / ; ? &`, or none"
            );
            return Err(error(start, reason));
        }
        Some(_) => (Operator::Simple, 0),
    };
    let mut at = start + skipped;
    let mut variables = Vec::new();
    for text in text[skipped..].split(',') {
        variables.push(variable(text, at)?);
        at += text.len() + 1;
    }
    Ok(Part::Expression { operator, variables })
}

fn variable(text: &str, start: usize) -> Result<Variable> {
    let (name, limit, explode) = match (text.strip_suffix('*'), text.split_once(':')) {
        (Some(name), _) => (name, None, true),
        (None, Some((name, limit))) => {
            (name, Some(read_limit(limit, start + name.len() + 1)?), false)
        }
        (None, None) => (text, None, false),
    };
    if name.is_empty() {
        return Err(error(start, "a variable has no name; name it, or remove the comma"));
    }
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        let at = name.len() - rest.len();
        // A dot is valid only between two other characters.
        let inner_dot = character == '.' && at > 0 && rest.len() > 1 && !rest.starts_with("..");
        let encoded = || encoded_byte(rest);
        let length = match character {
            '%' if encoded() => 3,
            _ if character.is_ascii_alphanumeric() || character == '_' || inner_dot => 1,
            _ => {
                let reason = format!(
                    "{character:?} is not allowed in a variable name; use letters, digits and \
                     `_`"
                );
                return Err(error(start + at, reason));
            }
        };
        rest = &rest[length..];
    }
    Ok(Variable { name: name.to_owned(), limit, explode })
}

fn encoded_byte(text: &str) -> bool {
    let digits = text.as_bytes().get(1..3);
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

fn read_limit(text: &str, start: usize) -> Result<usize> {
    let digits = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(limit) if digits && limit < MAX_LIMIT => Ok(limit),
        _ => Err(error(start, format!("`{text}` is not a length; write a number from 1 to 9999"))),
    }
}

fn error(position: usize, reason: impl Into<String>) -> UriTemplateError {
    UriTemplateError { position, reason: reason.into() }
}
