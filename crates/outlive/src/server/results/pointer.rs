//! [`PointerScan`]: reads the value at a JSON pointer from a text that is fed in parts.
//!
//! The scan keeps only the current key and the collected elements, so the memory does not depend on
//! the size of the text. It does not validate the values that it skips.

use crate::server::results::{
    error::ReadError,
    range::{MAX_BYTES, range_error},
};

/// Maximum bytes of the collected elements.
const MAX_OUTPUT: usize = MAX_BYTES as usize;

/// Reads the value at a JSON pointer, or some of its elements.
pub(crate) struct PointerScan {
    /// Unescaped tokens of the pointer that are not matched yet, the next one last.
    tokens: Vec<String>,
    from: u64,
    count: Option<u64>,
    state: State,
    /// Kind of the target, if it has elements.
    target: Option<Container>,
    value: ValueScan,
    /// Number of elements or members of the current container before the current position.
    index: u64,
    /// Bytes of the current key, or of the current element of the target.
    current: Vec<u8>,
    output: Vec<u8>,
    /// Number of collected elements.
    taken: u64,
    /// Whether an element did not fit, so that no further one is collected.
    is_full: bool,
}

/// Position of the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a value on the path of the pointer.
    Value,
    /// In a container on the path, before an element or a key.
    Entry(Container),
    /// In a key on the path.
    Key,
    /// After a key on the path, before its colon.
    Colon {
        is_match: bool,
    },
    /// In a value beside the path.
    Skip(Container),
    /// In the target, which is neither an array nor an object.
    Scalar,
    /// In the target, before an element or a member.
    Target(Container),
    /// In a key of the target.
    TargetKey,
    /// After a key of the target, before its colon.
    TargetColon,
    /// In an element of the target.
    Element(Container),
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

/// Value at a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PointerValue {
    /// JSON text of the value, or of the collected elements.
    pub(crate) json: String,
    /// First element, end, and number of elements; `None` for other values.
    pub(crate) elements: Option<(u64, u64, u64)>,
}

impl PointerScan {
    /// Creates a scan for the value at `pointer`. If the value is an array or object, it collects
    /// `count` elements from `from` on, or as many as fit.
    pub(crate) fn new(pointer: &str, from: u64, count: Option<u64>) -> Self {
        let tokens = pointer.split('/').skip(1);
        let tokens = tokens.map(|token| token.replace("~1", "/").replace("~0", "~"));
        let mut tokens: Vec<String> = tokens.collect();
        tokens.reverse();
        Self {
            tokens,
            from,
            count,
            state: State::Value,
            target: None,
            value: ValueScan::default(),
            index: 0,
            current: Vec::new(),
            output: Vec::new(),
            taken: 0,
            is_full: false,
        }
    }

