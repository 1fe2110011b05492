//! The task view: one HTML page that shows a task in hosts that render MCP Apps.
//!
//! `task_result` names the page in its `_meta`. The host shows the page in a sandboxed frame and
//! gives it the result of the call. The page then calls `task_result` through the host until the
//! task ends, and reports the end with `ui/update-model-context`. It also calls `task_answer` and
//! `task_cancel`. The page loads nothing from the network.
//! Spec: <https://apps.extensions.modelcontextprotocol.io/>, version 2026-01-26.
//!
//! # Contract of the page and `task_result`
//!
//! The page calls `task_result` with `{"task", "wait_seconds": 20, "seen": {"change", "segment"}}`.
//! `seen` is absent from the listed input schema, because it would cost the model tokens in every
//! turn. `change` and `segment` are the numbers of the last reply; the first call has no `change`.
//! With `seen`, `task_result` differs in four ways:
//!
//! - The wait ends as soon as the task has changed since `change`, or has segments after `segment`.
//!   An open input request that the page has seen does not end the wait.
//! - The result has the task in `_meta` as `dev.outlive/task`, also after the task has ended. So the
//!   page distinguishes a pending result from a tool's own structured content.
//! - The task has the members `change` and `lines` (below).
//! - The call only reads. It is not a wait of the model, which must stop after five. A host that
//!   closes the page cancels the call; this does not cancel the task.
//!
//! In hosts that show the page, the model's own calls of `task_result` wait for two seconds and have
//! the task in `_meta` too: their result is the first one that the page gets.
//!
//! The task is `{"id", "tool", "status", "seconds", "done"?, "total"?, "message"?, "leftSeconds"?,
//! "storedUntil"?, "inputRequests"?, "change", "lines"?}`:
//!
//! | member | content |
//! |---|---|
//! | `status` | `working`, `input_required`, `completed`, `failed` or `cancelled` |
//! | `change` | number that grows with every change of the task |
//! | `lines` | `{"text": ["…"], "last": 954, "skipped"?}`: the text of the newest segments after `seen.segment`, in order, the number of the last of them, and the number of segments before them that are left out |
//! | `inputRequests` | by key: `{"message", "requestedSchema"?, "url"?, "link"?, "instructions"?}` |
//!
//! A reply has at most 1,000 segments. Of a longer backlog it has the newest ones, so that a page that
//! opens late shows the current lines at once. The page marks the gap, and never reads the segments in
//! it. The reply of an ended task includes its last segment.
//!
//! Input requests are in the structured content only, which keeps the order of a form's fields. An
//! input request with `instructions` cannot be answered by `task_answer`: the page shows this
//! text instead of a form. `link` is the answer link, `url` the page of a URL elicitation.

pub(crate) mod resource;
