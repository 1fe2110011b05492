//! Secrets, and contents that only owners see.

use outlive::{
    people::{Channel, People, PeopleConfig, PeopleError, Visitor},
    server::{Args, Principal, Server, Tool, approve::Approve, tasks::TaskConfig},
    store::{Audience, MemoryStore, NewTask, TaskId, TaskQuery, TaskStore as _},
    wire::InputRequest,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::world::{World, approval, call_of, config, signed_in};

fn owners_only(person: &str) -> Visitor {
    let config = PeopleConfig { owners_only: true, ..config() };
    Visitor::new(&Principal::named(person).deciding(), &config, Channel::Console)
}

#[tokio::test]
async fn contents_are_hidden_from_operators_and_visible_to_owner_and_addressee() {
    let world = World::new().await;
    let (people, task) = (&world.people, &world.task);
    for person in ["ada", "vic"] {
        let visitor = owners_only(person);
        let view = people.task(&visitor, task).await.unwrap();
        assert!(!view.shows_contents && view.arguments.is_empty());
        assert!(view.detail.input_requests.iter().all(|asked| asked.request.is_none()));
        for entry in people.inbox(&visitor, None, 50).await.unwrap().items {
            assert!(!entry.shows_contents && entry.arguments.is_empty());
            assert!(matches!(entry.item.request, InputRequest::Unknown(_)));
        }
        let view = people.input_request(&visitor, task, "#approval").await.unwrap();
        assert!(!view.shows_contents && view.arguments.is_empty() && view.runs.is_none());
        assert!(matches!(view.detail.item.request, InputRequest::Unknown(_)));
        let journal = people.journal(&visitor, task, None, 50).await;
        assert!(matches!(journal, Err(PeopleError::Forbidden(_))));
        let output = people.output(&visitor, task, 0, 50).await;
        assert!(matches!(output, Err(PeopleError::Forbidden(_))));
        let page = people.tasks(&visitor, &TaskQuery::default(), None, 50).await.unwrap();
        assert!(page.tasks.iter().all(|task| task.summary.view.input_requests.is_empty()));
    }
    let rerun = people.rerun(&owners_only("ada"), task, None).await;
    assert!(matches!(rerun, Err(PeopleError::Forbidden(_))), "the new task would show them");
    let view = people.task(&owners_only("ann"), task).await.unwrap();
    assert!(view.shows_contents && view.arguments.len() == 1);
    let view = people.input_request(&owners_only("ben"), task, "#approval").await.unwrap();
    assert!(view.shows_contents && view.can_answer && view.arguments.len() == 1);
}

#[derive(Deserialize, JsonSchema)]
struct Login {
    #[expect(dead_code, reason = "only shown")]
    user: String,
    #[expect(dead_code, reason = "only shown")]
    #[schemars(extend("writeOnly" = true))]
    password: String,
}

async fn login(Args(_): Args<Login>) -> &'static str {
    "welcome"
}

#[tokio::test]
async fn no_function_returns_a_secret_argument() {
    let store = std::sync::Arc::new(MemoryStore::new());
    let tool = Tool::new("login", login)
        .description("Logs in.")
        .approve(Approve::by(["ben"]))
        .command_words(|arguments| Some(vec!["login".to_owned(), arguments.get().to_owned()]));
    let config = TaskConfig::people(store.clone()).index_tasks(true);
    let server = Server::builder("secrets", "1").tasks(config).tool(tool).build().unwrap();
    let people = People::new(&server).unwrap();
    let id = TaskId::new("login");
    let call = call_of("login", json!({"user": "ann", "password": "correct horse"}));
    let names = Audience::Names(vec!["ben".to_owned()]);
    let task = NewTask::new(id.clone(), "name:ann", "login", "test", call)
        .person(Some("ann".to_owned()))
        .indexed(true)
        .input_requests(vec![approval("#approval", names).binding(None)]);
    store.create(task).await.unwrap();
    let mut shown = String::new();
    for person in ["ann", "ben", "ada"] {
        let visitor = signed_in(person);
        shown += &format!("{:?}", people.inbox(&visitor, None, 50).await);
        shown += &format!("{:?}", people.input_request(&visitor, &id, "#approval").await);
        shown += &format!("{:?}", people.task(&visitor, &id).await);
    }
    assert!(!shown.contains("correct horse"), "{shown}");
    let view = people.input_request(&signed_in("ben"), &id, "#approval").await.unwrap();
    let texts: Vec<_> = view.arguments.iter().map(|it| it.text().into_owned()).collect();
    assert_eq!(texts, ["\"ann\"", "hidden, 13 characters"]);
    let words = view.runs.unwrap();
    assert_eq!(words[0], "login");
    assert!(words[1].contains("hidden, 13 characters"), "{words:?}");
    assert_eq!(view.tool_description.as_deref(), Some("Logs in."));
}

#[tokio::test]
async fn cursor_opens_for_its_visitor_and_list_only() {
    use outlive::store::{InboxCursor, ListCursor};

    let world = World::new().await;
    let (people, ann) = (&world.people, signed_in("ann"));
    let cursor = ListCursor::new(7, world.task.clone());
    let sealed = people.seal_cursor(&ann, &cursor).unwrap();
    assert_eq!(people.open_cursor::<ListCursor>(&ann, &sealed).unwrap(), cursor);
    assert!(people.open_cursor::<InboxCursor>(&ann, &sealed).is_err());
    assert!(people.open_cursor::<ListCursor>(&signed_in("ben"), &sealed).is_err());
    assert!(people.open_cursor::<ListCursor>(&ann, &format!("{sealed}A")).is_err());
}

#[tokio::test]
async fn inbox_pages_and_marks_equal_calls() {
    let world = World::new().await;
    let names = || Audience::Names(vec!["ben".to_owned()]);
    for number in 0..3 {
        let id = format!("more-{number}");
        world.create(&id, "ann", "deploy", vec![approval("#approval", names())]).await;
    }
    let (ben, mut after, mut tasks) = (signed_in("ben"), None, Vec::new());
    loop {
        let page = world.people.inbox(&ben, after.as_ref(), 3).await.unwrap();
        assert!(page.items.iter().all(|entry| entry.equal == page.items.len()));
        tasks.extend(page.items.into_iter().map(|entry| entry.item.task));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    tasks.sort();
    tasks.dedup();
    assert_eq!(tasks.len(), 4);
}

#[tokio::test]
async fn change_of_a_task_is_a_hint() {
    let world = World::new().await;
    let mut changes = world.people.changes(&signed_in("ann")).await.unwrap();
    world.people.cancel(&signed_in("ann"), &world.task).await.unwrap();
    assert_eq!(changes.next().await, Some(world.task.clone()));
}
