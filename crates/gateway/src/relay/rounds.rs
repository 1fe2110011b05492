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
    times::Times,
};
use crate::metrics::{InputKind, InputPath};

/// Rounds of one call.
pub(super) const MAX_ROUNDS: usize = 16;

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
pub(super) async fn run(
    cx: &Durable,
    reached: &Reached,
    request: &Request<'_>,
    times: &Times,
) -> Result<Bytes> {
    reached.member.state().count_call();
    let mut next: Option<Round> = None;
    for number in 0..MAX_ROUNDS {
        let recorded = match cx.get::<Recorded>(("round", number))? {
            Some(recorded) => recorded,
            None => match exchange(cx, reached, request, number, next.as_ref(), times).await? {
                Sent::Complete(result) => return Ok(result),
                Sent::Round(round) => Recorded {
                    delay: round.retry_after().map(millis),
                    requests: round.requests,
                    state: round.request_state,
                    is_repeated: false,
                },
                Sent::Urls(error) => urls(reached, &error)?,
            },
        };
        check(reached, &recorded)?;
        // A recorded round is marked as used: it is not one of another handler.
        let recorded: Recorded = cx.step(("round", number), async || Ok(recorded)).await?;
        next = times.wait(respond(cx, reached, number, recorded)).await?;
    }
    let name = reached.name();
    let reason = format!("requested input in more than {MAX_ROUNDS} rounds");
    reached.member.state().count_failure(&format!("it {reason}"));
    Err(Error::new(format!("upstream `{name}` {reason}")))
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
        cx.sleep(("delay", number), delay.min(Duration::from_secs(10))).await?;
        return Ok(Some(Round { responses: None, state: recorded.state }));
    }
    let settings = reached.member.settings();
    let prefix = settings.shown_prefix();
    let mut requests: Vec<(String, InputRequest)> = Vec::with_capacity(recorded.requests.len());
    for (key, request) in &recorded.requests {
        let request = read_input_request(request)
            .map_err(|error| failure::invalid(reached, &error.to_string()))?;
        let kind = InputKind::of(&request);
        reached.member.state().meter().input(kind, InputPath::Round);
        requests.push((key.clone(), with_source(request, prefix)));
    }
    let branches = requests.into_iter().map(|(key, request)| {
        let is_elicitation = matches!(request, InputRequest::Elicit(_));
        let branch: Branch<'_, Result<(String, RawJson)>> = Box::pin(async move {
            let response = cx.request_input(journal_key(number, &key), request).await;
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

/// Returns the key of an input request, which a modern client sees too. In the first round it is the
/// upstream's, for clients that expect certain keys. A key with a `/` may be that of a round.
fn journal_key(number: usize, key: &str) -> String {
    match number == 0 && !key.is_empty() && !key.contains(['/', '\\', '#']) {
        true => key.to_owned(),
        false => format!("input/{number}/{key}"),
    }
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

#[cfg(test)]
mod tests {
    use super::journal_key;

    #[test]
    fn only_plain_key_of_first_round_stays() {
        assert_eq!(journal_key(0, "user_name"), "user_name");
        assert_eq!(journal_key(1, "user_name"), "input/1/user_name");
        assert_eq!(journal_key(0, "round/0"), "input/0/round/0");
        assert_eq!(journal_key(0, ""), "input/0/");
    }
}
