//! Calls that become tasks: polling, input, cancellation, saving and resuming.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    client::{
        Client, ClientBuilder, ClientError, Error, ServerErrorKind,
        input::{InputCallbacks, InputOrigin, InputResponse},
        request::result_text,
        saved::{CallStage, CallStore, FileCallStore, SavedCall},
        tasks::TaskEvent,
    },
    server::{
        Durable, Result, Server,
        tasks::{TaskConfig, TaskPolicy},
    },
    tool,
    wire::Version,
};
use serde_json::json;

use super::kit::{Name, Place, Wire, builder, builder_of_server};

/// The transports and versions that have tasks.
const DIALECTS: [(Wire, Version); 4] = [
    (Wire::Memory, Version::V2026_07_28),
    (Wire::Memory, Version::V2025_11_25),
    (Wire::Http, Version::V2026_07_28),
    (Wire::Http, Version::V2025_11_25),
];

/// Elicits twice, with a step in between.
#[tool]
async fn order(cx: Durable) -> Result<String> {
    let who: Name = cx.elicit("who", "Who are you?").await?;
    let made: String = cx.step("make", async || Ok(format!("a hat for {}", who.name))).await?;
    let again: Name = cx.elicit("sure", "Are you sure?").await?;
    Ok(format!("{made} ({})", again.name))
}

/// Sleeps until the task is cancelled.
#[tool]
async fn forever(cx: Durable) -> Result<String> {
    cx.sleep("long", Duration::from_secs(3600)).await?;
    Ok("over".to_owned())
}

fn server() -> Server {
    builder_of_server()
        .tool(order::tool().task(TaskPolicy::Always))
        .tool(forever::tool().task(TaskPolicy::Always))
        .idempotency_keys(true)
        .tasks(
            TaskConfig::in_memory()
                .poll_interval(Duration::from_millis(20))
                .engine(|engine| engine.cancel_grace = Duration::from_millis(10)),
        )
        .build()
        .unwrap()
}

/// A client whose input handler responds `Ada` and records the origin of each input request.
fn answering(asked: &Arc<Mutex<Vec<InputOrigin>>>) -> ClientBuilder {
    let asked = Arc::clone(asked);
    let answers = InputCallbacks::new().form(move |question| {
        asked.lock().unwrap().push(question.origin);
        async { InputResponse::accept(json!({"name": "Ada"})) }
    });
    builder()
        .input_handler(answers)
        .limits(|limits| limits.min_poll_interval = Duration::from_millis(5))
}

// T1C-14, T2C-24, T2C-02, T2C-10, T1C-05
#[tokio::test]
async fn call_that_becomes_task_responds_to_input_and_completes() {
    for (wire, version) in DIALECTS {
        let asked = Arc::default();
        let place = Place::of(&server(), wire).await;
        let client = place.connect(answering(&asked), Some(version)).await;
        let result = client.call_tool("order", json!({})).await.unwrap();
        assert_eq!(result_text(&result), "a hat for Ada (Ada)", "{wire:?} {version}");
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 2, "{asked:?}");
        // The input handler sees that the input request comes from a task.
        for origin in asked.iter() {
            assert!(
                matches!(origin, InputOrigin::Task { .. } | InputOrigin::Request { task: Some(_) }),
                "{origin:?}"
            );
        }
    }
}

