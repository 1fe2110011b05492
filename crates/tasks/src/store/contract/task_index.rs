//! Checks of lists of tasks by state, tool, person, tag and time.

use std::time::Duration;

use serde_json::json;

use super::{
    bench::{
        ContractBench, MAX_TTL, OWNER, RETENTION, done, outside, promises, question, raw, task,
    },
    inbox::{ANN, approval, by, of_ann},
};
use crate::store::{
    Changes, ListCursor, MAX_TAGS, NewTask, TaskCount, TaskId, TaskOutcome, TaskPage, TaskQuery,
    TaskState, Transition, UnixMillis,
};

promises![
    page_lists_tasks_newest_first,
    page_with_whole_list_has_no_cursor,
    page_of_person_contains_no_task_of_another_person,
    page_by_tool_person_or_tag_skips_tasks_without_index,
    page_by_state_contains_tasks_in_that_state,
    page_follows_changes_of_state,
    page_by_time_includes_since_and_excludes_until,
    page_applies_all_conditions,
    page_stays_the_same_while_tasks_are_created,
    deleted_task_is_on_no_page,
    count_returns_number_of_matches,
    count_above_limit_reports_more,
    tags_of_creation_and_of_worker_are_found,
    surplus_and_repeated_tags_are_ignored,
    tags_of_task_without_index_are_ignored,
    task_is_found_by_id_with_its_state_and_person,
    inspect_returns_person_tags_and_former_run,
];

const SECOND: Duration = Duration::from_secs(1);

fn all() -> TaskQuery {
    TaskQuery::default()
}

fn created(since: Option<UnixMillis>, until: Option<UnixMillis>) -> TaskQuery {
    let mut query = all();
    (query.since, query.until) = (since, until);
    query
}

fn tag(tag: &str) -> TaskQuery {
    all().tag(Some(tag.to_owned()))
}

fn ids(page: &TaskPage) -> Vec<&str> {
    page.tasks.iter().map(|task| task.summary.view.id.as_str()).collect()
}

impl ContractBench {
    async fn page(&self, query: &TaskQuery, after: Option<&ListCursor>, limit: usize) -> TaskPage {
        self.for_people().page(query, after, limit).await.expect("read succeeds")
    }

    /// Returns the IDs of all tasks that match a query.
    async fn found(&self, query: &TaskQuery) -> Vec<String> {
        let page = self.page(query, None, 100).await;
        ids(&page).into_iter().map(str::to_owned).collect()
    }

    /// Returns the IDs of a list, read in pages.
    async fn paged(&self, query: &TaskQuery, limit: usize) -> Vec<String> {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = self.page(query, after.as_ref(), limit).await;
            assert!(page.tasks.len() <= limit);
            seen.extend(ids(&page).into_iter().map(str::to_owned));
            after = page.next;
            if after.is_none() {
                return seen;
            }
        }
    }

    async fn count(&self, query: &TaskQuery, limit: usize) -> (usize, bool) {
        let counted = self.for_people().count(query, limit).await.expect("read succeeds");
        let TaskCount { count, more } = counted;
        (count, more)
    }
}

async fn page_lists_tasks_newest_first(bench: ContractBench) {
    for count in 0..7 {
        bench.create(of_ann(&format!("t{count}"))).await;
        if count != 3 {
            // Two tasks have the same creation time.
            bench.advance(SECOND);
        }
    }
    for query in [all(), all().person(Some(ANN.to_owned())), all().tool(Some("deploy".into()))] {
        let mut seen = bench.paged(&query, 3).await;
        assert_eq!(seen[..2], ["t6", "t5"]);
        assert_eq!(seen[4..], ["t2", "t1", "t0"]);
        seen.sort();
        assert_eq!(seen, ["t0", "t1", "t2", "t3", "t4", "t5", "t6"], "{query:?}");
    }
    let page = bench.page(&all(), None, 1).await;
    let newest = &page.tasks[0];
    assert_eq!((newest.state, newest.person.as_deref()), (TaskState::Queued, Some(ANN)));
    assert_eq!(newest.summary.principal, OWNER);
}

