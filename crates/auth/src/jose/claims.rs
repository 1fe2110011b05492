//! Registered claims of a token (RFC 7519, 9068, 9449), borrowed from the payload.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor},
};

/// Claims of a token. Times are in Unix seconds.
#[derive(Debug, Default, Deserialize)]
#[non_exhaustive]
pub struct Claims<'a> {
    /// Issuer.
    #[serde(borrow, default)]
    pub iss: Option<Cow<'a, str>>,
    /// Subject.
    #[serde(borrow, default)]
    pub sub: Option<Cow<'a, str>>,
    /// Audience.
    #[serde(borrow, default)]
    pub aud: Audience<'a>,
    /// Resources that the token is for, which some providers send in addition to `aud`.
    #[serde(borrow, default)]
    pub resource: Option<StringOrList<'a>>,
    /// Expiry.
    #[serde(default, deserialize_with = "seconds")]
    pub exp: Option<i64>,
    /// Start of the validity.
    #[serde(default, deserialize_with = "seconds")]
    pub nbf: Option<i64>,
    /// Time of issue.
    #[serde(default, deserialize_with = "seconds")]
    pub iat: Option<i64>,
    /// Token ID.
    #[serde(borrow, default)]
    pub jti: Option<Cow<'a, str>>,
    /// Client that the token was issued to.
    #[serde(borrow, default)]
    pub client_id: Option<Cow<'a, str>>,
    /// Authorized party: the client ID claim of some providers.
    #[serde(borrow, default)]
    pub azp: Option<Cow<'a, str>>,
    /// Scopes, separated by spaces.
    #[serde(borrow, default)]
    pub scope: Option<StringOrList<'a>>,
    /// Scope claim of some providers.
    #[serde(borrow, default)]
    pub scp: Option<StringOrList<'a>>,
    /// Key that the token is bound to.
    #[serde(borrow, default)]
    pub cnf: Option<Confirmation<'a>>,
}

impl<'a> Claims<'a> {
    /// Reads the claims of a token whose signature has been verified.
    pub fn read(payload: &'a [u8]) -> Option<Self> {
        crate::json::object(payload)
    }

    /// Returns the scopes, possibly with duplicates.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        let words = self.scope.as_ref().or(self.scp.as_ref());
        words.into_iter().flat_map(StringOrList::iter)
    }
}

/// The key that a token is bound to (RFC 7800).
#[derive(Debug, Default, Deserialize)]
#[non_exhaustive]
pub struct Confirmation<'a> {
    /// Thumbprint of the key, for DPoP.
    #[serde(borrow, default)]
    pub jkt: Option<Cow<'a, str>>,
    /// Thumbprint of a client certificate.
    #[serde(borrow, default, rename = "x5t#S256")]
    pub certificate: Option<Cow<'a, str>>,
}

/// Audience of a token: one string or several.
pub type Audience<'a> = StringOrList<'a>;

/// One string, or a list of strings.
#[derive(Debug, Default)]
pub enum StringOrList<'a> {
    /// The claim is absent.
    #[default]
    None,
    /// One string.
    One(Cow<'a, str>),
    /// A list of strings.
    Many(Vec<Cow<'a, str>>),
}

impl StringOrList<'_> {
    /// Returns the strings.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::None => (None, &[][..]),
            Self::One(text) => (Some(text.as_ref()), &[][..]),
            Self::Many(texts) => (None, texts.as_slice()),
        };
        one.into_iter().chain(many.iter().map(Cow::as_ref))
    }

    /// Returns the words of the strings, split at spaces.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts().flat_map(|text| text.split(' ')).filter(|word| !word.is_empty())
    }

    /// Returns whether one of the strings equals `text`.
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
                f.write_str("a string or a list of strings")
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

/// Wrapper for elements of a list, because serde borrows a `Cow` only as a field.
#[derive(Deserialize)]
#[serde(transparent)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

/// Deserializes a time in seconds and drops fractions. Returns an error for an invalid time, so
/// that the token does not stay valid forever.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    struct Reader;
    impl Visitor<'_> for Reader {
        type Value = Option<i64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Unix seconds")
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
