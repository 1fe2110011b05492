//! The limits in `[server]`: per caller, and for all callers together.

use std::time::Duration;

use outlive::server::{Limits, http::HttpConfig};

use super::{
    reader::{Result as Read, Section},
    units::{Bytes, Span},
};

/// Limits of the server. An absent key has the default of the library.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerLimits {
    connections: Option<u32>,
    connections_per_address: Option<u32>,
    sessions: Option<u32>,
    sessions_per_caller: Option<u32>,
    waiting_calls_per_caller: Option<u32>,
    request_bytes: Option<Bytes>,
    request_bytes_per_caller: Option<Bytes>,
    unread_bytes: Option<Bytes>,
    unread_bytes_per_caller: Option<Bytes>,
    event_bytes: Option<Bytes>,
    stream_bytes: Option<Bytes>,
    handshake_bytes: Option<Bytes>,
    head_timeout: Option<Span>,
    body_timeout: Option<Span>,
    write_timeout: Option<Span>,
}

impl ServerLimits {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        Ok(Self {
            connections: section.read("max_connections")?,
            connections_per_address: section.read("max_connections_per_address")?,
            sessions: section.read("max_sessions")?,
            sessions_per_caller: section.read("max_sessions_per_caller")?,
            waiting_calls_per_caller: section.read("max_waiting_calls_per_caller")?,
            request_bytes: section.read("max_request_bytes")?,
            request_bytes_per_caller: section.read("max_request_bytes_per_caller")?,
            unread_bytes: section.read("max_unread_bytes")?,
            unread_bytes_per_caller: section.read("max_unread_bytes_per_caller")?,
            event_bytes: section.read("max_event_bytes")?,
            stream_bytes: section.read("max_stream_bytes")?,
            handshake_bytes: section.read("max_handshake_bytes")?,
            head_timeout: section.read("head_timeout")?,
            body_timeout: section.read("body_timeout")?,
            write_timeout: section.read("write_timeout")?,
        })
    }

    /// Applies the limits of the HTTP server.
    pub(crate) fn http(&self, http: HttpConfig) -> HttpConfig {
        let http = set(http, self.connections, number, HttpConfig::max_connections);
        let per_address = HttpConfig::max_connections_per_address;
        let http = set(http, self.connections_per_address, number, per_address);
        let http = set(http, self.sessions, number, HttpConfig::max_sessions);
        let http = set(http, self.sessions_per_caller, number, HttpConfig::max_sessions_per_caller);
        let waiting = HttpConfig::max_waiting_calls_per_caller;
        let http = set(http, self.waiting_calls_per_caller, number, waiting);
        let http = set(http, self.request_bytes, bytes, HttpConfig::max_request_bytes);
        let requests = HttpConfig::max_request_bytes_per_caller;
        let http = set(http, self.request_bytes_per_caller, bytes, requests);
        let http = set(http, self.unread_bytes, bytes, HttpConfig::max_unread_bytes);
        let unread = HttpConfig::max_unread_bytes_per_caller;
        let http = set(http, self.unread_bytes_per_caller, bytes, unread);
        let http = set(http, self.event_bytes, bytes, HttpConfig::max_event_bytes);
        let http = set(http, self.head_timeout, time, HttpConfig::head_timeout);
        let http = set(http, self.body_timeout, time, HttpConfig::body_timeout);
        set(http, self.write_timeout, time, HttpConfig::write_timeout)
    }

    /// Applies the limits of the protocol.
    pub(crate) fn protocol(&self, limits: &mut Limits) {
        if let Some(bytes) = self.stream_bytes.map(bytes) {
            limits.max_stream_bytes = bytes;
        }
        if let Some(bytes) = self.handshake_bytes.map(bytes) {
            limits.max_handshake_bytes = bytes;
        }
    }
}

/// Calls a setter if there is a value.
fn set<T, U>(
    http: HttpConfig,
    value: Option<T>,
    read: fn(T) -> U,
    setter: fn(HttpConfig, U) -> HttpConfig,
) -> HttpConfig {
    match value {
        Some(value) => setter(http, read(value)),
        None => http,
    }
}

fn number(number: u32) -> usize {
    number as usize
}

fn bytes(Bytes(bytes): Bytes) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn time(Span(time): Span) -> Duration {
    time
}

#[cfg(test)]
mod tests {
    use outlive::server::{Limits, http::HttpConfig};

    use super::super::file::parse;

    #[test]
    fn limits_in_file_are_applied_to_server() {
        let file = "[server]\nmax_connections = 11\nmax_connections_per_address = 12\nmax_sessions = 13\n\
             max_sessions_per_caller = 14\nmax_waiting_calls_per_caller = 15\nmax_request_bytes = \"16 B\"\n\
             max_request_bytes_per_caller = \"17 B\"\nmax_unread_bytes = \"18 B\"\n\
             max_unread_bytes_per_caller = \"19 B\"\nmax_event_bytes = \"20 B\"\nmax_stream_bytes = \"21 B\"\n\
             max_handshake_bytes = \"22 B\"\nhead_timeout = \"23s\"\nbody_timeout = \"24s\"\nwrite_timeout = \"25s\"\n\
             [tools.t]\ndescription = \"d\"\ncommand = [\"c\"]\n";
        let limits = parse(file).expect("is a file").server.limits;
        let shown = format!("{:?}", limits.http(HttpConfig::new()));
        for set in [
            "max_connections: 11",
            "max_connections_per_address: 12",
            "max_sessions: 13",
            "max_sessions_per_caller: 14",
            "max_waiting_calls_per_caller: 15",
            "max_request_bytes: 16",
            "max_request_bytes_per_caller: 17",
            "max_unread_bytes: 18",
            "max_unread_bytes_per_caller: 19",
            "max_event_bytes: 20",
            "head_timeout: 23s",
            "body_timeout: 24s",
            "write_timeout: 25s",
        ] {
            assert!(shown.contains(&format!("{set},")), "{set} in {shown}");
        }
        let mut protocol = Limits::default();
        limits.protocol(&mut protocol);
        assert_eq!((protocol.max_stream_bytes, protocol.max_handshake_bytes), (21, 22));
    }
}
