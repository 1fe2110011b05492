//! The control for tasks over HTTP: axum, serde_json and bare commits, without the protocol.
//!
//! A task is committed before its response, completed by a second commit in the background, and
//! polled by reading its row. Audit events go into the next commit.

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::ListenerExt,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    bare::{Bare, Reader, Write},
    place::{KIND, ORIGIN, Place, fresh_id, value},
};

/// Listens on a free port.
pub(super) async fn start(place: &str) -> Result<(u16, impl Sized)> {
    let place = Place::told(place);
    let bare = Bare::open(&place, 1).await?;
    let reader = Reader::start(place.file().context("the control stores tasks in a file")?)?;
    let router = Router::new()
        .route("/tasks", post(create))
        .route("/tasks/{id}", get(poll))
        .with_state(Arc::new(Shared { bare, reader }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    Ok((port, serving))
}

/// The principal of all tasks.
const PRINCIPAL: &str = "anonymous";

struct Shared {
    bare: Bare,
    reader: Reader,
}

impl Shared {
    async fn note(&self, task: &str, what: &'static str) -> Result<()> {
        let task = task.to_owned();
        self.bare.leave(Write::Event { task, principal: PRINCIPAL, what }).await
    }
}

#[derive(Deserialize, Serialize)]
struct Create {
    message: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_id: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
}

async fn create(State(shared): State<Arc<Shared>>, Json(create): Json<Create>) -> Response {
    answer(created(shared, create).await)
}

async fn created(shared: Arc<Shared>, create: Create) -> Result<Task> {
    let id = fresh_id();
    let row = Write::Create {
        id: id.clone(),
        principal: PRINCIPAL.to_owned(),
        kind: KIND.to_owned(),
        origin: ORIGIN.to_owned(),
        request: serde_json::to_string(&create)?,
    };
    shared.bare.commit(0, row).await?;
    let task = id.clone();
    tokio::spawn(async move {
        shared.note(&task, "created").await?;
        shared.note(&task, "begun").await?;
        shared.bare.commit(0, Write::End { task: task.clone(), outcome: value() }).await?;
        shared.note(&task, "completed").await
    });
    Ok(Task { task_id: id, status: "working", result: None })
}

async fn poll(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    answer(polled(&shared, id).await)
}

async fn polled(shared: &Shared, id: String) -> Result<Task> {
    let outcome = shared.reader.read(id.clone()).await?.context("unknown task")?;
    let result = outcome.map(RawValue::from_string).transpose()?;
    let status = if result.is_some() { "completed" } else { "working" };
    if result.is_some() {
        shared.note(&id, "retrieved").await?;
    }
    Ok(Task { task_id: id, status, result })
}

fn answer(task: Result<Task>) -> Response {
    match task {
        Ok(task) => Json(task).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
