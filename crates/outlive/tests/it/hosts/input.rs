//! Input requests of bridged calls.

use outlive::server::hosts::AnswerBy;
use serde_json::json;

use super::world::{Runs, hosts, legacy, server, server_with, task_of};
use crate::support::pipe::{Pipe, result, text};

#[tokio::test(start_paused = true)]
async fn client_with_elicitation_is_asked_on_its_stream() {
    let mut pipe = Pipe::open(&server(&Runs::default()));
    pipe.legacy_with("2025-11-25", json!({"elicitation": {}})).await;
    let id = pipe.send("tools/call", json!({"name": "deploy"})).await;
    let asked = pipe.read().await;
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(asked["params"]["message"], "Deploy shop:1?");
    pipe.reply(&asked, json!({"action": "accept", "content": {"yes": true}})).await;
    assert_eq!(text(&pipe.answer(id).await["result"]), "deployed: true");
}

#[tokio::test(start_paused = true)]
async fn modern_client_with_elicitation_is_asked_in_a_round() {
    let mut pipe = Pipe::open(&server(&Runs::default()));
    let elicits = json!({"elicitation": {}});
    let mut params = json!({"name": "deploy"});
    let asked = pipe.modern_with(elicits.clone(), "tools/call", params.clone()).await;
    let asked = result(&asked);
    assert_eq!(asked["inputRequests"]["approve"]["params"]["message"], "Deploy shop:1?");
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({"approve": {"action": "accept", "content": {"yes": true}}});
    let done = result(&pipe.modern_with(elicits, "tools/call", params).await);
    assert_eq!(text(&done), "deployed: true");
}

#[tokio::test(start_paused = true)]
async fn client_without_elicitation_gets_pending_result_at_once() {
    for is_modern in [false, true] {
        let server = server(&Runs::default());
        let mut pipe = if is_modern { Pipe::open(&server) } else { legacy(&server).await };
        let began = tokio::time::Instant::now();
        let pending = pipe.call("deploy", json!({})).await;
        assert!(began.elapsed().as_millis() < 1_500, "{:?}", began.elapsed());
        let id = task_of(&pending);
        let told = text(&pending);
        assert!(
            told.starts_with(&format!("`deploy` (task {id}) asks the user: Deploy shop:1?")),
            "{told}"
        );
        assert!(told.contains(&format!("outlive tasks answer {id}")), "{told}");
        let task = &pending["structuredContent"]["task"];
        assert_eq!(task["status"], "input_required");
        assert_eq!(task["inputRequests"]["approve"]["message"], "Deploy shop:1?");
        // By default, no tool answers.
        let content = json!({"task": id, "action": "accept", "content": {"yes": true}});
        let refused = pipe.call("task_answer", content).await;
        assert_eq!(refused["isError"], true);
        assert!(text(&refused).starts_with("only the user can answer"), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn answer_by_tool_continues_the_task_where_it_is_allowed() {
    let server = server_with(&Runs::default(), hosts().answers([AnswerBy::Tool]));
    let mut pipe = legacy(&server).await;
    let tools = pipe.result("tools/list", json!({})).await;
    assert_eq!(tools["tools"].as_array().unwrap().last().unwrap()["name"], "task_answer");
    let pending = pipe.call("deploy", json!({})).await;
    let id = task_of(&pending);
    assert!(text(&pending).contains("task_answer"), "{pending}");
    let answer = |action: &str, content| json!({"task": id, "action": action, "content": content});
    for (wrong, says) in [
        (answer("accept", json!({})), "`yes` is missing"),
        (answer("accept", json!({"yes": "maybe"})), "must be true or false"),
        (answer("maybe", json!({"yes": true})), "invalid arguments"),
        (
            json!({"task": id, "input_request": "other", "action": "decline"}),
            "no open input request `other`",
        ),
    ] {
        let refused = pipe.call("task_answer", wrong).await;
        assert_eq!(refused["isError"], true);
        assert!(text(&refused).contains(says), "{refused}");
    }
    let accepted = pipe.call("task_answer", answer("accept", json!({"yes": true}))).await;
    let expected =
        format!("Accepted. `deploy` continues; call task_result with {{\"task\":\"{id}\"}}.");
    assert_eq!(text(&accepted), expected);
    assert_eq!(text(&pipe.call("task_result", json!({"task": id})).await), "deployed: true");
}
