//! A user who accepts, one who says no, and one who closes the question are three different users.

use outlive::server::{
    Durable, Result, Server, Tool,
    durable::{DurableError, ElicitOutcome},
};
use serde_json::{Value, json};

use crate::questions::dialogue::{
    Approval, Talk, accept, cancel, decline, failure_of, server, text_of,
};

/// The revisions on which a form can be asked.
const ASKING: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

/// Does not care how the user says no.
async fn brief(cx: Durable) -> Result<String> {
    let approval: Approval = cx.elicit("sure", "Really?").await?;
    Ok(format!("accepted {}", approval.yes))
}

/// Tells the three apart by the reply.
async fn reply(cx: Durable) -> Result<String> {
    Ok(match cx.elicit::<Approval>("sure", "Really?").outcome().await? {
        ElicitOutcome::Accepted(approval) => format!("accepted {}", approval.yes),
        ElicitOutcome::Declined => "declined".into(),
        ElicitOutcome::Cancelled => "dismissed".into(),
    })
}

/// Tells the three apart by the error.
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

/// Sends the user somewhere, and tells the three apart.
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
    assert_eq!(played.asked.len(), 1, "an answer is not asked for again: {played:?}");
    played.answer
}

// M-15, ELIC-11, ELIC-21
#[tokio::test(start_paused = true)]
async fn accepting_declining_and_dismissing_are_three_things_to_the_author() {
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
async fn a_user_who_says_no_ends_a_handler_that_does_not_look() {
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

// ELIC-11: content comes with accepted forms only, and counts nowhere else
#[tokio::test(start_paused = true)]
async fn content_beside_a_no_does_not_make_it_a_yes() {
    for version in ASKING {
        for (action, expected) in [("decline", "declined"), ("cancel", "dismissed")] {
            let answer = json!({"action": action, "content": {"yes": true}});
            assert_eq!(text_of(&play(version, "reply", answer).await), expected, "{version}");
        }
    }
}

// M-12: what an answer says beside the subject is nobody's business
#[tokio::test(start_paused = true)]
async fn what_an_answer_holds_beyond_the_form_is_ignored() {
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

// ELIC-25: agreeing to open a URL is all that the answer says
#[tokio::test(start_paused = true)]
async fn a_user_can_be_asked_to_open_a_url_and_say_no() {
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
