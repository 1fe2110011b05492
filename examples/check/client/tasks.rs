//! What a client does that holds tasks: on 2026-07-28 it looks, and brings the answers; on 2025-11-25
//! it waits for the result, and is asked on the way.

use std::{thread, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::{Client, Era, answered, expect, granted, unexpected};

/// Where a question was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before there was a task: in a round of the call, or on its stream.
    Call,
    /// Inside of the task.
    Task,
}

/// What a call was answered with.
pub(crate) enum Begun {
    /// It has become a task.
    Task(String),
    /// It is done.
    Done(Value),
}

/// How a call has ended.
pub(crate) struct Ended {
    /// The task that it was, if it was one.
    pub(crate) task: Option<String>,
    pub(crate) result: Value,
}

impl Client {
    /// Calls a tool and follows it to its end, whatever it becomes. `user` is told where a question
    /// was asked.
    pub(crate) fn see_through(
        &mut self,
        params: Value,
        mut user: impl FnMut(Place, &Value) -> Result<Value>,
    ) -> Result<Ended> {
        match self.begin(params, |question| user(Place::Call, question))? {
            Begun::Done(result) => Ok(Ended { task: None, result }),
            Begun::Task(task) => {
                let result =
                    self.follow(&task, |question| user(Place::Task, question).map(Some))?;
                let result = result.context("every question is answered")?;
                Ok(Ended { task: Some(task), result })
            }
        }
    }

    /// Calls a tool, and answers what is asked before there is a task.
    pub(crate) fn begin(
        &mut self,
        mut params: Value,
        mut user: impl FnMut(&Value) -> Result<Value>,
    ) -> Result<Begun> {
        if self.era == Era::Legacy {
            // The client says which calls are to be tasks, of those that may be.
            if self.may_be_task(&params["name"])? {
                params["task"] = json!({});
            }
            let request = self.request("tools/call", params, &Value::Null);
            let result = granted(self.exchange(&request, user)?)?;
            return Ok(match result["task"]["taskId"].as_str() {
                Some(task) => Begun::Task(task.to_owned()),
                None => Begun::Done(result),
            });
        }
        let mut result = self.holding("tools/call", params.clone())?;
        while result["resultType"] == "input_required" {
            result = self.holding("tools/call", answered(&params, &result, &mut user)?)?;
        }
        match result["taskId"].as_str() {
            Some(task) => {
                expect(&result["resultType"], &json!("task")).map(|()| Begun::Task(task.to_owned()))
            }
            None => Ok(Begun::Done(result)),
        }
    }

    /// Follows a task to its end; its result. `user` answers what it asks, or with `None` leaves the
    /// question open, and the task to somebody else.
    pub(crate) fn follow(
        &mut self,
        task: &str,
        user: impl FnMut(&Value) -> Result<Option<Value>>,
    ) -> Result<Option<Value>> {
        match self.era {
            Era::Modern => self.poll(task, user),
            Era::Legacy => {
                let request = self.request("tasks/result", json!({"taskId": task}), &Value::Null);
                let answer = self.exchange_or_leave(&request, user)?;
                answer.map(granted).transpose()
            }
        }
    }

    fn poll(
        &mut self,
        task: &str,
        mut user: impl FnMut(&Value) -> Result<Option<Value>>,
    ) -> Result<Option<Value>> {
        loop {
            let mut view = self.holding("tasks/get", json!({"taskId": task}))?;
            expect(&view["resultType"], &json!("complete"))?;
            match view["status"].as_str() {
                Some("working") => {}
                Some("input_required") => {
                    let mut answers = Map::new();
                    for (key, question) in view["inputRequests"].as_object().into_iter().flatten() {
                        match user(&question["params"])? {
                            Some(answer) => answers.insert(key.clone(), answer),
                            None => return Ok(None),
                        };
                    }
                    let answers = json!({"taskId": task, "inputResponses": answers});
                    self.holding("tasks/update", answers)?;
                }
                _ => {
                    expect(&view["status"], &json!("completed"))?;
                    return Ok(Some(view["result"].take()));
                }
            }
            let pause = view["pollIntervalMs"].as_u64().context("how often to look")?;
            thread::sleep(Duration::from_millis(pause));
        }
    }

    /// Calls a method of 2026-07-28 as a client that can be asked and holds tasks.
    fn holding(&mut self, method: &str, params: Value) -> Result<Value> {
        let extensions = json!({"io.modelcontextprotocol/tasks": {}});
        let capabilities = json!({"elicitation": {}, "extensions": extensions});
        let request = self.request(method, params, &capabilities);
        granted(self.exchange(&request, unexpected)?)
    }

    /// Whether calls of a tool may be tasks; it says so in the list.
    fn may_be_task(&mut self, name: &Value) -> Result<bool> {
        let mut tools = self.call("tools/list", json!({}))?["tools"].take();
        let mut tools = tools.as_array_mut().into_iter().flatten();
        let tool = tools.find(|tool| tool["name"] == *name);
        ensure!(tool.is_some(), "there is no tool {name}");
        Ok(tool.is_some_and(|tool| {
            matches!(tool["execution"]["taskSupport"].as_str(), Some("optional" | "required"))
        }))
    }
}
