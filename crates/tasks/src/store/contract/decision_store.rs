//! Checks of votes: the people that may vote, settled requests, and concurrent decisions.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::task::JoinSet;

use super::{
    bench::{
        ContractBench, LEASE, MAX_TTL, OWNER, RETENTION, done, outside, promises, question, raw,
        recorded,
    },
    inbox::{ANN, approval, by, of_ann, ops, vote},
};
use crate::store::{
    Audience, AuditEvent, CancelOutcome, ChangeSource, Changes, Decision, DecisionOutcome,
    InputRequestState, InputSource, NewInputRequest, Phase, TaskId,
};

promises![
    enough_approvals_settle_request_and_queue_task,
    vote_counts_once_per_person,
    first_denial_settles_request,
    form_for_people_is_settled_by_first_response,
    one_of_concurrent_decisions_settles_request,
    concurrent_votes_are_all_counted,
    decision_and_cancellation_have_one_order,
    decision_after_settlement_changes_nothing,
    vote_after_timeout_is_expired,
    vote_after_end_of_task_is_withdrawn,
    vote_on_withdrawn_request_is_withdrawn,
    vote_for_other_digest_is_rejected,
    person_outside_audience_learns_nothing,
    own_call_is_not_approved_by_its_person,
    caller_and_operator_respond_to_requests_of_client,
    client_tool_link_and_external_event_do_not_respond_for_people,
    vote_and_its_audit_event_are_one_transaction,
    votes_count_in_bytes_of_principal,
    vote_above_byte_limit_is_rejected,
    settling_vote_is_in_inbox_of_running_worker,
    vote_on_quarantined_task_does_not_wake_it,
    reopened_request_has_no_votes,
    vote_notifies_listeners,
    response_is_found_by_denial_key_from_its_commit,
    response_of_client_is_found_by_denial_key,
    open_and_withdrawn_requests_are_not_found_by_denial_key,
];

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn counted(approvals: u32, needed: u32) -> DecisionOutcome {
    DecisionOutcome::Counted { approvals, needed }
}

fn requests(asked: Vec<NewInputRequest>) -> Changes {
    Changes { input_requests: asked, ..Changes::default() }
}

impl ContractBench {
    async fn votes(&self, id: &str) -> usize {
        self.detail(id, "#approval").await.votes.len()
    }

    async fn state_of(&self, id: &str) -> InputRequestState {
        self.detail(id, "#approval").await.item.state
    }
}

