//! Tasks that run again.

use outlive::{
    people::{PeopleError, Visitor},
    store::{Audience, OperatorStore as _, TaskId, TaskState},
};
use serde_json::json;

use super::world::{World, signed_in, with_scope};

#[tokio::test]
async fn rerun_of_owner_is_a_new_gated_task_of_the_same_principal() {
    let world = World::new().await;
    let ann = signed_in("ann");
    let new = world.people.rerun(&ann, &world.task, None).await.unwrap();
    assert_ne!(new, world.task);
    let view = world.people.task(&ann, &new).await.unwrap();
    assert_eq!(view.rerun_of, Some(world.task.clone()));
    assert_eq!((view.state, view.person.as_deref()), (TaskState::InputRequired, Some("ann")));
    assert_eq!(view.detail.task.principal, "name:ann");
    assert_eq!(view.arguments[0].text(), "\"1.4.2\"");
    let audience = &view.detail.input_requests[0].audience;
    assert_eq!(*audience, Audience::Names(vec!["ben".to_owned(), "cid".to_owned()]));
    let old = world.store.inspect(&world.task).await.unwrap().unwrap();
    assert!(old.rerun_of.is_none(), "the old task does not change");
    assert!(world.actions().await.contains(&"rerun".to_owned()));
}

#[tokio::test]
async fn rerun_of_operator_belongs_to_the_operator() {
    let world = World::new().await;
    let arguments = Some(json!({"version": "1.4.3"}));
    let new = world.people.rerun(&signed_in("ada"), &world.task, arguments).await.unwrap();
    let view = world.people.task(&signed_in("ada"), &new).await.unwrap();
    assert_eq!(view.detail.task.principal, "name:ada");
    assert_eq!(view.person.as_deref(), Some("ada"));
    assert_eq!(view.arguments[0].text(), "\"1.4.3\"");
    let ann = world.people.task(&signed_in("ann"), &new).await;
    assert_eq!(ann.unwrap_err(), PeopleError::NotFound);
}

#[tokio::test]
async fn rerun_with_invalid_arguments_is_rejected() {
    let world = World::new().await;
    let ann = signed_in("ann");
    let wrong = world.people.rerun(&ann, &world.task, Some(json!({"version": 7}))).await;
    assert!(
        matches!(&wrong, Err(PeopleError::Rejected(text)) if text.contains("version")),
        "{wrong:?}"
    );
    let wrong = world.people.rerun(&ann, &world.task, Some(json!([1]))).await;
    assert!(matches!(wrong, Err(PeopleError::Invalid(_))), "{wrong:?}");
}

#[tokio::test]
async fn rerun_needs_the_scopes_of_the_visitor() {
    let world = World::new().await;
    let id = TaskId::new("secured-task");
    create_secured(&world, &id).await;
    let without = world.people.rerun(&signed_in("ann"), &id, None).await;
    assert!(matches!(without, Err(PeopleError::Rejected(_))), "{without:?}");
    let ann: Visitor = with_scope("ann", "deploy");
    let new = world.people.rerun(&ann, &id, None).await.unwrap();
    let view = world.people.task(&ann, &new).await.unwrap();
    assert_eq!(view.rerun_of, Some(id));
}

async fn create_secured(world: &World, id: &TaskId) {
    use outlive::store::{NewInputRequest, NewTask, TaskStore as _};

    let call = super::world::call_of("secured", json!({"version": "1"}));
    let request = NewInputRequest::new("x", "x", Some(super::world::form()));
    let task = NewTask::new(id.clone(), "name:ann", "secured", "test", call)
        .person(Some("ann".to_owned()))
        .indexed(true)
        .input_requests(vec![request]);
    assert!(world.store.create(task).await.unwrap().is_new());
}