async fn page_with_whole_list_has_no_cursor(bench: ContractBench) {
    assert!(bench.page(&all(), None, 10).await.next.is_none());
    bench.create(of_ann("a")).await;
    let page = bench.page(&all(), None, 10).await;
    assert_eq!((ids(&page), page.next.is_none()), (vec!["a"], true));
    assert_eq!(page.searched_to, None);
}

async fn page_of_person_contains_no_task_of_another_person(bench: ContractBench) {
    for (count, person) in
        [Some(ANN), Some("ben"), None, Some("an"), Some("ann2")].iter().enumerate()
    {
        for run in ["x", "y"] {
            let new = of_ann(&format!("{run}{count}")).person(person.map(str::to_owned));
            bench.create(new).await;
            bench.advance(SECOND);
        }
    }
    let of = |person: &str| all().person(Some(person.to_owned()));
    assert_eq!(bench.paged(&of(ANN), 1).await, ["y0", "x0"]);
    assert_eq!(bench.found(&of("ben")).await, ["y1", "x1"]);
    assert!(bench.found(&of("")).await.is_empty(), "an anonymous caller is not a person");
    assert!(bench.found(&of("Ann")).await.is_empty());
    assert_eq!(bench.found(&all()).await.len(), 10);
}

async fn page_by_tool_person_or_tag_skips_tasks_without_index(bench: ContractBench) {
    let tags = || vec!["order=1".to_owned()];
    bench.create(of_ann("a").indexed(false).tags(tags())).await;
    bench.create(of_ann("b").tags(tags())).await;
    for query in
        [all().tool(Some("deploy".to_owned())), all().person(Some(ANN.to_owned())), tag("order=1")]
    {
        assert_eq!(bench.found(&query).await, ["b"], "{query:?}");
    }
}

/// Creates a task in a state. Its ID is the name of the state.
async fn make(bench: &ContractBench, state: TaskState) {
    let id = state.as_str();
    let end = async |outcome: TaskOutcome| {
        let lease = bench.start_of_ann(id).await;
        bench.end(&lease, outcome).await;
    };
    match state {
        TaskState::Queued => bench.create(of_ann(id)).await,
        TaskState::Running => drop(bench.start_of_ann(id).await),
        TaskState::InputRequired => {
            bench.create(of_ann(id).input_requests(vec![approval(by(&["ada"]), 1)])).await;
        }
        TaskState::Waiting => {
            let lease = bench.start_of_ann(id).await;
            bench.park(&lease, outside("k", "job")).await;
        }
        TaskState::Quarantined => {
            let lease = bench.start_of_ann(id).await;
            bench.stop(&lease, Changes::default()).await;
        }
        TaskState::Completed => end(done()).await,
        TaskState::Failed => {
            end(TaskOutcome::Result(raw(&json!({"content": [], "isError": true})))).await;
        }
        TaskState::Cancelled => end(TaskOutcome::Cancelled).await,
        TaskState::Expired => end(TaskOutcome::Expired).await,
    }
}

async fn page_by_state_contains_tasks_in_that_state(bench: ContractBench) {
    for state in TaskState::ALL {
        make(&bench, state).await;
    }
    for state in TaskState::ALL {
        let query = all().state(Some(state));
        assert_eq!(bench.found(&query).await, [state.as_str()]);
        assert_eq!(bench.found(&query.clone().tool(Some("deploy".into()))).await, [state.as_str()]);
        assert_eq!(bench.count(&query, 10).await, (1, false));
    }
    for task in bench.page(&all(), None, 100).await.tasks {
        assert_eq!(task.state.as_str(), task.summary.view.id.as_str());
    }
}

async fn page_follows_changes_of_state(bench: ContractBench) {
    let in_state = async |state| bench.found(&all().state(Some(state))).await;
    let lease = bench.start_of_ann("a").await;
    assert_eq!(in_state(TaskState::Running).await, ["a"]);
    let asked = Changes { input_requests: vec![question("k", "n")], ..Changes::default() };
    bench.write(&lease, asked).await;
    assert_eq!(in_state(TaskState::InputRequired).await, ["a"]);
    assert!(in_state(TaskState::Running).await.is_empty());
    bench.park(&lease, Changes::default()).await;
    assert_eq!(in_state(TaskState::InputRequired).await, ["a"]);
    bench.answer("a", &[("n", json!(1))]).await;
    assert_eq!(in_state(TaskState::Queued).await, ["a"]);
    let lease = bench.claim_one("w").await.lease;
    let then = Transition::Park { due_at: None, responses_seen: 1 };
    bench.store.commit(&lease, &Changes::default(), &then).await.expect("commit succeeds");
    assert_eq!(in_state(TaskState::Waiting).await, ["a"]);
    bench.advance(MAX_TTL * 2);
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert_eq!(in_state(TaskState::Expired).await, ["a"]);
    for state in TaskState::ALL.into_iter().filter(|state| *state != TaskState::Expired) {
        assert!(in_state(state).await.is_empty(), "{state:?}");
    }
}

