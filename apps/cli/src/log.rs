//! The log of the program, on standard error: warnings, or more if `OUTLIVE_LOG` says so; as text, or as
//! a JSON object on each line with `OUTLIVE_LOG_FORMAT=json`.

use std::{env, fmt};

use serde_json::{Map, Value as Json};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    subscriber::set_global_default,
};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

use crate::print;

/// Sets it up, once per process.
pub(crate) fn to_stderr() {
    let wanted = env::var("OUTLIVE_LOG").ok();
    let format = env::var("OUTLIVE_LOG_FORMAT").ok();
    let level = wanted.as_deref().map_or(Ok(LevelFilter::WARN), str::parse);
    let subscriber = tracing_subscriber::fmt()
        .with_writer(|| print::Log)
        .with_ansi(console::colors_enabled_stderr())
        .with_target(false)
        .with_max_level(level.as_ref().copied().unwrap_or(LevelFilter::WARN));
    let _ = match format.as_deref() {
        Some("json") => set_global_default(subscriber.event_format(JsonLines).finish()),
        _ => set_global_default(subscriber.finish()),
    };
    if let (Err(_), Some(wanted)) = (level, wanted) {
        tracing::warn!(
            "OUTLIVE_LOG is `{wanted}`; it can be error, warn, info, debug, trace or off"
        );
    }
    if let Some(format) = format.filter(|format| !matches!(format.as_str(), "json" | "text")) {
        tracing::warn!("OUTLIVE_LOG_FORMAT is `{format}`; it can be text or json");
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