// The example of the section "Tasks" of docs/client.md.
#[tokio::test]
async fn example_of_client_guide_responds_and_resumes() {
    for wire in [Wire::Memory, Wire::Http] {
        let version = Version::V2026_07_28;
        let place = Place::of(&server(), wire).await;
        let declines = InputCallbacks::new().form(|_question| async { InputResponse::Decline });
        let client = place.connect(builder().input_handler(declines), Some(version)).await;
        let mut handle = client.start_tool("order", json!({})).await.unwrap();
        let mut events = handle.events();
        let (mut asked, mut done) = (0, None);
        while let Some(event) = events.next().await {
            match event.unwrap() {
                TaskEvent::Input(question) => {
                    asked += 1;
                    let answer = InputResponse::accept(json!({"name": "Ada"}));
                    events.respond(&question, answer).await.unwrap();
                }
                TaskEvent::Done(result) => done = Some(result_text(&result)),
                _ => {}
            }
        }
        assert_eq!((asked, done.as_deref()), (2, Some("a hat for Ada (Ada)")), "{version}");
        let saved: SavedCall = handle.to_saved().await;
        let mut again = client.resume(saved).await.unwrap();
        assert_eq!(result_text(&again.wait().await.unwrap()), "a hat for Ada (Ada)");
    }
}

// T2C-22, T1C-11, T2C-17
#[tokio::test]
async fn cancelled_task_fails_as_cancelled() {
    for (wire, version) in DIALECTS {
        let place = Place::of(&server(), wire).await;
        let client = place.connect(answering(&Arc::default()), Some(version)).await;
        let mut handle = client.start_tool("forever", json!({})).await.unwrap();
        assert!(handle.task_id().is_some());
        handle.cancel().await.unwrap();
        let over = handle.wait().await.unwrap_err();
        assert_eq!(over.kind(), Some(ServerErrorKind::TaskCancelled), "{wire:?} {version} {over}");
        // A second wait returns the same error.
        let over = handle.wait().await.unwrap_err();
        assert!(matches!(over, Error::Server(_)), "{over}");
    }
}

// T2C-18
#[tokio::test]
async fn dropped_handle_cancels_task_only_if_configured() {
    for (wire, version) in DIALECTS {
        let place = Place::of(&server(), wire).await;
        let client = place.connect(answering(&Arc::default()), Some(version)).await;
        let handle = client.start_tool("forever", json!({})).await.unwrap();
        let saved = handle.to_saved().await;
        drop(handle);
        let mut handle = client.resume(saved).await.unwrap();
        assert!(matches!(next(&mut handle).await, TaskEvent::Status(_)));
        handle.set_cancel_on_drop(true);
        let saved = handle.to_saved().await;
        drop(handle);
        let mut handle = client.resume(saved).await.unwrap();
        let over = handle.wait().await.unwrap_err();
        assert_eq!(over.kind(), Some(ServerErrorKind::TaskCancelled), "{wire:?} {version}");
    }
}

async fn next(handle: &mut outlive::client::tasks::TaskHandle) -> TaskEvent {
    handle.events().next().await.unwrap().unwrap()
}

// T2C-08, T2C-12, K-44
#[tokio::test]
async fn saved_task_resumes_in_another_client_without_repeating_input() {
    let (wire, version) = (Wire::Http, Version::V2026_07_28);
    let asked = Arc::default();
    let place = Place::of(&server(), wire).await;
    let first = place.connect(answering(&asked), Some(version)).await;
    let mut handle = first.start_tool("order", json!({})).await.unwrap();
    // The test responds to the first input request itself.
    let mut events = handle.events();
    let question = loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Input(question) => break question,
            TaskEvent::Done(done) => panic!("{done:?}"),
            _ => {}
        }
    };
    assert_eq!(question.key.as_deref(), Some("who"));
    events.respond(&question, InputResponse::accept(json!({"name": "Grace"}))).await.unwrap();
    let text = serde_json::to_string(&handle.to_saved().await).unwrap();
    drop((handle, first));
    let saved: SavedCall = serde_json::from_str(&text).unwrap();
    assert!(matches!(saved.stage, CallStage::Task(_)));
    let second = place.connect(answering(&asked), None).await;
    let mut handle = second.resume(saved.clone()).await.unwrap();
    assert_eq!(result_text(&handle.wait().await.unwrap()), "a hat for Grace (Ada)");
    assert_eq!(asked.lock().unwrap().len(), 1);
    // A client of another account cannot resume the call.
    let elsewhere = place.connect(answering(&asked).account("bob"), None).await;
    let refused = elsewhere.resume(saved).await.unwrap_err();
    assert!(matches!(refused, Error::Client(ClientError::WrongAccount(_))), "{refused}");
}