async fn page_by_time_includes_since_and_excludes_until(bench: ContractBench) {
    let mut times = Vec::new();
    for id in ["a", "b", "c", "d"] {
        bench.create(of_ann(id)).await;
        times.push(bench.view(id).await.created_at);
        bench.advance(SECOND * 5);
    }
    let query = created(Some(times[1]), Some(times[3]));
    assert_eq!(bench.found(&query).await, ["c", "b"]);
    assert_eq!(bench.paged(&query, 1).await, ["c", "b"]);
    assert_eq!(bench.count(&query, 10).await, (2, false));
    assert_eq!(bench.found(&query.clone().person(Some(ANN.to_owned()))).await, ["c", "b"]);
    assert_eq!(bench.found(&created(Some(times[3] + 1), None)).await, Vec::<String>::new());
    assert_eq!(bench.found(&created(None, Some(times[0]))).await, Vec::<String>::new());
    let nothing = created(Some(times[2]), Some(times[1]));
    assert_eq!(bench.found(&nothing).await, Vec::<String>::new());
}

async fn page_applies_all_conditions(bench: ContractBench) {
    let report = || Some("report".to_owned());
    let tagged = |new: NewTask| new.tags(vec!["order=7".to_owned()]);
    let of_report = |id: &str| of_ann(id).tool("report".to_owned());
    bench.create(tagged(of_report("a"))).await;
    bench.create(tagged(of_ann("b"))).await;
    bench.create(of_report("c")).await;
    bench.create(tagged(of_report("d")).person(Some("ben".to_owned()))).await;
    let query = tag("order=7").tool(report()).person(Some(ANN.to_owned()));
    assert_eq!(bench.found(&query.clone().state(Some(TaskState::Queued))).await, ["a"]);
    assert!(bench.found(&query.state(Some(TaskState::Failed))).await.is_empty());
    assert_eq!(bench.found(&tag("order=7").tool(report())).await.len(), 2);
    assert_eq!(bench.found(&all().tool(report()).person(Some(ANN.to_owned()))).await.len(), 2);
}

async fn page_stays_the_same_while_tasks_are_created(bench: ContractBench) {
    for count in 0..6 {
        bench.create(of_ann(&format!("t{count}"))).await;
        bench.advance(SECOND);
    }
    for query in [all(), all().person(Some(ANN.to_owned()))] {
        let first = bench.page(&query, None, 2).await;
        let second = bench.page(&query, first.next.as_ref(), 2).await;
        for person in [ANN, "ben"] {
            let id = format!("{person}{}", query.person.is_some());
            bench.create(of_ann(&id).person(Some(person.to_owned()))).await;
        }
        let again = bench.page(&query, first.next.as_ref(), 2).await;
        assert_eq!(ids(&again), ids(&second), "{query:?}");
        assert_eq!(again.next, second.next);
    }
}

async fn deleted_task_is_on_no_page(bench: ContractBench) {
    bench.create(of_ann("a").tags(vec!["order=1".to_owned()])).await;
    bench.purge("a", true).await;
    for query in [all(), tag("order=1"), all().person(Some(ANN.to_owned()))] {
        assert!(bench.found(&query).await.is_empty());
        assert_eq!(bench.count(&query, 10).await, (0, false));
    }
}

async fn count_returns_number_of_matches(bench: ContractBench) {
    assert_eq!(bench.count(&all(), 10).await, (0, false));
    for id in ["a", "b", "c"] {
        bench.create(of_ann(id)).await;
    }
    bench.create(of_ann("d").person(Some("ben".to_owned()))).await;
    assert_eq!(bench.count(&all(), 10).await, (4, false));
    assert_eq!(bench.count(&all().person(Some(ANN.to_owned())), 10).await, (3, false));
}

