//! The places of tasks during a measurement, and the content of tasks.

use std::{
    env, fmt, fs,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    str::FromStr,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use outlive_tasks::store::{NewTask, PostgresOptions, PostgresStore, SqliteStore, Store, TaskId};
use serde_json::value::RawValue;
use tokio::task::JoinSet;

/// The variable with the address of PostgreSQL.
const ADDRESS: &str = "OUTLIVE_TEST_POSTGRES";

/// The measured store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    /// Whether other processes work for the store, as a database does.
    pub(crate) fn has_helpers(self) -> bool {
        self == Self::Postgres
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        })
    }
}

impl FromStr for Kind {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            _ => bail!("unknown store `--store {name}`; use sqlite or postgres"),
        }
    }
}

/// A folder beside this program, which is more likely on a disk than a temporary folder. Deleted on
/// drop.
#[derive(Debug)]
pub(crate) struct Folder {
    kind: Kind,
    path: PathBuf,
}

impl Folder {
    pub(crate) fn make(kind: Kind) -> Result<Self> {
        let program = env::current_exe().context("could not find this program")?;
        let name = format!("outlive-bench-tasks-{}", std::process::id());
        let path = program.parent().context("the path of this program has no folder")?.join(name);
        fs::create_dir_all(&path)
            .with_context(|| format!("could not create {}", path.display()))?;
        Ok(Self { kind, path })
    }

    /// A new place with this name.
    pub(crate) fn place(&self, name: &str) -> Place {
        match self.kind {
            Kind::Sqlite => {
                Place(format!("sqlite:{}", self.path.join(name).with_extension("db").display()))
            }
            Kind::Postgres => {
                let name = name.replace('-', "_");
                Place(format!("postgres:bench_{}_{name}", std::process::id()))
            }
        }
    }
}

impl Folder {
    /// Deletes the stored data.
    pub(crate) fn clear(&self) -> Result<()> {
        match self.kind {
            Kind::Sqlite => Ok(()),
            Kind::Postgres => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(remove_schemas())
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A place as an argument: `sqlite:FILE`, `postgres:SCHEMA`, or `memory:COUNT` with that many ended
/// tasks.
#[derive(Clone, Debug)]
pub(crate) struct Place(String);

impl Place {
    pub(crate) fn told(place: &str) -> Self {
        Self(place.to_owned())
    }

    pub(crate) fn memory(count: u64) -> Self {
        Self(format!("memory:{count}"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.0.strip_prefix("sqlite:").map(Path::new)
    }

    pub(crate) fn schema(&self) -> Option<&str> {
        self.0.strip_prefix("postgres:")
    }

    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>> {
        if let Some(path) = self.file() {
            return Ok(Arc::new(SqliteStore::open(path)?));
        }
        let schema = self.schema().with_context(|| format!("unknown place `{}`", self.0))?;
        let options = PostgresOptions::new().with_schema(schema);
        let store = Box::pin(PostgresStore::connect_with(&url()?, options)).await?;
        Ok(Arc::new(store))
    }
}

/// The address of the measured PostgreSQL.
pub(crate) fn url() -> Result<String> {
    env::var(ADDRESS).with_context(|| {
        format!("{ADDRESS} is not set; `cargo xtask bench --store postgres` starts a database")
    })
}

/// Deletes the data in PostgreSQL.
async fn remove_schemas() -> Result<()> {
    let (client, connection) = tokio_postgres::connect(&url()?, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let ours = format!("bench_{}_", std::process::id());
    let found = client
        .query("SELECT nspname::text FROM pg_namespace WHERE starts_with(nspname, $1)", &[&ours])
        .await?;
    for row in found {
        let schema: String = row.get(0);
        client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await?;
    }
    Ok(())
}

/// A unique ID in the format of servers.
pub(crate) fn fresh_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static SALT: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    numbered_id(NEXT.fetch_add(1, Ordering::Relaxed) ^ *SALT)
}

/// An ID that is derived from a number and looks random.
pub(crate) fn numbered_id(number: u64) -> String {
    format!("{:016x}{:016x}", mixed(number), mixed(number ^ 0x5555_5555_5555_5555))
}

/// A pseudorandom number (splitmix64).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The kind of every task.
pub(crate) const KIND: &str = "deploy";
pub(crate) const ORIGIN: &str = "2026-07-28";

/// The request of every task, about 250 bytes.
pub(crate) fn request() -> String {
    REQUEST.get().to_owned()
}

static REQUEST: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    let text = "x".repeat(150);
    let arguments = serde_json::json!({ "region": "north", "text": text });
    raw(&serde_json::json!({ "name": "deploy", "arguments": arguments, "_meta": {} }).to_string())
});

/// Wraps JSON text.
fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("this is JSON")
}

/// A new task.
pub(crate) fn new_task(id: String, principal: String) -> NewTask {
    NewTask::new(TaskId::new(id), principal, KIND, ORIGIN, REQUEST.clone())
        .listed(false)
        .ttl(Some(Duration::from_secs(24 * 3600)))
        .max_ttl(Duration::from_secs(30 * 24 * 3600))
        .quota(100_000_000)
}

/// The value of a step, or a result.
pub(crate) fn value() -> String {
    VALUE.get().to_owned()
}

/// The same as raw JSON.
pub(crate) fn raw_value() -> Box<RawValue> {
    VALUE.clone()
}

static VALUE: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    let text = "the quick brown fox jumps over the lazy dog";
    raw(&format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#))
});

/// Number of concurrent operations while a store is filled.
const TOGETHER: usize = 512;

/// Runs an operation for each number below `count`, many at once.
pub(crate) async fn each_number<D>(
    store: &Arc<dyn Store>,
    count: u64,
    work: impl Fn(Arc<dyn Store>, u64) -> D + Copy + Send + 'static,
) -> Result<()>
where
    D: Future<Output = Result<()>> + Send,
{
    let next = Arc::new(AtomicU64::new(0));
    let mut all = JoinSet::new();
    for _ in 0..TOGETHER {
        let (store, next) = (Arc::clone(store), Arc::clone(&next));
        all.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(());
                }
                work(Arc::clone(&store), number).await?;
            }
        });
    }
    while let Some(done) = all.join_next().await {
        done??;
    }
    Ok(())
}
