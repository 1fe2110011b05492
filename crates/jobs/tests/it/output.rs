//! Tests of output: large, long lines, binary, and standard error.

use outlive_jobs::{Event, How, JobSpec, Line, MAX_LINE, Progress};

use crate::support::{Place, line, read, sh};

/// Maximum memory of a supervisor, for any amount of output. Debug builds need more than release
/// builds.
#[cfg(target_os = "linux")]
const MAX_OWN_KB: u64 = 8_000;

#[tokio::test]
async fn flood_of_output_is_truncated_and_counted_in_constant_memory() {
    const GIGABYTE: u64 = 1 << 30;
    let place = Place::new();
    let mut spec =
        sh("head -c 1073741824 /dev/zero | tr '\\0' '\\n'; echo end >&2; exec sleep 1000");
    spec.max_output_bytes = 1_000_000;
    spec.max_output_lines = u64::MAX;
    let mut job = place.start(&spec).await;
    let mut lines = 0;
    loop {
        match job.next().await.unwrap() {
            Event::Line(_) => lines += 1,
            Event::Gap { .. } => {}
            Event::Status(status) if status == "end" => break,
            other => panic!("{other:?}"),
        }
    }
    #[cfg(target_os = "linux")]
    assert!(own_memory_kb(place.supervisor()) < MAX_OWN_KB);
    job.end().await.unwrap();
    let (rest, exit) = read(&mut job).await;
    assert_eq!(lines + rest.len(), 1_000_000);
    assert_eq!(exit.bytes_dropped, GIGABYTE - 1_000_000);
    assert_eq!(exit.lines_dropped, GIGABYTE - 1_000_000);
}

#[tokio::test]
async fn line_without_a_line_break_is_read_in_pieces() {
    const LENGTH: usize = 300_000_000;
    let place = Place::new();
    let mut spec = sh(&format!("head -c {LENGTH} /dev/zero; echo end >&2; exec sleep 1000"));
    spec.max_output_bytes = 10 * MAX_LINE as u64 + 1;
    let mut job = place.start(&spec).await;
    // The start of the output; the end follows with the exit.
    for _ in 0..9 {
        let piece = Line { bytes: vec![0; MAX_LINE], ended: false };
        assert_eq!(job.next().await.unwrap(), Event::Line(piece));
    }
    assert_eq!(job.next().await.unwrap(), Event::Status("end".to_owned()));
    #[cfg(target_os = "linux")]
    assert!(own_memory_kb(place.supervisor()) < MAX_OWN_KB);
    job.end().await.unwrap();
    let rest = job.next().await.unwrap();
    assert_eq!(rest, Event::Line(Line { bytes: vec![0], ended: false }));
    let bytes = (LENGTH - 10 * MAX_LINE - 1) as u64;
    assert_eq!(job.next().await.unwrap(), Event::Gap { bytes, lines: 1 });
    let (lines, exit) = read(&mut job).await;
    assert_eq!((lines.len(), lines[0].len()), (1, MAX_LINE));
    assert_eq!(exit.bytes_dropped, bytes);
}

#[tokio::test]
async fn bytes_that_are_not_utf8_are_stored() {
    let place = Place::new();
    let mut job = place.start(&sh(r"printf 'a\000\377\376\n\303\n\r\nend'")).await;
    let mut lines = Vec::new();
    while let Event::Line(line) = job.next().await.unwrap() {
        lines.push((line.bytes, line.ended));
    }
    let expected: [(&[u8], bool); 4] =
        [(b"a\0\xff\xfe", true), (b"\xc3", true), (b"\r", true), (b"end", false)];
    assert_eq!(lines, expected.map(|(bytes, ended)| (bytes.to_vec(), ended)));
}

#[tokio::test]
async fn lines_above_the_limit_are_dropped() {
    let place = Place::new();
    let mut spec = sh("echo one; echo two; echo three; printf four");
    spec.max_output_lines = 2;
    let (lines, exit) = place.run(&spec).await;
    assert_eq!(lines, ["one", "two"]);
    assert_eq!((exit.bytes_dropped, exit.lines_dropped), (10, 2));
}

#[tokio::test]
async fn start_and_end_of_output_are_stored() {
    let place = Place::new();
    let mut spec = sh("seq 1 100000");
    spec.max_output_lines = 100;
    let mut job = place.start(&spec).await;
    let mut shown = Vec::new();
    let exit = loop {
        match job.next().await.unwrap() {
            Event::Line(line) => shown.push(String::from_utf8(line.bytes).unwrap()),
            Event::Gap { bytes, lines } => shown.push(format!("gap {bytes} {lines}")),
            Event::Exit(exit) => break exit,
            _ => {}
        }
    };
    assert_eq!(shown.len(), 101);
    assert_eq!((shown[0].as_str(), shown[74].as_str()), ("1", "75"));
    assert_eq!(shown[75], format!("gap {} {}", exit.bytes_dropped, 99_900));
    assert_eq!((shown[76].as_str(), shown[100].as_str()), ("99976", "100000"));
}

