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
    /// Goes on with a call that was saved, by this process or another.
    ///
    /// # Errors
    ///
    /// [`ClientError::MaybeExecuted`] when the call had been sent, its answer was not seen, and the server
    /// cannot tell two calls apart; [`ClientError::WrongAccount`] when it belongs to another server or account.
    pub async fn resume(&self, saved: SavedCall) -> Result<TaskHandle> {
        let core = &self.core;
        let server = core.dispatch.label();
        if *saved.server != **server || saved.account != core.settings.account {
            let why = format!("the call of `{}` was made at {}", saved.tool, saved.server);
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
    /// When the server cannot be reached.
    pub async fn task(&self, id: impl Into<String>) -> Result<TaskHandle> {
        let rules = self.core.established().await?.rules;
        Ok(TaskHandle::by_id(&self.core, rules, id.into()))
    }

    /// Everything that the notebook has of this server and account.
    ///
    /// # Errors
    ///
    /// When the notebook cannot be read.
    pub async fn saved_calls(&self) -> Result<Vec<SavedCall>> {
        let Some(notebook) = self.core.settings.notebook.clone() else { return Ok(Vec::new()) };
        let all = call_store::run(move || notebook.load()).await?;
        let (server, account) = (self.core.dispatch.label(), &self.core.settings.account);
        let is_ours = |call: &SavedCall| *call.server == **server && call.account == *account;
        Ok(all.into_iter().filter(is_ours).collect())
    }

    /// Deletes a saved call without a handle: one that may have been executed, and that the caller has
    /// checked.
    ///
    /// # Errors
    ///
    /// When it is still there.
    pub async fn delete_saved(&self, saved: &SavedCall) -> Result<()> {
        Record::new(self.core.settings.notebook.clone(), saved.clone()).erase().await
    }
}
