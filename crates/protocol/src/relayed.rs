//! [`RelayedResult`]: a result of another server, as its bytes.

use std::{borrow::Cow, fmt, ops::Range};

use bytes::Bytes;
use bytestring::ByteString;
use memchr::memchr2;
use outlive_wire::{CacheHints, CallToolResult, Meta, RawJson, Str};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The result of a method of another server, as its bytes.
///
/// The codecs write its members unchanged, with the server's own `resultType` and its own data in
/// `_meta`. They parse it only if the protocol version of the client lacks a member.
#[derive(Clone)]
pub struct RelayedResult {
    text: ByteString,
    /// Positions of the members that pass unchanged: between two of them is a member that does not.
    passing: Vec<Range<usize>>,
    meta: Option<Range<usize>>,
    ttl: Option<Range<usize>>,
    scope: Option<Range<usize>>,
    structured: Structured,
    is_error: bool,
}

/// The method of a relayed result.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RelayedKind {
    /// `tools/call`.
    Tool,
    /// `prompts/get`.
    Prompt,
    /// `resources/read`, with the cache hints of a result that has none.
    Resource(CacheHints),
    /// `completion/complete`.
    Completion,
}

/// The structured content of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structured {
    Absent,
    Object,
    Other,
}

/// The text of another server is not a complete result.
#[derive(Debug)]
pub struct RelayedResultError(String);

impl RelayedResult {
    /// Creates a result from the text of the member `result` of a response.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a JSON object, or if its `resultType` is not `complete`.
    pub fn new(text: impl Into<Bytes>) -> Result<Self, RelayedResultError> {
        let text = ByteString::try_from(one_line(text.into()))
            .map_err(|_| RelayedResultError("it is not UTF-8".to_owned()))?;
        let members: Members<'_> = serde_json::from_str(&text)
            .map_err(|error| RelayedResultError(format!("it is not a JSON object: {error}")))?;
        let mut read = Self {
            text: ByteString::new(),
            passing: Vec::with_capacity(1),
            meta: None,
            ttl: None,
            scope: None,
            structured: Structured::Absent,
            is_error: false,
        };
        let mut end = text.find('{').map_or(0, |at| at + 1);
        let mut is_open = false;
        for (name, value) in members.0 {
            let span = position(&text, value.get());
            let passes = read.note(&name, value, span.clone())?;
            if passes {
                let gap = text[end..].find('"').unwrap_or_default();
                match read.passing.last_mut().filter(|_| is_open) {
                    Some(last) => last.end = span.end,
                    None => read.passing.push(end + gap..span.end),
                }
            }
            is_open = passes;
            end = span.end;
        }
        Ok(Self { text, ..read })
    }

    /// Notes a member. Returns whether it passes unchanged.
    fn note(
        &mut self,
        name: &str,
        value: &RawValue,
        span: Range<usize>,
    ) -> Result<bool, RelayedResultError> {
        let text = value.get();
        match name {
            "resultType" if text == r#""complete""# => return Ok(false),
            "resultType" => {
                return Err(RelayedResultError(format!("its `resultType` is {text}")));
            }
            "_meta" => self.meta = Some(span),
            "ttlMs" => self.ttl = Some(span),
            "cacheScope" => self.scope = Some(span),
            "structuredContent" => {
                self.structured = match text.starts_with('{') {
                    true => Structured::Object,
                    false => Structured::Other,
                };
                return Ok(true);
            }
            "isError" => {
                self.is_error = text == "true";
                return Ok(true);
            }
            _ => return Ok(true),
        }
        Ok(false)
    }

    /// Returns the JSON text.
    pub fn get(&self) -> &str {
        &self.text
    }

