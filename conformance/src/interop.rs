//! Tools with which third-party clients test cancellation.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use outlive::server::{Cx, ServerBuilder, Tool};

/// Number of waiting calls, and of cancelled ones.
#[derive(Debug, Default)]
struct Held {
    running: AtomicUsize,
    cancelled: AtomicUsize,
}

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    let held = Arc::new(Held::default());
    let holding = Arc::clone(&held);
    builder
        .tool(
            Tool::new("hold", move |cx: Cx| hold(cx, Arc::clone(&holding)))
                .description("Waits until it is cancelled"),
        )
        .tool(
            Tool::new("held", move || says(Arc::clone(&held)))
                .description("Returns the number of waiting and of cancelled calls"),
        )
}

/// Updates the counters when the call ends, also when it is dropped.
struct Waiting(Arc<Held>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
        self.0.cancelled.fetch_add(1, Relaxed);
    }
}

async fn hold(cx: Cx, held: Arc<Held>) -> &'static str {
    held.running.fetch_add(1, Relaxed);
    let _waiting = Waiting(held);
    cx.cancelled().await;
    "held"
}

async fn says(held: Arc<Held>) -> String {
    let (running, cancelled) = (held.running.load(Relaxed), held.cancelled.load(Relaxed));
    format!("running: {running}, cancelled: {cancelled}")
}
