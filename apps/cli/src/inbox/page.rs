//! Input requests as text. All text of callers is escaped.

use std::fmt::Write as _;

use super::requests::{Argument, Found, Listed, Request};
use crate::{
    call::server::quoted,
    store::{plain, shortened, table},
};

/// Characters of a task ID in a list. A unique prefix is enough for all commands.
const SHORT_ID: usize = 12;

const HEAD: [&str; 6] = ["REQUEST", "TOOL", "KIND", "CALLER", "OPEN UNTIL", "ABOUT"];

/// Returns open requests as a table.
pub(super) fn list(listed: &[Listed]) -> String {
    let rows: Vec<[String; 6]> = listed
        .iter()
        .map(|Listed { request, .. }| {
            let of_task = listed.iter().filter(|it| it.request.task == request.task).count();
            let task: String = request.task.chars().take(SHORT_ID).collect();
            let name = match of_task {
                1 => task,
                _ => format!("{}/{}", request.task, request.key),
            };
            [
                plain(&name),
                shortened(&plain(&request.tool), 30),
                kind(request),
                shortened(&caller(request), 30),
                plain(request.open_until.as_deref().unwrap_or("-")),
                shortened(&about(request), 60),
            ]
        })
        .collect();
    table(HEAD, &rows).trim_end().to_owned()
}

/// Returns a request with everything that a decision covers.
pub(super) fn request(found: &Found) -> String {
    let Found { request, detail, .. } = found;
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<10}{value}");
    };
    row("request", &plain(&format!("{}/{}", request.task, request.key)));
    row("tool", &plain(&request.tool));
    if let Some(description) = &detail.tool_description {
        row("", &plain(description));
    }
    row("kind", &kind(request));
    row("state", &plain(&request.state));
    let client = detail.client.as_ref().map(|client| format!(", by {}", plain(client)));
    row("caller", &format!("{}{}", caller(request), client.unwrap_or_default()));
    row("opened", &plain(&request.opened_at));
    row("until", &plain(request.open_until.as_deref().unwrap_or("-")));
    if let Some(message) = &request.message {
        row("message", &plain(message));
    }
    for argument in &request.arguments {
        row("argument", &changed(argument, &detail.previous));
    }
    if let Some(words) = &detail.runs {
        let words: Vec<String> = words.iter().map(|word| plain(&quoted(word))).collect();
        row("runs", &words.join(" "));
    }
    let deciders = request.names.iter().cloned();
    let scope = request.scope.iter().map(|scope| format!("holders of {scope}"));
    let deciders: Vec<String> = deciders.chain(scope).map(|it| plain(&it)).collect();
    if !deciders.is_empty() {
        row("decides", &deciders.join(", "));
    }
    for vote in &detail.votes {
        let reason = vote.reason.as_ref().map(|reason| format!(": {}", plain(reason)));
        let (person, at) = (plain(&vote.person), plain(&vote.voted_at));
        let action = if vote.action == "accept" { "approved" } else { "denied" };
        row("vote", &format!("{person} {action} at {at}{}", reason.unwrap_or_default()));
    }
    row("digest", &plain(&detail.digest));
    text.trim_end().to_owned()
}

fn caller(request: &Request) -> String {
    match (&request.caller, request.is_own) {
        (_, true) => "yours".to_owned(),
        (Some(caller), false) => plain(caller),
        (None, false) => "anonymous".to_owned(),
    }
}

fn kind(request: &Request) -> String {
    let Request { approvals, needed, .. } = request;
    match request.is_approval() && *needed > 1 {
        true => format!("approval, {approvals} of {needed}"),
        false => plain(&request.kind),
    }
}

/// Returns the arguments of an approval, or the message of another request.
fn about(request: &Request) -> String {
    match (&request.message, request.is_approval()) {
        (Some(message), false) => plain(message),
        _ => {
            let one =
                |argument: &Argument| format!("{} {}", plain(&argument.name), argument.text());
            request.arguments.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns an argument, and its value in the last approved call if that differs.
fn changed(argument: &Argument, previous: &[Argument]) -> String {
    let text = format!("{} = {}", plain(&argument.name), argument.text());
    let before = previous.iter().find(|before| before.name == argument.name);
    match before.filter(|before| before.text() != argument.text()) {
        Some(before) => format!("{text}    was {} in the last approved call", before.text()),
        None => text,
    }
}
