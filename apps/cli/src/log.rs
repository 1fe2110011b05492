//! The log of a server, on standard error: as text, or as a JSON object on each line with
//! `OUTLIVE_LOG_FORMAT=json`.
//!
//! A server that listens logs warnings and one line per call; `OUTLIVE_LOG` sets another level. A server
//! on stdio logs warnings only: its standard error belongs to the host, and a host that does not read it
//! would stop the server after some hundred lines.
//!
//! Callers decide how many lines about calls there are, so those lines pass through a bounded queue. No
//! call waits for standard error.

use std::{
    env, fmt, io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, Sender, SyncSender},
    },
    thread,
    time::Duration,
};

use serde_json::{Map, Value as Json};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    subscriber::set_global_default,
};
use tracing_subscriber::{
    filter::Targets,
    fmt::{
        FmtContext, FormatEvent, FormatFields, MakeWriter,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
};

use crate::print;

/// Target of the line about each call.
const CALL: &str = "outlive::call";

/// Lines about calls that may wait for standard error. The next ones are counted and left out.
const MAX_WAITING: usize = 8_192;

/// How long the program waits for standard error when it ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Sets the log up, once per process. `logs_calls` says whether calls are logged by default.
pub(crate) fn to_stderr(logs_calls: bool) -> CallLines {
    let wanted = env::var("OUTLIVE_LOG").ok();
    let format = env::var("OUTLIVE_LOG_FORMAT").ok();
    let level = wanted.as_deref().map(str::parse::<LevelFilter>).transpose();
    let levels = match &level {
        Ok(Some(level)) => Targets::new().with_default(*level),
        _ if logs_calls => {
            Targets::new().with_default(LevelFilter::WARN).with_target(CALL, LevelFilter::INFO)
        }
        _ => Targets::new().with_default(LevelFilter::WARN),
    };
    let calls = CallLines::start();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(calls.clone())
        .with_ansi(console::colors_enabled_stderr())
        .with_target(false)
        .with_max_level(LevelFilter::TRACE);
    let _ = match format.as_deref() {
        Some("json") => {
            set_global_default(subscriber.event_format(JsonLines).finish().with(levels))
        }
        _ => set_global_default(subscriber.finish().with(levels)),
    };
    if let (Err(_), Some(wanted)) = (level, wanted) {
        tracing::warn!(
            "OUTLIVE_LOG is `{wanted}`; it can be error, warn, info, debug, trace or off"
        );
    }
    if let Some(format) = format.filter(|format| !matches!(format.as_str(), "json" | "text")) {
        tracing::warn!("OUTLIVE_LOG_FORMAT is `{format}`; it can be text or json");
    }
    calls
}

/// Writer of the log. Lines about calls go through a queue to a thread; others are written at once.
#[derive(Clone, Debug)]
pub(crate) struct CallLines {
    queue: SyncSender<Queued>,
    /// Lines that found the queue full, since the last time that was said.
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Queued {
    Line(Vec<u8>),
    /// Everything before this is written.
    Flush(Sender<()>),
}

impl CallLines {
    fn start() -> Self {
        let (queue, lines) = mpsc::sync_channel(MAX_WAITING);
        let dropped = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&dropped);
        let started = thread::Builder::new()
            .name("outlive-log".to_owned())
            .spawn(move || write_calls(&lines, &counted));
        if let Err(error) = started {
            print::say(&format!("calls are not logged: no thread can be started: {error}"));
        }
        Self { queue, dropped }
    }

    /// Waits until all lines about calls are written, for at most a second.
    pub(crate) fn flush(&self) {
        let (done, written) = mpsc::channel();
        if self.queue.try_send(Queued::Flush(done)).is_ok() {
            let _ = written.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

fn write_calls(lines: &Receiver<Queued>, dropped: &AtomicU64) {
    while let Ok(queued) = lines.recv() {
        match queued {
            Queued::Line(line) => {
                // A closed standard error is no failure.
                let _ = io::Write::write_all(&mut print::Log, &line);
            }
            Queued::Flush(done) => {
                let _ = done.send(());
            }
        }
        let count = dropped.swap(0, Ordering::Relaxed);
        if count > 0 {
            tracing::warn!(count, "calls were not logged: standard error is read too slowly");
        }
    }
}

impl<'a> MakeWriter<'a> for CallLines {
    type Writer = LogWriter<'a>;

    fn make_writer(&'a self) -> LogWriter<'a> {
        LogWriter(None)
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> LogWriter<'a> {
        LogWriter((event.target() == CALL).then_some(self))
    }
}

/// Writer of one event: through the queue, if there is one.
#[derive(Debug)]
pub(crate) struct LogWriter<'a>(Option<&'a CallLines>);

impl io::Write for LogWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let Some(calls) = self.0 else { return print::Log.write(line) };
        if calls.queue.try_send(Queued::Line(line.to_vec())).is_err() {
            calls.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        print::Log.flush()
    }
}

/// Writes an event as a JSON object on a line: `time`, `level`, `target`, `message`, and its fields.
struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut object = Map::new();
        object.insert("time".into(), time.into());
        object.insert("level".into(), event.metadata().level().as_str().into());
        object.insert("target".into(), event.metadata().target().into());
        event.record(&mut Fields(&mut object));
        writeln!(writer, "{}", Json::Object(object))
    }
}

/// Reads the fields of an event into an object.
struct Fields<'a>(&'a mut Map<String, Json>);

impl Fields<'_> {
    fn add(&mut self, field: &Field, value: impl Into<Json>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, atomic::Ordering, mpsc},
    };

    use super::{CallLines, LogWriter, Queued};

    #[test]
    fn call_line_without_room_in_the_queue_is_dropped_and_counted() {
        let (queue, lines) = mpsc::sync_channel(2);
        let calls = CallLines { queue, dropped: Arc::default() };
        for line in ["a\n", "b\n", "c\n", "d\n"] {
            LogWriter(Some(&calls)).write_all(line.as_bytes()).unwrap();
        }
        // It returns although nothing reads the queue.
        calls.flush();
        assert_eq!(calls.dropped.load(Ordering::Relaxed), 2);
        let written = lines.try_iter().map(|queued| match queued {
            Queued::Line(line) => String::from_utf8(line).unwrap(),
            Queued::Flush(_) => "flush".to_owned(),
        });
        assert_eq!(written.collect::<String>(), "a\nb\n");
    }
}
