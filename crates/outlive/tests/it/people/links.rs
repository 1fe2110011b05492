//! Answer links for people.

use std::time::Duration;

use outlive::{
    people::{AnswerReceipt, AuditFilter, PeopleError, PersonLink},
    server::approve::Approve,
    store::{Audience, TaskId, TaskQuery},
};

use super::world::{World, accept, approval, signed_in, with_scope};

/// Returns the token of a link.
fn token_of(url: &str) -> &str {
    url.rsplit_once("/answer/").unwrap().1
}

async fn opened(world: &World, url: &str) -> PersonLink {
    world.people.open_link(token_of(url)).await.unwrap()
}

#[tokio::test]
async fn holder_of_a_link_votes_once_as_its_person() {
    let world = World::new().await;
    let ada = signed_in("ada");
    let url = world.people.link(&ada, &world.task, "#approval", Some("ben"), None).await.unwrap();
    assert!(token_of(&url).len() <= 400, "{url}");
    let PersonLink { visitor, task, name, .. } = opened(&world, &url).await;
    let view = world.people.input_request(&visitor, &task, &name).await.unwrap();
    assert!(view.can_answer && !view.can_link && view.arguments.len() == 1);
    let receipt = world.people.answer(&visitor, &task, &name, accept()).await.unwrap();
    assert_eq!(receipt, AnswerReceipt::Settled);
    let again = world.people.answer(&visitor, &task, &name, accept()).await.unwrap();
    assert_eq!(again, AnswerReceipt::AlreadySettled);
    let view = world.people.input_request(&visitor, &task, &name).await.unwrap();
    assert!(!view.can_answer && view.detail.votes[0].channel == "link");
    assert_eq!(view.detail.votes[0].person, "ben");
    let events = world.events().await;
    assert_eq!(events[0].2.as_deref(), Some("for ben, by ada, console"));
    assert_eq!(events[1].2.as_deref(), Some("approve, by ben, link"));
}

#[tokio::test]
async fn holder_of_a_link_sees_nothing_else() {
    let world = World::new().await;
    let names = Audience::Names(vec!["ben".to_owned()]);
    world.create("other", "ann", "deploy", vec![approval("#approval", names)]).await;
    let url = world.people.link(&signed_in("ben"), &world.task, "#approval", None, None).await;
    let visitor = opened(&world, &url.unwrap()).await.visitor;
    let (people, other) = (&world.people, TaskId::new("other"));
    for (task, name) in [(&other, "#approval"), (&world.task, "form"), (&world.task, "own")] {
        let view = people.input_request(&visitor, task, name).await;
        assert_eq!(view.unwrap_err(), PeopleError::NotFound, "{name}");
        let answered = people.answer(&visitor, task, name, accept()).await;
        assert_eq!(answered, Err(PeopleError::NotFound), "{name}");
    }
    assert_eq!(people.task(&visitor, &world.task).await.unwrap_err(), PeopleError::NotFound);
    assert_eq!(people.cancel(&visitor, &world.task).await.unwrap_err(), PeopleError::NotFound);
    assert_eq!(people.changes(&visitor).await.unwrap_err(), PeopleError::NotFound);
    assert!(people.inbox(&visitor, None, 50).await.unwrap().items.is_empty());
    assert!(people.settled(&visitor, 50).await.unwrap().is_empty());
    let page = people.tasks(&visitor, &TaskQuery::default(), None, 50).await.unwrap();
    assert!(page.tasks.is_empty());
    let events = people.audit(&visitor, &AuditFilter::default(), None, 50).await.unwrap();
    assert!(events.records.is_empty());
    let link = people.link(&visitor, &world.task, "#approval", None, None).await;
    assert!(matches!(link, Err(PeopleError::Forbidden(_))));
}

#[tokio::test]
async fn addressee_creates_links_for_itself_only() {
    let world = World::new().await;
    let to = async |person: &str, to| {
        world.people.link(&signed_in(person), &world.task, "#approval", to, None).await
    };
    assert!(to("ben", Some("ben")).await.is_ok() && to("ben", None).await.is_ok());
    assert!(matches!(to("ben", Some("cid")).await, Err(PeopleError::Forbidden(_))));
    assert!(matches!(to("ada", None).await, Err(PeopleError::Invalid(_))));
    assert!(matches!(to("ada", Some("eve")).await, Err(PeopleError::Invalid(_))));
    assert!(matches!(to("ann", Some("ben")).await, Err(PeopleError::Forbidden(_))));
}

#[tokio::test]
async fn operator_cannot_approve_its_own_call_by_a_link() {
    let world = World::new().await;
    let names = Audience::Names(vec!["ben".to_owned()]);
    world.create("of-ada", "ada", "deploy", vec![approval("#approval", names)]).await;
    let task = TaskId::new("of-ada");
    let link = world.people.link(&signed_in("ada"), &task, "#approval", Some("ben"), None).await;
    assert!(matches!(link, Err(PeopleError::Forbidden(_))), "{link:?}");
}

#[tokio::test]
async fn link_of_a_tool_without_links_is_not_created() {
    let world = World::with(Approve::by(["ben", "cid"])).await;
    let link = world.people.link(&signed_in("ben"), &world.task, "#approval", None, None).await;
    assert!(matches!(link, Err(PeopleError::Forbidden(_))), "{link:?}");
}

#[tokio::test]
async fn link_for_a_scope_votes_as_its_channel() {
    let world = World::with(Approve::scope("release").links(true)).await;
    let request = approval("#approval", Audience::Scope("release".to_owned()));
    world.create("scoped", "ann", "deploy", vec![request]).await;
    let task = TaskId::new("scoped");
    let item = world.people.inbox(&signed_in("ada"), None, 50).await.unwrap();
    let item = item.items.into_iter().find(|it| it.item.task == task).unwrap().item;
    let links = world.people.links_for(&item, "chat");
    assert_eq!(links.len(), 1);
    assert_eq!(links[0].0, "link:chat");
    let PersonLink { visitor, task, name, .. } = opened(&world, &links[0].1).await;
    let receipt = world.people.answer(&visitor, &task, &name, accept()).await.unwrap();
    assert_eq!(receipt, AnswerReceipt::Settled);
    let dan = with_scope("dan", "release");
    let view = world.people.input_request(&dan, &task, &name).await.unwrap();
    assert_eq!(view.detail.votes[0].person, "link:chat");
}

#[tokio::test]
async fn changed_and_expired_links_do_not_open() {
    let world = World::new().await;
    let zero = Some(Duration::ZERO);
    let url = world.people.link(&signed_in("ben"), &world.task, "#approval", None, zero).await;
    let opened = world.people.open_link(token_of(&url.unwrap())).await;
    assert_eq!(opened.unwrap_err(), PeopleError::NotFound);
    for token in ["", "x", &"x".repeat(401)] {
        assert_eq!(world.people.open_link(token).await.unwrap_err(), PeopleError::NotFound);
    }
    let other = World::new().await;
    let url = other.people.link(&signed_in("ben"), &other.task, "#approval", None, None).await;
    let opened = world.people.open_link(token_of(&url.unwrap())).await;
    assert_eq!(opened.unwrap_err(), PeopleError::NotFound, "the key of another server");
}
