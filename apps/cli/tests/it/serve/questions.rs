//! Commands that ask their user.

use std::fs;

use outlive::client::{Answer, Answers, Ask, Client, Question, TaskEvent, texts};
use serde_json::json;

use super::{Place, builder};

const ASKS: &str = r#"
[tools.order]
description = "Asks what to order."
shell = true
asks = true
command = '''
echo "welcome"
echo '@outlive {"ask": "What?", "fields": {"size": {"type": "integer", "minimum": 1}, "what": {"type": "string", "default": "tea"}}}'
read -r answer
echo "got $answer"
echo '@outlive {"ask": "Sure?"}'
read -r answer
echo "got $answer"
'''
task = "TASK"
"#;

fn file(task: &str) -> String {
    ASKS.replace("TASK", task)
}

fn answers() -> Answers {
    Answers::new().form(|question| async move {
        match message(&question) {
            "What?" => Answer::accept(json!({"what": "coffee; touch pwned", "size": 2})),
            "Sure?" => Answer::Decline,
            other => panic!("asked something else: {other}"),
        }
    })
}

fn message(question: &Question) -> &str {
    match &question.ask {
        Ask::Form(form) => &form.message,
        other => panic!("asked something else: {other:?}"),
    }
}

const SAID: &str = r#"welcome
got {"action":"accept","content":{"size":2,"what":"coffee; touch pwned"}}
got {"action":"decline"}"#;

#[tokio::test]
async fn a_call_asks_its_user_and_is_answered() {
    for task in ["never", "auto", "always"] {
        let place = Place::new(&file(task));
        let client = place.client_with(builder().answerer(answers())).await;
        let result = client.call_tool("order", json!({})).await.unwrap();
        assert_eq!(texts(&result), SAID, "{task}");
    }
}

#[tokio::test]
async fn who_cannot_be_asked_lets_the_command_decide() {
    let place = Place::new(&file("never"));
    let client = Client::builder("deaf", "1.0.0").connect(place.url()).await.unwrap();
    let text = texts(&client.call_tool("order", json!({})).await.unwrap());
    assert!(text.contains(r#"got {"action":"cancel","reason":"#), "{text}");
}

#[tokio::test]
async fn a_question_outlives_the_server() {
    let mut place = Place::new(&file("always"));
    let client = place.client_with(builder().answerer(answers())).await;
    let mut task = client.start_tool("order", json!({})).await.unwrap();
    let mut events = task.events();
    let question = loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Question(question) => break question,
            TaskEvent::Done(result) => panic!("it did not wait: {}", texts(&result)),
            _ => {}
        }
    };
    place.kill();
    place.start();
    events.answer(&question, Answer::accept(json!({"size": 1}))).await.unwrap();
    loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Question(question) if message(&question) == "Sure?" => {
                events.answer(&question, Answer::Cancel).await.unwrap();
            }
            TaskEvent::Done(result) => {
                let said = texts(&result);
                assert!(said.contains(r#"got {"action":"accept","content":{"size":1}}"#), "{said}");
                assert!(said.ends_with(r#"got {"action":"cancel"}"#), "{said}");
                break;
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_command_that_ends_takes_its_question_back() {
    let place = Place::new(
        r#"
[tools.hasty]
description = "Does not wait."
command = ["sh", "-c", "echo '@outlive {\"ask\": \"Wait?\"}'; while [ ! -e go ]; do sleep 0.05; done; echo gone"]
asks = true
task = "always"
"#,
    );
    let client = place.client_with(builder().answerer(answers())).await;
    let mut task = client.start_tool("hasty", json!({})).await.unwrap();
    let mut events = task.events();
    loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Question(_) => fs::write(place.folder.join("go"), "").unwrap(),
            TaskEvent::Done(result) => break assert_eq!(texts(&result), "gone"),
            _ => {}
        }
    }
}
