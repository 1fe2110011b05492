//! Checks of input requests for people: their creation, and the inboxes that contain them.

use std::time::Duration;

use serde_json::json;

use super::bench::{
    ContractBench, MAX_TTL, OWNER, RETENTION, ask, done, names, outside, promises, question, task,
    worker,
};
use crate::store::{
    Audience, Binding, Changes, CreateOutcome, Decision, DecisionOutcome, InboxCursor, InboxReader,
    InputRequestDetail, InputRequestState, Lease, NewInputRequest, NewTask, PageLimit, Phase,
    TaskId,
};

promises![
    task_created_with_request_is_parked_until_its_first_timeout,
    task_created_with_request_and_worker_runs,
    task_created_with_request_has_ttl_of_open_request,
    request_is_in_inbox_from_creation_until_decision,
    request_of_worker_is_in_inbox_from_commit_until_withdrawal,
    request_is_in_inbox_until_task_ends_or_is_deleted,
    response_of_client_removes_request_from_inbox,
    inbox_contains_requests_for_name_scope_and_own_tasks,
    inbox_contains_no_request_of_own_call_for_other_people,
    inbox_of_operator_contains_requests_of_all_tasks,
    task_without_index_is_in_inbox_only_for_named_people,
    inbox_pages_oldest_first,
    inbox_is_counted_up_to_limit,
    inbox_of_one_principal_contains_only_its_tasks,
    external_event_is_in_no_inbox,
    request_for_people_is_invisible_to_client,
    input_request_is_read_with_call_and_binding,
    input_request_is_read_after_its_settlement,
    voted_requests_are_listed_newest_vote_first,
];

/// Person of the tasks.
pub(super) const ANN: &str = "ann";

pub(super) const DIGEST: &str = "4ade91c2";

const MINUTE: Duration = Duration::from_secs(60);

/// Returns a task of ann that lists contain.
pub(super) fn of_ann(id: &str) -> NewTask {
    task(id).person(Some(ANN.to_owned())).indexed(true)
}

/// Returns an audience of people with these names.
pub(super) fn by(people: &[&str]) -> Audience {
    Audience::Names(people.iter().map(|name| (*name).to_owned()).collect())
}

/// Returns an audience of people with the scope `ops`.
pub(super) fn ops() -> Audience {
    Audience::Scope("ops".to_owned())
}

/// Returns an approval request that `count` approvals settle.
pub(super) fn approval(audience: Audience, count: u32) -> NewInputRequest {
    let binding = Binding::new(DIGEST, "definition").count(count);
    question("#approval", "#approval").audience(audience).binding(Some(binding))
}

/// Returns a vote on [`approval`].
pub(super) fn vote(person: &str, accepts: bool) -> Decision {
    let action = if accepts { "accept" } else { "decline" };
    let response = super::bench::raw(&json!({"action": action, "by": person}));
    Decision::new(Some(person.to_owned()), accepts, response).digest(Some(DIGEST.to_owned()))
}

impl ContractBench {
    /// Creates a task of ann with an approval request.
    pub(super) async fn gate(&self, id: &str, audience: Audience, count: u32) {
        self.create(of_ann(id).input_requests(vec![approval(audience, count)])).await;
    }

    pub(super) async fn create(&self, task: NewTask) {
        let created = self.store.create(task).await.expect("create succeeds");
        assert!(created.is_new(), "{created:?}");
    }

    /// Creates a task of ann that worker `v` runs.
    pub(super) async fn start_of_ann(&self, id: &str) -> Lease {
        let new = of_ann(id).worker(Some((worker("v"), MAX_TTL)));
        match self.store.create(new).await.expect("create succeeds") {
            CreateOutcome::Created { lease: Some(lease), .. } => lease,
            other => panic!("expected a lease: {other:?}"),
        }
    }

    pub(super) async fn decide(&self, id: &str, decision: &Decision) -> DecisionOutcome {
        let decided = self.for_people().decide(&TaskId::new(id), "#approval", decision).await;
        decided.expect("operation succeeds")
    }

    pub(super) async fn detail(&self, id: &str, name: &str) -> InputRequestDetail {
        let read = self.for_people().input_request(&TaskId::new(id), name).await;
        read.expect("read succeeds").unwrap_or_else(|| panic!("request {name} does not exist"))
    }

