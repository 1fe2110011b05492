//! The metrics of all upstreams in the text format of Prometheus.

use std::fmt;

use super::{
    histogram::Distribution,
    meter::{CallOutcome, Meter},
};
use crate::status::UpstreamStatus;

/// Metrics of all upstreams of a gateway since its start.
///
/// The [`Display`](fmt::Display) output is the Prometheus text format. It follows that of the server.
#[derive(Debug)]
pub struct GatewayMetrics {
    upstreams: Vec<UpstreamMetrics>,
}

/// Metrics of one upstream.
#[derive(Debug)]
pub(crate) struct UpstreamMetrics {
    status: UpstreamStatus,
    /// Calls by tool, and by [`CallOutcome`].
    calls: Vec<(Box<str>, [u64; 3])>,
    upstream_time: Distribution,
    added_time: Distribution,
    inputs: Vec<(&'static str, &'static str, u64)>,
    counts: [(&'static str, u64); 6],
}

impl UpstreamMetrics {
    pub(crate) fn new(status: UpstreamStatus, meter: &Meter) -> Self {
        let inputs = meter.inputs().into_iter();
        Self {
            status,
            calls: meter.calls().into_iter().collect(),
            upstream_time: meter.upstream_time.read(),
            added_time: meter.added_time.read(),
            inputs: inputs.map(|((kind, path), count)| (kind.name(), path.name(), count)).collect(),
            counts: meter.counts(),
        }
    }

    fn label(&self) -> String {
        // Names of upstreams need no escapes.
        format!("upstream=\"{}\"", self.status.name)
    }
}

impl GatewayMetrics {
    pub(crate) fn new(upstreams: Vec<UpstreamMetrics>) -> Self {
        Self { upstreams }
    }

    fn write_calls(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = "outlive_upstream_calls_total";
        head(f, name, "counter", "Relayed calls, by outcome.")?;
        for upstream in &self.upstreams {
            for (tool, counts) in &upstream.calls {
                for (outcome, count) in CallOutcome::ALL.iter().zip(counts) {
                    let (label, outcome) = (upstream.label(), outcome.name());
                    let tool = Label(tool);
                    writeln!(f, "{name}{{{label},tool=\"{tool}\",outcome=\"{outcome}\"}} {count}")?;
                }
            }
        }
        let name = "outlive_upstream_call_seconds";
        head(f, name, "histogram", "Time of relayed calls at the upstream.")?;
        for upstream in &self.upstreams {
            upstream.upstream_time.write(f, name, &upstream.label())?;
        }
        let name = "outlive_upstream_added_seconds";
        head(f, name, "histogram", "Time that the gateway added to relayed calls.")?;
        for upstream in &self.upstreams {
            upstream.added_time.write(f, name, &upstream.label())?;
        }
        Ok(())
    }

    fn write_counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, help)) in COUNTERS.iter().enumerate() {
            let name = format!("outlive_upstream_{name}_total");
            head(f, &name, "counter", help)?;
            for upstream in &self.upstreams {
                writeln!(f, "{name}{{{}}} {}", upstream.label(), upstream.counts[at].1)?;
            }
        }
        let name = "outlive_upstream_input_requests_total";
        head(f, name, "counter", "Input requests of upstreams, by kind and path.")?;
        for upstream in &self.upstreams {
            for (kind, path, count) in &upstream.inputs {
                let label = upstream.label();
                writeln!(f, "{name}{{{label},kind=\"{kind}\",path=\"{path}\"}} {count}")?;
            }
        }
        Ok(())
    }

    fn write_states(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, help, value) in GAUGES {
            let name = format!("outlive_upstream_{name}");
            head(f, &name, "gauge", help)?;
            for upstream in &self.upstreams {
                writeln!(f, "{name}{{{}}} {}", upstream.label(), value(&upstream.status))?;
            }
        }
        let name = "outlive_upstream_state";
        head(f, name, "gauge", "State of each upstream: 1 for the current one.")?;
        for upstream in &self.upstreams {
            let (label, state) = (upstream.label(), upstream.status.state);
            writeln!(f, "{name}{{{label},state=\"{state}\"}} 1")?;
        }
        Ok(())
    }
}

/// Reads a gauge.
type Gauge = fn(&UpstreamStatus) -> usize;

/// Gauges without further labels.
const GAUGES: [(&str, &str, Gauge); 3] = [
    ("connections", "Open upstream connections.", |status| status.connections),
    ("processes", "Running processes of upstreams.", |status| status.processes),
    ("unaccepted_tools", "Tools whose definition is not accepted.", |status| {
        status.changed_tools.len()
    }),
];

/// Counters without further labels, in the order of [`Meter::counts`].
const COUNTERS: [(&str, &str); 6] = [
    ("bridged_calls", "Calls that became tasks while their upstream waits for input."),
    ("starts", "Opened upstream connections."),
    ("exits", "Upstream connections that ended unexpectedly, such as exited processes."),
    ("catalog_changes", "Changes of the lists of upstreams."),
    ("sent_bytes", "Bytes of requests to upstreams, without their envelopes."),
    ("received_bytes", "Bytes of results of upstreams, without their envelopes."),
];

impl fmt::Display for GatewayMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.upstreams.is_empty() {
            return Ok(());
        }
        self.write_calls(f)?;
        self.write_counts(f)?;
        self.write_states(f)
    }
}

fn head(f: &mut fmt::Formatter<'_>, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// Escapes a label value.
struct Label<'a>(&'a str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                char => write!(f, "{char}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::{InputKind, InputPath};

    #[test]
    fn text_has_each_metric_with_its_labels() {
        let meter = Meter::default();
        meter.call("re\"ad\n", CallOutcome::Failed);
        meter.time(Duration::from_millis(3), Duration::from_micros(90));
        meter.input(InputKind::Form, InputPath::Call);
        meter.exited();
        let status =
            UpstreamStatus { name: "files".to_owned(), processes: 2, ..Default::default() };
        let text = GatewayMetrics::new(vec![UpstreamMetrics::new(status, &meter)]).to_string();
        for line in [
            r#"outlive_upstream_calls_total{upstream="files",tool="re\"ad\n",outcome="failed"} 1"#,
            r#"outlive_upstream_call_seconds_bucket{upstream="files",le="0.002"} 0"#,
            r#"outlive_upstream_call_seconds_bucket{upstream="files",le="0.005"} 1"#,
            r#"outlive_upstream_added_seconds_sum{upstream="files"} 0.00009"#,
            r#"outlive_upstream_input_requests_total{upstream="files",kind="form",path="call"} 1"#,
            r#"outlive_upstream_exits_total{upstream="files"} 1"#,
            r#"outlive_upstream_starts_total{upstream="files"} 0"#,
            r#"outlive_upstream_processes{upstream="files"} 2"#,
            r#"outlive_upstream_state{upstream="files",state="idle"} 1"#,
        ] {
            assert!(text.lines().any(|known| known == line), "{line}: {text}");
        }
        assert_eq!(GatewayMetrics::new(Vec::new()).to_string(), "");
    }

    #[test]
    fn counters_have_the_names_of_the_meter() {
        let names = Meter::default().counts().map(|(name, _)| name);
        assert_eq!(names, COUNTERS.map(|(name, _)| name));
    }
}
