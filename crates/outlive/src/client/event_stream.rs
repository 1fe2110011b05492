//! The event stream of one request. Legacy servers let a client resume it after a disconnect.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use outlive_protocol::{EventIdMode, era::client};
use outlive_transport::{
    client::{TransportError, TransportErrorKind, http::HttpReply},
    sse_reader::SseEvent,
};
use tokio::time::Instant;

use super::{
    error::Error,
    link::{Connection, Link},
    relay::{OpenStream, PointCell},
};

pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Delay before a stream is resumed, if the server names none.
const RETRY: Duration = Duration::from_millis(500);

/// Silence after which a resumed stream is resumed again. Some servers send the missed events and
/// then nothing more: the result arrives with the next resumption.
const SILENCE: Duration = Duration::from_secs(5);

/// Delay between the end of a silent stream and its resumption. A server that has not seen the end
/// may reject a second reader.
const HANDOVER: Duration = Duration::from_millis(50);

/// The events of one request.
#[derive(Debug)]
pub(crate) struct EventStream {
    /// `None` until the stream is resumed.
    reply: Option<Box<HttpReply>>,
    /// ID of the last event.
    last: Option<HeaderValue>,
    /// Delay before a resumption that the server names.
    retry: Option<Duration>,
    /// Consecutive disconnects without a message.
    breaks: u32,
    /// When the next attempt to resume starts. Stored here, so that dropping the future of `next`
    /// does not lose an attempt.
    resuming: Option<Instant>,
    /// When a resumed stream counts as silent.
    silent_at: Option<Instant>,
    /// Where the position is reported.
    cell: Option<Arc<PointCell>>,
}

impl EventStream {
    pub(crate) fn new(reply: HttpReply) -> Self {
        Self { reply: Some(Box::new(reply)), ..Self::after(None) }
    }

    /// Returns a stream that starts with its resumption after an event.
    pub(crate) fn resumed(last: HeaderValue) -> Self {
        Self { resuming: Some(Instant::now()), ..Self::after(Some(last)) }
    }

    fn after(last: Option<HeaderValue>) -> Self {
        Self {
            reply: None,
            last,
            retry: None,
            breaks: 0,
            resuming: None,
            silent_at: None,
            cell: None,
        }
    }

    /// Reports the position from now on, if the stream can be resumed.
    pub(crate) fn report_to(&mut self, cell: &Arc<PointCell>, here: &Connection, request: u64) {
        if here.rules.event_ids == EventIdMode::None {
            return;
        }
        let Link::Http { session, .. } = &here.link else { return };
        let protocol_version = here.rules.version.as_str();
        let stream = OpenStream { protocol_version, session: session.clone(), request };
        cell.open(stream, self.last.clone());
        self.cell = Some(Arc::clone(cell));
    }

    /// Returns the data of the next event, or `None` if the stream has ended and cannot be resumed.
    /// Cancel safe.
    pub(crate) async fn next(&mut self, here: &Connection) -> Result<Option<Bytes>, Error> {
        loop {
            let Some(reply) = &mut self.reply else {
                match Box::pin(self.resume(here)).await? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            let event = tokio::select! {
                biased;
                event = reply.event() => event,
                () = until(self.silent_at) => {
                    // The server supports resumption, so this does not count as a failed attempt.
                    self.breaks = 0;
                    self.lose(HANDOVER);
                    continue;
                }
            };
            match event {
                Ok(Some(event)) => {
                    if let Some(data) = self.take(event) {
                        return Ok(Some(data));
                    }
                }
                Err(error) if matches!(error.kind(), TransportErrorKind::TooLarge(_)) => {
                    return Err(error.into());
                }
                Ok(None) | Err(_) => self.lose(self.pause()),
            }
        }
    }

    /// Returns the data of an event, unless it is empty.
    fn take(&mut self, event: SseEvent) -> Option<Bytes> {
        if let Some(id) = &event.id {
            self.last = HeaderValue::from_str(id).ok();
        }
        self.retry = event.retry.or(self.retry);
        if self.silent_at.is_some() {
            self.silent_at = Some(Instant::now() + SILENCE);
        }
        if let Some(cell) = &self.cell {
            cell.moved(self.last.as_ref());
        }
        if event.data.is_empty() {
            return None;
        }
        self.breaks = 0;
        Some(Bytes::from(event.data))
    }

    /// Closes the stream, which is resumed after a delay.
    fn lose(&mut self, pause: Duration) {
        self.reply = None;
        self.silent_at = None;
        self.resuming = Some(Instant::now() + pause);
    }

    /// Resumes the stream at its last event. Returns `false` if the server does not support it.
    async fn resume(&mut self, here: &Connection) -> Result<bool, Error> {
        let Link::Http { link, .. } = &here.link else { return Ok(false) };
        let Some(last) = self.last.clone().filter(|_| here.rules.event_ids != EventIdMode::None)
        else {
            return Ok(false);
        };
        loop {
            if self.breaks >= here.env.limits().max_stream_resumptions {
                return Ok(false);
            }
            until_or_now(self.resuming).await;
            let mut headers = here.headers();
            client::version_header(here.rules, &mut headers);
            headers.insert(LAST_EVENT, last.clone());
            match link.get(headers).await {
                Ok(taken) if taken.status.is_success() && taken.is_events() => {
                    self.reply = Some(Box::new(taken));
                    self.breaks += 1;
                    self.resuming = None;
                    self.silent_at = Some(Instant::now() + SILENCE);
                    return Ok(true);
                }
                Ok(taken) if taken.status == StatusCode::NOT_FOUND => {
                    let lost = TransportErrorKind::ConnectionLost;
                    return Err(TransportError::after_sending(lost).into());
                }
                // The server has not seen the end of the last reader.
                Ok(taken) if taken.status == StatusCode::CONFLICT => {}
                // The server does not support resumption.
                Ok(taken) if taken.status.is_client_error() => return Ok(false),
                Ok(_) | Err(_) => {}
            }
            self.breaks += 1;
            self.resuming = Some(Instant::now() + self.pause());
        }
    }

    /// Returns the delay before the next attempt to resume.
    fn pause(&self) -> Duration {
        self.retry.unwrap_or(RETRY * (1 << self.breaks.min(5)))
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn until_or_now(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}
