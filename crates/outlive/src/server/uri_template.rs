//! URI templates of resources: expanding one to a URI, and telling whether a URI comes from one.
//!
//! All four levels of RFC 6570 are read. Values are strings, so `*` changes nothing when a template
//! is expanded; when a URI is matched, it lets a variable take several parts.
//!
//! Matching follows the idea that a URI fits if some values expand to it, with three liberties that
//! make it useful for routing. An unnamed variable is never empty. The variables of `{?a,b}`, `{&a,b}`
//! and `{;a,b}` come in any order. And a URI need not encode every character that expanding would
//! have encoded, since people and models write them by hand: `{id}` takes `me@home`, but no `/`.
//! Spec: <https://www.rfc-editor.org/rfc/rfc6570>

mod matcher;
mod parse;
#[cfg(test)]
mod tests;

use std::{error, fmt};

use self::matcher::Program;

/// A parsed URI template.
#[derive(Debug)]
pub struct UriTemplate {
    parts: Vec<Part>,
    variables: Vec<String>,
    program: Program,
}

impl UriTemplate {
    /// Reads a template such as `file:///{+path}` or `db://{table}{?limit,offset}`.
    ///
    /// # Errors
    ///
    /// When the template is malformed; the error names the place and what to write instead.
    pub fn parse(template: &str) -> Result<Self, UriTemplateError> {
        let parts = parse::parse(template)?;
        let mut variables: Vec<String> = Vec::new();
        for variable in parts.iter().flat_map(Part::variables) {
            if !variables.contains(&variable.name) {
                variables.push(variable.name.clone());
            }
        }
        let program = Program::compile(&parts, &variables);
        Ok(Self { parts, variables, program })
    }

    /// The names of the variables, each once, in the order of the template.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Fills the template in. A variable for which `get` has no value is left out.
    pub fn expand(&self, get: impl Fn(&str) -> Option<String>) -> String {
        let mut uri = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(units) => units.iter().for_each(|unit| unit.write(&mut uri)),
                Part::Expression { operator, variables } => {
                    expand(*operator, variables, &get, &mut uri);
                }
            }
        }
        uri
    }

    /// The values of the variables, decoded, if the URI fits the template. Variables that the URI
    /// leaves out are not in the list; the others are in the order of [`UriTemplate::variables`].
    ///
    /// If several readings are possible, earlier variables take as much as they can. A decoded
    /// value may be anything, `../` included: what it may name is for the handler to decide.
    pub fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let values = self.program.run(uri)?;
        let named = self.variables.iter().zip(values);
        Some(named.filter_map(|(name, value)| Some((name.clone(), value?))).collect())
    }
}

/// Why a template cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UriTemplateError {
    /// Where, in bytes from the start.
    pub position: usize,
    /// What is wrong there, and what to write instead.
    pub reason: String,
}

impl fmt::Display for UriTemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the URI template is invalid at byte {}: {}", self.position, self.reason)
    }
}

impl error::Error for UriTemplateError {}

/// A piece of a template.
#[derive(Debug)]
enum Part {
    Literal(Vec<Unit>),
    Expression { operator: Operator, variables: Vec<Variable> },
}

impl Part {
    fn variables(&self) -> &[Variable] {
        match self {
            Self::Literal(_) => &[],
            Self::Expression { variables, .. } => variables,
        }
    }
}

/// A variable in an expression.
#[derive(Debug)]
struct Variable {
    name: String,
    /// `:n`: no more than so many characters.
    limit: Option<usize>,
    /// `*`
    explode: bool,
}

/// What stands before the variables of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Parameter,
    Query,
    Continuation,
}

impl Operator {
    /// What an expression begins with.
    fn first(self) -> Option<char> {
        match self {
            Self::Simple | Self::Reserved => None,
            Self::Fragment => Some('#'),
            Self::Label => Some('.'),
            Self::Path => Some('/'),
            Self::Parameter => Some(';'),
            Self::Query => Some('?'),
            Self::Continuation => Some('&'),
        }
    }

    /// What stands between the variables.
    fn separator(self) -> char {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ',',
            Self::Label => '.',
            Self::Path => '/',
            Self::Parameter => ';',
            Self::Query | Self::Continuation => '&',
        }
    }

    /// Whether variables are written with their names.
    fn is_named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    /// Whether reserved characters of a value stay as they are.
    fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

/// One character of a URI, in the one way it can be written: unreserved characters stand for
/// themselves, whether they were encoded or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    character: char,
    /// Written as `%XX`. A `/` that is encoded is not the same as one that is not.
    encoded: bool,
}

impl Unit {
    /// A character that is not encoded in the text.
    fn plain(character: char) -> Self {
        Self { character, encoded: !is_unreserved(character) && !is_reserved(character) }
    }

    /// A character that is encoded in the text.
    fn decoded(character: char) -> Self {
        Self { character, encoded: !is_unreserved(character) }
    }

    fn write(self, uri: &mut String) {
        if self.encoded { encode(self.character, uri) } else { uri.push(self.character) }
    }
}

fn is_unreserved(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~".contains(character)
}

fn is_reserved(character: char) -> bool {
    ":/?#[]@!$&'()*+,;=".contains(character)
}

fn encode(character: char, uri: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
        let digit = |nibble: u8| char::from(HEX[usize::from(nibble)]);
        uri.extend(['%', digit(byte >> 4), digit(byte & 15)]);
    }
}

/// Writes one expression.
fn expand(
    operator: Operator,
    variables: &[Variable],
    get: &impl Fn(&str) -> Option<String>,
    uri: &mut String,
) {
    let mut before = operator.first();
    for variable in variables {
        let Some(value) = get(&variable.name) else { continue };
        uri.extend(before);
        before = Some(operator.separator());
        if operator.is_named() {
            uri.push_str(&variable.name);
            // `;x` but `?x=` for an empty value.
            if !value.is_empty() || operator != Operator::Parameter {
                uri.push('=');
            }
        }
        let end = variable.limit.and_then(|limit| value.char_indices().nth(limit));
        let value = end.map_or(&*value, |(end, _)| &value[..end]);
        write_value(value, operator.keeps_reserved(), uri);
    }
}

fn write_value(value: &str, keep_reserved: bool, uri: &mut String) {
    for (at, character) in value.char_indices() {
        let triplet = || value.as_bytes().get(at + 1..at + 3);
        let is_triplet = character == '%'
            && triplet().is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let keep =
            is_unreserved(character) || keep_reserved && (is_reserved(character) || is_triplet);
        if keep { uri.push(character) } else { encode(character, uri) }
    }
}
