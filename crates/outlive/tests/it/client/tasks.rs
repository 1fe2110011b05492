//! Calls that become tasks: driven to their end, asked, cancelled, saved and taken up again.

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

/// Where there are tasks.
const DIALECTS: [(Wire, Version); 4] = [
    (Wire::Memory, Version::V2026_07_28),
    (Wire::Memory, Version::V2025_11_25),
    (Wire::Http, Version::V2026_07_28),
    (Wire::Http, Version::V2025_11_25),
];

/// Two questions with a step between.
#[tool]
async fn order(cx: Durable) -> Result<String> {
    let who: Name = cx.elicit("who", "Who are you?").await?;
    let made: String = cx.step("make", async || Ok(format!("a hat for {}", who.name))).await?;
    let again: Name = cx.elicit("sure", "Are you sure?").await?;
    Ok(format!("{made} ({})", again.name))
}

/// Waits until it is cancelled.
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

/// Answers `Ada`, and notes where it was asked from.
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
async fn a_call_is_driven_through_its_task_and_its_questions() {
    for (wire, version) in DIALECTS {
        let asked = Arc::default();
        let place = Place::of(&server(), wire).await;
        let client = place.connect(answering(&asked), Some(version)).await;
        let result = client.call_tool("order", json!({})).await.unwrap();
        assert_eq!(result_text(&result), "a hat for Ada (Ada)", "{wire:?} {version}");
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 2, "{asked:?}");
        // The answerer is told that a task asks.
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
async fn example_of_the_page_answers_the_task_and_is_resumed() {
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
async fn a_task_that_is_cancelled_says_so() {
    for (wire, version) in DIALECTS {
        let place = Place::of(&server(), wire).await;
        let client = place.connect(answering(&Arc::default()), Some(version)).await;
        let mut handle = client.start_tool("forever", json!({})).await.unwrap();
        assert!(handle.task_id().is_some());
        handle.cancel().await.unwrap();
        let over = handle.wait().await.unwrap_err();
        assert_eq!(over.kind(), Some(ServerErrorKind::TaskCancelled), "{wire:?} {version} {over}");
        // It stays so.
        let over = handle.wait().await.unwrap_err();
        assert!(matches!(over, Error::Server(_)), "{over}");
    }
}

// T2C-18
#[tokio::test]
async fn dropping_a_call_leaves_its_task_alone_unless_it_says_otherwise() {
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
async fn a_task_goes_on_in_another_client_and_nothing_is_asked_twice() {
    let (wire, version) = (Wire::Http, Version::V2026_07_28);
    let asked = Arc::default();
    let place = Place::of(&server(), wire).await;
    let first = place.connect(answering(&asked), Some(version)).await;
    let mut handle = first.start_tool("order", json!({})).await.unwrap();
    // By hand, up to the first answer.
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
    // It belongs to that server, and to nobody else.
    let elsewhere = place.connect(answering(&asked).account("bob"), None).await;
    let refused = elsewhere.resume(saved).await.unwrap_err();
    assert!(matches!(refused, Error::Client(ClientError::WrongAccount(_))), "{refused}");
}

// T2-04, T2C-01
#[tokio::test]
async fn a_call_can_do_without_a_task() {
    for (wire, version) in DIALECTS {
        let place = Place::of(&server(), wire).await;
        let client = place.connect(answering(&Arc::default()), Some(version)).await;
        let refused = client.call_tool("forever", json!({})).inline().await.unwrap_err();
        assert!(matches!(refused, Error::Server(_)), "{wire:?} {version} {refused}");
    }
}

/// A notebook that stops the program at its n-th writing.
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
async fn a_call_that_stops_after_any_note_is_finished_by_the_next_process() {
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
        assert_eq!(asked.lock().unwrap().len(), 2, "asked once each, after {at}");
        handle.delete_saved().await.unwrap();
        assert!(second.saved_calls().await.unwrap().is_empty());
    }
    // The call, its task, two answers noted and taken, the result.
    assert_eq!(stops, 7);
    std::fs::remove_dir_all(folder).unwrap();
}

// K-43
#[tokio::test]
async fn a_call_with_a_key_of_its_own_keeps_it_in_the_next_process() {
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
    // The same key is the same call: nobody is asked again.
    let again = second.call_tool("order", json!({})).idempotency_key("mine").await.unwrap();
    assert_eq!(result_text(&again), "a hat for Ada (Ada)");
    assert_eq!(asked.lock().unwrap().len(), 2);
    std::fs::remove_dir_all(folder).unwrap();
}

// K-45
#[tokio::test]
async fn without_keys_a_call_that_was_sent_may_have_been_done() {
    let folder = std::env::temp_dir().join(format!("outlive-maybe-{}", std::process::id()));
    let place = Place::of(&server(), Wire::Memory).await;
    let notebook = FileCallStore::open(&folder).unwrap();
    let builder = answering(&Arc::default()).idempotency_keys(false).call_store(notebook);
    let client = place.connect(builder, None).await;
    // As the process leaves it that is killed before the answer.
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
async fn a_call_goes_on_under_the_key_that_its_program_gave_it() {
    let folder = std::env::temp_dir().join(format!("outlive-given-{}", std::process::id()));
    let place = Place::of(&server(), Wire::Memory).await;
    let notebook = |at| Stops {
        inner: FileCallStore::open(&folder).unwrap(),
        writes: AtomicUsize::new(0),
        at,
    };
    let client = |at| answering(&Arc::default()).call_store(notebook(at));
    // The call has been answered with a task, which another client has in hand.
    let other = place.connect(client(usize::MAX), None).await;
    let task = other.start_tool("order", json!({})).idempotency_key("order 1").await.unwrap();
    // Before it is sent this program stops; what it has noted is enough to get the same task.
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
async fn a_question_is_answered_with_a_task_where_the_server_asks_for_one() {
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
