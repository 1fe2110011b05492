//! Stored messages: in memory up to a limit, then in the file `overflow`.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::PathBuf,
};

use bytes::Bytes;

/// Maximum bytes of stored messages in memory.
pub(super) const MAX_MEMORY: usize = 1 << 20;
/// Maximum bytes of the file.
pub(super) const MAX_FILE: u64 = 64 << 20;

/// The stored messages of one process.
#[derive(Debug)]
pub(super) struct Bodies {
    max_memory: usize,
    max_file: u64,
    /// Bytes in memory.
    used: usize,
    path: PathBuf,
    /// Present after the first message that was too much for the memory.
    file: Option<File>,
    /// Used parts of the file: start and length.
    parts: BTreeMap<u64, usize>,
}

/// A stored message. It must be freed.
#[derive(Debug)]
pub(super) enum Body {
    Memory(Bytes),
    File { start: u64, length: usize },
}

impl Bodies {
    pub(super) fn new(path: PathBuf) -> Self {
        Self::limited(path, MAX_MEMORY, MAX_FILE)
    }

    pub(super) fn limited(path: PathBuf, max_memory: usize, max_file: u64) -> Self {
        Self { max_memory, max_file, used: 0, path, file: None, parts: BTreeMap::new() }
    }

    /// Returns the bytes in memory.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Stores a message in memory. Returns it if the memory is full.
    pub(super) fn put_in_memory(&mut self, message: Bytes) -> Result<Body, Bytes> {
        if message.len() > self.max_memory.saturating_sub(self.used) {
            return Err(message);
        }
        self.used += message.len();
        Ok(Body::Memory(message))
    }

    /// Stores a message. Returns it if memory and file are full, or if the file cannot be written.
    pub(super) fn put(&mut self, message: Bytes) -> Result<Body, Bytes> {
        let message = match self.put_in_memory(message) {
            Ok(body) => return Ok(body),
            Err(message) => message,
        };
        let Some(start) = self.find_room(message.len()) else { return Err(message) };
        if self.write(&message, start).is_err() {
            return Err(message);
        }
        self.parts.insert(start, message.len());
        Ok(Body::File { start, length: message.len() })
    }

    /// Returns the start of the first gap in the file with this length.
    fn find_room(&self, length: usize) -> Option<u64> {
        let mut end = 0;
        for (&start, &used) in &self.parts {
            if start - end >= length as u64 {
                break;
            }
            end = start + used as u64;
        }
        (end + length as u64 <= self.max_file).then_some(end)
    }

    fn write(&mut self, message: &[u8], start: u64) -> io::Result<()> {
        if self.file.is_none() {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(true).mode(0o600);
            self.file = Some(options.open(&self.path)?);
        }
        match &self.file {
            Some(file) => file.write_all_at(message, start),
            None => Ok(()),
        }
    }

    /// Reads a stored message.
    pub(super) fn get(&self, body: &Body) -> io::Result<Bytes> {
        match (body, &self.file) {
            (Body::Memory(message), _) => Ok(message.clone()),
            (Body::File { start, length }, Some(file)) => {
                let mut message = vec![0; *length];
                file.read_exact_at(&mut message, *start)?;
                Ok(message.into())
            }
            (Body::File { .. }, None) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn free(&mut self, body: Body) {
        match body {
            Body::Memory(message) => self.used -= message.len(),
            Body::File { start, .. } => {
                self.parts.remove(&start);
                if let (true, Some(file)) = (self.parts.is_empty(), &self.file) {
                    // If this fails, the file only keeps its size.
                    let _ = file.set_len(0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Bodies, Body, Bytes};

    fn message(byte: u8, length: usize) -> Bytes {
        vec![byte; length].into()
    }

    #[test]
    fn messages_overflow_into_file_and_reuse_its_room() {
        let path = std::env::temp_dir().join(format!("outlive-overflow-{}", std::process::id()));
        let mut bodies = Bodies::limited(path.clone(), 10, 100);
        let small = bodies.put(message(1, 10)).unwrap();
        assert!(matches!(small, Body::Memory(_)) && !path.exists());
        let first = bodies.put(message(2, 60)).unwrap();
        let second = bodies.put(message(3, 40)).unwrap();
        assert_eq!(bodies.put(message(4, 1)).unwrap_err(), message(4, 1));
        assert_eq!(bodies.get(&second).unwrap(), message(3, 40));
        bodies.free(first);
        let third = bodies.put(message(5, 50)).unwrap();
        assert!(matches!(third, Body::File { start: 0, .. }), "{third:?}");
        assert!(bodies.put(message(6, 11)).is_err());
        assert_eq!(bodies.get(&second).unwrap(), message(3, 40));
        bodies.free(second);
        bodies.free(third);
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        bodies.free(small);
        assert!(matches!(bodies.put(message(7, 10)).unwrap(), Body::Memory(_)));
        fs::remove_file(path).unwrap();
    }
}
