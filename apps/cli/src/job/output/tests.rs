//! What is kept does not depend on how it comes, and is what a reader reads.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

use std::{
    fs::{self, File},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use proptest::{collection::vec, prelude::*};

use super::{
    super::{JobSpec, MAX_LINE, Position, lines::Lines},
    Dropped, Output, Tail,
};

/// A file that is removed in the end.
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
    bytes: Vec<u8>,
    lines: usize,
    dropped: Dropped,
    asked: u32,
    lost: bool,
}

fn keep(spec: &JobSpec, chunks: &[&[u8]]) -> Kept {
    let file = Scratch::new();
    let mut output = Output::new(file.open(), spec);
    let (mut asked, mut lost) = (0, false);
    for chunk in chunks {
        let questions = output.push(chunk);
        asked += questions.asked;
        lost |= questions.lost;
    }
    let written = output.written();
    let (dropped, trouble) = output.close();
    assert_eq!(trouble, None);
    let mut reader = Lines::new(file.0.clone(), Position::default());
    let (mut bytes, mut lines) = (Vec::new(), 0);
    while let Some(line) = reader.next(true).unwrap() {
        assert!(line.bytes.len() <= MAX_LINE);
        bytes.extend(line.bytes);
        bytes.extend(line.ended.then_some(b'\n'));
        lines += 1;
    }
    assert_eq!(reader.position(), Position { line: lines as u64, offset: written });
    Kept { bytes, lines, dropped, asked, lost }
}

/// Lines of all kinds: short ones, questions, and those around the greatest length.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let question = || Just(b"@outlive {\"ask\":\"?\"}".to_vec());
    let length =
        prop_oneof![0..3_usize, MAX_LINE - 1..MAX_LINE + 2, 2 * MAX_LINE - 1..2 * MAX_LINE + 2];
    prop_oneof![
        4 => vec(any::<u8>(), 0..20),
        2 => question(),
        2 => length.prop_map(|length| vec![b'x'; length]),
        1 => length_with_question(),
    ]
}

/// A long line whose last piece looks like a question.
fn length_with_question() -> impl Strategy<Value = Vec<u8>> {
    Just([vec![b'x'; MAX_LINE], b"@outlive {\"ask\":\"?\"}".to_vec()].concat())
}

fn limit(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![0..most, Just(u64::MAX)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn what_is_kept_is_the_beginning_however_it_comes(
        lines in vec(line(), 0..8),
        ends in any::<bool>(),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
        max_output_bytes in limit(300_000),
        max_output_lines in limit(12),
        asks in any::<bool>(),
    ) {
        let mut printed = lines.join(&b'\n');
        if ends {
            printed.push(b'\n');
        }
        let mut spec = JobSpec::new(["true"]);
        (spec.max_output_bytes, spec.max_output_lines, spec.asks) = (max_output_bytes, max_output_lines, asks);
        let whole = keep(&spec, &[&printed]);

        prop_assert!(printed.starts_with(&whole.bytes));
        prop_assert!(whole.bytes.len() as u64 <= max_output_bytes);
        prop_assert!(whole.lines as u64 <= max_output_lines);
        prop_assert_eq!(whole.bytes.len() as u64 + whole.dropped.bytes, printed.len() as u64);
        prop_assert_eq!(whole.dropped.bytes == 0, whole.dropped.lines == 0);
        prop_assert!(asks || (whole.asked, whole.lost) == (0, false));
        if (max_output_bytes, max_output_lines) == (u64::MAX, u64::MAX) {
            prop_assert_eq!(&whole.bytes, &printed);
        }

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(printed.len() + 1)).collect();
        cuts.extend([0, printed.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &printed[pair[0]..pair[1]]).collect();
        prop_assert_eq!(keep(&spec, &chunks), whole);
    }
}

#[test]
fn the_status_is_the_newest_whole_line() {
    let file = Scratch::new();
    let mut tail = Tail::new(file.open());
    assert_eq!(tail.push(b"one\ntw"), Some("one".to_owned()));
    assert_eq!(tail.push(b"o\r\n\n  \n"), Some("two".to_owned()));
    assert_eq!(tail.push(b"three"), None);
    assert_eq!(tail.push(&[b'x'; 5_000]), None);
    assert_eq!(tail.push(b"\n").unwrap().len(), 1024);
}

#[test]
fn the_file_of_standard_error_stays_small_and_has_its_end() {
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
fn a_full_disk_is_told_of_and_stops_nobody() {
    let full = File::options().append(true).open("/dev/full").unwrap();
    let mut output = Output::new(full, &JobSpec::new(["true"]));
    output.push(b"one\ntwo\n");
    output.push(b"three\n");
    assert_eq!(output.written(), 0);
    let (dropped, trouble) = output.close();
    assert_eq!(dropped, Dropped { bytes: 14, lines: 3 });
    assert!(trouble.unwrap().contains("make room"));
}
