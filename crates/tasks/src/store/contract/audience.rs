//! Checks of the audience of input requests, and of reading one open request.

use serde_json::json;

use super::bench::{
    ContractBench, LEASE, OWNER, RETENTION, ask, names, outside, promises, question, recorded,
};
use crate::store::{
    Audience, CancelOutcome, Changes, InputDetail, InputSource, NewInputRequest, Phase, TaskId,
};

promises![
    tool_and_link_responses_to_client_requests_are_accepted,
    tool_and_link_responses_to_caller_requests_are_ignored,
    client_response_to_caller_request_is_accepted,
    external_response_to_caller_request_is_ignored,
    tool_response_to_external_event_is_ignored,
    ignored_response_does_not_block_an_accepted_one,
    audience_and_timeout_are_readable_while_request_is_open,
    reopened_request_has_its_new_audience,
    reclaimed_task_keeps_audience_of_open_request,
    open_input_returns_request_and_call,
    open_input_is_invisible_to_other_principals,
    open_input_of_resolved_or_withdrawn_request_is_none,
    open_input_of_external_event_is_none,
    open_input_of_ended_task_is_none,
];

/// Sources that a model may control.
const MODEL: [InputSource; 2] = [InputSource::Tool, InputSource::Link];

fn ask_for(audience: Audience, key: &str, name: &str) -> Changes {
    let asked = NewInputRequest { audience, ..question(key, name) };
    Changes { input_requests: vec![asked], ..Changes::default() }
}

async fn open_input(bench: &ContractBench, id: &str, name: &str) -> Option<InputDetail> {
    bench.store.open_input(OWNER, &TaskId::new(id), name).await.expect("read succeeds")
}

async fn tool_and_link_responses_to_client_requests_are_accepted(bench: ContractBench) {
    for (id, from) in ["a", "b"].into_iter().zip(MODEL) {
        let lease = bench.start(id, "v").await;
        bench.park(&lease, ask_for(Audience::Client, "key", "name")).await;
        assert_eq!(bench.answer_from(from, id, &[("name", json!(1))]).await, Some(1), "{from:?}");
        assert_eq!(bench.answer_from(from, id, &[("name", json!(2))]).await, Some(0), "{from:?}");
        let journal = bench.claim_one("w").await.journal;
        assert_eq!(recorded(&journal, "key").as_deref(), Some("1"), "{from:?}");
    }
}

async fn tool_and_link_responses_to_caller_requests_are_ignored(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask_for(Audience::Caller, "key", "name")).await;
    for from in MODEL {
        assert_eq!(bench.answer_from(from, "a", &[("name", json!(1))]).await, Some(0), "{from:?}");
    }
    let view = bench.view("a").await;
    assert_eq!((names(&view), view.phase), (vec!["name"], Phase::Parked));
    assert!(bench.claim("w").await.is_empty(), "an ignored response wakes no task");
}

async fn client_response_to_caller_request_is_accepted(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask_for(Audience::Caller, "key", "name")).await;
    assert_eq!(bench.answer("a", &[("name", json!("yes"))]).await, Some(1));
    let journal = bench.claim_one("w").await.journal;
    assert_eq!(recorded(&journal, "key").as_deref(), Some("\"yes\""));
}

async fn external_response_to_caller_request_is_ignored(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask_for(Audience::Caller, "key", "name")).await;
    assert_eq!(bench.answer_outside("a", &[("name", json!("forged"))]).await, Some(0));
    assert_eq!(names(&bench.view("a").await), ["name"]);
}

async fn tool_response_to_external_event_is_ignored(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, outside("key", "job")).await;
    for from in MODEL {
        assert_eq!(bench.answer_from(from, "a", &[("job", json!(1))]).await, Some(0), "{from:?}");
    }
    assert_eq!(bench.answer_outside("a", &[("job", json!(2))]).await, Some(1));
}

async fn ignored_response_does_not_block_an_accepted_one(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask_for(Audience::Caller, "k1", "n1")).await;
    bench.write(&lease, ask_for(Audience::Client, "k2", "n2")).await;
    let answers = [("n1", json!("forged")), ("n2", json!(2))];
    assert_eq!(bench.answer_from(InputSource::Tool, "a", &answers).await, Some(1));
    assert_eq!(names(&bench.view("a").await), ["n1"]);
    let heard = bench.store.inbox(&lease).await.expect("read succeeds").answers;
    assert_eq!(heard.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["k2"]);
    assert_eq!(bench.answer("a", &[("n1", json!("true"))]).await, Some(1));
}