    /// Returns the tasks in an inbox.
    pub(super) async fn tasks_in_inbox(&self, reader: InboxReader) -> Vec<String> {
        let open = self.for_people().open_for(&reader, None, 100).await.expect("read succeeds");
        open.into_iter().map(|item| item.task.as_str().to_owned()).collect()
    }

    /// Returns the tasks in the inbox of a person without scopes.
    pub(super) async fn inbox_of(&self, person: &str) -> Vec<String> {
        self.tasks_in_inbox(InboxReader::new(person, Vec::new())).await
    }
}

fn requests(asked: Vec<NewInputRequest>) -> Changes {
    Changes { input_requests: asked, ..Changes::default() }
}

async fn task_created_with_request_is_parked_until_its_first_timeout(bench: ContractBench) {
    let now = bench.now().await;
    let later = question("k", "n").audience(ops()).due(Some(now + 3_600_000));
    let asked = vec![later, approval(by(&["ada"]), 1).due(Some(now + 60_000))];
    let message = Some("waits for approval".to_owned());
    bench.create(of_ann("a").input_requests(asked).status_message(message.clone())).await;
    let view = bench.view("a").await;
    assert_eq!((view.phase, view.status_message), (Phase::Parked, message));
    assert!(bench.claim("w").await.is_empty(), "the task waits for a decision");
    bench.advance(MINUTE / 2);
    assert!(bench.claim("w").await.is_empty());
    bench.advance(MINUTE);
    let claimed = bench.claim_one("w").await;
    assert!(!claimed.started && claimed.journal.entries.is_empty());
    assert_eq!(claimed.journal.input_requests.len(), 2, "both requests are open");
}

async fn task_created_with_request_and_worker_runs(bench: ContractBench) {
    let new = of_ann("a").worker(Some((worker("v"), MAX_TTL)));
    let created = bench.store.create(new.input_requests(vec![approval(by(&["ada"]), 1)])).await;
    let Ok(CreateOutcome::Created { lease: Some(lease), .. }) = created else {
        panic!("expected a lease: {created:?}")
    };
    assert_eq!(bench.view("a").await.phase, Phase::Running);
    assert_eq!(bench.decide("a", &vote("ada", true)).await, DecisionOutcome::Settled);
    let heard = bench.store.inbox(&lease).await.expect("read succeeds").answers;
    assert_eq!(heard.len(), 1, "the worker gets the response");
}

async fn task_created_with_request_has_ttl_of_open_request(bench: ContractBench) {
    bench.gate("a", by(&["ada"]), 1).await;
    let max = MAX_TTL.as_millis() as u64;
    assert_eq!(bench.view("a").await.ttl, Some(max));
    bench.decide("a", &vote("ada", true)).await;
    assert!(bench.view("a").await.ttl.is_some_and(|ttl| ttl < max), "the TTL starts again");
}

async fn request_is_in_inbox_from_creation_until_decision(bench: ContractBench) {
    bench.gate("a", by(&["ada", "ben"]), 2).await;
    assert_eq!(bench.inbox_of("ada").await, ["a"]);
    bench.decide("a", &vote("ben", true)).await;
    assert_eq!(bench.inbox_of("ada").await, ["a"], "one more vote is needed");
    bench.decide("a", &vote("ada", true)).await;
    assert!(bench.inbox_of("ada").await.is_empty());
    assert!(bench.inbox_of("ben").await.is_empty());
}

async fn request_of_worker_is_in_inbox_from_commit_until_withdrawal(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    assert!(bench.inbox_of("ada").await.is_empty());
    let asked = || requests(vec![question("k", "n").audience(by(&["ada"]))]);
    bench.write(&lease, asked()).await;
    assert_eq!(bench.inbox_of("ada").await, ["a"]);
    bench.park(&lease, Changes::default()).await;
    assert_eq!(bench.inbox_of("ada").await, ["a"]);
    bench.store.cancel(OWNER, &lease.task, false, RETENTION).await.expect("cancel succeeds");
    assert!(bench.inbox_of("ada").await.is_empty());
    let lease = bench.start_of_ann("b").await;
    bench.write(&lease, asked()).await;
    let withdrawn = vec!["n".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..Changes::default() }).await;
    assert!(bench.inbox_of("ada").await.is_empty());
    bench.write(&lease, asked()).await;
    assert_eq!(bench.inbox_of("ada").await, ["b"], "the request is open again");
}

