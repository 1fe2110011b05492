//! Waiting for a permit of a capacity, without a place in the engine.

use std::future::{pending, poll_fn};

use outlive_tasks::engine::{Capacity, Permit};

use crate::server::{durable::context::Durable, durable_error::DurableError, error::Result};

impl Durable {
    /// Takes a permit of a capacity. It belongs to whoever holds it, also after the handler has
    /// returned, and is released when it is dropped.
    ///
    /// If all permits are held, a task goes back to the store, without a worker and without memory,
    /// and its handler runs again when it is its turn: calls that get a permit one after the other are
    /// those of each caller in turn. So take the permit before the first step, or in a place that a
    /// replay comes to again. A call that may become a task becomes one first.
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
    /// [`DurableError::NoCapacity`] where the call is no task and cannot become one. Returned from a
    /// handler it refuses the call: the client learns the name of the capacity, and that it should try
    /// again (429). [`Capacity::acquire`] waits in memory instead.
    pub async fn acquire(&self, capacity: &Capacity) -> Result<Permit> {
        self.go_on(capacity.name())?;
        if let Some(permit) = self.permit_now(capacity) {
            return Ok(permit);
        }
        if !poll_fn(|_| self.run().poll_task()).await {
            return Err(DurableError::NoCapacity { capacity: capacity.name().to_owned() }.into());
        }
        // One may have been released while the call became a task.
        if let Some(permit) = self.permit_now(capacity) {
            return Ok(permit);
        }
        let yielded = self.journal().yield_run(self.run_id(), None, Some(capacity));
        yielded.map_err(DurableError::from)?;
        // The run ends here; the next one has a permit.
        pending().await
    }

    fn permit_now(&self, capacity: &Capacity) -> Option<Permit> {
        match self.run().task_id() {
            Some(task) => capacity.acquire_for(&task),
            None => capacity.try_acquire(),
        }
    }
}