async fn audience_and_timeout_are_readable_while_request_is_open(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let due = bench.view("a").await.created_at + 60_000;
    bench.write(&lease, ask(&[("k1", "n1")])).await;
    let asked =
        NewInputRequest { audience: Audience::Caller, due: Some(due), ..question("k2", "n2") };
    bench.write(&lease, Changes { input_requests: vec![asked], ..Changes::default() }).await;
    let shown: Vec<_> = bench
        .view("a")
        .await
        .input_requests
        .into_iter()
        .map(|input| (input.name, input.audience, input.due))
        .collect();
    let expected =
        [("n1".to_owned(), Audience::Client, None), ("n2".to_owned(), Audience::Caller, Some(due))];
    assert_eq!(shown, expected);
    let listed = bench.store.list(OWNER, "modern", None, 10).await.expect("list succeeds");
    assert_eq!(listed[0].input_requests[1].audience, Audience::Caller);
}

async fn reopened_request_has_its_new_audience(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask_for(Audience::Client, "key", "name")).await;
    let withdrawn = vec!["name".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..Changes::default() }).await;
    bench.write(&lease, ask_for(Audience::Caller, "key", "name")).await;
    assert_eq!(bench.view("a").await.input_requests[0].audience, Audience::Caller);
    assert_eq!(bench.answer_from(InputSource::Tool, "a", &[("name", json!(1))]).await, Some(0));
}

async fn reclaimed_task_keeps_audience_of_open_request(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask_for(Audience::Caller, "key", "name")).await;
    bench.advance(LEASE * 2);
    let claimed = bench.claim_one("w").await;
    assert_eq!(bench.answer_from(InputSource::Tool, "a", &[("name", json!(1))]).await, Some(0));
    bench.write(&claimed.lease, ask_for(Audience::Caller, "key", "name")).await;
    assert_eq!(bench.answer_from(InputSource::Tool, "a", &[("name", json!(1))]).await, Some(0));
}

async fn open_input_returns_request_and_call(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask_for(Audience::Caller, "key", "na\u{e000}me\n")).await;
    let InputDetail { tool, call, input } =
        open_input(&bench, "a", "na\u{e000}me\n").await.expect("the request is open");
    assert_eq!(tool, "deploy");
    let call: serde_json::Value = serde_json::from_str(call.get()).expect("is JSON");
    assert_eq!(call, json!({"name": "deploy", "text": "ü\n"}));
    assert_eq!((input.name.as_str(), input.audience), ("na\u{e000}me\n", Audience::Caller));
    assert!(matches!(input.request, outlive_wire::InputRequest::ListRoots));
    assert!(open_input(&bench, "a", "key").await.is_none(), "the journal key is not the wire key");
    assert!(open_input(&bench, "b", "name").await.is_none());
}

async fn open_input_is_invisible_to_other_principals(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask(&[("key", "name")])).await;
    let id = TaskId::new("a");
    let seen = bench.store.open_input("name:bert", &id, "name").await.expect("read succeeds");
    assert!(seen.is_none());
}

async fn open_input_of_resolved_or_withdrawn_request_is_none(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("k1", "n1"), ("k2", "n2")])).await;
    assert_eq!(bench.answer("a", &[("n1", json!(1))]).await, Some(1));
    let withdrawn = vec!["n2".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..Changes::default() }).await;
    assert!(open_input(&bench, "a", "n1").await.is_none());
    assert!(open_input(&bench, "a", "n2").await.is_none());
}

async fn open_input_of_external_event_is_none(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, outside("key", "job")).await;
    assert!(open_input(&bench, "a", "job").await.is_none());
}

async fn open_input_of_ended_task_is_none(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.park(&lease, ask(&[("key", "name")])).await;
    let cancelled = bench.store.cancel(OWNER, &lease.task, false, RETENTION).await;
    assert_eq!(cancelled, Ok(Some(CancelOutcome::Cancelled)));
    assert!(open_input(&bench, "a", "name").await.is_none());
}
