//! The actions `accept`, `decline` and `cancel` of an elicitation.

use outlive::server::{
    Durable, Result, Server, Tool,
    durable::{DurableError, ElicitOutcome},
};
use serde_json::{Value, json};

use crate::input::dialogue::{
    Approval, Talk, accept, cancel, decline, failure_of, server, text_of,
};

/// The versions that have forms.
const ASKING: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

/// Treats `decline` and `cancel` as errors.
async fn brief(cx: Durable) -> Result<String> {
    let approval: Approval = cx.elicit("sure", "Really?").await?;
    Ok(format!("accepted {}", approval.yes))
}

/// Distinguishes the actions by the outcome.
async fn reply(cx: Durable) -> Result<String> {
    Ok(match cx.elicit::<Approval>("sure", "Really?").outcome().await? {
        ElicitOutcome::Accepted(approval) => format!("accepted {}", approval.yes),
        ElicitOutcome::Declined => "declined".into(),
        ElicitOutcome::Cancelled => "dismissed".into(),
    })
}

/// Distinguishes the actions by the error.
async fn error(cx: Durable) -> Result<String> {
    let error = match cx.elicit::<Approval>("sure", "Really?").await {
        Ok(approval) => return Ok(format!("accepted {}", approval.yes)),
        Err(error) => error,
    };
    let typed = match error.durable_error() {
        Some(DurableError::Declined { key }) => format!("declined {key}"),
        Some(DurableError::Cancelled { key }) => format!("dismissed {key}"),
        other => format!("{other:?}"),
    };
    Ok(format!("{typed}: {} {}", error.is_declined(), error.is_cancelled()))
}

/// Elicits a URL and distinguishes the actions.
async fn url(cx: Durable) -> Result<String> {
    let reply = cx.elicit_url("login", "Log in", "https://example.com/login").outcome().await?;
    Ok(format!("{reply:?}"))
}

fn asking() -> Server {
    server([
        Tool::new("brief", brief),
        Tool::new("reply", reply),
        Tool::new("error", error),
        Tool::new("url", url),
    ])
}

async fn play(version: &str, tool: &str, answer: Value) -> Value {
    let mut talk = Talk::open(&asking(), version).await;
    let played = talk.call(tool, |_| answer.clone()).await;
    assert_eq!(played.asked.len(), 1, "an answered input request is not repeated: {played:?}");
    played.answer
}

// M-15, ELIC-11, ELIC-21
#[tokio::test(start_paused = true)]
async fn elicitation_outcome_and_error_distinguish_three_actions() {
    for version in ASKING {
        for (answer, by_reply, by_error) in [
            (accept(json!({"yes": true})), "accepted true", "accepted true"),
            (accept(json!({"yes": false})), "accepted false", "accepted false"),
            (decline(), "declined", "declined sure: true false"),
            (cancel(), "dismissed", "dismissed sure: false true"),
        ] {
            assert_eq!(text_of(&play(version, "reply", answer.clone()).await), by_reply);
            assert_eq!(text_of(&play(version, "error", answer).await), by_error, "{version}");
        }
    }
}

// M-15, ELIC-21
#[tokio::test(start_paused = true)]
async fn declined_elicitation_fails_handler_using_question_mark() {
    for version in ASKING {
        let accepted = play(version, "brief", accept(json!({"yes": true}))).await;
        assert_eq!(accepted["result"].get("isError"), None, "{accepted}");
        assert_eq!(text_of(&accepted), "accepted true");
        let declined = play(version, "brief", decline()).await;
        assert_eq!(failure_of(&declined), "the user declined the input request `sure`");
        let dismissed = play(version, "brief", cancel()).await;
        assert_eq!(failure_of(&dismissed), "the user cancelled the input request `sure`");
    }
}

// ELIC-11: only an accepted form has content
#[tokio::test(start_paused = true)]
async fn content_of_declined_form_is_ignored() {
    for version in ASKING {
        for (action, expected) in [("decline", "declined"), ("cancel", "dismissed")] {
            let answer = json!({"action": action, "content": {"yes": true}});
            assert_eq!(text_of(&play(version, "reply", answer).await), expected, "{version}");
        }
    }
}

// M-12: members outside the form are ignored
#[tokio::test(start_paused = true)]
async fn form_content_outside_schema_is_ignored() {
    for version in ASKING {
        let answer = json!({
            "action": "accept",
            "content": {"yes": true, "no": [1, {"deep": null}]},
            "_meta": {"com.example/where": "phone"},
            "mood": "good",
        });
        assert_eq!(text_of(&play(version, "reply", answer).await), "accepted true", "{version}");
    }
}

// ELIC-25: `accept` means only that the user agrees to open the URL
#[tokio::test(start_paused = true)]
async fn url_elicitation_returns_each_action() {
    for version in ["2025-11-25", "2026-07-28"] {
        for (answer, expected) in [
            (json!({"action": "accept"}), "Accepted(())"),
            (accept(json!({"ignored": 1})), "Accepted(())"),
            (decline(), "Declined"),
            (cancel(), "Cancelled"),
        ] {
            assert_eq!(text_of(&play(version, "url", answer).await), expected, "{version}");
        }
    }
}
