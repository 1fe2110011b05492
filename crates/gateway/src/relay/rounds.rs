//! A call until its result.
//!
//! A modern upstream returns input requests instead of a result. The gateway records them, requests
//! the input from its own client, and sends the next round. A modern client ends its call meanwhile:
//! the record is in the sealed request state, and any replica sends the next round.

use std::time::Duration;

use bytes::Bytes;
use outlive::{
    client::{ServerError, relay::read_input_request},
    server::{Durable, Error, Result, durable::DurableError},
    wire::{InputRequest, RawJson},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::to_raw_value};

use super::{
    carry::with_source,
    exchange::{Request, Round, Sent, exchange},
    failure,
    join::{Branch, join_all},
    route::Reached,
};

/// Rounds of one call.
const MAX_ROUNDS: usize = 16;

/// Input requests of one round.
const MAX_REQUESTS: usize = 32;

/// Delay of a round without input requests, if the upstream names none.
const RETRY: Duration = Duration::from_millis(200);

/// A round as it is recorded, before the client gets its input requests.
#[derive(Serialize, Deserialize)]
struct Recorded {
    /// Input requests by key.
    requests: Vec<(String, RawJson)>,
    state: Option<String>,
    /// Whether the call is sent again from its start, after the user visited URLs.
    is_repeated: bool,
    /// Delay in milliseconds of a round without input requests.
    delay: Option<u64>,
}

/// Sends a call and the rounds that its upstream needs, and returns the result.
pub(super) async fn run(cx: &Durable, reached: &Reached, request: &Request<'_>) -> Result<Bytes> {
    reached.member.state().count_call();
    let mut next: Option<Round> = None;
    for number in 0..MAX_ROUNDS {
        let key = format!("round/{number}");
        let recorded = match cx.get::<Recorded>(&key)? {
            Some(recorded) => recorded,
            None => {
                let sent = exchange(cx, reached, request, next.as_ref()).await?;
                let recorded = match sent {
                    Sent::Complete(result) => return Ok(result),
                    Sent::Round(round) => Recorded {
                        delay: round.retry_after().map(millis),
                        requests: round.requests,
                        state: round.request_state,
                        is_repeated: false,
                    },
                    Sent::Urls(error) => urls(reached, &error)?,
                };
                check(reached, &recorded)?;
                cx.step(&key, async || Ok(recorded)).await?
            }
        };
        next = respond(cx, reached, number, recorded).await?;
    }
    let name = reached.name();
    Err(Error::new(format!("upstream `{name}` requested input in more than {MAX_ROUNDS} rounds")))
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn check(reached: &Reached, recorded: &Recorded) -> Result<()> {
    match recorded.requests.len() <= MAX_REQUESTS {
        true => Ok(()),
        false => Err(failure::invalid(reached, "it has more than 32 input requests")),
    }
}

/// Gets the input of a round from the client, and returns the data of the next round.
async fn respond(
    cx: &Durable,
    reached: &Reached,
    number: usize,
    recorded: Recorded,
) -> Result<Option<Round>> {
    if recorded.requests.is_empty() {
        let delay = recorded.delay.map_or(RETRY, Duration::from_millis);
        cx.sleep(format!("delay/{number}"), delay.min(Duration::from_secs(10))).await?;
        return Ok(Some(Round { responses: None, state: recorded.state }));
    }
    let settings = reached.member.settings();
    let prefix = settings.shown_prefix();
    let mut requests: Vec<(String, InputRequest)> = Vec::with_capacity(recorded.requests.len());
    for (key, request) in &recorded.requests {
        let request = read_input_request(request)
            .map_err(|error| failure::invalid(reached, &error.to_string()))?;
        requests.push((key.clone(), with_source(request, prefix)));
    }
    let branches = requests.into_iter().map(|(key, request)| {
        let is_elicitation = matches!(request, InputRequest::Elicit(_));
        let branch: Branch<'_, Result<(String, RawJson)>> = Box::pin(async move {
            let response = cx.request_input(format!("input/{number}/{key}"), request).await;
            Ok((key, or_cancel(response, is_elicitation)?))
        });
        branch
    });
    let responses = join_all(branches.collect()).await;
    let responses: Vec<(String, RawJson)> = responses.into_iter().collect::<Result<_>>()?;
    if recorded.is_repeated {
        return consented(&responses).map(|()| None);
    }
    let members: Vec<String> = responses
        .iter()
        .map(|(key, response)| format!("{}:{}", Value::from(key.as_str()), response.get()))
        .collect();
    let responses = Some(format!("{{{}}}", members.join(",")));
    Ok(Some(Round { responses, state: recorded.state }))
}

/// A user who does not respond to an elicitation has cancelled it. Other failures end the call.
fn or_cancel(response: Result<RawJson>, is_elicitation: bool) -> Result<RawJson> {
    match response {
        Err(error)
            if is_elicitation
                && matches!(
                    error.durable_error(),
                    Some(DurableError::TimedOut { .. } | DurableError::ClientError { .. })
                ) =>
        {
            Ok(to_raw_value(&serde_json::json!({"action": "cancel"}))?)
        }
        other => other,
    }
}

/// Returns whether the user agreed to visit all URLs.
fn consented(responses: &[(String, RawJson)]) -> Result<()> {
    let accepts = |response: &RawJson| {
        let response: Value = serde_json::from_str(response.get()).unwrap_or_default();
        response["action"] == "accept"
    };
    match responses.iter().all(|(_, response)| accepts(response)) {
        true => Ok(()),
        false => Err(Error::new("the user did not agree to visit a URL that the tool requires")),
    }
}

/// Converts error -32042 of 2025-11-25 into its input requests.
fn urls(reached: &Reached, error: &ServerError) -> Result<Recorded> {
    #[derive(Deserialize)]
    struct Data {
        elicitations: Vec<RawJson>,
    }
    let data = error.data.as_ref().and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
    let Some(Data { elicitations }) = data else {
        return Err(failure::invalid(reached, "its error -32042 has no elicitations"));
    };
    let method = Value::from(outlive::wire::Method::Elicit.as_str());
    let mut requests = Vec::new();
    for (number, params) in elicitations.into_iter().enumerate() {
        let request = format!(r#"{{"method":{method},"params":{}}}"#, params.get());
        requests.push((number.to_string(), serde_json::from_str(&request)?));
    }
    Ok(Recorded { requests, state: None, is_repeated: true, delay: None })
}
