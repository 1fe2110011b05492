//! Log of a server on standard error: text, or one JSON object per line with
//! `OUTLIVE_LOG_FORMAT=json`.
//!
//! A server that listens logs warnings and one line per call; `OUTLIVE_LOG` sets another level. A
//! server on stdio logs warnings only, because a host that does not read standard error would block
//! it.
//!
//! Lines about calls pass through a bounded queue, so a slow reader never blocks a call. Without
//! `OUTLIVE_LOG`, a rate limit per caller protects the disk. A warning reports the number of
//! dropped lines.

use std::{
    collections::HashMap,
    env, fmt, io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Map, Value as Json};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    subscriber::set_global_default,
};
use tracing_subscriber::{
    field::RecordFields,
    filter::Targets,
    fmt::{
        FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    layer::{Context, Layer, SubscriberExt},
    registry::LookupSpan,
};

use crate::print;

/// Target of the line about each call.
const CALL: &str = "outlive::call";

/// Target of the output of tool workers.
const TOOL_WORKER: &str = "outlive::tool_worker";

/// Capacity of the queue of lines about calls. A full queue drops further lines and counts them.
const MAX_WAITING: usize = 8_192;

/// Lines per second about the calls of one caller. `OUTLIVE_LOG` lifts the limit.
const MAX_PER_SECOND: u32 = 100;

/// Interval of the warnings about dropped lines.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum time that the program waits for standard error at exit.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Sets up the log, once per process. `logs_calls` enables the lines about calls by default.
pub(crate) fn to_stderr(logs_calls: bool) -> CallLines {
    let wanted = env::var("OUTLIVE_LOG").ok();
    let format = env::var("OUTLIVE_LOG_FORMAT").ok();
    let level = wanted.as_deref().map(str::parse::<LevelFilter>).transpose();
    let levels = match &level {
        Ok(Some(level)) => Targets::new().with_default(*level),
        _ if logs_calls => Targets::new()
            .with_default(LevelFilter::WARN)
            .with_targets([(CALL, LevelFilter::INFO), (TOOL_WORKER, LevelFilter::INFO)]),
        _ => Targets::new().with_default(LevelFilter::WARN),
    };
    let calls = CallLines::start();
    let max = if matches!(level, Ok(Some(_))) { u32::MAX } else { MAX_PER_SECOND };
    let rate = CallRate { max, counts: Mutex::default(), dropped: Arc::clone(&calls.dropped) };
    let subscriber = tracing_subscriber::fmt()
        .with_writer(calls.clone())
        .with_ansi(console::colors_enabled_stderr())
        .with_target(false)
        .with_max_level(LevelFilter::TRACE);
    let _ = match format.as_deref() {
        Some("json") => {
            let subscriber = subscriber.fmt_fields(JsonFields).event_format(JsonLines).finish();
            set_global_default(subscriber.with(levels).with(rate))
        }
        _ => set_global_default(subscriber.finish().with(levels).with(rate)),
    };
    if let (Err(_), Some(wanted)) = (level, wanted) {
        tracing::warn!(
            "OUTLIVE_LOG has the invalid value `{wanted}`; use error, warn, info, debug, trace or off"
        );
    }
    if let Some(format) = format.filter(|format| !matches!(format.as_str(), "json" | "text")) {
        tracing::warn!("OUTLIVE_LOG_FORMAT has the invalid value `{format}`; use text or json");
    }
    calls
}

/// Writer of the log. A thread writes the queued lines about calls; other lines are written
/// directly.
#[derive(Clone, Debug)]
pub(crate) struct CallLines {
    queue: SyncSender<Queued>,
    /// Lines dropped since the last warning.
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Queued {
    Line(Vec<u8>),
    /// Confirms that all earlier lines are written.
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
            print::say(&format!("cannot start the log thread, so calls are not logged: {error}"));
        }
        Self { queue, dropped }
    }

    /// Waits until all lines about calls are written, for at most [`FLUSH_TIMEOUT`].
    pub(crate) fn flush(&self) {
        let (done, written) = mpsc::channel();
        if self.queue.try_send(Queued::Flush(done)).is_ok() {
            let _ = written.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

fn write_calls(lines: &Receiver<Queued>, dropped: &AtomicU64) {
    let mut reported: Option<Instant> = None;
    loop {
        let mut flushed = None;
        match lines.recv_timeout(REPORT_INTERVAL) {
            // A closed standard error is not an error.
            Ok(Queued::Line(line)) => drop(io::Write::write_all(&mut print::Log, &line)),
            Ok(Queued::Flush(done)) => flushed = Some(done),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let is_due = reported.is_none_or(|reported| reported.elapsed() >= REPORT_INTERVAL);
        if (is_due || flushed.is_some()) && dropped.load(Ordering::Relaxed) > 0 {
            reported = Some(Instant::now());
            tracing::warn!(
                count = dropped.swap(0, Ordering::Relaxed),
                "dropped log lines about calls: a caller made more than {MAX_PER_SECOND} calls per second, or \
                 the reader of standard error is too slow; set OUTLIVE_LOG=info to log all calls"
            );
        }
        if let Some(done) = flushed {
            let _ = done.send(());
        }
    }
}

/// Rate limit on the lines about the calls of each caller.
#[derive(Debug)]
struct CallRate {
    max: u32,
    counts: Mutex<Counts>,
    dropped: Arc<AtomicU64>,
}

/// Lines per caller in the second that starts at `start`.
#[derive(Debug, Default)]
struct Counts {
    start: Option<Instant>,
    lines: HashMap<String, u32>,
}

impl CallRate {
    /// Counts a line. Returns false if the caller has used up its lines of this second.
    fn admits(&self, principal: String, now: Instant) -> bool {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_terminal = |start: Instant| now.duration_since(start) >= Duration::from_secs(1);
        if counts.start.is_none_or(is_terminal) {
            *counts = Counts { start: Some(now), lines: HashMap::new() };
        }
        let lines = counts.lines.entry(principal).or_default();
        *lines = lines.saturating_add(1);
        *lines <= self.max
    }
}

impl<S: Subscriber> Layer<S> for CallRate {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        if self.max == u32::MAX || event.metadata().target() != CALL {
            return true;
        }
        let mut principal = PrincipalOf::default();
        event.record(&mut principal);
        let is_admitted = self.admits(principal.0, Instant::now());
        if !is_admitted {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        is_admitted
    }
}

/// Reads the principal of an event.
#[derive(Default)]
struct PrincipalOf(String);

impl Visit for PrincipalOf {
    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "principal" {
            self.0 = value.to_owned();
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

/// Writer of one event. Lines about calls go through the queue.
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

/// Formats an event as a JSON object on one line: `time`, `level`, `target`, `message`, its fields,
/// and its `spans` from the outermost to the innermost.
struct JsonLines;

impl<S> FormatEvent<S, JsonFields> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
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
        let mut spans = Vec::new();
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let mut fields = Map::new();
            fields.insert("name".into(), span.name().into());
            if let Some(written) = span.extensions().get::<FormattedFields<JsonFields>>() {
                fields.extend(JsonFields::read(written));
            }
            spans.push(Json::Object(fields));
        }
        if !spans.is_empty() {
            object.insert("spans".into(), spans.into());
        }
        writeln!(writer, "{}", Json::Object(object))
    }
}

/// Formats the fields of a span as a JSON object. Fields that are recorded later are a further
/// object after it.
struct JsonFields;

impl JsonFields {
    /// Returns the fields that were written.
    fn read(written: &str) -> Map<String, Json> {
        let objects = serde_json::Deserializer::from_str(written).into_iter::<Map<String, Json>>();
        objects.flatten().flatten().collect()
    }
}

impl<'writer> FormatFields<'writer> for JsonFields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut object = Map::new();
        fields.record(&mut Fields(&mut object));
        write!(writer, "{}", Json::Object(object))
    }
}

/// Reads the fields of an event or span into an object.
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
        sync::{Arc, Mutex, atomic::Ordering, mpsc},
        time::{Duration, Instant},
    };

    use serde_json::{Value, json};
    use tracing::{field::Empty, subscriber::with_default};

    use super::{CallLines, CallRate, JsonFields, JsonLines, LogWriter, Queued};

    /// A writer into shared memory.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn json_line_has_spans_with_their_fields() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .fmt_fields(JsonFields)
            .event_format(JsonLines)
            .with_writer(move || writer.clone());
        with_default(subscriber.finish(), || {
            tracing::info!("without spans");
            let run = tracing::debug_span!("task.run", tool = "a \"b\"", epoch = Empty).entered();
            run.record("epoch", 7u64);
            let _commit = tracing::debug_span!("store.commit", changes = 2u64).entered();
            tracing::warn!(task_id = "x", "inside");
        });
        let written = written.0.lock().unwrap();
        let lines: Vec<Value> = String::from_utf8_lossy(&written)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(lines[0].get("spans").is_none(), "{}", lines[0]);
        let spans = json!([
            {"name": "task.run", "tool": "a \"b\"", "epoch": 7},
            {"name": "store.commit", "changes": 2},
        ]);
        assert_eq!((&lines[1]["spans"], &lines[1]["task_id"]), (&spans, &json!("x")));
    }

    #[test]
    fn caller_above_rate_limit_loses_only_its_own_lines() {
        let rate = CallRate { max: 3, counts: Mutex::default(), dropped: Arc::default() };
        let start = Instant::now();
        let admitted = |principal: &str, at: Duration| {
            (0..5).filter(|_| rate.admits(principal.to_owned(), start + at)).count()
        };
        assert_eq!(admitted("name:eve", Duration::ZERO), 3);
        assert_eq!(admitted("name:ada", Duration::from_millis(500)), 3);
        assert_eq!(admitted("name:eve", Duration::from_millis(999)), 0);
        assert_eq!(admitted("name:eve", Duration::from_secs(1)), 3);
    }

    #[test]
    fn call_line_with_full_queue_is_dropped_and_counted() {
        let (queue, lines) = mpsc::sync_channel(2);
        let calls = CallLines { queue, dropped: Arc::default() };
        for line in ["a\n", "b\n", "c\n", "d\n"] {
            LogWriter(Some(&calls)).write_all(line.as_bytes()).unwrap();
        }
        // `flush` must return although no thread reads the queue.
        calls.flush();
        assert_eq!(calls.dropped.load(Ordering::Relaxed), 2);
        let written = lines.try_iter().map(|queued| match queued {
            Queued::Line(line) => String::from_utf8(line).unwrap(),
            Queued::Flush(_) => "flush".to_owned(),
        });
        assert_eq!(written.collect::<String>(), "a\nb\n");
    }
}
