//! Commands that request input from the user.

use std::fs;

use outlive::{
    client::{
        Client,
        input::{InputCallbacks, InputKind, InputResponse, PendingInput},
        request::result_text,
        tasks::TaskEvent,
    },
    wire::Version,
};
use serde_json::json;

use super::{Place, builder};

const ASKS: &str = r#"
[tools.order]
description = "Asks what to order."
shell = true
interactive = true
command = '''
echo "welcome"
echo '{"input": "what", "message": "What?", "fields": {"size": {"type": "integer", "minimum": 1}, "what": {"type": "string", "default": "tea"}}}' >&3
read -r answer <&4
echo "got $answer"
echo '{"input": "sure", "message": "Sure?"}' >&3
read -r answer <&4
echo "got $answer"
'''
task = "TASK"
"#;

fn file(task: &str) -> String {
    ASKS.replace("TASK", task)
}

fn answers() -> InputCallbacks {
    InputCallbacks::new().form(|question| async move {
        match message(&question) {
            "What?" => InputResponse::accept(json!({"what": "coffee; touch pwned", "size": 2})),
            "Sure?" => InputResponse::Decline,
            other => panic!("asked something else: {other}"),
        }
    })
}

/// Returns the message of an input request, without the output above it.
fn message(question: &PendingInput) -> &str {
    match &question.request {
        InputKind::Form(form) => form.message.lines().last().unwrap(),
        other => panic!("asked something else: {other:?}"),
    }
}

const SAID: &str = r#"welcome
got {"response":"what","action":"accept","content":{"size":2,"what":"coffee; touch pwned"}}
got {"response":"sure","action":"decline"}"#;

#[tokio::test]
async fn input_requests_of_command_get_responses() {
    for task in ["never", "auto", "always"] {
        let place = Place::new(&file(task));
        let client = place.client_with(builder().input_handler(answers())).await;
        let result = client.call_tool("order", json!({})).await.unwrap();
        assert_eq!(result_text(&result), SAID, "{task}");
    }
}

#[tokio::test]
async fn input_request_to_client_without_elicitation_is_cancelled() {
    let place = Place::new(&file("never"));
    let client = Client::builder("deaf", "1.0.0").connect(place.url()).await.unwrap();
    let text = result_text(&client.call_tool("order", json!({})).await.unwrap());
    assert!(text.contains(r#"got {"response":"what","action":"cancel","reason":"#), "{text}");
}

#[tokio::test]
async fn input_request_survives_killed_server() {
    let mut place = Place::new(&file("always"));
    let client = place.client_with(builder().input_handler(answers())).await;
    let mut task = client.start_tool("order", json!({})).await.unwrap();
    let mut events = task.events();
    let question = loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Input(question) => break question,
            TaskEvent::Done(result) => panic!("the command did not wait: {}", result_text(&result)),
            _ => {}
        }
    };
    assert_eq!(question.key.as_deref(), Some("what"));
    place.kill();
    place.start();
    events.respond(&question, InputResponse::accept(json!({"size": 1}))).await.unwrap();
    loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Input(question) if message(&question) == "Sure?" => {
                events.respond(&question, InputResponse::Cancel).await.unwrap();
            }
            TaskEvent::Done(result) => {
                let said = result_text(&result);
                assert!(
                    said.contains(
                        r#"got {"response":"what","action":"accept","content":{"size":1}}"#
                    ),
                    "{said}"
                );
                assert!(said.ends_with(r#"got {"response":"sure","action":"cancel"}"#), "{said}");
                break;
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn key_of_input_request_has_a_number_if_the_command_uses_it_again() {
    let place = Place::new(
        r#"
[tools.steps]
description = "Asks before each step."
shell = true
interactive = true
command = '''
for step in 1 2; do
  echo '{"input": "go", "message": "Go on?"}' >&3
  read -r answer <&4
done
'''
task = "always"
"#,
    );
    let client = place.client_with(builder().input_handler(answers())).await;
    let mut task = client.start_tool("steps", json!({})).await.unwrap();
    let (mut events, mut keys) = (task.events(), Vec::new());
    loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Input(question) => {
                events.respond(&question, InputResponse::Decline).await.unwrap();
                keys.extend(question.key);
            }
            TaskEvent::Done(_) => break assert_eq!(keys, ["go", "go/2"]),
            _ => {}
        }
    }
}

#[tokio::test]
async fn exited_command_withdraws_its_input_request() {
    let place = Place::new(
        r#"
[tools.hasty]
description = "Does not wait."
command = ["sh", "-c", "echo '{\"input\": \"w\", \"message\": \"Wait?\"}' >&3; while [ ! -e go ]; do sleep 0.05; done; echo gone"]
interactive = true
task = "always"
"#,
    );
    let client = place.client_with(builder().input_handler(answers())).await;
    let mut task = client.start_tool("hasty", json!({})).await.unwrap();
    let mut events = task.events();
    loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Input(_) => fs::write(place.folder.join("go"), "").unwrap(),
            TaskEvent::Done(result) => break assert_eq!(result_text(&result), "gone"),
            _ => {}
        }
    }
}