async fn request_is_in_inbox_until_task_ends_or_is_deleted(bench: ContractBench) {
    for id in ["ended", "deleted", "expired"] {
        bench.gate(id, by(&["ada"]), 1).await;
        assert_eq!(bench.inbox_of("ada").await, [id]);
        match id {
            "ended" => {
                let lease = bench.start_of_ann("worker").await;
                bench.write(&lease, requests(vec![approval(by(&["ada"]), 1)])).await;
                bench.end(&lease, done()).await;
                let cancelled = bench.store.cancel(OWNER, &TaskId::new(id), true, RETENTION).await;
                cancelled.expect("cancel succeeds");
            }
            "deleted" => {
                bench.purge(id, true).await;
            }
            _ => {
                bench.advance(MAX_TTL * 2);
                bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
            }
        }
        assert!(bench.inbox_of("ada").await.is_empty(), "{id}");
    }
}

async fn response_of_client_removes_request_from_inbox(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    bench.park(&lease, requests(vec![question("k", "n").audience(Audience::Caller)])).await;
    assert_eq!(bench.inbox_of(ANN).await, ["a"]);
    assert_eq!(bench.answer("a", &[("n", json!(1))]).await, Some(1));
    assert!(bench.inbox_of(ANN).await.is_empty());
}

async fn inbox_contains_requests_for_name_scope_and_own_tasks(bench: ContractBench) {
    let both = Audience::NamesOrScope(vec!["ada".to_owned()], "ops".to_owned());
    let audiences = [Audience::Client, Audience::Caller, by(&["ada"]), ops(), both];
    for (id, audience) in ["client", "caller", "names", "scope", "both"].iter().zip(audiences) {
        bench.gate(id, audience, 1).await;
        bench.advance(Duration::from_secs(1));
    }
    let scoped = |person: &str| InboxReader::new(person, vec!["dev".to_owned(), "ops".to_owned()]);
    assert_eq!(bench.inbox_of("ada").await, ["names", "both"]);
    assert_eq!(bench.tasks_in_inbox(scoped("ada")).await, ["names", "scope", "both"]);
    assert_eq!(bench.tasks_in_inbox(scoped("ben")).await, ["scope", "both"]);
    assert_eq!(bench.inbox_of(ANN).await, ["client", "caller"]);
    assert!(bench.inbox_of("ben").await.is_empty());
    assert!(bench.inbox_of("ops").await.is_empty(), "a scope is not a name");
    assert!(bench.tasks_in_inbox(InboxReader::default()).await.is_empty());
}

async fn inbox_contains_no_request_of_own_call_for_other_people(bench: ContractBench) {
    bench.gate("a", by(&[ANN, "ada"]), 1).await;
    bench.gate("b", ops(), 1).await;
    let reader = InboxReader::new(ANN, vec!["ops".to_owned()]);
    assert!(bench.tasks_in_inbox(reader).await.is_empty(), "ann cannot approve her own calls");
}

async fn inbox_of_operator_contains_requests_of_all_tasks(bench: ContractBench) {
    let audiences = [Audience::Client, Audience::Caller, by(&["ada"]), ops()];
    for (id, audience) in ["a", "b", "c", "d"].iter().zip(audiences) {
        bench.gate(id, audience, 1).await;
        bench.advance(Duration::from_secs(1));
    }
    let anonymous = of_ann("e").person(None).input_requests(vec![question("k", "n")]);
    bench.create(anonymous).await;
    let all = InboxReader::default().all(true);
    assert_eq!(bench.tasks_in_inbox(all).await, ["a", "b", "c", "d", "e"]);
}

async fn task_without_index_is_in_inbox_only_for_named_people(bench: ContractBench) {
    let asked = vec![question("k", "n"), approval(by(&["ada"]), 1)];
    bench.create(of_ann("a").indexed(false).input_requests(asked)).await;
    assert!(bench.inbox_of(ANN).await.is_empty());
    assert_eq!(bench.inbox_of("ada").await, ["a"]);
    assert_eq!(bench.decide("a", &vote("ada", true)).await, DecisionOutcome::Settled);
}

