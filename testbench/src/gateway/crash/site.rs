//! One gateway that is killed and started again on its files.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::executions::Executions;
use crate::gateway::serving::{Gateway, Home};
use crate::gateway::setting::Setting;
use crate::hosts::caller::Caller;

/// A gateway and the executions of its upstreams.
#[derive(Debug)]
pub(super) struct Site<'h> {
    home: &'h Home,
    gateway: Option<Gateway<'h>>,
    pub(super) executions: Executions,
}

/// Writes the files of a gateway, and an empty file of executions.
pub(super) fn home(setting: &Setting, name: &str, file: &str) -> Result<Home> {
    let home = Home::new(setting, name, file)?;
    fs::write(home.path("executions"), "")?;
    Ok(home)
}

impl<'h> Site<'h> {
    pub(super) fn start(home: &'h Home) -> Result<Self> {
        let executions = Executions::new(home.path("executions"))?;
        Ok(Self { home, gateway: Some(home.start()?), executions })
    }

    /// The same client, at the running gateway.
    pub(super) fn at(&self, caller: &Caller) -> Result<Caller> {
        Ok(caller.at(self.gateway()?.address))
    }

    pub(super) fn gateway(&self) -> Result<&Gateway<'h>> {
        self.gateway.as_ref().context("the gateway is down")
    }

    /// Kills the gateway with `kill -9`, and starts another one. Returns the time of the kill.
    pub(super) fn replace(&mut self) -> Result<Instant> {
        let gateway = self.gateway.take().context("the gateway is down")?;
        let killed = Instant::now();
        gateway.kill()?;
        self.gateway = Some(self.home.start()?);
        Ok(killed)
    }

    /// Starts another gateway on the same files, beside the running one, which is returned.
    pub(super) fn succeed(&mut self) -> Result<Gateway<'h>> {
        let next = self.home.start()?;
        self.gateway.replace(next).context("the gateway is down")
    }

    /// Stops the gateway.
    pub(super) fn stop(mut self) -> Result<()> {
        self.gateway.take().context("the gateway is down")?.stop()
    }
}
