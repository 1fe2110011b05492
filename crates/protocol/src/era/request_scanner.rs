//! A one-pass JSON scanner: validates a message and finds the positions of its parts.
//!
//! `None` means that the scanner cannot parse the text: it may be invalid, nested too deep, or
//! unusual, such as an escape in a member name. The caller then uses serde_json, which reports the
//! error. Every text that the scanner accepts is valid for serde_json too.

use super::string::plain_prefix;

/// A position in a text.
pub(super) struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// Number of objects and arrays that may still be nested.
    levels: usize,
}

/// The open objects and arrays: one bit for each, innermost last, set for an object.
#[derive(Clone, Copy, Default)]
struct Open {
    bits: u128,
    count: u32,
}

impl<'a> Scan<'a> {
    /// Starts to scan a text. `levels` limits its nesting.
    pub(super) fn new(text: &'a str, levels: usize) -> Self {
        Self { text, at: 0, levels }
    }

    /// Reads an object. Calls `member` with each name; `member` reads the value.
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        self.take(b'{')?;
        self.levels = self.levels.checked_sub(1)?;
        if self.peek()? == b'}' {
            self.at += 1;
        } else {
            loop {
                let name = self.plain_string()?;
                self.take(b':')?;
                member(self, name)?;
                match self.peek()? {
                    b',' => self.at += 1,
                    b'}' => break self.at += 1,
                    _ => return None,
                }
            }
        }
        self.levels += 1;
        Some(())
    }

    /// Reads a string without escapes. Returns the text between its quotes.
    pub(super) fn plain_string(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let start = self.at;
        self.at += plain_prefix(self.rest());
        let inner = &self.text[start..self.at];
        self.byte(b'"')?;
        Some(inner)
    }

    /// Reads any value. Returns its text.
    pub(super) fn value(&mut self) -> Option<&'a str> {
        self.peek()?;
        let start = self.at;
        let mut open = Open::default();
        loop {
            match self.peek()? {
                opening @ (b'{' | b'[') => {
                    let is_object = opening == b'{';
                    open.push(is_object, self.levels)?;
                    self.at += 1;
                    match (self.peek()?, is_object) {
                        (b'}', true) | (b']', false) => {
                            self.at += 1;
                            open.pop();
                        }
                        (_, true) => {
                            self.name()?;
                            continue;
                        }
                        (_, false) => continue,
                    }
                }
                b'"' => self.string()?,
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                _ => self.number()?,
            }
            // The value ended. Close the containers that end with it.
            loop {
                let Some(is_object) = open.innermost() else {
                    return Some(&self.text[start..self.at]);
                };
                let next = self.peek()?;
                self.at += 1;
                match (next, is_object) {
                    (b',', true) => break self.name()?,
                    (b',', false) => break,
                    (b'}', true) | (b']', false) => open.pop(),
                    _ => return None,
                }
            }
        }
    }

    /// Returns the text that `read` consumes.
    pub(super) fn spanning(
        &mut self,
        read: impl FnOnce(&mut Self) -> Option<()>,
    ) -> Option<&'a str> {
        self.peek()?;
        let start = self.at;
        read(self)?;
        Some(&self.text[start..self.at])
    }

    /// Checks that only whitespace follows.
    pub(super) fn end(mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// Skips whitespace. Returns the next byte without consuming it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.peek()?;
        self.byte(byte)
    }

    /// Consumes the next byte if it is `byte`. Does not skip whitespace.
    fn byte(&mut self, byte: u8) -> Option<()> {
        (self.text.as_bytes().get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    /// Skips the name of a member and its colon.
    fn name(&mut self) -> Option<()> {
        (self.peek()? == b'"').then_some(())?;
        self.string()?;
        self.take(b':')
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.at += plain_prefix(self.rest());
            if self.byte(b'"').is_some() {
                return Some(());
            }
            match *self.rest() {
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => self.at += 2,
                [b'\\', b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(u8::is_ascii_hexdigit) => {
                    self.at += 6;
                }
                _ => return None,
            }
        }
    }

    fn literal(&mut self, word: &str) -> Option<()> {
        self.rest().starts_with(word.as_bytes()).then(|| self.at += word.len())
    }

    fn number(&mut self) -> Option<()> {
        self.at += usize::from(self.rest().first() == Some(&b'-'));
        match self.rest() {
            [b'0', ..] => self.at += 1,
            _ => self.digits()?,
        }
        if self.rest().first() == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let [b'e' | b'E', ..] = self.rest() {
            self.at += 1;
            self.at += usize::from(matches!(self.rest(), [b'+' | b'-', ..]));
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(())
    }
}

impl Open {
    /// Opens a container. Returns `None` above the nesting limit.
    fn push(&mut self, is_object: bool, levels: usize) -> Option<()> {
        let most = levels.min(u128::BITS as usize);
        ((self.count as usize) < most).then_some(())?;
        self.bits = self.bits << 1 | u128::from(is_object);
        self.count += 1;
        Some(())
    }

    fn pop(&mut self) {
        self.bits >>= 1;
        self.count -= 1;
    }

    fn innermost(self) -> Option<bool> {
        (self.count > 0).then_some(self.bits & 1 == 1)
    }
}
