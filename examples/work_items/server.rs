//! A bug board with rules: a resolved bug needs a resolution, and a duplicate needs an original. If
//! the caller omits a required field, the tool requests it from the user.
//!
//! Run with `cargo run -p outlive-examples --bin work-items`.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use outlive::{
    Form,
    server::{Durable, Error, Json, Result, Server, State, durable::ElicitOutcome},
    tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Update {
    work_item_id: u32,
    fields: Fields,
}

#[derive(Deserialize, JsonSchema)]
struct Fields {
    #[serde(rename = "System.State")]
    state: Stage,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Stage {
    Active,
    Resolved,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Resolving {
    /// Resolution of the bug.
    resolution: Resolution,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Form)]
enum Resolution {
    Fixed,
    #[serde(rename = "Won't Fix")]
    WontFix,
    Duplicate,
    #[serde(rename = "By Design")]
    ByDesign,
}

#[derive(Deserialize, JsonSchema, Form)]
#[serde(rename_all = "camelCase")]
struct Original {
    /// Number of the original bug.
    duplicate_of_id: u32,
}

/// Changes the state of a bug. Requests the fields that the rules of the board require.
#[tool]
async fn update_work_item(cx: Durable, board: State<Board>, args: Update) -> Result<String> {
    let Update { work_item_id: id, fields: Fields { state } } = args;
    let before = board.get(id)?.status.state;
    let mut status = Status { state, resolution: None, duplicate_of: None };

    if state == Stage::Resolved {
        let message = format!("Resolving Bug #{id} requires a resolution. How was it resolved?");
        let reply = cx.elicit("resolution", message).outcome().await?;
        let ElicitOutcome::Accepted(Resolving { resolution }) = reply else {
            return Ok(format!("Bug #{id} stays {before}: no resolution was given."));
        };
        status.resolution = Some(resolution);
    }
    if status.resolution == Some(Resolution::Duplicate) {
        let message = "Since this is a duplicate, which bug is the original?";
        let Original { duplicate_of_id } = cx.elicit("duplicate_of", message).await?;
        status.duplicate_of = Some(duplicate_of_id);
    }

    // The code above runs again in every round, so only this step may write.
    cx.step("update", async || board.change(id, status)).await?;
    Ok(match status {
        Status { resolution: Some(resolution), duplicate_of: Some(original), .. } => {
            format!("Bug #{id} resolved as {resolution} of Bug #{original}.")
        }
        Status { resolution: Some(resolution), .. } => {
            format!("Bug #{id} resolved as {resolution}.")
        }
        Status { state, .. } => format!("Bug #{id} is {state}."),
    })
}

/// Shows a bug.
#[tool(read_only)]
async fn get_work_item(
    board: State<Board>,
    #[serde(rename = "workItemId")] id: u32,
) -> Result<Json<WorkItem>> {
    board.get(id).map(Json)
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Status {
    state: Stage,
    resolution: Option<Resolution>,
    duplicate_of: Option<u32>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
struct WorkItem {
    #[serde(flatten)]
    status: Status,
    /// Number of writes.
    rev: u32,
}

struct Board(Mutex<BTreeMap<u32, WorkItem>>);

impl Board {
    fn get(&self, id: u32) -> Result<WorkItem> {
        self.items().get(&id).copied().ok_or_else(|| unknown(id))
    }

    fn change(&self, id: u32, status: Status) -> Result<()> {
        let mut items = self.items();
        if let Some(original) = status.duplicate_of.filter(|original| !items.contains_key(original))
        {
            return Err(unknown(original));
        }
        let item = items.get_mut(&id).ok_or_else(|| unknown(id))?;
        *item = WorkItem { status, rev: item.rev + 1 };
        Ok(())
    }

    fn items(&self) -> MutexGuard<'_, BTreeMap<u32, WorkItem>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown(id: u32) -> Error {
    Error::new(format!("Bug #{id} is not on this board"))
}

// Displays the wire names.
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let status = Status { state: Stage::Active, resolution: None, duplicate_of: None };
    let items = [4301, 4522, 4523].map(|id| (id, WorkItem { status, rev: 1 }));
    let server = Server::builder("work-items", "1.0.0")
        .state(Board(Mutex::new(items.into())))
        .tool(update_work_item::tool())
        .tool(get_work_item::tool())
        .build()?;
    outlive_examples::serve(server).await
}