async fn count_above_limit_reports_more(bench: ContractBench) {
    for id in ["a", "b", "c"] {
        bench.create(of_ann(id)).await;
    }
    assert_eq!(bench.count(&all(), 2).await, (2, true));
    assert_eq!(bench.count(&all().person(Some(ANN.to_owned())), 1).await, (1, true));
}

async fn tags_of_creation_and_of_worker_are_found(bench: ContractBench) {
    let tags = vec!["order=1".to_owned(), "kunde=ü".to_owned()];
    bench.create(of_ann("b").tags(tags)).await;
    bench.advance(SECOND);
    let lease = bench.start_of_ann("a").await;
    let tags = vec!["order=1".to_owned()];
    bench.write(&lease, Changes { tags, ..Changes::default() }).await;
    assert_eq!(bench.paged(&tag("order=1"), 1).await, ["a", "b"]);
    assert_eq!(bench.found(&tag("kunde=ü")).await, ["b"]);
    for other in ["order=2", "order", "order=", "1"] {
        assert!(bench.found(&tag(other)).await.is_empty(), "tags match exactly");
    }
    bench.end(&lease, done()).await;
    assert_eq!(bench.found(&tag("order=1").state(Some(TaskState::Completed))).await, ["a"]);
}

async fn surplus_and_repeated_tags_are_ignored(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    for count in 0..MAX_TAGS + 2 {
        let tags = vec![format!("n={count}"), "n=0".to_owned()];
        bench.write(&lease, Changes { tags, ..Changes::default() }).await;
    }
    let expected: Vec<_> = (0..MAX_TAGS).map(|count| format!("n={count}")).collect();
    assert_eq!(bench.inspect("a").await.tags, expected);
    assert!(bench.found(&tag(&format!("n={MAX_TAGS}"))).await.is_empty());
    assert_eq!(bench.found(&tag("n=0")).await, ["a"]);
}

async fn tags_of_task_without_index_are_ignored(bench: ContractBench) {
    let tags = vec!["order=1".to_owned()];
    bench.create(task("a").tags(tags.clone())).await;
    let lease = bench.claim_one("v").await.lease;
    bench.write(&lease, Changes { tags, ..Changes::default() }).await;
    assert!(bench.inspect("a").await.tags.is_empty());
}

async fn task_is_found_by_id_with_its_state_and_person(bench: ContractBench) {
    bench.gate("a", by(&["ada"]), 1).await;
    bench.create(task("b").person(Some("ben".to_owned()))).await;
    let anonymous = NewTask { principal: "anonymous".to_owned(), ..task("c") };
    bench.create(anonymous).await;
    let found = async |id| {
        let found = bench.for_people().task(&TaskId::new(id)).await.expect("read succeeds");
        found.map(|task| (task.state, task.person, task.summary.principal))
    };
    let person = |name: &str| Some(name.to_owned());
    let a = (TaskState::InputRequired, person(ANN), OWNER.to_owned());
    assert_eq!(found("a").await, Some(a));
    let b = (TaskState::Queued, person("ben"), OWNER.to_owned());
    assert_eq!(found("b").await, Some(b), "a task without an index entry is found, too");
    let c = (TaskState::Queued, None, "anonymous".to_owned());
    assert_eq!(found("c").await, Some(c));
    assert_eq!(found("d").await, None);
}

async fn inspect_returns_person_tags_and_former_run(bench: ContractBench) {
    let tags = vec!["order=2".to_owned(), "env=prod".to_owned()];
    bench.create(of_ann("b").tags(tags).rerun_of(Some(TaskId::new("a")))).await;
    bench.create(task("c")).await;
    let shown = bench.inspect("b").await;
    assert_eq!((shown.person.as_deref(), shown.rerun_of), (Some(ANN), Some(TaskId::new("a"))));
    assert_eq!(shown.tags, ["env=prod", "order=2"]);
    let shown = bench.inspect("c").await;
    assert_eq!((shown.person, shown.rerun_of, shown.tags.len()), (None, None, 0));
}
