//! Encodes the messages of a run for legacy versions: no `resultType`, no cache hints, and no
//! members that the version does not have.

use outlive_wire::{Meta, Method, ServerCapabilities, code};
use serde::Serialize;

use super::{input, partial, shape, task};
use crate::{
    Call, Change, EventIdMode, Frame, Message, MethodResult, Notify, Outcome, Page, ProtocolError,
    RelayedKind, RelayedResult, ServerDescription, TaskDialect, VersionRules,
    era::{
        error::{self, put},
        notify, tool_result,
    },
};

pub(super) fn message(call: &Call, message: Message, out: &mut Vec<u8>) -> Frame {
    let rules = call.rules();
    match message {
        Message::Notify(notify) => tell(rules, call, notify, out),
        Message::Partial(piece) => {
            partial::partial(call, &piece, out);
            Frame::Message
        }
        Message::Last(Ok(Outcome::Complete(answer))) => {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            out.extend_from_slice(call.id().as_bytes());
            out.extend_from_slice(br#","result":"#);
            result(rules, answer, out);
            out.push(b'}');
            Frame::End { status: 200 }
        }
        Message::Last(Ok(Outcome::Task(view))) => {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            out.extend_from_slice(call.id().as_bytes());
            out.extend_from_slice(br#","result":"#);
            put(&task::Created::of(&view), out);
            out.push(b'}');
            Frame::End { status: 200 }
        }
        // Legacy runs wait for input on the stream and never suspend.
        Message::Last(Ok(Outcome::InputRequired(_))) => {
            let fault = ProtocolError::internal("a legacy call ended with `input_required`");
            Frame::End { status: error_response(Some(call.id()), &fault, out) }
        }
        Message::Last(Err(fault)) => {
            Frame::End { status: error_response(Some(call.id()), &fault, out) }
        }
    }
}

pub(super) fn error_response(id: Option<&str>, fault: &ProtocolError, out: &mut Vec<u8>) -> u16 {
    let (code, data) = error::common(fault);
    let code = match fault {
        ProtocolError::UnknownResource { .. } => code::RESOURCE_NOT_FOUND,
        _ => code,
    };
    error::write(id, code, fault, data, out);
    match fault {
        ProtocolError::Parse(_) | ProtocolError::InvalidRequest(_) => 400,
        ProtocolError::MissingScopes { .. } => 403,
        ProtocolError::UnknownSession => 404,
        _ => 200,
    }
}

pub(super) fn change(change: &Change, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Updated<'a> {
        uri: &'a str,
    }
    let method = notify::method_of(change).as_str();
    match change {
        Change::Resource(uri) => notify::notification(method, &Updated { uri }, out),
        _ => notify::custom(method, None, out),
    }
}

fn tell(rules: &VersionRules, call: &Call, notify: Notify, out: &mut Vec<u8>) -> Frame {
    match notify {
        Notify::Progress(progress) => match call.progress_token() {
            Some(token) => notify::progress(token, &shape::progress(rules, progress), out),
            None => return Frame::Silent,
        },
        Notify::Log { level, logger, data } => match call.log_level() {
            Some(lowest) if level >= lowest => notify::log(level, logger.as_deref(), &data, out),
            _ => return Frame::Silent,
        },
        // Older clients expect the response before the stream ends, and may parse an empty event as
        // JSON.
        Notify::Detach { retry } if rules.event_ids == EventIdMode::Primed => {
            return Frame::Detach { retry };
        }
        Notify::Detach { .. } => return Frame::Silent,
        Notify::TaskProgress { token, progress } => {
            notify::progress(token.get(), &shape::progress(rules, progress), out);
        }
        Notify::Task(view) if rules.methods.contains(&Method::TasksGet) => {
            let method = Method::TasksStatus.as_str();
            notify::notification(method, &task::Task::of(&view), out);
        }
        Notify::AskTask { id, method, task } => input::task_request(id, method, &task, out),
        Notify::Ask { id, request } => input::request(rules, call, id, *request, out),
        Notify::Withdraw { id, reason } => input::withdraw(id, reason, out),
        Notify::UrlDone { elicitation_id } => {
            if !input::url_done(rules, elicitation_id, out) {
                return Frame::Silent;
            }
        }
        Notify::Custom { method, params } => notify::custom(&method, params.as_deref(), out),
        Notify::Changed(change) => self::change(&change, out),
        Notify::Acknowledged(_) | Notify::Task(_) | Notify::Emitted(_) => return Frame::Silent,
    }
    Frame::Message
}

fn result(rules: &VersionRules, answer: MethodResult, out: &mut Vec<u8>) {
    match answer {
        MethodResult::Tool(result) => {
            out.push(b'{');
            tool_result::members(&shape::tool_result(rules, result), out);
            out.push(b'}');
        }
        MethodResult::Empty | MethodResult::ListenEnded => out.extend_from_slice(b"{}"),
        MethodResult::Identity(identity) => put(&initialized(rules, *identity), out),
        MethodResult::Tools(page) => {
            list("tools", &shaped(page, |tool| shape::tool(rules, tool)), out)
        }
        MethodResult::Resources(page) => {
            list("resources", &shaped(page, |resource| shape::resource(rules, resource)), out)
        }
        MethodResult::ResourceTemplates(page) => {
            list(
                "resourceTemplates",
                &shaped(page, |template| shape::template(rules, template)),
                out,
            );
        }
        MethodResult::Prompts(page) => {
            list("prompts", &shaped(page, |prompt| shape::prompt(rules, prompt)), out)
        }
        MethodResult::Resource(mut result, _) => {
            result.contents.iter_mut().for_each(|contents| shape::contents(rules, contents));
            put(&result, out);
        }
        MethodResult::Prompt(result) => put(&shape::prompt_result(rules, result), out),
        MethodResult::Completion(result) => put(&result, out),
        // Legacy clients receive segments as partial responses, not with the task.
        MethodResult::Task(view) | MethodResult::TaskEmitted(view, _) => {
            put(&task::Task::of(&view), out)
        }
        MethodResult::Rest(rest) => partial::rest(rules, *rest, out),
        MethodResult::Tasks(views, next) => {
            let tasks: Vec<task::Task<'_>> = views.iter().map(task::Task::of).collect();
            out.extend_from_slice(br#"{"tasks":"#);
            put(&tasks, out);
            if let Some(next) = next {
                out.extend_from_slice(br#","nextCursor":"#);
                put(&next, out);
            }
            out.push(b'}');
        }
        MethodResult::TaskResult(result, id) => {
            let mut result = shape::tool_result(rules, *result);
            let meta = result.meta.get_or_insert_default();
            meta.insert(Meta::RELATED_TASK.to_owned(), task::related(&id));
            put(&result, out);
        }
        MethodResult::Raw(raw) => out.extend_from_slice(raw.get().as_bytes()),
        MethodResult::Relayed(relayed, kind) => match typed(rules, &relayed, kind) {
            Some(typed) => result(rules, typed, out),
            None => relayed.write_object(out),
        },
    }
}

/// Parses the result of another server if the version lacks one of its members. A text that cannot
/// be parsed passes unchanged: the client judges it.
fn typed(rules: &VersionRules, relayed: &RelayedResult, kind: RelayedKind) -> Option<MethodResult> {
    match kind {
        RelayedKind::Tool if shape::changes_tool_result(rules, relayed) => {
            relayed.to_typed().ok().map(MethodResult::Tool)
        }
        RelayedKind::Prompt if shape::changes_content(rules, relayed.get()) => {
            relayed.to_typed().ok().map(MethodResult::Prompt)
        }
        RelayedKind::Resource(cache) if shape::changes_contents(rules, relayed.get()) => {
            let typed = relayed.to_typed().ok();
            typed.map(|result| MethodResult::Resource(result, cache))
        }
        _ => None,
    }
}

/// Converts every entry of a page to the format of the version.
fn shaped<T: Clone>(mut page: Page<T>, shape: impl Fn(&mut T)) -> Page<T> {
    for item in &mut page.items {
        shape(std::sync::Arc::make_mut(item));
    }
    page
}

fn list<T: Serialize>(name: &str, page: &Page<T>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    put(&page.items, out);
    if let Some(next) = &page.next {
        out.extend_from_slice(br#","nextCursor":"#);
        put(next, out);
    }
    out.push(b'}');
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: &'static str,
    capabilities: ServerCapabilities,
    server_info: outlive_wire::Implementation,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

fn initialized(rules: &VersionRules, mut identity: ServerDescription) -> Initialized {
    if let (Some(offers), TaskDialect::Requested) = (identity.tasks, rules.tasks) {
        identity.capabilities.tasks = Some(task::capability(offers));
    }
    Initialized {
        protocol_version: rules.version.as_str(),
        capabilities: shape::capabilities(rules, identity.capabilities),
        server_info: shape::info(rules, identity.info),
        instructions: identity.instructions,
    }
}
