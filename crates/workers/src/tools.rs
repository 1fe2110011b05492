//! Declared entry → [`Tool`].

use std::{sync::Arc, time::Duration};

use outlive::{
    server::{
        Durable, Tool,
        durable::{Cleanup, ResumePolicy},
        extract::RawParams,
        tasks::{OnCrash, TaskPolicy},
    },
    wire::ToolAnnotations,
};

use crate::{
    call::call,
    cleanup::clean_up,
    line::declared::{DeclaredResume, DeclaredTask, DeclaredTool},
    losses::MAX_LOSSES,
    policy::ToolPolicy,
    pool::Pool,
    route::ToolRoute,
};

/// Default timeout of a run.
const TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Returns the tool of a declared entry.
pub(crate) fn build(pool: &Arc<Pool>, declared: &Arc<DeclaredTool>) -> Tool {
    let none = ToolPolicy::default();
    let policy = pool.settings.tools.get(&declared.name).unwrap_or(&none);
    let own_timeout = declared.timeout_ms.map(Duration::from_millis);
    let route = Arc::new(ToolRoute {
        pool: Arc::clone(pool),
        declared: Arc::clone(declared),
        may_rerun: policy
            .on_crash
            .map_or_else(|| declared.may_rerun(), |on_crash| on_crash == OnCrash::Rerun),
        max_attempts: policy.max_attempts.unwrap_or(MAX_LOSSES),
        timeout: policy.timeout.or(own_timeout).unwrap_or(TIMEOUT),
    });
    let task = policy.task.unwrap_or_else(|| task_policy(declared));
    let mut tool = with_handlers(&route, declared, task)
        .annotations(annotations(declared))
        .scopes(policy.scopes.as_ref().unwrap_or(&declared.scopes))
        .definition(format!("{} {}", pool.settings.identity(), declared.definition));
    if let Some(title) = &declared.title {
        tool = tool.title(title);
    }
    if let Some(description) = &declared.description {
        tool = tool.description(description);
    }
    if let Some(schema) = &declared.input_schema {
        tool = tool.input_schema(schema.clone());
    }
    if let Some(schema) = &declared.output_schema {
        tool = tool.output_schema(schema.clone());
    }
    if declared.streams_content {
        tool = tool.streams_content();
    }
    tool = with_revision(tool, declared);
    match &policy.change {
        Some(change) => change(tool),
        None => tool,
    }
}

fn with_handlers(route: &Arc<ToolRoute>, declared: &DeclaredTool, task: TaskPolicy) -> Tool {
    let handler = {
        let route = Arc::clone(route);
        move |cx: Durable| call(cx, Arc::clone(&route))
    };
    let tool = Tool::new(&declared.name, handler).task(task);
    if !declared.has_cleanup || task == TaskPolicy::Never {
        return tool;
    }
    let route = Arc::clone(route);
    tool.cleanup(move |task: Cleanup, params: RawParams| clean_up(task, params, Arc::clone(&route)))
}

fn task_policy(declared: &DeclaredTool) -> TaskPolicy {
    let after = declared.task_after_ms.map(Duration::from_millis);
    match declared.task {
        Some(DeclaredTask::Never) => TaskPolicy::Never,
        Some(DeclaredTask::Always) => TaskPolicy::Always,
        Some(DeclaredTask::Auto) | None => {
            TaskPolicy::Auto { after: after.unwrap_or(TaskPolicy::DEFAULT_AFTER) }
        }
    }
}

fn annotations(declared: &DeclaredTool) -> ToolAnnotations {
    let mut hints = ToolAnnotations::default();
    hints.read_only_hint = declared.read_only;
    hints.destructive_hint = declared.destructive;
    hints.idempotent_hint = declared.idempotent;
    hints.open_world_hint = declared.open_world;
    hints
}

fn with_revision(mut tool: Tool, declared: &DeclaredTool) -> Tool {
    if let Some(revision) = &declared.handler_revision {
        tool = tool.handler_revision(revision.as_str());
    }
    if declared.migrates {
        // The function converts the entries itself: each one on the wire has its revision.
        tool = tool.migrate_journal(|_, _, _| None);
    }
    match declared.resume_policy {
        Some(DeclaredResume::SameRevision) => tool.resume_policy(ResumePolicy::SameRevision),
        Some(DeclaredResume::AnyRevision) | None => tool,
    }
}
