//! Every function for every role.

use std::{collections::BTreeMap, future::Future, pin::Pin, slice};

use outlive::{
    people::{Answer, AuditFilter, BulkAction, BulkId, BulkRequest, PeopleError, Visitor},
    store::{TaskId, TaskQuery},
};
use serde_json::json;

use super::world::{World, accept, signed_in, token};

/// Result of a function: the number of objects that it shows, or why it did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Some(usize),
    NotFound,
    Forbidden,
}

use Seen::{Forbidden, NotFound};

const DONE: Seen = Seen::Some(1);

type SeenFuture<'a> = Pin<Box<dyn Future<Output = Seen> + 'a>>;
type Function = for<'a> fn(&'a World, &'a Visitor, &'a TaskId) -> SeenFuture<'a>;

/// A function, and its result by role.
type Row = (&'static str, Function, [Seen; 6]);

fn row(name: &'static str, function: Function, expected: [Seen; 6]) -> Row {
    (name, function, expected)
}

fn seen<T>(result: Result<T, PeopleError>, count: impl FnOnce(T) -> usize) -> Seen {
    match result {
        Ok(value) => Seen::Some(count(value)),
        Err(PeopleError::NotFound) => NotFound,
        Err(PeopleError::Forbidden(_)) => Forbidden,
        Err(error) => panic!("{error}"),
    }
}

fn done<T>(result: Result<T, PeopleError>) -> Seen {
    seen(result, |_| 1)
}

fn visitors() -> [Visitor; 6] {
    [
        signed_in("ann"),
        signed_in("eve"),
        signed_in("ben"),
        signed_in("vic"),
        signed_in("ada"),
        token("ann"),
    ]
}

/// Returns the answer to an input request as the visitor saw it.
async fn answer(world: &World, visitor: &Visitor, task: &TaskId, name: &str, form: bool) -> Seen {
    let view = world.people.input_request(visitor, task, name).await;
    let digest = view.map(|view| view.digest).unwrap_or_default();
    let content = form.then(|| json!({"replicas": 3}));
    let answer = Answer { digest, content, ..accept() };
    done(world.people.answer(visitor, task, name, answer).await)
}

async fn bulk(world: &World, visitor: &Visitor) -> Result<BulkId, PeopleError> {
    let query = TaskQuery::default().tool(Some("deploy".to_owned()));
    let (action, name) = (BulkAction::Cancel, "INC-42".to_owned());
    let request = BulkRequest { action, query, before: u64::MAX >> 1, name, expect: 1 };
    world.people.bulk(visitor, request).await
}

async fn finished_bulk(world: &World) -> BulkId {
    let ada = signed_in("ada");
    let id = bulk(world, &ada).await.unwrap();
    while !world.people.bulk_status(&ada, &id).await.unwrap().is_finished {
        tokio::task::yield_now().await;
    }
    id
}

/// Columns: owner, stranger, addressee, viewer, operator, MCP token of the owner.
#[rustfmt::skip]
fn table() -> Vec<Row> {
    let task = [DONE, NotFound, NotFound, DONE, DONE, DONE];
    let (none, three) = (Seen::Some(0), Seen::Some(3));
    let two = Seen::Some(2);
    let record = [DONE, NotFound, NotFound, DONE, DONE, Forbidden];
    let overview = [Forbidden, Forbidden, Forbidden, DONE, DONE, Forbidden];
    let operators = [Forbidden, NotFound, NotFound, Forbidden, DONE, Forbidden];
    vec![
        row("inbox", |w, v, _| Box::pin(async move { seen(w.people.inbox(v, None, 50).await, |page| page.items.len()) }),
            [two, none, DONE, three, three, two]),
        row("inbox_count", |w, v, _| Box::pin(async move { seen(w.people.inbox_count(v).await, |count| count) }),
            [two, none, DONE, three, three, two]),
        row("settled", |w, v, _| Box::pin(async move { seen(w.people.settled(v, 5).await, |items| items.len()) }),
            [none; 6]),
        row("input_request of people", |w, v, t| Box::pin(async move { done(w.people.input_request(v, t, "#approval").await) }),
            [DONE, NotFound, DONE, DONE, DONE, DONE]),
        row("input_request of the client", |w, v, t| Box::pin(async move { done(w.people.input_request(v, t, "form").await) }),
            [DONE, NotFound, NotFound, DONE, DONE, DONE]),
        row("answer for people", |w, v, t| Box::pin(answer(w, v, t, "#approval", false)),
            [Forbidden, NotFound, DONE, Forbidden, Forbidden, Forbidden]),
        row("answer for the client", |w, v, t| Box::pin(answer(w, v, t, "form", true)),
            [DONE, NotFound, NotFound, Forbidden, DONE, DONE]),
        row("answer for the caller", |w, v, t| Box::pin(answer(w, v, t, "own", true)),
            [DONE, NotFound, NotFound, Forbidden, Forbidden, Forbidden]),
        row("link", |w, v, t| Box::pin(async move { done(w.people.link(v, t, "#approval", Some("ben"), None).await) }),
            [Forbidden, NotFound, DONE, Forbidden, DONE, Forbidden]),
        row("tasks", |w, v, _| Box::pin(async move { seen(w.people.tasks(v, &TaskQuery::default(), None, 50).await, |page| page.tasks.len()) }),
            [DONE, none, none, DONE, DONE, DONE]),
        row("count", |w, v, _| Box::pin(async move { seen(w.people.count(v, &TaskQuery::default()).await, |count| count.count) }),
            [DONE, none, none, DONE, DONE, DONE]),
        row("task", |w, v, t| Box::pin(async move { done(w.people.task(v, t).await) }), task),
        row("hint", |w, v, t| Box::pin(async move { done(w.people.hint(v, t).await) }), task),
        row("selected", |w, v, t| Box::pin(async move { seen(w.people.selected(v, slice::from_ref(t)).await, |tasks| tasks.len()) }),
            [DONE, none, none, DONE, DONE, DONE]),
        row("act_on_selected", |w, v, t| Box::pin(async move {
            seen(w.people.act_on_selected(v, BulkAction::Cancel, slice::from_ref(t), "INC-42").await, |changed| changed)
        }), [Forbidden, Forbidden, Forbidden, Forbidden, DONE, Forbidden]),
        row("journal", |w, v, t| Box::pin(async move { done(w.people.journal(v, t, None, 50).await) }), record),
        row("timeline", |w, v, t| Box::pin(async move { done(w.people.timeline(v, t).await) }), record),
        row("output", |w, v, t| Box::pin(async move { done(w.people.output(v, t, 0, 50).await) }), task),
        row("task_audit", |w, v, t| Box::pin(async move { done(w.people.task_audit(v, t).await) }), record),
        row("cancel", |w, v, t| Box::pin(async move { done(w.people.cancel(v, t).await) }),
            [DONE, NotFound, NotFound, Forbidden, DONE, DONE]),
        row("retry", |w, v, t| Box::pin(async move { done(w.people.retry(v, t).await) }), operators),
        row("purge", |w, v, t| Box::pin(async move { done(w.people.purge(v, t, true).await) }), operators),
        row("rerun", |w, v, t| Box::pin(async move { done(w.people.rerun(v, t, None).await) }),
            [DONE, NotFound, NotFound, Forbidden, DONE, Forbidden]),
        row("bulk", |w, v, _| Box::pin(async move { done(bulk(w, v).await) }),
            [Forbidden, Forbidden, Forbidden, Forbidden, DONE, Forbidden]),
        row("bulk_status", |w, v, _| Box::pin(async move { done(w.people.bulk_status(v, &finished_bulk(w).await).await) }),
            overview),
        row("bulk_continue", |w, v, _| Box::pin(async move { done(w.people.bulk_continue(v, &finished_bulk(w).await).await) }),
            [Forbidden, Forbidden, Forbidden, Forbidden, DONE, Forbidden]),
        row("audit", |w, v, _| Box::pin(async move {
            w.people.cancel(&signed_in("ann"), &w.task).await.unwrap();
            seen(w.people.audit(v, &AuditFilter::default(), None, 50).await, |page| page.records.len())
        }), [DONE, none, none, DONE, DONE, Forbidden]),
        row("audit of a task", |w, v, t| Box::pin(async move {
            let filter = AuditFilter { task: Some(t.clone()), ..AuditFilter::default() };
            done(w.people.audit(v, &filter, None, 50).await)
        }), record),
        row("metrics", |w, v, _| Box::pin(async move { done(w.people.metrics(v, 0).await) }), overview),
        row("stats", |w, v, _| Box::pin(async move { done(w.people.stats(v).await) }), overview),
        row("workers", |w, v, _| Box::pin(async move { done(w.people.workers(v).await) }), overview),
        row("deliveries", |w, v, _| Box::pin(async move { done(w.people.deliveries(v).await) }), overview),
        row("send_again", |w, v, _| Box::pin(async move { done(w.people.send_again(v, "unknown").await) }),
            [Forbidden, Forbidden, Forbidden, Forbidden, NotFound, Forbidden]),
        row("changes", |w, v, _| Box::pin(async move { done(w.people.changes(v).await) }), [DONE; 6]),
    ]
}

#[tokio::test]
async fn function_for_every_role_matches_table() {
    let roles = ["owner", "stranger", "addressee", "viewer", "operator", "MCP token"];
    for (name, function, expected) in table() {
        for ((visitor, role), expected) in visitors().iter().zip(roles).zip(expected) {
            let world = World::new().await;
            let seen = function(&world, visitor, &world.task.clone()).await;
            assert_eq!(seen, expected, "{name} for {role}");
        }
    }
}

/// A foreign task and a task that does not exist are indistinguishable, also by the number of
/// statements.
#[tokio::test]
async fn foreign_and_unknown_task_get_the_same_after_the_same_statements() {
    let unknown = TaskId::new("unknown-task");
    for (name, function, expected) in table() {
        let strangers = [(1, signed_in("eve")), (1, token("eve"))];
        for (_, visitor) in
            strangers.into_iter().filter(|(column, _)| expected[*column] == NotFound)
        {
            let mut counts = BTreeMap::new();
            for (kind, id) in [("foreign", None), ("unknown", Some(&unknown))] {
                let world = World::new().await;
                let id = id.unwrap_or(&world.task).clone();
                let before = world.store.statements();
                assert_eq!(function(&world, &visitor, &id).await, NotFound, "{name}, {kind}");
                counts.insert(kind, world.store.statements() - before);
            }
            assert_eq!(counts["foreign"], counts["unknown"], "{name}");
        }
    }
}

#[tokio::test]
async fn list_for_another_person_is_empty_like_that_for_an_unknown_one() {
    let world = World::new().await;
    for person in ["ann", "unknown"] {
        let query = TaskQuery::default().person(Some(person.to_owned()));
        let page = world.people.tasks(&signed_in("eve"), &query, None, 50).await.unwrap();
        assert!(page.tasks.is_empty() && page.next.is_none(), "{person}");
    }
}

#[tokio::test]
async fn person_sees_tasks_of_all_its_clients_and_mcp_token_those_of_one() {
    use outlive::{
        people::Channel,
        server::Principal,
        store::{NewTask, TaskStore as _},
    };

    let world = World::new().await;
    let config = super::world::config();
    for client in ["editor", "chat"] {
        let key = format!("name:iss|ann|{client}");
        let task =
            NewTask::new(TaskId::new(client), key, "deploy", "test", super::world::call("1"))
                .person(Some("iss|ann".to_owned()))
                .indexed(true)
                .input_requests(vec![super::world::approval("x", Default::default())]);
        world.store.create(task).await.unwrap();
    }
    let editor = Principal::named("iss|ann|editor").with_person("iss|ann");
    let query = TaskQuery::default();
    let plain = Visitor::new(&editor, &config, Channel::Api);
    let session = Visitor::new(&editor.deciding(), &config, Channel::Console);
    let ids = async |visitor: &Visitor| {
        let page = world.people.tasks(visitor, &query, None, 50).await.unwrap();
        let ids = page.tasks.iter().map(|task| task.summary.view.id.as_str().to_owned());
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        (ids, world.people.count(visitor, &query).await.unwrap().count)
    };
    assert_eq!(ids(&session).await, (vec!["chat".to_owned(), "editor".to_owned()], 2));
    assert_eq!(ids(&plain).await, (vec!["editor".to_owned()], 1));
    let chat = TaskId::new("chat");
    assert_eq!(world.people.task(&plain, &chat).await.unwrap_err(), PeopleError::NotFound);
    assert_eq!(world.people.cancel(&plain, &chat).await.unwrap_err(), PeopleError::NotFound);
    assert!(world.people.cancel(&session, &chat).await.is_ok());
}

#[tokio::test]
async fn operator_of_a_store_responds_for_the_client_and_decides_nothing() {
    let world = World::new().await;
    let people = outlive::people::People::open(world.store.clone()).unwrap();
    let operator = Visitor::operator();
    let view = people.input_request(&operator, &world.task, "form").await.unwrap();
    assert!(view.can_answer);
    let content = Some(json!({"replicas": 1}));
    let answer = Answer { digest: view.digest, content, ..accept() };
    people.answer(&operator, &world.task, "form", answer).await.unwrap();
    for name in ["#approval", "own"] {
        let view = people.input_request(&operator, &world.task, name).await.unwrap();
        assert!(!view.can_answer, "{name}");
        let answer = Answer { digest: view.digest, ..accept() };
        let answered = people.answer(&operator, &world.task, name, answer).await;
        assert!(matches!(answered, Err(PeopleError::Forbidden(_))), "{name}");
    }
    let link = people.link(&operator, &world.task, "#approval", Some("ben"), None).await;
    assert!(matches!(link, Err(PeopleError::Forbidden(_))));
    let rerun = people.rerun(&operator, &world.task, None).await;
    assert!(matches!(rerun, Err(PeopleError::Forbidden(_))));
    assert!(people.cancel(&operator, &world.task).await.is_ok());
}