    /// Returns whether the result is a tool error.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    pub(crate) fn structured(&self) -> Structured {
        self.structured
    }

    /// Returns the cache hints of the result, if it has both.
    pub(crate) fn cache(&self) -> Option<CacheHints> {
        let ttl_ms = serde_json::from_str(&self.text[self.ttl.clone()?]).ok()?;
        let cache_scope = serde_json::from_str(&self.text[self.scope.clone()?]).ok()?;
        Some(CacheHints { ttl_ms, cache_scope })
    }

    /// Writes the members that pass unchanged, without braces. Returns whether there is one.
    pub(crate) fn write_members(&self, out: &mut Vec<u8>) -> bool {
        for (at, span) in self.passing.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(self.text[span.clone()].as_bytes());
        }
        !self.passing.is_empty()
    }

    /// Calls `write` with each key of `_meta` that passes, and its JSON text.
    pub(crate) fn meta(&self, mut write: impl FnMut(&str, &str)) {
        let Some(span) = self.meta.clone() else { return };
        let Ok(Members(members)) = serde_json::from_str(&self.text[span]) else { return };
        for (key, value) in members.iter().filter(|(key, _)| !is_own(key)) {
            write(key, value.get());
        }
    }

    /// Returns the result as JSON, with the members that pass.
    pub fn to_json(&self) -> RawJson {
        let mut out = Vec::with_capacity(self.text.len());
        self.write_object(&mut out);
        let text = String::from_utf8(out).unwrap_or_default();
        RawValue::from_string(text).unwrap_or_default()
    }

    /// Writes the result with the members that pass.
    pub(crate) fn write_object(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        let mut is_first = !self.write_members(out);
        let mut has_meta = false;
        self.meta(|key, value| {
            if !has_meta {
                let opening: &[u8] = if is_first { br#""_meta":{"# } else { br#","_meta":{"# };
                out.extend_from_slice(opening);
            } else {
                out.push(b',');
            }
            (has_meta, is_first) = (true, false);
            let _ = serde_json::to_writer(&mut *out, key);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        });
        if has_meta {
            out.push(b'}');
        }
        out.push(b'}');
    }

    /// Parses the result of a tool. A text that is not one becomes a tool error.
    pub fn to_tool_result(&self) -> CallToolResult {
        self.to_typed().unwrap_or_else(|error| {
            CallToolResult::error(format!("the result of the other server is invalid: {error}"))
        })
    }

    /// Parses the members that pass.
    ///
    /// # Errors
    ///
    /// Returns an error if they are not of this type.
    pub fn to_typed<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.to_json().get())
    }
}

/// Returns whether a key of `_meta` belongs to the connection with the other server.
fn is_own(key: &str) -> bool {
    key == Meta::SERVER_INFO || key == Meta::RELATED_TASK
}

/// Returns the text in one line, as stdio requires. JSON has line ends only between tokens.
fn one_line(text: Bytes) -> Bytes {
    if memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let mut text = Vec::from(text);
    for byte in &mut text {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    text.into()
}

/// Returns the position of `part` in `whole`, from which it is borrowed.
fn position(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// The members of an object, in order.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<Str<'de>>()? {
            members.push((name.0, map.next_value()?));
        }
        Ok(Members(members))
    }
}

impl fmt::Debug for RelayedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RelayedResult").field(&self.text).finish()
    }
}

impl fmt::Display for RelayedResultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the result of another server is invalid: {}", self.0)
    }
}

impl std::error::Error for RelayedResultError {}

#[cfg(test)]
mod tests {
    use super::RelayedResult;

    /// Compares the members that pass.
    #[track_caller]
    fn check(text: &'static str, passing: &str) {
        let result = RelayedResult::new(text).unwrap();
        assert_eq!(result.to_json().get(), passing);
    }

    #[test]
    fn members_of_relayed_result_pass_unchanged() {
        check("{}", "{}");
        check(r#"{"content":[],"x":1.0}"#, r#"{"content":[],"x":1.0}"#);
        check(
            r#"{ "resultType" : "complete" , "content" : [ 1 ] , "isError":true,"_meta":{"a/b":"é"}, "n":2 }"#,
            r#"{"content" : [ 1 ] , "isError":true,"n":2,"_meta":{"a/b":"é"}}"#,
        );
        check(r#"{"ttlMs":1,"cacheScope":"public","contents":[]}"#, r#"{"contents":[]}"#);
        check(
            r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{},"io.modelcontextprotocol/related-task":1}}"#,
            "{}",
        );
        check("{\r\n\"content\":\n[]}", r#"{"content": []}"#);
    }

    #[test]
    fn relayed_result_of_another_type_is_rejected() {
        for text in ["[]", "{", r#"{"a":1}x"#, r#"{"resultType":"input_required"}"#, "\"\u{0}\""] {
            assert!(RelayedResult::new(text).is_err(), "{text}");
        }
        let failed = RelayedResult::new(r#"{"content":[],"isError":true}"#).unwrap();
        assert!(failed.is_error());
    }
}
