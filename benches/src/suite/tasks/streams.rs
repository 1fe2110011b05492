//! Partial results of tasks: one stream without pauses, and a thousand slow streams.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    runtime::Runtime,
    task::JoinSet,
};

use super::{Bench, rate};
use crate::{
    child::Server,
    machine::{allow_open_files, pin, spread},
    messages::http_request,
    report::{Bar, Report},
    slices::{Slice, Target},
    suite::http::{open_session, session_headers},
};

/// Segments of the stream without pauses.
const SEGMENTS: u64 = 100_000;

/// Number of slow streams, and how many share a session.
const STREAMS: usize = 1_000;
const IN_A_SESSION: usize = 100;

/// Pause after each segment of a slow stream.
const PAUSE: Duration = Duration::from_millis(100);

/// One tool that emits without pauses to one reader, beside a server that stores nothing and writes
/// every event separately.
pub(super) fn throughput(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let (control, control_address) = Server::listening("control-streams", bench.cores)?;
    let (mut ours, address) = start(bench)?;
    pin(bench.cores.generator)?;
    let runtime = runtime()?;
    let commits = ours.told("commits")?;
    let begun = Instant::now();
    let read = runtime.block_on(read(address, ours_request(address, SEGMENTS, 0)?))?;
    let took = begun.elapsed();
    ensure!(read.segments == SEGMENTS, "{} of {SEGMENTS} segments arrived", read.segments);
    let commits = ours.told("commits")? - commits;
    let mut targets: [Box<dyn Target>; 2] = [
        Box::new(Streams {
            name: "bare SSE, one write per event",
            pid: control.pid(),
            runtime: Arc::clone(&runtime),
            request: Box::new(move || {
                let request = http_request("GET", &format!("/{SEGMENTS}"), &[], "");
                Ok((control_address, request))
            }),
        }),
        Box::new(Streams {
            name: "Outlive",
            pid: ours.pid(),
            runtime,
            request: Box::new(move || Ok((address, ours_request(address, SEGMENTS, 0)?))),
        }),
    ];
    let series = bench.take(&mut targets)?;
    spread(bench.cores)?;
    let [control, outlive] = &series[..] else { return Ok(()) };
    let ratio = outlive.ratio(control, rate);
    report.title(&format!("One stream of {SEGMENTS} segments, end to end"));
    report.say(format!(
        "the first: {:.0} segments/s in {} messages, {commits} commits for {SEGMENTS} segments",
        SEGMENTS as f64 / took.as_secs_f64(),
        read.messages,
    ));
    report.ratio("Outlive / bare SSE (segments/s)", ratio);
    report.ratio("Outlive / bare SSE (CPU)", outlive.ratio(control, |slice: &Slice| slice.cpu));
    report.series(&series);
    let share = Some(ratio.spread.median * 100.0);
    report.bar(Bar::at_least("streamed segments/s relative to bare SSE", share, 25.0, "%"));
    Ok(())
}

/// Many concurrent streams with a segment at intervals.
pub(super) fn many(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let files = STREAMS as u64 + 256;
    // Before the start of the server, which inherits the limit.
    ensure!(allow_open_files(files) >= files, "fewer than {files} files may be open");
    let (mut ours, address) = start(bench)?;
    pin(bench.cores.generator)?;
    let time = if bench.plan.held < STREAMS * 2 { 10 } else { 60 };
    let count = time * 1_000 / PAUSE.as_millis() as u64;
    let sessions = (0..STREAMS / IN_A_SESSION).map(|_| open_session(address));
    let sessions = sessions.collect::<Result<Vec<_>>>()?;
    let commits = ours.told("commits")?;
    let mut delays = runtime()?.block_on(async {
        let mut all = JoinSet::new();
        for stream in 0..STREAMS {
            let session = &sessions[stream / IN_A_SESSION];
            let request = call(session, stream, count, PAUSE.as_millis());
            all.spawn(read(address, request));
        }
        let mut delays = Vec::new();
        while let Some(read) = all.join_next().await {
            let read = read??;
            ensure!(read.segments == count, "{} of {count} segments arrived", read.segments);
            delays.extend(read.delays);
        }
        Ok(delays)
    })?;
    let commits = ours.told("commits")? - commits;
    spread(bench.cores)?;
    delays.sort_unstable();
    let percentile = |percent: usize| delays.get(delays.len() * percent / 100).copied();
    let millis = |delay: Option<u64>| delay.map(|delay| delay as f64 / 1_000.0);
    report.title(&format!(
        "{STREAMS} streams with a segment every {} ms, for {time} s",
        PAUSE.as_millis()
    ));
    report.say(format!(
        "{} segments, none missing, in {commits} commits; delay p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        delays.len(),
        millis(percentile(50)).unwrap_or_default(),
        millis(percentile(99)).unwrap_or_default(),
        millis(delays.last().copied()).unwrap_or_default(),
    ));
    report.bar(Bar::at_most("p99 delay of a segment", millis(percentile(99)), 250.0, " ms"));
    Ok(())
}