// T2-04, T2C-01
#[tokio::test]
async fn inline_call_of_task_only_tool_fails() {
    for (wire, version) in DIALECTS {
        let place = Place::of(&server(), wire).await;
        let client = place.connect(answering(&Arc::default()), Some(version)).await;
        let refused = client.call_tool("forever", json!({})).inline().await.unwrap_err();
        assert!(matches!(refused, Error::Server(_)), "{wire:?} {version} {refused}");
    }
}

/// A call store that fails at its n-th write.
struct Stops {
    inner: FileCallStore,
    writes: AtomicUsize,
    at: usize,
}

impl CallStore for Stops {
    fn save(&self, call: &SavedCall) -> std::io::Result<()> {
        self.inner.save(call)?;
        match self.writes.fetch_add(1, Ordering::SeqCst) {
            count if count + 1 == self.at => Err(std::io::Error::other("stopped here")),
            _ => Ok(()),
        }
    }

    fn delete(&self, id: &str) -> std::io::Result<()> {
        self.inner.delete(id)
    }

    fn load(&self) -> std::io::Result<Vec<SavedCall>> {
        self.inner.load()
    }
}

// K-43, K-44, K-45
#[tokio::test]
async fn call_interrupted_after_any_write_is_finished_by_next_process() {
    let folder = std::env::temp_dir().join(format!("outlive-notes-{}", std::process::id()));
    let place = Place::of(&server(), Wire::Memory).await;
    let mut stops = 0;
    for at in 1.. {
        let folder = folder.join(at.to_string());
        let asked = Arc::default();
        let notebook = |at| Stops {
            inner: FileCallStore::open(&folder).unwrap(),
            writes: AtomicUsize::new(0),
            at,
        };
        let client = |at| answering(&asked).call_store(notebook(at));
        let first = place.connect(client(at), Some(Version::V2026_07_28)).await;
        match first.call_tool("order", json!({})).await {
            Ok(result) => {
                assert_eq!(result_text(&result), "a hat for Ada (Ada)");
                assert!(first.saved_calls().await.unwrap().is_empty());
                break;
            }
            Err(Error::Client(ClientError::CallStore(_))) => stops += 1,
            Err(error) => panic!("{error}"),
        }
        drop(first);
        let second: Client = place.connect(client(usize::MAX), Some(Version::V2026_07_28)).await;
        let saved = second.saved_calls().await.unwrap();
        assert_eq!(saved.len(), 1, "after {at}");
        let mut handle = second.resume(saved[0].clone()).await.unwrap();
        assert_eq!(result_text(&handle.wait().await.unwrap()), "a hat for Ada (Ada)", "after {at}");
        assert_eq!(asked.lock().unwrap().len(), 2, "each input request is shown once, after {at}");
        handle.delete_saved().await.unwrap();
        assert!(second.saved_calls().await.unwrap().is_empty());
    }
    // The writes are: the call, its task, two input responses before and after sending, and the
    // result.
    assert_eq!(stops, 7);
    std::fs::remove_dir_all(folder).unwrap();
}