async fn enough_approvals_settle_request_and_queue_task(bench: ContractBench) {
    bench.gate("a", by(&["ada", "ben", "cid"]), 2).await;
    assert_eq!(bench.decide("a", &vote("ben", true)).await, counted(1, 2));
    let view = bench.view("a").await;
    assert_eq!(view.phase, Phase::Parked);
    assert!(bench.claim("w").await.is_empty(), "one more vote is needed");
    assert_eq!(bench.decide("a", &vote("ada", true)).await, DecisionOutcome::Settled);
    let queued = bench.view("a").await;
    assert_eq!(queued.phase, Phase::Queued);
    assert!(queued.updated_at > view.updated_at, "a settled request is a change");
    let claimed = bench.claim_one("w").await;
    let response = recorded(&claimed.journal, "#approval");
    assert_eq!(response.as_deref(), Some(r#"{"action":"accept","by":"ada"}"#));
    assert!(claimed.journal.input_requests.is_empty() && !claimed.started);
}

async fn vote_counts_once_per_person(bench: ContractBench) {
    bench.gate("a", by(&["ada", "ben"]), 2).await;
    assert_eq!(bench.decide("a", &vote("ada", true)).await, counted(1, 2));
    for accepts in [true, false] {
        let again = bench.decide("a", &vote("ada", accepts).channel("link".to_owned())).await;
        assert_eq!(again, DecisionOutcome::AlreadyVoted);
    }
    assert_eq!((bench.votes("a").await, bench.state_of("a").await), (1, InputRequestState::Open));
}

async fn first_denial_settles_request(bench: ContractBench) {
    bench.gate("a", by(&["ada", "ben", "cid"]), 2).await;
    assert_eq!(bench.decide("a", &vote("ada", true)).await, counted(1, 2));
    assert_eq!(bench.decide("a", &vote("ben", false)).await, DecisionOutcome::Settled);
    let response = recorded(&bench.claim_one("w").await.journal, "#approval");
    assert_eq!(response.as_deref(), Some(r#"{"action":"decline","by":"ben"}"#));
}

async fn form_for_people_is_settled_by_first_response(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    bench.park(&lease, requests(vec![question("k", "n").audience(ops())])).await;
    let form = raw(&json!({"action": "accept", "content": {"quarter": 3}}));
    let form = Decision::new(Some("ben".to_owned()), true, form).scopes(vec!["ops".to_owned()]);
    let decided = bench.for_people().decide(&lease.task, "n", &form).await;
    assert_eq!(decided, Ok(DecisionOutcome::Settled), "a request without a binding has no digest");
    let response = recorded(&bench.claim_one("w").await.journal, "k");
    assert!(response.is_some_and(|response| response.contains("quarter")));
}

/// Decides at the same time as 16 people. Returns the outcomes.
async fn decide_together(bench: &ContractBench, id: &str) -> Vec<DecisionOutcome> {
    let mut votes = JoinSet::new();
    for number in 0..16 {
        let (store, id) = (Arc::clone(bench.for_people()), TaskId::new(id));
        votes.spawn(async move {
            let decision = vote(&format!("p{number}"), true).scopes(vec!["ops".to_owned()]);
            store.decide(&id, "#approval", &decision).await.expect("operation succeeds")
        });
    }
    votes.join_all().await
}

async fn one_of_concurrent_decisions_settles_request(bench: ContractBench) {
    bench.gate("a", ops(), 1).await;
    let outcomes = decide_together(&bench, "a").await;
    let settled = outcomes.iter().filter(|one| **one == DecisionOutcome::Settled).count();
    let late = outcomes.iter().filter(|one| **one == DecisionOutcome::AlreadySettled).count();
    assert_eq!((settled, late), (1, 15), "{outcomes:?}");
    assert_eq!(bench.votes("a").await, 1);
    assert_eq!(bench.claim("w").await.len(), 1, "the task is queued once");
}

async fn concurrent_votes_are_all_counted(bench: ContractBench) {
    bench.gate("a", ops(), 16).await;
    let mut outcomes = decide_together(&bench, "a").await;
    outcomes.sort_by_key(|outcome| match outcome {
        DecisionOutcome::Counted { approvals, .. } => *approvals,
        _ => u32::MAX,
    });
    let mut expected: Vec<_> = (1..16).map(|approvals| counted(approvals, 16)).collect();
    expected.push(DecisionOutcome::Settled);
    assert_eq!(outcomes, expected);
}

async fn decision_and_cancellation_have_one_order(bench: ContractBench) {
    for number in 0..8 {
        let id = TaskId::new(format!("t{number}"));
        bench.gate(id.as_str(), by(&["ada"]), 1).await;
        let (store, task) = (Arc::clone(bench.for_people()), id.clone());
        let deciding = tokio::spawn(async move {
            let decided = store.decide(&task, "#approval", &vote("ada", true)).await;
            decided.expect("operation succeeds")
        });
        let cancelled = bench.store.cancel(OWNER, &id, false, RETENTION).await;
        assert_eq!(cancelled, Ok(Some(CancelOutcome::Cancelled)));
        let decided = deciding.await.expect("the decision returns");
        let (state, votes) = (bench.state_of(id.as_str()).await, bench.votes(id.as_str()).await);
        match decided {
            DecisionOutcome::Settled => {
                assert_eq!((state, votes), (InputRequestState::Answered, 1));
            }
            DecisionOutcome::Withdrawn => {
                assert_eq!((state, votes), (InputRequestState::Withdrawn, 0));
            }
            other => panic!("unexpected outcome {other:?}"),
        }
        assert_eq!(bench.view(id.as_str()).await.phase, Phase::Ended);
    }
}

async fn decision_after_settlement_changes_nothing(bench: ContractBench) {
    bench.gate("a", by(&["ada", "ben"]), 1).await;
    bench.decide("a", &vote("ada", true)).await;
    let before = bench.view("a").await;
    for late in [vote("ben", false), vote("ada", true)] {
        assert_eq!(bench.decide("a", &late).await, DecisionOutcome::AlreadySettled);
    }
    assert_eq!((bench.votes("a").await, bench.view("a").await.updated_at), (1, before.updated_at));
    let response = recorded(&bench.claim_one("w").await.journal, "#approval");
    assert_eq!(response.as_deref(), Some(r#"{"action":"accept","by":"ada"}"#));
}

async fn vote_after_timeout_is_expired(bench: ContractBench) {
    let due = bench.now().await + 60_000;
    let asked = approval(by(&["ada", "ben"]), 2).due(Some(due));
    bench.create(of_ann("a").input_requests(vec![asked])).await;
    assert_eq!(bench.decide("a", &vote("ben", true)).await, counted(1, 2));
    bench.advance(MINUTE);
    for late in [vote("ada", true), vote("ada", false)] {
        assert_eq!(bench.decide("a", &late).await, DecisionOutcome::Expired);
    }
    assert_eq!(bench.votes("a").await, 1);
    let claimed = bench.claim_one("w").await;
    assert!(claimed.journal.entries.is_empty(), "the worker finds no response");
    assert_eq!(bench.decide("a", &vote("ada", true)).await, DecisionOutcome::Expired);
}

async fn vote_after_end_of_task_is_withdrawn(bench: ContractBench) {
    for id in ["cancelled", "expired", "ended"] {
        match id {
            "ended" => {
                let lease = bench.start_of_ann(id).await;
                bench.write(&lease, requests(vec![approval(by(&["ada"]), 1)])).await;
                bench.end(&lease, done()).await;
            }
            "cancelled" => {
                bench.gate(id, by(&["ada"]), 1).await;
                let cancelled = bench.store.cancel(OWNER, &TaskId::new(id), false, RETENTION).await;
                assert_eq!(cancelled, Ok(Some(CancelOutcome::Cancelled)));
            }
            _ => {
                bench.gate(id, by(&["ada"]), 1).await;
                bench.advance(MAX_TTL + MINUTE);
                bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
            }
        }
        assert_eq!(bench.decide(id, &vote("ada", true)).await, DecisionOutcome::Withdrawn, "{id}");
        assert_eq!(bench.votes(id).await, 0);
        assert_eq!(bench.view(id).await.phase, Phase::Ended);
    }
}

async fn vote_on_withdrawn_request_is_withdrawn(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    bench.write(&lease, requests(vec![approval(by(&["ada"]), 1)])).await;
    let withdrawn = vec!["#approval".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..Changes::default() }).await;
    assert_eq!(bench.decide("a", &vote("ada", true)).await, DecisionOutcome::Withdrawn);
    assert!(bench.store.inbox(&lease).await.expect("read succeeds").answers.is_empty());
}

async fn vote_for_other_digest_is_rejected(bench: ContractBench) {
    bench.gate("a", by(&["ada"]), 1).await;
    for digest in [None, Some("other".to_owned()), Some(String::new())] {
        let other = vote("ada", true).digest(digest);
        assert_eq!(bench.decide("a", &other).await, DecisionOutcome::DigestDiffers);
    }
    assert_eq!((bench.votes("a").await, bench.state_of("a").await), (0, InputRequestState::Open));
    assert_eq!(bench.decide("a", &vote("ada", true)).await, DecisionOutcome::Settled);
}

async fn person_outside_audience_learns_nothing(bench: ContractBench) {
    bench.gate("open", by(&["ada"]), 1).await;
    bench.gate("settled", by(&["ada"]), 1).await;
    bench.decide("settled", &vote("ada", true)).await;
    let operator = Decision { person: None, ..vote("ada", true) };
    let eve = [vote("eve", true), vote("eve", false).digest(None), operator];
    for decision in eve {
        for id in ["open", "settled", "unknown"] {
            assert_eq!(bench.decide(id, &decision).await, DecisionOutcome::Unknown, "{id}");
        }
    }
    let scope = vote("eve", true).scopes(vec!["ada".to_owned(), "ops".to_owned()]);
    assert_eq!(bench.decide("open", &scope).await, DecisionOutcome::Unknown);
    assert_eq!(bench.votes("open").await, 0);
}

async fn own_call_is_not_approved_by_its_person(bench: ContractBench) {
    let both = Audience::NamesOrScope(vec![ANN.to_owned()], "ops".to_owned());
    for (id, audience) in ["a", "b", "c"].iter().zip([by(&[ANN, "ada"]), ops(), both]) {
        bench.gate(id, audience, 1).await;
        let own = vote(ANN, true).scopes(vec!["ops".to_owned()]);
        assert_eq!(bench.decide(id, &own).await, DecisionOutcome::Unknown);
        assert_eq!(bench.view(id).await.phase, Phase::Parked);
    }
    // An anonymous caller has no person, so its call has no own vote.
    let asked = vec![approval(by(&["ada"]), 1)];
    bench.create(of_ann("anonymous").person(None).input_requests(asked)).await;
    assert_eq!(bench.decide("anonymous", &vote("ada", true)).await, DecisionOutcome::Settled);
}

async fn caller_and_operator_respond_to_requests_of_client(bench: ContractBench) {
    let operator = Decision { person: None, ..vote("ada", true) };
    bench.gate("client", Audience::Client, 1).await;
    bench.gate("again", Audience::Client, 1).await;
    bench.gate("caller", Audience::Caller, 1).await;
    for id in ["client", "caller"] {
        let scoped = vote("ada", true).scopes(vec!["ops".to_owned()]);
        assert_eq!(bench.decide(id, &scoped).await, DecisionOutcome::Unknown);
    }
    assert_eq!(bench.decide("caller", &operator).await, DecisionOutcome::Unknown);
    assert_eq!(bench.decide("caller", &vote(ANN, true)).await, DecisionOutcome::Settled);
    assert_eq!(bench.decide("client", &vote(ANN, false)).await, DecisionOutcome::Settled);
    assert_eq!(bench.decide("again", &operator).await, DecisionOutcome::Settled);
    assert_eq!(bench.votes("again").await, 0, "an operator is not a person");
}

async fn client_tool_link_and_external_event_do_not_respond_for_people(bench: ContractBench) {
    let both = Audience::NamesOrScope(vec!["ada".to_owned()], "ops".to_owned());
    let sources =
        [InputSource::Client, InputSource::Tool, InputSource::Link, InputSource::External];
    for (id, audience) in ["a", "b", "c"].iter().zip([by(&["ada"]), ops(), both]) {
        bench.gate(id, audience, 1).await;
        for from in sources {
            let forged = [("#approval", json!({"action": "accept"}))];
            assert_eq!(bench.answer_from(from, id, &forged).await, Some(0), "{from:?}");
        }
        assert_eq!(bench.view(id).await.phase, Phase::Parked);
        assert_eq!(bench.state_of(id).await, InputRequestState::Open);
    }
    assert!(bench.claim("w").await.is_empty(), "an ignored response wakes no task");
}

async fn vote_and_its_audit_event_are_one_transaction(bench: ContractBench) {
    let audited = |person: &str, action: &str| {
        let event = AuditEvent::new("a", person, action).reason(Some("by console".to_owned()));
        vote(person, true).audit(Some((event, DAY)))
    };
    bench.gate("a", by(&["ada", "ben"]), 2).await;
    for (decision, expected) in [
        (audited("ada", "voted"), counted(1, 2)),
        (audited("ada", "again"), DecisionOutcome::AlreadyVoted),
        (audited("eve", "outside"), DecisionOutcome::Unknown),
        (audited("ben", "other").digest(None), DecisionOutcome::DigestDiffers),
        (audited("ben", "full").max_bytes(1), DecisionOutcome::BytesExceeded),
        (audited("ben", "approved"), DecisionOutcome::Settled),
        (audited("ben", "late"), DecisionOutcome::AlreadySettled),
    ] {
        assert_eq!(bench.decide("a", &decision).await, expected);
    }
    let events = bench.store.read(Some("a"), 0, 100).await.expect("read succeeds");
    let seen: Vec<_> = events
        .iter()
        .map(|audit| (audit.event.action.as_str(), audit.event.principal.as_str()))
        .collect();
    assert_eq!(seen, [("voted", "ada"), ("approved", "ben")]);
    bench.advance(DAY + MINUTE);
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert!(bench.store.read(Some("a"), 0, 100).await.expect("read succeeds").is_empty());
}

async fn votes_count_in_bytes_of_principal(bench: ContractBench) {
    let stored = async || bench.store.stored_bytes(OWNER).await.expect("read succeeds");
    bench.gate("a", by(&["ada", "ben"]), 2).await;
    let created = stored().await;
    let reason = "x".repeat(1_000);
    bench.decide("a", &vote("ada", true).reason(Some(reason))).await;
    let voted = stored().await;
    assert!(voted >= created + 1_000, "{created} {voted}");
    bench.decide("a", &vote("ben", true)).await;
    assert!(stored().await > voted + 30, "the response counts, too");
    bench.purge("a", true).await;
    assert_eq!(stored().await, 0);
}

async fn vote_above_byte_limit_is_rejected(bench: ContractBench) {
    bench.gate("a", by(&["ada"]), 1).await;
    let stored = bench.store.stored_bytes(OWNER).await.expect("read succeeds");
    let full = vote("ada", true).max_bytes(stored + 1);
    assert_eq!(bench.decide("a", &full).await, DecisionOutcome::BytesExceeded);
    assert_eq!((bench.votes("a").await, bench.state_of("a").await), (0, InputRequestState::Open));
    let room = vote("ada", true).max_bytes(stored + 1_000);
    assert_eq!(bench.decide("a", &room).await, DecisionOutcome::Settled);
}

async fn settling_vote_is_in_inbox_of_running_worker(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    bench.write(&lease, requests(vec![approval(by(&["ada"]), 1)])).await;
    assert_eq!(bench.decide("a", &vote("ada", true)).await, DecisionOutcome::Settled);
    let heard = bench.store.inbox(&lease).await.expect("read succeeds").answers;
    assert_eq!(heard.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["#approval"]);
    bench.park(&lease, Changes::default()).await;
    assert_eq!(bench.view("a").await.phase, Phase::Queued, "the worker has not seen the response");
}

async fn vote_on_quarantined_task_does_not_wake_it(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    bench.stop(&lease, requests(vec![approval(by(&["ada"]), 1)])).await;
    assert_eq!(bench.decide("a", &vote("ada", true)).await, DecisionOutcome::Settled);
    assert_eq!(bench.view("a").await.phase, Phase::Quarantined);
    assert!(bench.claim("w").await.is_empty());
    bench.retry("a").await;
    let response = recorded(&bench.claim_one("w").await.journal, "#approval");
    assert!(response.is_some());
}

async fn reopened_request_has_no_votes(bench: ContractBench) {
    let lease = bench.start_of_ann("a").await;
    let asked = || requests(vec![approval(by(&["ada", "ben"]), 2)]);
    bench.write(&lease, asked()).await;
    assert_eq!(bench.decide("a", &vote("ada", true)).await, counted(1, 2));
    bench.write(&lease, asked()).await;
    assert_eq!(bench.votes("a").await, 1, "an open request stays open");
    let withdrawn = vec!["#approval".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..outside("k", "job") }).await;
    bench.advance(LEASE);
    bench.write(&lease, asked()).await;
    let detail = bench.detail("a", "#approval").await;
    assert_eq!((detail.votes.len(), detail.item.settled_at), (0, None));
    assert_eq!(bench.decide("a", &vote("ben", true)).await, counted(1, 2));
    assert_eq!(bench.decide("a", &vote("ada", true)).await, DecisionOutcome::Settled);
}

async fn vote_notifies_listeners(bench: ContractBench) {
    bench.gate("a", by(&["ada"]), 1).await;
    let seen: Arc<Mutex<Vec<ChangeSource>>> = Arc::default();
    let listener = Arc::clone(&seen);
    bench.store.subscribe(Arc::new(move |task, source| {
        if task.as_str() == "a" {
            listener.lock().expect("the lock is not poisoned").push(source);
        }
    }));
    bench.decide("a", &vote("ada", true)).await;
    // Another handle on the store reports the change soon.
    for _ in 0..200 {
        if seen.lock().expect("the lock is not poisoned").contains(&ChangeSource::Other) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the vote was not reported");
}

/// Returns an approval request with a denial key.
fn deniable(audience: Audience, key: &str) -> NewInputRequest {
    let asked = approval(audience, 2);
    let binding = asked.binding.clone().map(|binding| binding.denial(Some(key.to_owned())));
    asked.binding(binding)
}

impl ContractBench {
    /// Creates a task of ann with an approval request under a denial key.
    async fn deniable(&self, id: &str, audience: Audience, key: &str) {
        self.create(of_ann(id).input_requests(vec![deniable(audience, key)])).await;
    }

    /// Returns the responses under a denial key since a time, newest first.
    async fn settled_since(&self, key: &str, since: u64) -> Vec<(String, u64)> {
        let settled = self.for_people().settled_since(key, since, 100).await;
        let settled = settled.expect("read succeeds").into_iter();
        settled.map(|one| (one.response.get().to_owned(), one.settled_at)).collect()
    }
}

async fn response_is_found_by_denial_key_from_its_commit(bench: ContractBench) {
    let (accepted, declined) =
        (r#"{"action":"accept","by":"ada"}"#, r#"{"action":"decline","by":"ben"}"#);
    for (id, key) in [("a", "k"), ("b", "k"), ("c", "l"), ("d", "k")] {
        bench.deniable(id, by(&["ada", "ben"]), key).await;
    }
    assert!(bench.settled_since("k", 0).await.is_empty());
    assert_eq!(bench.decide("a", &vote("ben", false)).await, DecisionOutcome::Settled);
    let denied_at = bench.detail("a", "#approval").await.item.settled_at.expect("is settled");
    let denied = (declined.to_owned(), denied_at);
    // No worker has seen the decision.
    assert_eq!(bench.settled_since("k", denied_at).await, std::slice::from_ref(&denied));
    assert!(bench.settled_since("k", denied_at + 1).await.is_empty());
    assert!(bench.settled_since("l", 0).await.is_empty());
    bench.advance(MINUTE);
    assert_eq!(bench.decide("b", &vote("ben", true)).await, counted(1, 2));
    assert_eq!(bench.settled_since("k", 0).await.len(), 1, "another vote is needed");
    assert_eq!(bench.decide("b", &vote("ada", true)).await, DecisionOutcome::Settled);
    let settled = bench.settled_since("k", 0).await;
    assert_eq!(settled.len(), 2, "{settled:?}");
    assert_eq!((settled[0].0.as_str(), &settled[1]), (accepted, &denied));
    let newest = bench.for_people().settled_since("k", 0, 1).await.expect("read succeeds");
    assert_eq!((newest.len(), newest[0].response.get()), (1, accepted));
    let lease = bench.claim("w").await.into_iter().find(|one| one.lease.task.as_str() == "a");
    bench.end(&lease.expect("the denied task is due").lease, done()).await;
    assert_eq!(bench.settled_since("k", 0).await.len(), 2, "the task is still readable");
    bench.advance(RETENTION + MAX_TTL + MINUTE);
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert!(bench.is_gone("a").await);
    assert_eq!(bench.settled_since("k", 0).await.len(), 1, "only the other task is readable");
}

async fn response_of_client_is_found_by_denial_key(bench: ContractBench) {
    bench.deniable("a", Audience::Caller, "k").await;
    let response = [("#approval", json!({"action": "decline"}))];
    assert_eq!(bench.answer("a", &response).await, Some(1));
    let settled = bench.settled_since("k", 0).await;
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0].0, r#"{"action":"decline"}"#);
}

async fn open_and_withdrawn_requests_are_not_found_by_denial_key(bench: ContractBench) {
    for id in ["a", "b"] {
        bench.deniable(id, by(&["ada"]), "k").await;
    }
    let cancelled = bench.store.cancel(OWNER, &TaskId::new("a"), true, RETENTION).await;
    assert_eq!(cancelled, Ok(Some(CancelOutcome::Cancelled)));
    assert!(bench.settled_since("k", 0).await.is_empty());
}