fn start(bench: &Bench<'_>) -> Result<(Server, SocketAddr)> {
    let place = bench.folder.place("streams");
    Server::keeping("outlive-streams", &place, bench.cores)
}

fn runtime() -> Result<Arc<Runtime>> {
    Ok(Arc::new(tokio::runtime::Builder::new_current_thread().enable_all().build()?))
}

fn ours_request(address: SocketAddr, count: u64, pause: u128) -> Result<Vec<u8>> {
    Ok(call(&open_session(address)?, 1, count, pause))
}

/// A call with an ID that is unused in its session.
fn call(session: &str, id: usize, count: u64, pause: u128) -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"lines","arguments":{{"count":{count},"pause":{pause}}},"task":{{"responseModes":["streaming"]}}}}}}"#
    );
    http_request("POST", "/mcp", &session_headers(session), &body)
}

/// The results of a reader.
#[derive(Default)]
struct Read {
    segments: u64,
    messages: u64,
    /// Delays in microseconds, of segments that contain their time.
    delays: Vec<u64>,
}

/// Sends a request and reads its stream to the end.
async fn read(address: SocketAddr, request: Vec<u8>) -> Result<Read> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    stream.write_all(&request).await?;
    let mut stream = BufReader::with_capacity(64 << 10, stream);
    let mut line = Vec::new();
    // The head, up to its empty line.
    while line != b"\r\n" {
        line.clear();
        ensure!(stream.read_until(b'\n', &mut line).await? > 0, "the server closed the connection");
    }
    let (mut seen, mut rest) = (Read::default(), Vec::new());
    loop {
        line.clear();
        stream.read_until(b'\n', &mut line).await?;
        let size = str::from_utf8(line.trim_ascii()).ok();
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.context("not a stream of chunks")?;
        let start = rest.len();
        rest.resize(start + size + 2, 0);
        stream.read_exact(&mut rest[start..]).await?;
        rest.truncate(start + size);
        if size == 0 {
            return Ok(seen);
        }
        // All events of one read arrived at the same time.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let mut whole = 0;
        for end in memmem::find_iter(&rest, b"\n\n") {
            seen.take(&rest[whole..end], now as u64)?;
            whole = end + 2;
        }
        rest.drain(..whole);
    }
}

impl Read {
    /// Processes an event: each of its segments must be the next one.
    fn take(&mut self, event: &[u8], now: u64) -> Result<()> {
        const NUMBER: &[u8] = br#"{"seqNr":"#;
        const TEXT: &[u8] = br#""text":""#;
        self.messages += 1;
        for at in memmem::find_iter(event, NUMBER) {
            let rest = &event[at + NUMBER.len()..];
            self.segments += 1;
            if number(rest) != Some(self.segments) {
                bail!("not segment {}: {}", self.segments, String::from_utf8_lossy(rest));
            }
            let text = memmem::find(rest, TEXT).map(|at| &rest[at + TEXT.len()..]);
            if let Some(emitted) = text.and_then(number) {
                self.delays.push(now.saturating_sub(emitted));
            }
        }
        Ok(())
    }
}

/// The number at the start of a text.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

/// Creates the address and a new request.
type Ask = Box<dyn Fn() -> Result<(SocketAddr, Vec<u8>)>>;

struct Streams {
    name: &'static str,
    pid: u32,
    runtime: Arc<Runtime>,
    request: Ask,
}

impl Target for Streams {
    fn name(&self) -> &str {
        self.name
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn load(&mut self, time: Duration) -> Result<u64> {
        let begun = Instant::now();
        let mut segments = 0;
        while segments == 0 || begun.elapsed() < time {
            let (address, request) = (self.request)()?;
            let read = self.runtime.block_on(read(address, request))?;
            ensure!(read.segments == SEGMENTS, "{} of {SEGMENTS} arrived", read.segments);
            segments += read.segments;
        }
        Ok(segments)
    }
}
