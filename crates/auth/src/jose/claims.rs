//! The registered claims of a token (RFC 7519, 9068, 9449), borrowed from it in one pass.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor},
};

/// What a token says. Times are seconds since 1970.
#[derive(Debug, Default, Deserialize)]
#[non_exhaustive]
pub struct Claims<'a> {
    /// Who made it.
    #[serde(borrow, default)]
    pub iss: Option<Cow<'a, str>>,
    /// About whom it speaks.
    #[serde(borrow, default)]
    pub sub: Option<Cow<'a, str>>,
    /// For whom it is meant.
    #[serde(borrow, default)]
    pub aud: Audience<'a>,
    /// For which resources it is meant, as some providers write beside `aud`.
    #[serde(borrow, default)]
    pub resource: Option<StringOrList<'a>>,
    /// Until when it is valid.
    #[serde(default, deserialize_with = "seconds")]
    pub exp: Option<i64>,
    /// From when on it is valid.
    #[serde(default, deserialize_with = "seconds")]
    pub nbf: Option<i64>,
    /// When it was made.
    #[serde(default, deserialize_with = "seconds")]
    pub iat: Option<i64>,
    /// Its name.
    #[serde(borrow, default)]
    pub jti: Option<Cow<'a, str>>,
    /// The client to which it was given.
    #[serde(borrow, default)]
    pub client_id: Option<Cow<'a, str>>,
    /// The same, as some providers write it.
    #[serde(borrow, default)]
    pub azp: Option<Cow<'a, str>>,
    /// What it allows, in words that are separated by spaces.
    #[serde(borrow, default)]
    pub scope: Option<StringOrList<'a>>,
    /// The same, as some providers write it.
    #[serde(borrow, default)]
    pub scp: Option<StringOrList<'a>>,
    /// The key that its bearer has to have.
    #[serde(borrow, default)]
    pub cnf: Option<Confirmation<'a>>,
}

impl<'a> Claims<'a> {
    /// Reads the claims of a token whose signature is known to be good.
    pub fn read(payload: &'a [u8]) -> Option<Self> {
        crate::json::object(payload)
    }

    /// What it allows, each word once or more often.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        let words = self.scope.as_ref().or(self.scp.as_ref());
        words.into_iter().flat_map(StringOrList::iter)
    }
}

/// The key that a token is bound to (RFC 7800).
#[derive(Debug, Default, Deserialize)]
#[non_exhaustive]
pub struct Confirmation<'a> {
    /// Its thumbprint, for DPoP.
    #[serde(borrow, default)]
    pub jkt: Option<Cow<'a, str>>,
    /// The thumbprint of a client certificate.
    #[serde(borrow, default, rename = "x5t#S256")]
    pub certificate: Option<Cow<'a, str>>,
}

/// For whom a token is: one text or several.
pub type Audience<'a> = StringOrList<'a>;

/// One text, or a list of texts.
#[derive(Debug, Default)]
pub enum StringOrList<'a> {
    /// None at all.
    #[default]
    None,
    /// A text on its own.
    One(Cow<'a, str>),
    /// A list.
    Many(Vec<Cow<'a, str>>),
}

impl StringOrList<'_> {
    /// The texts as they stand.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::None => (None, &[][..]),
            Self::One(text) => (Some(text.as_ref()), &[][..]),
            Self::Many(texts) => (None, texts.as_slice()),
        };
        one.into_iter().chain(many.iter().map(Cow::as_ref))
    }

    /// The words in the texts, which spaces separate.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts().flat_map(|text| text.split(' ')).filter(|word| !word.is_empty())
    }

    /// Whether one of the texts is this one.
    pub fn contains(&self, text: &str) -> bool {
        self.texts().any(|one| one == text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for StringOrList<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = StringOrList<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(StringOrList::One(text.into()))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(StringOrList::One(text.to_owned().into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element::<Borrowed<'de>>()? {
                    texts.push(text.0);
                }
                Ok(StringOrList::Many(texts))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// Serde borrows a `Cow` only where it stands as a field.
#[derive(Deserialize)]
#[serde(transparent)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads a time. Some write fractions, which are allowed and say nothing here. What is no time at
/// all makes the token unreadable rather than valid for ever.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    struct Reader;
    impl Visitor<'_> for Reader {
        type Value = Option<i64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("seconds since 1970")
        }

        fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Self::Value, E> {
            Ok(Some(seconds))
        }

        fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Self::Value, E> {
            i64::try_from(seconds).map(Some).map_err(E::custom)
        }

        fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<Self::Value, E> {
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            if (0.0..1e15).contains(&seconds) {
                Ok(Some(seconds as i64))
            } else {
                Err(E::custom("not a time"))
            }
        }
    }
    deserializer.deserialize_any(Reader)
}