/// Repeatedly prints a line and then requests input.
const PLANS: &str = r#"
[tools.plan]
description = "Prints what it will do before it asks."
command = ["python3", "-c", """
import os, json, sys
requests, responses = os.fdopen(3, 'w'), os.fdopen(4)
for n in range(COUNT):
    print('will destroy resource', n, flush=True)
    requests.write(json.dumps({'input': 'k%d' % n, 'message': 'Apply %d?' % n}) + '\\n')
    requests.flush()
    if json.loads(responses.readline())['content'] != {'yes': True}:
        sys.exit(1)
"""]
interactive = true
task = "TASK"
"#;

fn plans(task: &str, count: usize) -> Place {
    Place::new(&PLANS.replace("COUNT", &count.to_string()).replace("TASK", task))
}

/// Accepts each input request, and asserts that its message has the output before it.
fn reads_messages() -> (InputCallbacks, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&seen);
    let answers = InputCallbacks::new().form(move |question| {
        let count = std::sync::Arc::clone(&count);
        async move {
            let InputKind::Form(form) = &question.request else { panic!("{question:?}") };
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let expected = format!("will destroy resource {number}\n\nApply {number}?");
            assert_eq!(form.message, expected);
            InputResponse::accept(json!({"yes": true}))
        }
    });
    (answers, seen)
}

const VERSIONS: [Version; 2] = [Version::V2025_11_25, Version::V2026_07_28];

#[tokio::test]
async fn output_before_request_is_in_message_of_inline_call() {
    for version in VERSIONS {
        // On 2026-07-28 each request is a separate round, and the rounds of a call are limited.
        let (count, calls) = if version == VERSIONS[0] { (20, 10) } else { (5, 40) };
        let place = plans("never", count);
        let (mut total, mut seen) = (0, None);
        for _ in 0..calls {
            let (answers, number) = reads_messages();
            let client =
                place.client_with(builder().protocol_version(version).input_handler(answers)).await;
            client.call_tool("plan", json!({})).await.unwrap();
            total += number.load(std::sync::atomic::Ordering::Relaxed);
            seen = Some(number);
        }
        assert_eq!((total, seen.is_some()), (200, true), "{version:?}");
    }
}

#[tokio::test]
async fn output_before_request_is_in_message_for_host_without_extension() {
    for version in VERSIONS {
        let place = plans("always", 200);
        let (answers, seen) = reads_messages();
        // A host without our extension.
        let host =
            Client::builder("host", "1.0.0").protocol_version(version).input_handler(answers);
        let client = place.client_with(host).await;
        let mut task = client.start_tool("plan", json!({})).await.unwrap();
        task.wait().await.unwrap();
        assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 200, "{version:?}");
    }
}

#[tokio::test]
async fn output_before_request_precedes_it_in_task_events() {
    let place = plans("always", 200);
    let client = place
        .client_with(
            builder()
                .input_handler(InputCallbacks::new().form(|_| async { InputResponse::Decline })),
        )
        .await;
    let mut task = client.start_tool("plan", json!({})).await.unwrap();
    let mut events = task.events();
    let (mut lines, mut asked) = (0, 0);
    loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Segment(_) => lines += 1,
            TaskEvent::Input(question) => {
                asked += 1;
                assert_eq!((lines, message(&question)), (asked, &*format!("Apply {}?", asked - 1)));
                events
                    .respond(&question, InputResponse::accept(json!({"yes": true})))
                    .await
                    .unwrap();
            }
            TaskEvent::Done(result) => break assert_ne!(result.is_error, Some(true)),
            _ => {}
        }
    }
    assert_eq!(asked, 200);
}

#[tokio::test]
async fn output_before_request_precedes_call_of_input_handler() {
    let place = plans("always", 200);
    let lines = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let printed = std::sync::Arc::clone(&lines);
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let answers = InputCallbacks::new().form(move |_| {
        let number = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        assert_eq!(printed.load(std::sync::atomic::Ordering::Relaxed), number);
        async { InputResponse::accept(json!({"yes": true})) }
    });
    let client = place.client_with(builder().input_handler(answers)).await;
    let mut task = client.start_tool("plan", json!({})).await.unwrap();
    // Uses the input handler like `outlive call`.
    let mut events = task.events().with_input_handler();
    while let Some(event) = events.next().await {
        match event.unwrap() {
            TaskEvent::Segment(_) => {
                lines.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            TaskEvent::Done(result) => assert_ne!(result.is_error, Some(true)),
            _ => {}
        }
    }
    assert_eq!(lines.load(std::sync::atomic::Ordering::Relaxed), 200);
}
