//! Input requests of the person, from the API of the console.

use outlive::wire::InputRequest;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    console::ConsoleClient,
    error::{CliError, Kind, Result},
    store::plain,
};

/// Number of requests that one response contains.
const PAGE: usize = 200;

/// Maximum number of responses that a command reads.
const MAX_PAGES: usize = 50;

/// An open input request in a list.
pub(super) struct Listed {
    pub(super) request: Request,
    /// JSON of the request, unchanged.
    pub(super) raw: Box<RawValue>,
}

/// One input request with everything that a decision covers.
pub(super) struct Found {
    pub(super) request: Request,
    pub(super) detail: Detail,
    /// JSON of the request, unchanged.
    pub(super) raw: String,
}

/// Summary of a request, as in lists.
#[derive(Deserialize)]
pub(super) struct Request {
    pub(super) task: String,
    pub(super) key: String,
    pub(super) tool: String,
    pub(super) caller: Option<String>,
    pub(super) kind: String,
    pub(super) state: String,
    pub(super) message: Option<String>,
    pub(super) names: Vec<String>,
    pub(super) scope: Option<String>,
    pub(super) approvals: u32,
    pub(super) needed: u32,
    pub(super) opened_at: String,
    pub(super) open_until: Option<String>,
    pub(super) is_own: bool,
    pub(super) arguments: Vec<Argument>,
}

/// Details of a request, which lists do not have.
#[derive(Deserialize)]
pub(super) struct Detail {
    pub(super) digest: String,
    pub(super) can_answer: bool,
    pub(super) client: Option<String>,
    pub(super) input: Option<InputRequest>,
    pub(super) previous: Vec<Argument>,
    pub(super) runs: Option<Vec<String>>,
    pub(super) tool_description: Option<String>,
    pub(super) votes: Vec<Vote>,
}

/// An argument of a call.
#[derive(Deserialize)]
pub(super) struct Argument {
    pub(super) name: String,
    value: Option<Box<RawValue>>,
    characters: usize,
}

/// A vote of a person.
#[derive(Deserialize)]
pub(super) struct Vote {
    pub(super) person: String,
    pub(super) action: String,
    pub(super) reason: Option<String>,
    pub(super) voted_at: String,
}

impl Request {
    /// Returns the path of the request in the API.
    pub(super) fn path(&self) -> String {
        path(&self.task, &self.key)
    }

    pub(super) fn is_approval(&self) -> bool {
        self.kind == "approval"
    }
}

impl Argument {
    /// Returns the value exactly as the client sent it, or the size of a secret.
    pub(super) fn text(&self) -> String {
        match &self.value {
            Some(value) => plain(value.get()),
            None => format!("hidden, {} characters", self.characters),
        }
    }
}

/// Reads all open input requests of the person, oldest first.
pub(super) async fn all(console: &ConsoleClient) -> Result<Vec<Listed>> {
    #[derive(Deserialize)]
    struct Page {
        requests: Vec<Box<RawValue>>,
        next: Option<String>,
    }
    let (mut all, mut after) = (Vec::new(), String::new());
    for _ in 0..MAX_PAGES {
        let path = format!("inbox?limit={PAGE}{after}");
        let page: Page = console.get(&path).await?.json()?;
        for raw in page.requests {
            all.push(Listed { request: read(raw.get())?, raw });
        }
        match page.next {
            Some(next) => after = format!("&after={}", encoded(&next)),
            None => break,
        }
    }
    Ok(all)
}

/// Finds an open request by its task, or by task and key. A prefix of the task is enough. A whole
/// task ID also finds a request that is settled.
pub(super) async fn find(console: &ConsoleClient, word: &str) -> Result<Found> {
    let (task, key) = word.split_once('/').map_or((word, None), |(task, key)| (task, Some(key)));
    let is_meant = |request: &Request| {
        request.task.starts_with(task) && key.is_none_or(|key| request.key == key)
    };
    let mut matching: Vec<Request> =
        all(console).await?.into_iter().map(|it| it.request).filter(is_meant).collect();
    if matching.iter().any(|request| request.task == task) {
        matching.retain(|request| request.task == task);
    }
    let path = match (&matching[..], key) {
        ([only], _) => only.path(),
        ([], Some(key)) => path(task, key),
        ([], None) => path(task, "#approval"),
        (several, _) => return Err(ambiguous(word, several)),
    };
    let reply = console.get(&path).await.map_err(|error| match error.kind() {
        Kind::Failed if matching.is_empty() => unknown(word),
        _ => error,
    })?;
    let raw = reply.text();
    Ok(Found { request: read(&raw)?, detail: read(&raw)?, raw })
}

fn ambiguous(word: &str, several: &[Request]) -> CliError {
    let names = several.iter().take(5).map(|it| plain(&format!("{}/{}", it.task, it.key)));
    let names: Vec<String> = names.collect();
    CliError::usage(format_args!("several input requests match `{}`", plain(word)))
        .remedy(format_args!("name one of them: {}", names.join(", ")))
}

fn unknown(word: &str) -> CliError {
    let what = format!("no input request that you may see matches `{}`", plain(word));
    CliError::new(Kind::Failed, what).remedy("run `outlive inbox` to list the open ones")
}

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| {
        CliError::unreachable(format_args!("the console sent an unexpected response: {error}"))
            .remedy("use the version of this program that the server has")
    })
}

fn path(task: &str, key: &str) -> String {
    format!("inputs/{}/{}", encoded(task), encoded(key))
}

/// Returns a text as one segment of a path or one value of a query.
fn encoded(text: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let encoded = text.bytes().map(|byte| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::{Detail, Request, path, read};

    #[test]
    fn key_of_request_is_one_segment_of_its_path() {
        assert_eq!(path("4f2a", "#approval"), "inputs/4f2a/%23approval");
        assert_eq!(path("4f2a", "push/eu?"), "inputs/4f2a/push%2Feu%3F");
    }

    #[test]
    fn numbers_of_arguments_are_kept_exactly() {
        let json = r##"{"task":"t","key":"#approval","tool":"pay","caller":"ann","kind":"approval",
            "state":"open","message":null,"names":["ada"],"scope":null,"approvals":0,"needed":1,
            "opened_at":"x","open_until":null,"is_own":false,"digest":"d","can_answer":true,
            "client":null,"input":null,"previous":[],"runs":null,"tool_description":null,"votes":[],
            "arguments":[{"name":"amount","value":1.50e400,"is_hidden":false,"characters":8},
            {"name":"pin","value":null,"is_hidden":true,"characters":4}]}"##;
        let request: Request = read(json).unwrap();
        let texts: Vec<String> = request.arguments.iter().map(super::Argument::text).collect();
        assert_eq!(texts, ["1.50e400", "hidden, 4 characters"]);
        assert!(read::<Detail>(json).unwrap().can_answer);
    }
}
