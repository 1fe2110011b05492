//! Parts of a URI template, and how characters stand in URIs.

/// A piece of a template.
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
    /// `:n`: no more than so many characters.
    pub(super) limit: Option<usize>,
    /// `*`
    pub(super) explode: bool,
}

/// What stands before the variables of an expression.
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
    /// What an expression begins with.
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

    /// What stands between the variables.
    pub(super) fn separator(self) -> char {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ',',
            Self::Label => '.',
            Self::Path => '/',
            Self::Parameter => ';',
            Self::Query | Self::Continuation => '&',
        }
    }

    /// Whether variables are written with their names.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    /// Whether reserved characters of a value stay as they are.
    pub(super) fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

/// One character of a URI, in the one way it can be written: unreserved characters stand for
/// themselves, whether they were encoded or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) character: char,
    /// Written as `%XX`. A `/` that is encoded is not the same as one that is not.
    pub(super) encoded: bool,
}

impl Unit {
    /// A character that is not encoded in the text.
    pub(super) fn plain(character: char) -> Self {
        Self { character, encoded: !is_unreserved(character) && !is_reserved(character) }
    }

    /// A character that is encoded in the text.
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