// K-43
#[tokio::test]
async fn call_with_own_idempotency_key_keeps_it_in_next_process() {
    let folder = std::env::temp_dir().join(format!("outlive-own-key-{}", std::process::id()));
    let place = Place::of(&server(), Wire::Memory).await;
    let asked = Arc::default();
    let client = |at| {
        let inner = FileCallStore::open(&folder).unwrap();
        let notebook = Stops { inner, writes: AtomicUsize::new(0), at };
        answering(&asked).idempotency_keys(true).call_store(notebook)
    };
    let first = place.connect(client(1), Some(Version::V2026_07_28)).await;
    let stopped = first.call_tool("order", json!({})).idempotency_key("mine").await;
    assert!(matches!(stopped, Err(Error::Client(ClientError::CallStore(_)))));
    let second = place.connect(client(usize::MAX), Some(Version::V2026_07_28)).await;
    let saved = second.saved_calls().await.unwrap().remove(0);
    let mut handle = second.resume(saved).await.unwrap();
    assert_eq!(result_text(&handle.wait().await.unwrap()), "a hat for Ada (Ada)");
    // The same key names the same call, so the user is not asked again.
    let again = second.call_tool("order", json!({})).idempotency_key("mine").await.unwrap();
    assert_eq!(result_text(&again), "a hat for Ada (Ada)");
    assert_eq!(asked.lock().unwrap().len(), 2);
    std::fs::remove_dir_all(folder).unwrap();
}

// K-45
#[tokio::test]
async fn saved_call_without_idempotency_key_fails_as_maybe_executed() {
    let folder = std::env::temp_dir().join(format!("outlive-maybe-{}", std::process::id()));
    let place = Place::of(&server(), Wire::Memory).await;
    let notebook = FileCallStore::open(&folder).unwrap();
    let builder = answering(&Arc::default()).idempotency_keys(false).call_store(notebook);
    let client = place.connect(builder, None).await;
    // The state that a process leaves if it is killed before the response.
    let calling = tokio::spawn(client.call_tool("never", json!({})).into_future());
    let saved = loop {
        let saved = client.saved_calls().await.unwrap();
        if !saved.is_empty() {
            break saved;
        }
        tokio::task::yield_now().await;
    };
    calling.abort();
    assert!(matches!(saved[0].stage, CallStage::Calling(_)));
    let why = client.resume(saved[0].clone()).await.unwrap_err();
    assert!(
        matches!(&why, Error::Client(ClientError::MaybeExecuted(tool)) if tool == "never"),
        "{why}"
    );
    assert!(why.may_have_executed());
    std::fs::remove_dir_all(folder).unwrap();
}

// K-45
#[tokio::test]
async fn saved_call_resumes_under_given_idempotency_key() {
    let folder = std::env::temp_dir().join(format!("outlive-given-{}", std::process::id()));
    let place = Place::of(&server(), Wire::Memory).await;
    let notebook = |at| Stops {
        inner: FileCallStore::open(&folder).unwrap(),
        writes: AtomicUsize::new(0),
        at,
    };
    let client = |at| answering(&Arc::default()).call_store(notebook(at));
    // Another client has already made this call and has its task.
    let other = place.connect(client(usize::MAX), None).await;
    let task = other.start_tool("order", json!({})).idempotency_key("order 1").await.unwrap();
    // This client stops before it sends the call. The saved key is enough to find the same task.
    let first = place.connect(client(1), None).await;
    let stopped = first.start_tool("order", json!({})).idempotency_key("order 1").await;
    assert!(matches!(stopped, Err(Error::Client(ClientError::CallStore(_)))));
    let mut saved = first.saved_calls().await.unwrap().into_iter();
    let saved = saved.find(|call| matches!(call.stage, CallStage::Calling(_))).unwrap();
    let again = other.resume(saved).await.unwrap();
    assert_eq!(again.task_id(), task.task_id());
    std::fs::remove_dir_all(folder).unwrap();
}

// T1C-20, T1C-21, T1C-22
#[tokio::test]
async fn input_request_asking_for_task_is_answered_with_client_task() {
    for wire in [Wire::Memory, Wire::Http] {
        let asked = Arc::default();
        let place = Place::of(&server(), wire).await;
        let client =
            place.connect(answering(&asked).host_tasks(true), Some(Version::V2025_11_25)).await;
        let result = client.call_tool("order", json!({})).await.unwrap();
        assert_eq!(result_text(&result), "a hat for Ada (Ada)", "{wire:?}");
        assert_eq!(asked.lock().unwrap().len(), 2);
    }
}
