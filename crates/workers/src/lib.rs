//! Tool workers: processes that run durable tools in Python, TypeScript or any other language.
//!
//! An author writes a function with steps, input requests and timers in that language. A process of
//! the tool worker runs the function, and the server keeps its journal. After a crash of any process,
//! the function resumes from its last recorded step. The processes read and write lines of JSON on
//! their standard input and output.
//!
//! ```no_run
//! use outlive::server::{Server, tasks::TaskConfig};
//! use outlive_workers::{ToolNames, ToolWorker, WorkerSettings};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let shop = WorkerSettings::new("shop", ["python3", "tools.py"]);
//! let shop = ToolWorker::start(shop, ToolNames::new()).await?;
//! let builder = Server::builder("shop", "1.0.0").tasks(TaskConfig::in_memory());
//! let server = shop.attach(builder).build()?;
//! shop.serve(&server);
//! server.serve_stdio().await?;
//! shop.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//!
//! - `worker`: the public API; `settings`, `policy`, `names`, `error`, `counters`: its values.
//! - `line`: the messages; `key`: journal keys in messages; `nonce`, `lines`, `output`: the streams of
//!   a process.
//! - `process`: one process and its calls; `mailbox`, `outbox`: messages from and to it; `spawn`: its
//!   start and end.
//! - `pool`: the processes of a tool worker; `seat`: the place of a call; `backoff`, `losses`.
//! - `call`: the handler of a tool; `route`: its tool; `run`: one run in a process; `operations`, `requests`, `input`,
//!   `rejection`, `result`, `clock`: its parts; `cleanup`: the cleanup.
//! - `tools`: declared entry to tool; `reload`, `watch`: new code.

mod backoff;
mod call;
mod cleanup;
mod clock;
mod counters;
mod error;
mod input;
mod key;
mod line;
mod lines;
mod losses;
mod mailbox;
mod names;
mod nonce;
mod operations;
mod outbox;
mod output;
mod policy;
mod pool;
mod process;
mod rejection;
mod reload;
mod requests;
mod result;
mod route;
mod run;
mod seat;
mod settings;
mod spawn;
mod tools;
mod watch;
mod worker;

pub use counters::WorkerMetrics;
pub use error::WorkerError;
pub use names::ToolNames;
pub use policy::ToolPolicy;
pub use reload::ToolChanges;
pub use settings::WorkerSettings;
pub use worker::ToolWorker;
