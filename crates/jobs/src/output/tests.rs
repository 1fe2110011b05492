//! Tests that the stored output does not depend on the chunks, and matches the output that a reader
//! returns.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

use std::{
    fs::{self, File},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use proptest::{collection::vec, prelude::*};

use super::{
    super::{Event, JobSpec, MAX_LINE, Position, control::Events, lines::Reader},
    Dropped, Output, Tail,
};

/// A temporary file that is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("outlive-output-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn open(&self) -> File {
        File::options().append(true).create(true).open(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[derive(Debug, PartialEq)]
struct Kept {
    /// Readable output, split at gaps.
    parts: Vec<Vec<u8>>,
    lines: usize,
    gap: Dropped,
    dropped: Dropped,
}

fn keep(spec: &JobSpec, chunks: &[&[u8]]) -> Kept {
    let (file, recorded) = (Scratch::new(), Scratch::new());
    let mut output = Output::new(file.open(), spec);
    let mut events = Events::new(recorded.open());
    for chunk in chunks {
        output.push(chunk);
    }
    let (dropped, warning) = output.close(&mut events);
    assert_eq!(warning, None);
    let mut reader = Reader::new(file.0.clone(), recorded.0.clone(), Position::default());
    let (mut parts, mut lines, mut gap) = (vec![Vec::new()], 0, Dropped::default());
    while let Some(event) = reader.next(true).unwrap() {
        match event {
            Event::Line(line) => {
                assert!(line.bytes.len() <= MAX_LINE);
                let part = parts.last_mut().unwrap();
                part.extend(line.bytes);
                part.extend(line.ended.then_some(b'\n'));
                lines += 1;
            }
            Event::Gap { bytes, lines } => {
                gap = Dropped { bytes: gap.bytes + bytes, lines: gap.lines + lines };
                parts.push(Vec::new());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(reader.position(), Position { line: lines as u64, offset: output.written() });
    Kept { parts, lines, gap, dropped }
}

/// Generates short lines, and lines around the maximum length.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let length =
        prop_oneof![0..3_usize, MAX_LINE - 1..MAX_LINE + 2, 2 * MAX_LINE - 1..2 * MAX_LINE + 2];
    prop_oneof![
        4 => vec(any::<u8>(), 0..20),
        2 => length.prop_map(|length| vec![b'x'; length]),
    ]
}

fn limit(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![0..most, Just(u64::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn stored_output_is_the_start_and_end_for_any_chunks(
        lines in vec(line(), 0..8),
        ends in any::<bool>(),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
        max_output_bytes in limit(300_000),
        max_output_lines in limit(12),
    ) {
        let mut printed = lines.join(&b'\n');
        if ends {
            printed.push(b'\n');
        }
        let mut spec = JobSpec::new(["true"]);
        (spec.max_output_bytes, spec.max_output_lines) = (max_output_bytes, max_output_lines);
        let whole = keep(&spec, &[&printed]);

        let kept: usize = whole.parts.iter().map(Vec::len).sum();
        prop_assert!(printed.starts_with(&whole.parts[0]));
        prop_assert!(printed.ends_with(whole.parts.last().unwrap()));
        prop_assert!(whole.parts.len() <= 2);
        prop_assert!(kept as u64 <= max_output_bytes);
        // A line that is split counts on both sides.
        prop_assert!(whole.lines as u64 <= max_output_lines.saturating_add(1));
        prop_assert_eq!(kept as u64 + whole.dropped.bytes, printed.len() as u64);
        prop_assert_eq!(whole.dropped.bytes == 0, whole.dropped.lines == 0);
        prop_assert_eq!(whole.gap, whole.dropped);
        if (max_output_bytes, max_output_lines) == (u64::MAX, u64::MAX) {
            prop_assert_eq!(&whole.parts, &[printed.clone()]);
        }

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(printed.len() + 1)).collect();
        cuts.extend([0, printed.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &printed[pair[0]..pair[1]]).collect();
        prop_assert_eq!(keep(&spec, &chunks), whole);
    }
}

#[test]
fn status_is_the_newest_complete_line() {
    let file = Scratch::new();
    let mut tail = Tail::new(file.open());
    assert_eq!(tail.push(b"one\ntw"), Some("one".to_owned()));
    assert_eq!(tail.push(b"o\r\n\n  \n"), Some("two".to_owned()));
    assert_eq!(tail.push(b"three"), None);
    assert_eq!(tail.push(&[b'x'; 5_000]), None);
    assert_eq!(tail.push(b"\n").unwrap().len(), 1024);
}

#[test]
fn stderr_file_is_bounded_and_contains_the_end() {
    let file = Scratch::new();
    let mut tail = Tail::new(file.open());
    for number in 0..50_000 {
        tail.push(format!("{number}\n").as_bytes());
    }
    let kept = fs::read(&file.0).unwrap();
    assert!(kept.len() <= 64 << 10);
    assert!(kept.ends_with(b"49998\n49999\n"));
    assert_eq!(tail.text(), super::text(&kept));
}

#[test]
#[cfg(target_os = "linux")]
fn full_disk_causes_a_warning_and_does_not_block() {
    let full = File::options().append(true).open("/dev/full").unwrap();
    let mut output = Output::new(full, &JobSpec::new(["true"]));
    output.push(b"one\ntwo\n");
    output.push(b"three\n");
    assert_eq!(output.written(), 0);
    assert!(output.warning().is_some());
    let events = Scratch::new();
    let (dropped, warning) = output.close(&mut Events::new(events.open()));
    assert_eq!(dropped, Dropped { bytes: 14, lines: 3 });
    assert!(warning.unwrap().contains("free space"));
}