async fn inbox_pages_oldest_first(bench: ContractBench) {
    for (count, id) in ["d", "b", "a", "c"].iter().enumerate() {
        let asked = [question("k1", "n1"), question("k2", "n2")];
        let asked = asked.map(|asked| asked.audience(ops()));
        bench.create(of_ann(id).input_requests(asked.to_vec())).await;
        if count != 1 {
            // The second and the third task open their requests at the same time.
            bench.advance(Duration::from_secs(1));
        }
    }
    let reader = InboxReader::new("ben", vec!["ops".to_owned()]);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = bench.for_people().open_for(&reader, after.as_ref(), 3).await;
        let page = page.expect("read succeeds");
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        after = Some(InboxCursor::new(last.opened_at, last.task.clone(), last.name.clone()));
        seen.extend(page.into_iter().map(|item| (item.opened_at, item.task, item.name)));
    }
    assert!(seen.is_sorted_by(|older, newer| older < newer), "{seen:?}");
    assert_eq!(seen.len(), 8, "{seen:?}");
}

async fn inbox_is_counted_up_to_limit(bench: ContractBench) {
    let people = Audience::NamesOrScope(vec!["ben".to_owned()], "ops".to_owned());
    for (id, audience) in
        [("a", people), ("b", by(&["ada"])), ("c", ops()), ("d", Audience::Caller)]
    {
        bench.gate(id, audience, 1).await;
    }
    bench.create(of_ann("e").indexed(false).input_requests(vec![question("k", "n")])).await;
    let with_scope = |person| InboxReader::new(person, vec!["ops".to_owned(), "dev".to_owned()]);
    let readers = [
        // A request to the name and to a scope of ben counts once.
        (with_scope("ben"), 2),
        (InboxReader::new("ben", Vec::new()), 1),
        // Ann does not approve her own calls.
        (with_scope(ANN), 1),
        (InboxReader::new("eve", Vec::new()), 0),
        (InboxReader::default(), 0),
        (InboxReader::default().all(true), 4),
    ];
    for (reader, expected) in readers {
        let count = bench.for_people().count_open(&reader, 100).await;
        assert_eq!(count, Ok(expected), "{reader:?}");
        assert_eq!(bench.tasks_in_inbox(reader.clone()).await.len(), expected, "{reader:?}");
        let count = bench.for_people().count_open(&reader, 1).await;
        assert_eq!(count, Ok(expected.min(1)), "{reader:?}");
    }
    bench.decide("c", &vote("ben", true).scopes(vec!["ops".to_owned()])).await;
    assert_eq!(bench.for_people().count_open(&with_scope("ben"), 100).await, Ok(1));
}

async fn inbox_of_one_principal_contains_only_its_tasks(bench: ContractBench) {
    bench.gate("a", Audience::Caller, 1).await;
    let other = of_ann("b").principal("name:other".to_owned());
    bench.create(other.input_requests(vec![approval(Audience::Caller, 1)])).await;
    bench.gate("c", by(&["ada"]), 1).await;
    let ann = InboxReader::new(ANN, Vec::new());
    assert_eq!(bench.tasks_in_inbox(ann.clone()).await.len(), 2);
    let only = |principal: &str| ann.clone().principal(Some(principal.to_owned()));
    for (principal, expected) in [(OWNER, vec!["a"]), ("name:other", vec!["b"]), ("name:x", vec![])]
    {
        assert_eq!(bench.tasks_in_inbox(only(principal)).await, expected);
        let count = bench.for_people().count_open(&only(principal), 100).await;
        assert_eq!(count, Ok(expected.len()), "{principal}");
    }
}

async fn external_event_is_in_no_inbox(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    bench.park(&lease, outside("k", "#approval")).await;
    assert!(bench.inbox_of(ANN).await.is_empty());
    assert!(bench.tasks_in_inbox(InboxReader::default().all(true)).await.is_empty());
    assert_eq!(bench.decide("a", &vote(ANN, true)).await, DecisionOutcome::Unknown);
    let read = bench.for_people().input_request(&lease.task, "#approval").await;
    assert!(read.expect("read succeeds").is_none());
}

async fn request_for_people_is_invisible_to_client(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    let asked = vec![approval(by(&["ada"]), 1), question("k", "n").audience(ops())];
    bench.write(&lease, requests(asked)).await;
    assert!(bench.view("a").await.input_requests.is_empty());
    for name in ["#approval", "n"] {
        let open = bench.store.open_input(OWNER, &lease.task, name).await;
        assert!(open.expect("read succeeds").is_none());
    }
    let requires_input = async || {
        let limit = PageLimit::new(1, 1);
        let page = bench.store.read_segments(OWNER, &lease.task, 0, limit).await;
        page.expect("read succeeds").expect("the task exists").input_required
    };
    assert!(!requires_input().await);
    bench.write(&lease, ask(&[("k2", "n2")])).await;
    assert_eq!(names(&bench.view("a").await), ["n2"]);
    assert!(requires_input().await);
}