    /// Scans the next part. Returns whether the scan is complete.
    ///
    /// # Errors
    ///
    /// Returns an error if the text has no value at the pointer.
    pub(crate) fn feed(&mut self, part: &[u8]) -> Result<bool, ReadError> {
        for byte in part {
            // A byte that ends a number is read twice: it also belongs to the container.
            while self.state != State::Done && !self.step(*byte)? {}
            if self.state == State::Done {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the text ended before the value, is not JSON, or has too few elements.
    pub(crate) fn finish(mut self, pointer: &str) -> Result<PointerValue, ReadError> {
        let (open, close, elements) = match (self.state, self.target) {
            (State::Done, Some(container)) => {
                let of = self.index;
                if self.from > of || self.from == of && of > 0 {
                    let from = self.from;
                    return Err(range_error(format!(
                        "`from` is {from}, but the value at `{pointer}` has {of} elements"
                    )));
                }
                let range = Some((self.from, self.from + self.taken, of));
                match container {
                    Container::Array => ("[", "]", range),
                    Container::Object => ("{", "}", range),
                }
            }
            // A number at the end of the text has no following byte.
            (State::Done | State::Scalar, None) => ("", "", None),
            _ => return Err(missing(pointer)),
        };
        let output = std::mem::take(&mut self.output);
        let text = String::from_utf8(output).map_err(|_| missing(pointer))?;
        let json = format!("{open}{text}{close}");
        match serde_json::from_str::<serde::de::IgnoredAny>(&json) {
            Ok(_) => Ok(PointerValue { json, elements }),
            Err(_) => Err(range_error("the block is not JSON; read it without `at`")),
        }
    }

    /// Handles a byte. Returns whether it was consumed.
    fn step(&mut self, byte: u8) -> Result<bool, ReadError> {
        let is_space = byte.is_ascii_whitespace();
        match self.state {
            State::Value if is_space => {}
            State::Value => return self.enter(byte),
            State::Entry(_) | State::Target(_) if is_space || byte == b',' => {}
            State::Entry(container) => return self.entry(container, byte),
            State::Key => self.key(byte),
            State::Colon { is_match } => match (byte, is_match) {
                (b':', true) => self.descend(),
                (b':', false) => self.skip(Container::Object),
                _ => {}
            },
            State::Skip(container) => match self.value.push(byte) {
                Scanned::More => {}
                Scanned::End => self.state = State::Entry(container),
                Scanned::EndBefore => {
                    self.state = State::Entry(container);
                    return Ok(false);
                }
            },
            State::Scalar => return self.scalar(byte),
            State::Target(container) => return Ok(self.start_element(container, byte)),
            State::TargetKey => {
                self.collect(byte);
                if self.value.push(byte) != Scanned::More {
                    self.state = State::TargetColon;
                }
            }
            State::TargetColon => {
                if byte == b':' {
                    self.collect(byte);
                    self.value = ValueScan::default();
                    self.state = State::Element(Container::Object);
                }
            }
            State::Element(container) => return self.element(container, byte),
            State::Done => {}
        }
        Ok(true)
    }

    /// Enters a value on the path, or the target.
    fn enter(&mut self, byte: u8) -> Result<bool, ReadError> {
        let container = match byte {
            b'[' => Some(Container::Array),
            b'{' => Some(Container::Object),
            _ => None,
        };
        self.index = 0;
        self.state = match (container, self.tokens.is_empty()) {
            (Some(container), true) => {
                self.target = Some(container);
                State::Target(container)
            }
            (Some(container), false) => State::Entry(container),
            (None, true) if self.from > 0 => {
                return Err(range_error("the value at `at` has no elements; pass no `from`"));
            }
            (None, true) => {
                self.value = ValueScan::default();
                self.state = State::Scalar;
                return Ok(false);
            }
            (None, false) => return Err(self.no_such_value()),
        };
        Ok(true)
    }

    /// Starts an element or a key of a container on the path.
    fn entry(&mut self, container: Container, byte: u8) -> Result<bool, ReadError> {
        match (container, byte) {
            (_, b']' | b'}') => return Err(self.no_such_value()),
            (Container::Object, _) => {
                self.current.clear();
                self.value = ValueScan::default();
                self.state = State::Key;
            }
            (Container::Array, _) => {
                let wanted = self.tokens.last().and_then(|token| token.parse::<u64>().ok());
                let is_match = wanted == Some(self.index);
                self.index += 1;
                match is_match {
                    true => self.descend(),
                    false => self.skip(container),
                }
            }
        }
        Ok(false)
    }

    fn descend(&mut self) {
        self.tokens.pop();
        self.state = State::Value;
    }

    fn skip(&mut self, container: Container) {
        self.value = ValueScan::default();
        self.state = State::Skip(container);
    }

    fn key(&mut self, byte: u8) {
        let token = self.tokens.last().map_or("", String::as_str);
        // An escape needs at most six bytes per byte, so a longer key is another one.
        if self.current.len() <= token.len() * 6 + 2 {
            self.current.push(byte);
        }
        if self.value.push(byte) != Scanned::More {
            let is_match =
                serde_json::from_slice::<String>(&self.current).is_ok_and(|key| key == token);
            self.state = State::Colon { is_match };
        }
    }

    fn scalar(&mut self, byte: u8) -> Result<bool, ReadError> {
        let scanned = self.value.push(byte);
        if scanned != Scanned::EndBefore {
            if self.output.len() >= MAX_OUTPUT {
                return Err(range_error(format!(
                    "the value at `at` has more than {MAX_OUTPUT} bytes; read the block with `from` and `bytes`, without `at`"
                )));
            }
            self.output.push(byte);
        }
        if scanned != Scanned::More {
            self.state = State::Done;
        }
        Ok(scanned != Scanned::EndBefore)
    }

    /// Starts an element or a member of the target, or ends the target. Returns whether the byte was
    /// consumed.
    fn start_element(&mut self, container: Container, byte: u8) -> bool {
        if matches!(byte, b']' | b'}') {
            self.state = State::Done;
            return true;
        }
        self.current.clear();
        self.value = ValueScan::default();
        self.state = match container {
            Container::Array => State::Element(container),
            Container::Object => State::TargetKey,
        };
        false
    }

    fn element(&mut self, container: Container, byte: u8) -> Result<bool, ReadError> {
        let scanned = self.value.push(byte);
        if scanned != Scanned::EndBefore && !(self.value.is_before() && byte.is_ascii_whitespace())
        {
            self.collect(byte);
        }
        if scanned != Scanned::More {
            self.take()?;
            self.state = State::Target(container);
        }
        Ok(scanned != Scanned::EndBefore)
    }

    fn is_wanted(&self) -> bool {
        let end = self.count.map(|count| self.from.saturating_add(count));
        self.index >= self.from && end.is_none_or(|end| self.index < end) && !self.is_full
    }

    fn collect(&mut self, byte: u8) {
        if self.is_wanted() && self.current.len() <= MAX_OUTPUT {
            self.current.push(byte);
        }
    }

    /// Adds the current element to the output, if it is wanted and fits.
    fn take(&mut self) -> Result<(), ReadError> {
        if self.is_wanted() {
            if self.output.len() + self.current.len() < MAX_OUTPUT {
                if self.taken > 0 {
                    self.output.push(b',');
                }
                self.output.append(&mut self.current);
                self.taken += 1;
            } else if self.taken == 0 {
                let index = self.index;
                return Err(range_error(format!(
                    "element {index} has more than {MAX_OUTPUT} bytes; name it in `at`"
                )));
            } else {
                self.is_full = true;
            }
        }
        self.index += 1;
        Ok(())
    }

    fn no_such_value(&self) -> ReadError {
        let token = self.tokens.last().map_or("", String::as_str);
        let token: String = token.chars().take(64).collect();
        range_error(format!("the block has no value at `at`: `{token}` does not exist"))
    }
}

fn missing(pointer: &str) -> ReadError {
    let pointer: String = pointer.chars().take(64).collect();
    range_error(format!("the block is not JSON with a value at `{pointer}`"))
}

/// Finds the end of one JSON value.
#[derive(Clone, Copy, Debug, Default)]
struct ValueScan {
    depth: u32,
    in_string: bool,
    is_escaped: bool,
    is_number: bool,
    has_started: bool,
}

/// Effect of a byte on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scanned {
    /// The value continues.
    More,
    /// The byte is the last one of the value.
    End,
    /// The value ended before the byte.
    EndBefore,
}

impl ValueScan {
    fn is_before(&self) -> bool {
        !self.has_started
    }

    fn push(&mut self, byte: u8) -> Scanned {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => {
                    self.in_string = false;
                    return self.end();
                }
                _ => {}
            }
            return Scanned::More;
        }
        if self.is_number {
            let ends = byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
            return if ends { Scanned::EndBefore } else { Scanned::More };
        }
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                return self.end();
            }
            _ if byte.is_ascii_whitespace() => return Scanned::More,
            // A number, `true`, `false` or `null`. Inside a container its end does not matter.
            _ => self.is_number = self.depth == 0,
        }
        self.has_started = true;
        Scanned::More
    }

    fn end(&self) -> Scanned {
        if self.depth == 0 { Scanned::End } else { Scanned::More }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{PointerScan, PointerValue};
    use crate::server::results::error::ReadError;

    fn scan(
        text: &str,
        pointer: &str,
        (from, count): (u64, Option<u64>),
        part: usize,
    ) -> Result<PointerValue, ReadError> {
        let mut scan = PointerScan::new(pointer, from, count);
        for part in text.as_bytes().chunks(part) {
            if scan.feed(part)? {
                break;
            }
        }
        scan.finish(pointer)
    }

    #[track_caller]
    fn check(pointer: &str, range: (u64, Option<u64>), expected: &str) {
        let text = r#" {"a/b": {"x~y": [10, "ü,]", {"k":[1, 2]}, null , true]}, "n": -1.5e3,
            "s": "q\"\\", "e": [], "o": {"k1": 1, "k2": [2, 3], "k3": "}"}} "#;
        for part in [1, 3, 7, 1_000] {
            let found = match scan(text, pointer, range, part) {
                Ok(found) => match found.elements {
                    Some((from, to, of)) => format!("{} {from}-{to}/{of}", found.json),
                    None => found.json,
                },
                Err(ReadError::Range(reason)) => format!("error: {reason}"),
                Err(other) => panic!("{other:?}"),
            };
            assert!(found.starts_with(expected), "{pointer} in parts of {part}: {found}");
        }
    }

    #[test]
    fn pointer_finds_value_across_parts() {
        check("/a~1b/x~0y", (0, None), r#"[10,"ü,]",{"k":[1, 2]},null,true] 0-5/5"#);
        check("/a~1b/x~0y", (1, Some(2)), r#"["ü,]",{"k":[1, 2]}] 1-3/5"#);
        check("/a~1b/x~0y/2/k/1", (0, None), "2");
        check("/n", (0, None), "-1.5e3");
        check("/s", (0, None), r#""q\"\\""#);
        check("/e", (0, None), "[] 0-0/0");
        check("/o", (1, Some(1)), r#"{"k2":[2, 3]} 1-2/3"#);
        check("/o", (2, None), r#"{"k3":"}"} 2-3/3"#);
        check("", (4, None), r#"{"o":{"k1": 1, "k2": [2, 3], "k3": "}"}} 4-5/5"#);
    }

    #[test]
    fn pointer_without_value_gets_one_clear_error() {
        check("/zzz", (0, None), "error: the block has no value at `at`: `zzz` does not exist");
        check("/a~1b/x~0y/9", (0, None), "error: the block has no value at `at`: `9`");
        check("/n/0", (0, None), "error: the block has no value at `at`: `0`");
        check("/e/0", (0, None), "error: the block has no value");
        check("/a~1b/x~0y", (5, None), "error: `from` is 5, but the value at `/a~1b/x~0y` has 5");
        check("/n", (1, None), "error: the value at `at` has no elements");
        let text = scan("2026-11-18 building: ok", "/a", (0, None), 5);
        assert!(matches!(text, Err(ReadError::Range(_))), "{text:?}");
        let text = scan("plain text", "", (0, None), 5);
        assert!(matches!(text, Err(ReadError::Range(_))), "{text:?}");
    }

    #[test]
    fn elements_of_5_mb_are_collected_up_to_the_limit() {
        let rows: Vec<String> = (0..50_000).map(|row| format!("{row:0100}")).collect();
        let text = json!({"rows": rows}).to_string();
        let found = scan(&text, "/rows", (30_000, Some(2)), 64 << 10).unwrap();
        assert_eq!(found.json, format!("[\"{:0100}\",\"{:0100}\"]", 30_000, 30_001));
        assert_eq!(found.elements, Some((30_000, 30_002, 50_000)));
        let all = scan(&text, "/rows", (0, None), 64 << 10).unwrap();
        let (_, to, of) = all.elements.unwrap();
        assert!(all.json.len() <= 1 << 20 && of == 50_000 && to > 9_000, "{to}");
        let long = json!({"rows": ["x".repeat(2 << 20)]}).to_string();
        assert!(scan(&long, "/rows", (0, None), 64 << 10).is_err());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-cä\"\\\\\n,\\[\\]{}]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map("[a-c~/ä\"]{0,2}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
        all.push(at.to_owned());
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointers(item, &format!("{at}/{index}"), all);
                }
            }
            Value::Object(members) => {
                for (key, item) in members {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    pointers(item, &format!("{at}/{key}"), all);
                }
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn pointer_agrees_with_a_whole_parse(value in any_json(), part in 1_usize..9, pretty: bool) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let mut all = Vec::new();
            pointers(&value, "", &mut all);
            for pointer in all {
                let found = scan(&text, &pointer, (0, None), part).unwrap();
                let found: Value = serde_json::from_str(&found.json).unwrap();
                prop_assert_eq!(Some(&found), value.pointer(&pointer), "{}", pointer);
            }
        }
    }
}
