//! Calls that a client has saved, and tasks by their IDs.

pub use super::call_store::{
    CallStage, CallStore, FileCallStore, SavedCall, SavedInputResponse, SavedRound, SavedTask,
};
use super::{
    call_store::{self, Record},
    core::Client,
    error::{ClientError, Result},
    tasks::TaskHandle,
    tool_call,
};

impl Client {
    /// Resumes a call that this or another process saved.
    ///
    /// # Errors
    ///
    /// [`ClientError::MaybeExecuted`] if the call was sent, its response is lost, and the server
    /// does not support idempotency keys. [`ClientError::WrongAccount`] if the call belongs to
    /// another server or account.
    pub async fn resume(&self, saved: SavedCall) -> Result<TaskHandle> {
        let core = &self.core;
        let server = core.dispatch.label();
        if *saved.server != **server || saved.account != core.settings.account {
            let why = format!(
                "the call of `{}` belongs to server `{}` or another account",
                saved.tool, saved.server
            );
            return Err(ClientError::WrongAccount(why).into());
        }
        match saved.stage {
            CallStage::Calling(_) if saved.key.is_some() || saved.idempotent => {
                tool_call::again(core, saved).await
            }
            _ => TaskHandle::reopen(core, saved),
        }
    }

    /// Returns a handle on a task by its ID, such as one that a server lists. The handle is not saved.
    /// Its first request shows whether the task exists.
    ///
    /// # Errors
    ///
    /// If the server is unreachable.
    pub async fn task(&self, id: impl Into<String>) -> Result<TaskHandle> {
        let rules = self.core.established().await?.rules;
        Ok(TaskHandle::by_id(&self.core, rules, id.into()))
    }

    /// Returns the saved calls of this server and account.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn saved_calls(&self) -> Result<Vec<SavedCall>> {
        let Some(notebook) = self.core.settings.notebook.clone() else { return Ok(Vec::new()) };
        let all = call_store::run(move || notebook.load()).await?;
        let (server, account) = (self.core.dispatch.label(), &self.core.settings.account);
        let is_ours = |call: &SavedCall| *call.server == **server && call.account == *account;
        Ok(all.into_iter().filter(is_ours).collect())
    }

    /// Deletes a saved call without a handle, such as a call that may have executed and whose
    /// effect the caller has checked.
    ///
    /// # Errors
    ///
    /// If the call still exists.
    pub async fn delete_saved(&self, saved: &SavedCall) -> Result<()> {
        Record::new(self.core.settings.notebook.clone(), saved.clone()).erase().await
    }
}