async fn input_request_is_read_with_call_and_binding(bench: ContractBench) {
    let now = bench.now().await;
    let both = Audience::NamesOrScope(vec!["ada".to_owned(), "ü".to_owned()], "ops".to_owned());
    let asked = approval(both.clone(), 3).due(Some(now + 60_000));
    bench.create(of_ann("a").input_requests(vec![asked])).await;
    let InputRequestDetail { item, votes, response } = bench.detail("a", "#approval").await;
    assert_eq!((item.task.as_str(), item.name.as_str()), ("a", "#approval"));
    assert_eq!((item.tool.as_str(), item.principal.as_str()), ("deploy", OWNER));
    assert_eq!(item.person.as_deref(), Some(ANN));
    let call: serde_json::Value = serde_json::from_str(item.call.get()).expect("is JSON");
    assert_eq!(call, json!({"name": "deploy", "text": "ü\n"}));
    assert_eq!(item.audience, both);
    assert_eq!(item.binding, Some(Binding::new(DIGEST, "definition").count(3)));
    assert_eq!((item.due, item.settled_at), (Some(now + 60_000), None));
    assert!(item.opened_at >= now && item.opened_at <= bench.now().await);
    assert_eq!((item.state, item.approvals), (InputRequestState::Open, 0));
    assert!(votes.is_empty() && response.is_none());
    for (id, name) in [("a", "other"), ("b", "#approval")] {
        let read = bench.for_people().input_request(&TaskId::new(id), name).await;
        assert!(read.expect("read succeeds").is_none());
    }
}

async fn input_request_is_read_after_its_settlement(bench: ContractBench) {
    bench.gate("a", by(&["ada", "ben"]), 2).await;
    bench.advance(MINUTE);
    let before = bench.now().await;
    bench.decide("a", &vote("ben", true).channel("link".to_owned()).saw_definition(false)).await;
    bench.advance(MINUTE);
    let reason = Some("ü, not before the freeze is over".to_owned());
    bench.decide("a", &vote("ada", false).reason(reason.clone())).await;
    let InputRequestDetail { item, votes, response } = bench.detail("a", "#approval").await;
    assert_eq!((item.state, item.approvals), (InputRequestState::Answered, 1));
    let seen: Vec<_> = votes
        .iter()
        .map(|vote| (vote.person.as_str(), vote.accepts, vote.channel.as_str(), &vote.reason))
        .collect();
    assert_eq!(seen, [("ben", true, "link", &None), ("ada", false, "console", &reason)]);
    assert_eq!([votes[0].saw_definition, votes[1].saw_definition], [false, true]);
    assert!(before <= votes[0].at && votes[0].at + 60_000 <= votes[1].at, "{votes:?}");
    assert_eq!(item.settled_at, Some(votes[1].at));
    let response = response.map(|response| response.get().to_owned());
    assert_eq!(response.as_deref(), Some(r#"{"action":"decline","by":"ada"}"#));
}

async fn voted_requests_are_listed_newest_vote_first(bench: ContractBench) {
    for id in ["a", "b", "c", "d"] {
        bench.gate(id, by(&["ada", "ben"]), 2).await;
    }
    for (id, accepts) in [("b", true), ("c", false), ("a", true)] {
        bench.decide(id, &vote("ada", accepts)).await;
        bench.advance(Duration::from_secs(1));
    }
    bench.decide("d", &vote("ben", true)).await;
    let voted = async |limit| {
        let voted = bench.for_people().voted_by("ada", limit).await.expect("read succeeds");
        let seen = voted.into_iter().map(|item| (item.task.as_str().to_owned(), item.state));
        seen.collect::<Vec<_>>()
    };
    let (open, settled) = (InputRequestState::Open, InputRequestState::Answered);
    let expected = [("a", open), ("c", settled), ("b", open)];
    let expected = expected.map(|(id, state)| (id.to_owned(), state));
    assert_eq!(voted(10).await, expected);
    assert_eq!(voted(2).await, expected[..2]);
    bench.purge("a", true).await;
    assert_eq!(voted(10).await, expected[1..]);
}
