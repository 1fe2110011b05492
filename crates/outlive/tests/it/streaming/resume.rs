//! Resumption of partial results by sequence number, on any connection.

use serde_json::{Value, json};

use super::stage::{
    ALL, Change, Client, Flow, Wire, World, blocks, merged, numbers, script_of, task_of,
};

const STREAMING: Change = |tasks| tasks.response_modes(ALL);

/// Starts a task that emits three segments, which the client reads, and stops.
async fn three(client: &mut Client) -> (Flow, Value, String) {
    let mut flow = client.call("script", script_of(&[3, 2], "end"), &["streaming"]).await;
    let first = client.part(&mut flow).await;
    assert_eq!(numbers(std::slice::from_ref(&first)), [1, 2, 3]);
    let id = task_of(&first);
    (flow, first, id)
}

// S-T06, S-32, S-61
#[tokio::test]
async fn disconnected_client_resumes_on_another_connection() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let (flow, first, id) = three(&mut client).await;
        client.leave(flow);
        let mut other = client.again(&world).await;
        drop(client);
        world.gate.open(2);
        other.until(&id, "completed").await;
        let answer = other.answer("tasks/result", json!({"taskId": id, "lastSeqNr": 3})).await;
        let rest = answer["result"].clone();
        assert_eq!(blocks(&rest)[0].0, 4, "the response has the ID of this request: {answer}");
        assert_eq!(
            (numbers(std::slice::from_ref(&rest)), &rest["isComplete"]),
            (vec![4, 5, 6], &json!(true))
        );
        assert_eq!(task_of(&rest), id);
        let whole = other.ask("tasks/result", json!({"taskId": id})).await;
        assert_eq!(whole["content"], Value::from(merged(&[first, rest])));
    }
}

// S-T07, S-36
#[tokio::test]
async fn segments_after_earlier_number_are_returned_again() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let (flow, _, id) = three(&mut client).await;
        world.gate.open(1);
        client.leave(flow);
        let mut other = client.again(&world).await;
        while numbers(&[other.after(&id, 1).await]) != [2, 3, 4, 5] {
            tokio::task::yield_now().await;
        }
        assert_eq!(other.after(&id, 1).await["isComplete"], false);
        world.gate.open(1);
    }
}

// S-T16, S-60
#[tokio::test]
async fn invalid_last_seq_nr_is_invalid_params() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let (flow, _, id) = three(&mut client).await;
        for bad in
            [json!(0), json!(-1), json!(1.5), json!("2"), json!(null), json!([1]), json!(1.0)]
        {
            let params = json!({"taskId": id, "lastSeqNr": bad});
            assert_eq!(client.refused("tasks/result", params).await, -32602, "{bad}");
        }
        world.gate.open(2);
        drop(flow);
    }
}

// S-T17, S-62
#[tokio::test]
async fn poll_after_last_segment_returns_no_segments() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let (mut flow, _, id) = three(&mut client).await;
        let now = client.after(&id, 3).await;
        assert_eq!(
            (blocks(&now), &now["isComplete"]),
            (vec![], &json!(false)),
            "the stream is not complete"
        );
        world.gate.open(2);
        client.parts(&mut flow).await;
        let now = client.after(&id, 6).await;
        assert_eq!((blocks(&now), &now["isComplete"]), (vec![], &json!(true)));
        client.over(flow).await;
    }
}

// S-T18, S-63
#[tokio::test]
async fn poll_far_beyond_last_segment_returns_no_segments() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let (mut flow, _, id) = three(&mut client).await;
        for far in [7, u64::MAX] {
            let now = client.after(&id, far).await;
            assert_eq!((blocks(&now), &now["isComplete"]), (vec![], &json!(false)));
        }
        world.gate.open(2);
        client.parts(&mut flow).await;
        for far in [7, u64::MAX] {
            let now = client.after(&id, far).await;
            assert_eq!((blocks(&now), &now["isComplete"]), (vec![], &json!(true)));
        }
        client.over(flow).await;
    }
}

// S-T19, S-69
#[tokio::test]
async fn segments_of_foreign_or_unknown_task_are_rejected() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let (flow, _, id) = three(&mut client).await;
        let mut stranger = client.stranger(&world).await;
        for params in
            [json!({"taskId": id, "lastSeqNr": 1}), json!({"taskId": "x", "lastSeqNr": 1})]
        {
            assert_eq!(stranger.refused("tasks/result", params).await, -32602);
        }
        world.gate.open(2);
        drop(flow);
    }
}

// S-65
#[tokio::test]
async fn task_result_without_number_waits_for_whole_result() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let (flow, _, id) = three(&mut client).await;
        let mut other = client.again(&world).await;
        world.gate.open(2);
        let whole = other.ask("tasks/result", json!({"taskId": id})).await;
        let texts: Vec<&str> = whole["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["text"].as_str().unwrap())
            .collect();
        assert_eq!(texts, ["1", "2", "3", "4", "5", "end"]);
        assert!(!whole.to_string().contains("seqNr"), "{whole}");
        drop(flow);
    }
}

// S-67
#[tokio::test]
async fn last_seq_nr_of_task_without_streaming_is_ignored() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let mut flow = client.call("script", script_of(&[2], "end"), &["task"]).await;
        let made = client.part(&mut flow).await;
        world.gate.open(1);
        let id = made["task"]["taskId"].as_str().unwrap();
        for number in [json!(1), json!(0), json!("x")] {
            let whole =
                client.ask("tasks/result", json!({"taskId": id, "lastSeqNr": number})).await;
            assert_eq!(whole["content"].as_array().unwrap().len(), 3);
            assert!(whole.get("isComplete").is_none() && whole.get("partial-content").is_none());
        }
        client.over(flow).await;
    }
}

// S-68
#[tokio::test]
async fn many_segments_are_returned_in_several_polls() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        world.gate.open(1);
        let mut flow = client.call("script", script_of(&[2_500], "empty"), &["streaming"]).await;
        let parts = client.parts(&mut flow).await;
        assert!(parts.len() >= 3, "no message has more than a thousand segments");
        assert_eq!(numbers(&parts), (1..=2_500).collect::<Vec<u64>>());
        let id = task_of(&parts[0]);
        let mut rest = vec![client.after(&id, 1).await];
        while rest.last().unwrap()["isComplete"] == false {
            let last = *numbers(&rest).last().unwrap();
            rest.push(client.after(&id, last).await);
        }
        assert_eq!(numbers(&rest), (2..=2_500).collect::<Vec<u64>>());
        client.over(flow).await;
    }
}

// S-69
#[tokio::test]
async fn segment_reads_over_poll_rate_are_429() {
    use outlive::server::RateLimit;
    let slow: Change = |tasks| STREAMING(tasks).poll_rate(RateLimit::per_second(0.001).burst(3));
    let world = World::new(slow);
    let mut client = world.client(Wire::Pipe).await;
    let (flow, _, id) = three(&mut client).await;
    for _ in 0..3 {
        client.after(&id, 1).await;
    }
    let again = client.answer("tasks/result", json!({"taskId": id, "lastSeqNr": 1})).await;
    assert_eq!(again["error"]["code"], 429, "{again}");
    world.gate.open(2);
    drop(flow);
}
