//! Handle of a call whose input requests are events, from its first round on.

use std::sync::Arc;

use outlive_protocol::TaskDialect;
use outlive_wire::{CallToolResult, ErrorObject, code};

use super::{
    complete::{Drive, TaskEvent},
    event_mode::{EventMode, Starting},
    handle::{State, TaskHandle},
};
use crate::client::{
    call_store::Record,
    core::Core,
    error::{ClientError, Error, Result},
    input::{InputResponse, PendingInput},
    input_events::InputEvents,
    send::Boxed,
};

impl TaskHandle {
    /// Creates a handle of a call that runs while its events are read.
    pub(crate) fn starting(
        core: &Arc<Core>,
        record: Record,
        call: Boxed<'static, TaskHandle>,
        inputs: InputEvents,
    ) -> Self {
        let mut handle = Self::of(core, record, State::Starting(Starting(call)));
        handle.event_mode = Some(Box::new(EventMode { inputs, driving: None }));
        handle
    }

    /// Returns whether the call has no outcome yet.
    pub(super) fn is_starting(&self) -> bool {
        matches!(self.state, State::Starting(_))
    }

    /// Runs the call until it has an input request (returned) or an outcome (`None`). Cancel safe.
    pub(super) async fn start(&mut self) -> Result<Option<TaskEvent>> {
        let (State::Starting(call), Some(mode)) = (&mut self.state, &mut self.event_mode) else {
            return Ok(None);
        };
        let made = tokio::select! {
            biased;
            input = mode.inputs.next() => return Ok(Some(TaskEvent::Input(Box::new(input)))),
            made = &mut call.0 => made,
        };
        match made {
            Ok(mut handle) => {
                let done = State::Done(Box::<CallToolResult>::default());
                self.state = std::mem::replace(&mut handle.state, done);
                self.immediate = handle.immediate.take();
                self.stop_answering();
                Ok(None)
            }
            Err(error) => {
                self.state = State::Failed(error_object(&error));
                Err(error)
            }
        }
    }

    /// Returns the next event of a task of 2025-11-25, or an input request that the server sends
    /// for it.
    pub(super) async fn drive_with_requests(&mut self) -> Result<TaskEvent> {
        let (core, record) = (&self.core, &self.record);
        let (State::Task(task, rules, drive), Some(mode)) = (&mut self.state, &mut self.event_mode)
        else {
            return Err(ClientError::Unanswered("the call is not a task".to_owned()).into());
        };
        let driving = mode.driving.get_or_insert_with(|| {
            let mut drive = drive
                .take()
                .unwrap_or_else(|| Box::new(Drive::new(core, record.clone(), rules, task, true)));
            Box::pin(async move {
                let event = drive.next().await;
                (drive, event)
            })
        });
        let (back, event) = tokio::select! {
            biased;
            input = mode.inputs.next() => return Ok(TaskEvent::Input(Box::new(input))),
            driven = driving => driven,
        };
        mode.driving = None;
        *drive = Some(back);
        event
    }

    /// Returns whether the server sends input requests outside of the task's snapshots.
    pub(super) fn reads_requests(&self) -> bool {
        let is_requested = matches!(
            &self.state,
            State::Task(_, rules, _) if rules.tasks == TaskDialect::Requested
        );
        is_requested && self.event_mode.is_some()
    }

    /// Responds to an input request that arrived before the task or during `tasks/result`. Returns
    /// whether the request is one of these.
    pub(super) fn respond_to_event(
        &mut self,
        input: &PendingInput,
        response: &InputResponse,
    ) -> Result<bool> {
        let (Some(mode), Some(event)) = (&mut self.event_mode, input.event) else {
            return Ok(false);
        };
        input.check(response).map_err(ClientError::InvalidInputResponse)?;
        mode.inputs.respond(event, response.clone());
        Ok(true)
    }

    /// Waits for the result of a call whose input requests are events. The client's input handler
    /// responds to them.
    pub(super) async fn wait_with_handler(&mut self) -> Result<CallToolResult> {
        loop {
            let event = match self.is_starting() {
                true => self.start().await?,
                false => Some(self.drive_on().await?),
            };
            match event {
                Some(TaskEvent::Done(result)) => return Ok(*result),
                Some(TaskEvent::Input(input)) => {
                    let core = Arc::clone(&self.core);
                    let response = match core.dispatch.input_handler() {
                        Some(handler) => handler.answer((*input).clone()).await,
                        None => InputResponse::Error("the client has no input handler".to_owned()),
                    };
                    self.respond(&input, response).await?;
                }
                _ => {}
            }
        }
    }

    /// Cancels a call that has no outcome yet.
    pub(super) fn stop_starting(&mut self) {
        let message = "the call was cancelled".to_owned();
        self.state = State::Failed(ErrorObject { code: code::INTERNAL, message, data: None });
    }
}

fn error_object(error: &Error) -> ErrorObject {
    match error {
        Error::Server(error) => ErrorObject {
            code: error.code,
            message: error.message.clone(),
            data: error.data.clone(),
        },
        other => ErrorObject { code: code::INTERNAL, message: other.to_string(), data: None },
    }
}