#[tokio::test]
async fn newest_line_of_standard_error_is_the_status() {
    let place = Place::new();
    let script = "printf 'load 10%%\\rload 20%%\\r' >&2; echo half >&2; echo out; read a; printf unfinished >&2; exit 1";
    let mut spec = sh(script);
    spec.interactive = true;
    spec.control = outlive_jobs::ControlMode::Stdout;
    let mut job = place.start(&spec).await;
    let mut status = String::new();
    while status != "half" {
        match job.next().await.unwrap() {
            Event::Status(newest) => status = newest,
            Event::Line(line) => assert_eq!(line.bytes, b"out"),
            other => panic!("{other:?}"),
        }
    }
    job.end().await.unwrap();
    let (_, exit) = read(&mut job).await;
    assert_eq!(exit.how, How::Ended);
    assert_eq!(exit.stderr_tail, "load 10%\rload 20%\rhalf\n");
}

/// A reader may get the last line, the progress and the exit in any order, or only the exit.
#[tokio::test]
async fn last_line_of_command_that_fails_at_once_is_its_last_event_before_the_exit() {
    let script = "echo working >&2; printf broken >&2; \
                  echo '{\"progress\": 1, \"message\": \"packing\"}' >&3; exit 3";
    let mut progress = 0;
    for _ in 0..40 {
        let place = Place::new();
        let mut job = place.start(&sh(script)).await;
        let mut events = vec![job.next().await.unwrap()];
        while !matches!(events[events.len() - 1], Event::Exit(_)) {
            events.push(job.next().await.unwrap());
        }
        let [.., last, Event::Exit(exit)] = &*events else { panic!("{events:?}") };
        assert_eq!((last, &exit.how), (&Event::Status("broken".to_owned()), &How::Code(3)));
        progress += events.iter().filter(|event| matches!(event, Event::Progress(_))).count();
        assert!(matches!(job.next().await.unwrap(), Event::Exit(_)), "the exit is repeated");
    }
    assert_eq!(progress, 40, "each reader has the progress once");
}

#[tokio::test]
async fn late_reader_gets_progress_and_last_line_before_the_exit() {
    let place = Place::new();
    let script = "echo working >&2; printf broken >&2; echo '{\"progress\": 1}' >&3; exit 3";
    place.run(&sh(script)).await;
    let mut job = place.find().await;
    let progress = Progress { progress: 1.0, total: None, message: String::new() };
    assert_eq!(job.next().await.unwrap(), Event::Progress(progress));
    assert_eq!(job.next().await.unwrap(), Event::Status("broken".to_owned()));
    for _ in 0..2 {
        let event = job.next().await.unwrap();
        assert!(matches!(&event, Event::Exit(exit) if exit.how == How::Code(3)), "{event:?}");
    }
}

#[tokio::test]
async fn end_of_a_large_standard_error_is_stored() {
    let place = Place::new();
    let script =
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo \"line $i\" >&2; done; kill -KILL $$";
    let (_, exit) = place.run(&sh(script)).await;
    assert_eq!(exit.how, How::Signal(9));
    assert!(exit.stderr_tail.ends_with("line 19999\nline 20000\n"));
    assert!(exit.stderr_tail.len() <= 16 * 1024);
}

#[tokio::test]
async fn command_does_not_wait_for_readers() {
    let place = Place::new();
    let done = place.data.join("done");
    let script = format!("seq 1 100000; echo yes > {}", done.display());
    let mut spec = sh(&script);
    spec.max_output_lines = 1_000_000;
    let mut job = place.start(&spec).await;
    // The command finishes without a reader.
    crate::support::until(|| done.exists()).await;
    assert_eq!(line(&mut job).await, "1");
    let (lines, exit) = read(&mut job).await;
    assert_eq!((lines.len(), exit.how), (99_999, How::Code(0)));
}

#[tokio::test]
async fn dropped_next_future_loses_no_event() {
    let place = Place::new();
    let mut spec =
        JobSpec::new(["sh", "-c", "for i in $(seq 1 300); do echo $i; sleep 0.001; done"]);
    spec.timeout = Some(std::time::Duration::from_secs(60));
    let mut job = place.start(&spec).await;
    let mut lines = Vec::new();
    let mut impatience = tokio::time::interval(std::time::Duration::from_micros(700));
    loop {
        tokio::select! {
            event = job.next() => match event.unwrap() {
                Event::Line(line) => lines.push(String::from_utf8(line.bytes).unwrap()),
                Event::Exit(_) => break,
                _ => {}
            },
            _ = impatience.tick() => {}
        }
    }
    let expected: Vec<String> = (1..=300).map(|number| number.to_string()).collect();
    assert_eq!(lines, expected);
}

#[cfg(target_os = "linux")]
fn own_memory_kb(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    own.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The supervisor cannot write files of more than 4 KiB, which simulates a full disk.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn full_disk_causes_a_warning_and_counts_output_as_lost() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let program = place.data.join("supervisor");
    let outlive = env!("CARGO_BIN_EXE_outlive-test-supervisor");
    let script = format!("#!/bin/sh\ntrap '' XFSZ\nulimit -f 8\nexec {outlive} \"$@\"\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let jobs = place.jobs.clone().supervisor_program(&program);
    let mut spec = sh("seq 1 100000; exec sleep 1000");
    spec.max_output_lines = 200_000;
    let mut job = jobs.start_or_find(crate::support::ID, &spec).await.unwrap();
    let warning = loop {
        match job.next().await.unwrap() {
            Event::Warning(text) => break text,
            Event::Line(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert!(warning.contains("free space"), "{warning}");
    job.end().await.unwrap();
    let (_, exit) = read(&mut job).await;
    assert_eq!(exit.how, How::Ended);
    assert!(exit.output_lost.is_some() && exit.bytes_dropped > 0, "{exit:?}");
}
