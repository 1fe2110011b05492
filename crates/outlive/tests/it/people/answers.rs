//! Votes and input responses.

use outlive::{
    people::{Answer, AnswerReceipt, FieldError, People, PeopleError},
    server::approve::Approve,
    store::{Audience, Binding, JournalEntry, OperatorStore as _, TaskId},
};
use serde_json::{Value, json};

use super::world::{World, accept, approval, deny, signed_in, token, with_scope};

/// Returns the response that the handler gets.
async fn response(world: &World, task: &str, key: &str) -> Value {
    let detail = world.store.inspect(&TaskId::new(task)).await.unwrap().unwrap();
    match &detail.entries[key] {
        JournalEntry::Answer(raw) => serde_json::from_str(raw.get()).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn approval_settles_with_its_audit_event_and_names_the_voter() {
    let world = World::new().await;
    let receipt = world.people.answer(&signed_in("ben"), &world.task, "#approval", accept()).await;
    assert_eq!(receipt.unwrap(), AnswerReceipt::Settled);
    let expected = json!({"action": "accept", "by": "ben"});
    assert_eq!(response(&world, "task-of-ann", "#approval").await, expected);
    let events = world.events().await;
    let expected = [("name:ben", "voted", Some("approve, by ben, console"))];
    let events: Vec<_> = events.iter().map(|(a, b, c)| (&**a, &**b, c.as_deref())).collect();
    assert_eq!(events, expected);
    let settled = world.people.settled(&signed_in("ben"), 5).await.unwrap();
    assert_eq!(settled.len(), 1);
    assert_eq!(world.people.inbox_count(&signed_in("ben")).await.unwrap(), 0);
}

#[tokio::test]
async fn four_eyes_are_two_people() {
    let world = World::with(Approve::by(["ben", "cid", "dan"]).count(2)).await;
    let names = ["ben", "cid", "dan", "ann"].map(str::to_owned).to_vec();
    let request = approval("#approval", Audience::Names(names));
    let request = request.binding(Some(Binding::new(super::world::DIGEST, "d").count(2)));
    world.create("four-eyes", "ann", "deploy", vec![request]).await;
    let (people, task) = (&world.people, TaskId::new("four-eyes"));
    let ann = people.answer(&signed_in("ann"), &task, "#approval", accept()).await;
    assert!(matches!(ann, Err(PeopleError::Forbidden(_))), "the caller is named, too: {ann:?}");
    let one = people.answer(&signed_in("ben"), &task, "#approval", accept()).await.unwrap();
    assert_eq!(one, AnswerReceipt::Counted { approvals: 1, needed: 2 });
    let again = people.answer(&signed_in("ben"), &task, "#approval", deny("no")).await.unwrap();
    assert_eq!(again, AnswerReceipt::AlreadyVoted);
    let two = people.answer(&signed_in("cid"), &task, "#approval", accept()).await.unwrap();
    assert_eq!(two, AnswerReceipt::Settled);
    let late = people.answer(&signed_in("dan"), &task, "#approval", deny("no")).await.unwrap();
    assert_eq!(late, AnswerReceipt::AlreadySettled);
    assert_eq!(world.actions().await, ["voted", "voted"]);
}

#[tokio::test]
async fn denial_needs_a_reason_and_settles() {
    let world = World::new().await;
    let (people, ben) = (&world.people, signed_in("ben"));
    for reason in ["", "  "] {
        let denied = people.answer(&ben, &world.task, "#approval", deny(reason)).await;
        let expected = vec![FieldError::new("reason", "is required to deny")];
        assert_eq!(denied, Err(PeopleError::Invalid(expected)));
    }
    let long = people.answer(&ben, &world.task, "#approval", deny(&"x".repeat(1_001))).await;
    assert!(matches!(long, Err(PeopleError::Invalid(_))));
    let denied = people.answer(&ben, &world.task, "#approval", deny(" not today ")).await.unwrap();
    assert_eq!(denied, AnswerReceipt::Settled);
    let expected = json!({"action": "decline", "reason": "not today", "by": "ben"});
    assert_eq!(response(&world, "task-of-ann", "#approval").await, expected);
    let events = world.events().await;
    assert_eq!(events[0].2.as_deref(), Some("deny, by ben, console: not today"));
}

#[tokio::test]
async fn vote_for_another_digest_is_not_recorded() {
    let world = World::new().await;
    for name in ["#approval", "form"] {
        let visitor = signed_in(if name == "form" { "ann" } else { "ben" });
        let answer = Answer { digest: "other".to_owned(), ..accept() };
        let receipt = world.people.answer(&visitor, &world.task, name, answer).await.unwrap();
        assert_eq!(receipt, AnswerReceipt::DigestDiffers);
    }
    assert!(world.actions().await.is_empty());
}

#[tokio::test]
async fn withdrawn_request_is_shown_and_takes_no_vote() {
    let world = World::new().await;
    world.people.cancel(&signed_in("ann"), &world.task).await.unwrap();
    let ben = signed_in("ben");
    let view = world.people.input_request(&ben, &world.task, "#approval").await.unwrap();
    assert!(!view.can_answer);
    let receipt = world.people.answer(&ben, &world.task, "#approval", accept()).await.unwrap();
    assert_eq!(receipt, AnswerReceipt::Withdrawn);
}

#[tokio::test]
async fn expired_request_takes_no_vote() {
    let world = World::new().await;
    let request = approval("#approval", Audience::Names(vec!["ben".to_owned()])).due(Some(1));
    world.create("late", "ann", "deploy", vec![request]).await;
    let (ben, task) = (signed_in("ben"), TaskId::new("late"));
    let view = world.people.input_request(&ben, &task, "#approval").await.unwrap();
    assert!(!view.can_answer);
    let receipt = world.people.answer(&ben, &task, "#approval", accept()).await.unwrap();
    assert_eq!(receipt, AnswerReceipt::Expired);
}

#[tokio::test]
async fn form_errors_name_every_field_and_valid_values_reach_the_handler() {
    let world = World::new().await;
    let ann = signed_in("ann");
    let view = world.people.input_request(&ann, &world.task, "form").await.unwrap();
    let digest = view.digest;
    let answer = |content: Value| {
        let (digest, content) = (digest.clone(), Some(content));
        let answer = Answer { digest, content, ..accept() };
        world.people.answer(&ann, &world.task, "form", answer)
    };
    let wrong = answer(json!({"replicas": 10, "note": 7})).await.unwrap_err();
    let PeopleError::Invalid(errors) = wrong else { panic!("{wrong:?}") };
    let errors: Vec<_> = errors.iter().map(|error| error.to_string()).collect();
    assert_eq!(errors, ["`replicas` must be at most 9", "`note` must be a string"]);
    let missing = answer(json!({"note": "x"})).await.unwrap_err();
    assert_eq!(missing.to_string(), "`replicas` is required");
    assert_eq!(answer(json!({"replicas": 3.0})).await.unwrap(), AnswerReceipt::Settled);
    let expected = json!({"action": "accept", "content": {"replicas": 3}});
    assert_eq!(response(&world, "task-of-ann", "form").await, expected);
    assert_eq!(world.actions().await, ["updated"]);
}

#[tokio::test]
async fn scope_of_the_credential_selects_the_voters() {
    let world = World::new().await;
    let request = approval("#approval", Audience::Scope("release".to_owned()));
    world.create("scoped", "ann", "deploy", vec![request]).await;
    let task = TaskId::new("scoped");
    let without = world.people.answer(&signed_in("ben"), &task, "#approval", accept()).await;
    assert_eq!(without, Err(PeopleError::NotFound));
    let dan = with_scope("dan", "release");
    assert_eq!(world.people.inbox(&dan, None, 50).await.unwrap().items.len(), 1);
    let receipt = world.people.answer(&dan, &task, "#approval", accept()).await.unwrap();
    assert_eq!(receipt, AnswerReceipt::Settled);
}

#[tokio::test]
async fn mcp_token_of_an_approver_decides_nothing() {
    let world = World::new().await;
    for person in ["ben", "cid"] {
        let answered =
            world.people.answer(&token(person), &world.task, "#approval", accept()).await;
        assert_eq!(answered, Err(PeopleError::NotFound));
    }
    // The caller's own token sees the request, but not who approves it.
    let view = world.people.input_request(&token("ann"), &world.task, "#approval").await.unwrap();
    assert!(!view.can_answer && view.detail.votes.is_empty());
    assert_eq!(view.detail.item.audience, Audience::Names(Vec::new()));
    assert!(world.actions().await.is_empty());
}

#[tokio::test]
async fn concurrent_votes_settle_once() {
    let world = World::new().await;
    let (ben, cid) = (signed_in("ben"), signed_in("cid"));
    let (one, two) = tokio::join!(
        world.people.answer(&ben, &world.task, "#approval", accept()),
        world.people.answer(&cid, &world.task, "#approval", deny("no")),
    );
    let mut receipts = [one.unwrap(), two.unwrap()];
    receipts.sort_by_key(|receipt| *receipt != AnswerReceipt::Settled);
    assert_eq!(receipts, [AnswerReceipt::Settled, AnswerReceipt::AlreadySettled]);
    let view = world.people.input_request(&ben, &world.task, "#approval").await.unwrap();
    assert_eq!(view.detail.votes.len(), 1);
}

#[tokio::test]
async fn page_shows_the_arguments_of_the_last_approved_call() {
    let world = World::new().await;
    let names = Audience::Names(vec!["ben".to_owned()]);
    // Without the server, no worker starts the approved task.
    let people = People::open(world.store.clone()).unwrap();
    people.answer(&signed_in("ben"), &world.task, "#approval", accept()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    world.create("next", "ann", "deploy", vec![approval("#approval", names)]).await;
    let (ben, task) = (signed_in("ben"), TaskId::new("next"));
    let view = world.people.input_request(&ben, &task, "#approval").await.unwrap();
    let texts: Vec<_> = view.previous.iter().map(|it| it.text().into_owned()).collect();
    assert_eq!(texts, ["\"1.4.2\""]);
    assert!(view.can_answer && view.can_link);
}
