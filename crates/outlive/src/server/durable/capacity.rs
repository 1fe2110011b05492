//! Permits of a capacity: a task waits for one in the store, without occupying a worker.

use std::future::{pending, poll_fn};

use outlive_tasks::engine::{Capacity, Permit};

use crate::server::{durable::context::Durable, durable_error::DurableError, error::Result};

impl Durable {
    /// Acquires a permit of a capacity. The permit can outlive the handler. Dropping the permit
    /// releases it.
    ///
    /// If all permits are in use, the task returns to the store and frees its worker and memory.
    /// Its handler runs again when a permit is free. Waiting callers get permits in turn. Acquire
    /// the permit before the first step, or where a replay reaches the call again. A call that may
    /// become a task becomes one first.
    ///
    /// ```
    /// use outlive::server::{Durable, Result, Server, State, Tool, durable::Capacity};
    ///
    /// async fn render(cx: Durable, renders: State<Capacity>) -> Result<String> {
    ///     let permit = cx.acquire(&renders).await?;
    ///     let film: String = cx.step("render", async || Ok("film".into())).await?;
    ///     drop(permit);
    ///     Ok(film)
    /// }
    ///
    /// let server = Server::builder("films", "1")
    ///     .state(Capacity::new("renders", 2))
    ///     .tool(Tool::new("render", render).description("Renders."))
    ///     .build();
    /// # server.unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`DurableError::NoCapacity`] if the call is not a task and cannot become one. If the
    /// handler returns this error, the client gets the name of the capacity and a retry delay
    /// (429). [`Capacity::acquire`] waits in memory instead.
    pub async fn acquire(&self, capacity: &Capacity) -> Result<Permit> {
        self.go_on(capacity.name())?;
        if let Some(permit) = self.permit_now(capacity) {
            return Ok(permit);
        }
        if !poll_fn(|task| self.run().poll_task(task)).await {
            return Err(DurableError::NoCapacity { capacity: capacity.name().to_owned() }.into());
        }
        // A permit may have been released during the promotion.
        if let Some(permit) = self.permit_now(capacity) {
            return Ok(permit);
        }
        let yielded = self.journal().yield_run(self.run_id(), None, Some(capacity));
        yielded.map_err(DurableError::from)?;
        // The run ends here; the next run has a permit.
        pending().await
    }

    fn permit_now(&self, capacity: &Capacity) -> Option<Permit> {
        match self.run().task_id() {
            Some(task) => capacity.acquire_for(&task),
            None => capacity.try_acquire(),
        }
    }
}
