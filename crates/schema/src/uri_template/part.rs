//! The parts of a URI template, and the encoding of characters in URIs.

/// A part of a template.
#[derive(Debug)]
pub(super) enum Part {
    Literal(Vec<Unit>),
    Expression { operator: Operator, variables: Vec<Variable> },
}

impl Part {
    pub(super) fn variables(&self) -> &[Variable] {
        match self {
            Self::Literal(_) => &[],
            Self::Expression { variables, .. } => variables,
        }
    }
}

/// A variable in an expression.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    /// `:n`: maximum number of characters.
    pub(super) limit: Option<usize>,
    /// `*`: the explode modifier.
    pub(super) explode: bool,
}

/// The operator of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
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
    /// Returns the first character of an expansion.
    pub(super) fn first(self) -> Option<char> {
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

    /// Returns the separator between variables.
    pub(super) fn separator(self) -> char {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ',',
            Self::Label => '.',
            Self::Path => '/',
            Self::Parameter => ';',
            Self::Query | Self::Continuation => '&',
        }
    }

    /// Returns whether the expansion contains the names of the variables.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    /// Returns whether reserved characters of a value stay unencoded.
    pub(super) fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

/// A character of a URI, normalized: an unreserved character is never encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) character: char,
    /// Whether the character is written as `%XX`. An encoded `/` differs from a literal one.
    pub(super) encoded: bool,
}

impl Unit {
    /// Creates a unit from a character that the text does not encode.
    pub(super) fn plain(character: char) -> Self {
        Self { character, encoded: !is_unreserved(character) && !is_reserved(character) }
    }

    /// Creates a unit from a character that the text encodes.
    pub(super) fn decoded(character: char) -> Self {
        Self { character, encoded: !is_unreserved(character) }
    }

    pub(super) fn write(self, uri: &mut String) {
        if self.encoded { encode(self.character, uri) } else { uri.push(self.character) }
    }
}

pub(super) fn is_unreserved(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~".contains(character)
}

pub(super) fn is_reserved(character: char) -> bool {
    ":/?#[]@!$&'()*+,;=".contains(character)
}

pub(super) fn encode(character: char, uri: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
        let digit = |nibble: u8| char::from(HEX[usize::from(nibble)]);
        uri.extend(['%', digit(byte >> 4), digit(byte & 15)]);
    }
}
