//! Reports how a call ended or why the program stopped waiting, and selects the exit code.

use std::process::ExitCode;

use outlive::{
    client::{
        saved::{CallStage, SavedCall},
        tasks::TaskHandle,
    },
    wire::CallToolResult,
};
use serde_json::json;

use super::{
    run_call::Left,
    saved_calls::{Handles, go_on},
    saved_task::task_id,
    screen::{OutputFailure, Screen},
    show,
};
use crate::error::{CliError, Kind, Result};

/// Destination of the report.
pub(crate) struct Outcome<'a> {
    pub(crate) screen: &'a Screen,
    pub(crate) handles: &'a Handles,
    pub(crate) is_json: bool,
    /// Whether to keep the handle after the result was printed.
    pub(crate) keeps: bool,
    /// The server, if the task has no saved call on this machine.
    pub(crate) elsewhere: Option<&'a str>,
}

impl Outcome<'_> {
    /// Reports how a call ended. `wanted` means that the user asked to detach.
    pub(crate) async fn tell(
        &self,
        left: Left,
        handle: Option<&TaskHandle>,
        wanted: bool,
    ) -> Result<ExitCode> {
        let saved = match handle {
            Some(handle) => Some(handle.to_saved().await),
            None => self.handles.mine(),
        };
        match left {
            Left::Done(result, came) => {
                if wanted {
                    self.screen.talk("the call completed immediately, without a task");
                }
                let code = self.result(&result, came);
                self.done(code, saved.as_ref())
            }
            Left::Detached => {
                if let Some(saved) = &saved {
                    self.handle(saved);
                    self.go_on(saved);
                }
                Ok(if wanted { ExitCode::SUCCESS } else { interrupted() })
            }
            Left::Answered => {
                self.screen.talk("answered");
                Ok(ExitCode::SUCCESS)
            }
            Left::Cancelled => {
                self.strike(saved.as_ref());
                Err(CliError::new(Kind::Cancelled, "the call was cancelled"))
            }
            Left::Interrupted => {
                self.leave(saved.as_ref());
                Ok(interrupted())
            }
            Left::Misanswered(trouble) => {
                self.leave(saved.as_ref());
                Err(trouble)
            }
            Left::OutputFailed(OutputFailure::ReaderLeft) => {
                self.leave(saved.as_ref());
                Ok(reader_left())
            }
            Left::OutputFailed(OutputFailure::Lost(why)) => {
                Err(lost(&why).remedy(self.again(saved.as_ref())))
            }
            Left::TimedOut => {
                let trouble = CliError::unreachable("no result within the timeout");
                let remedy = "the call was cancelled; set a longer --timeout";
                Err(self.left(trouble, saved.as_ref(), "result", remedy))
            }
            Left::Unanswered(asked) => {
                let trouble = CliError::new(
                    Kind::Unanswered,
                    format!("input required, but there is no terminal: {asked}"),
                );
                let remedy =
                    "pass --answer FIELD=VALUE or --decline, or run the command in a terminal";
                Err(self.left(trouble, saved.as_ref(), "answer", remedy))
            }
        }
    }

    /// Finishes a call whose result was printed. Deletes its handle, unless the output was lost.
    fn done(&self, code: ExitCode, saved: Option<&SavedCall>) -> Result<ExitCode> {
        match self.screen.output_failure() {
            Some(OutputFailure::Lost(why)) => Err(lost(&why).remedy(self.again(saved))),
            Some(OutputFailure::ReaderLeft) => {
                self.strike(saved.filter(|_| !self.keeps));
                Ok(reader_left())
            }
            None => {
                if let (false, Some(saved)) = (self.keeps, saved) {
                    self.handles.forget(&saved.id);
                }
                Ok(code)
            }
        }
    }

    /// Stops waiting before the call ends. A task keeps its handle; any other call ends.
    fn leave(&self, saved: Option<&SavedCall>) {
        match saved.filter(|saved| task_id(saved).is_some()) {
            Some(saved) => self.go_on(saved),
            None => self.strike(saved),
        }
    }

    /// Reports a failure, and how to continue if the task still exists.
    pub(crate) fn failed(&self, trouble: CliError) -> CliError {
        let Some(saved) = self.handles.mine() else { return trouble };
        match saved.stage {
            CallStage::Done(_) | CallStage::Failed(_) if self.keeps => {}
            CallStage::Done(_) | CallStage::Failed(_) => self.handles.forget(&saved.id),
            CallStage::Task(_) => self.go_on(&saved),
            _ => {
                let result = self.command("result", &saved);
                self.screen.talk(&format!("the tool may have run; resume the call: {result}"));
            }
        }
        trouble
    }

    fn result(&self, result: &CallToolResult, came: usize) -> ExitCode {
        match self.is_json {
            true => self.screen.data(&serde_json::to_string_pretty(result).unwrap_or_default()),
            false => show::result(self.screen, result, came),
        }
        match result.is_error {
            Some(true) => ExitCode::from(Kind::Failed as u8),
            _ => ExitCode::SUCCESS,
        }
    }

    /// Prints the handle as data.
    fn handle(&self, saved: &SavedCall) {
        let is_saved = self.handles.is_saved();
        let id = is_saved.then_some(saved.id.as_str());
        let handle = json!({"handle": id, "server": saved.server, "tool": saved.tool, "task": task_id(saved)});
        match self.is_json {
            true => self.screen.data(&format!("{handle:#}")),
            false => self.screen.data(id.or(task_id(saved)).unwrap_or_default()),
        }
    }

    /// Prints the commands that continue with the task.
    fn go_on(&self, saved: &SavedCall) {
        let (get, result) = (self.command("get", saved), self.command("result", saved));
        self.screen.talk(&format!(
            "the task keeps running; check its status: {get}\nwait for its result: {result}"
        ));
    }

    /// Adds a remedy: the command for a task, whose handle is kept, or `otherwise` for any other
    /// call.
    fn left(
        &self,
        trouble: CliError,
        saved: Option<&SavedCall>,
        how: &str,
        otherwise: &str,
    ) -> CliError {
        match saved.filter(|saved| task_id(saved).is_some()) {
            Some(saved) => trouble.remedy(self.command(how, saved)),
            None => {
                self.strike(saved);
                trouble.remedy(otherwise)
            }
        }
    }

    /// Returns the command that continues with a call.
    pub(crate) fn command(&self, how: &str, saved: &SavedCall) -> String {
        match task_id(saved).filter(|_| !self.handles.is_saved()) {
            Some(id) => go_on(how, id, Some(self.elsewhere.unwrap_or(&saved.server))),
            None => go_on(how, &saved.id, self.elsewhere),
        }
    }

    /// Returns the remedy for output that could not be written.
    fn again(&self, saved: Option<&SavedCall>) -> String {
        match saved.filter(|saved| task_id(saved).is_some() || self.handles.is_saved()) {
            Some(saved) => format!("free some space, then run {}", self.command("result", saved)),
            None => "free some space, and check that it is safe to call the tool again".to_owned(),
        }
    }

    fn strike(&self, saved: Option<&SavedCall>) {
        if let Some(saved) = saved {
            self.handles.forget(&saved.id);
        }
    }
}

fn lost(why: &str) -> CliError {
    CliError::new(Kind::Failed, format!("cannot write the output: {why}"))
}

/// Returns the exit code of a program that SIGPIPE ended.
fn reader_left() -> ExitCode {
    ExitCode::from(Kind::ReaderLeft as u8)
}

fn interrupted() -> ExitCode {
    ExitCode::from(Kind::Interrupted as u8)
}
