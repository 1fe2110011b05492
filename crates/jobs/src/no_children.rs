//! [`Children`] on systems without process groups: only the child itself can be ended.

use std::{path::Path, time::Duration};

use super::{
    control::Nonce,
    error::{Error, Result},
    names::JOB_VARIABLE,
};

/// Stub: the marks of children are not recorded on this system.
#[derive(Clone, Debug)]
pub struct Children;

/// Mark of a child that is about to start.
#[derive(Debug)]
pub struct ChildMark(String);

/// Stub: the processes of a child cannot be found on this system.
#[derive(Debug)]
pub struct ChildProcesses;

impl Children {
    /// Returns the stub.
    ///
    /// # Errors
    ///
    /// Never fails.
    pub fn open(_: &Path) -> Result<Self> {
        Ok(Self)
    }

    /// Does nothing: children end with their server on this system.
    ///
    /// # Errors
    ///
    /// Never fails.
    #[expect(clippy::unused_async, reason = "as on Unix")]
    pub async fn end_orphans(&self, _: Duration) -> Result<usize> {
        Ok(0)
    }

    /// Creates a mark for a child.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no random bytes.
    pub fn mark(&self) -> Result<ChildMark> {
        ChildMark::unrecorded()
    }
}

impl ChildMark {
    /// Creates a mark.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no random bytes.
    pub fn unrecorded() -> Result<Self> {
        let nonce = Nonce::random()
            .map_err(|source| Error::Io { doing: "read random bytes".to_owned(), source })?;
        Ok(Self(nonce.into_text()))
    }

    /// Returns name and value of the environment variable for the child.
    pub fn variable(&self) -> (&'static str, &str) {
        (JOB_VARIABLE, &self.0)
    }

    /// Returns the stub.
    ///
    /// # Errors
    ///
    /// Never fails.
    pub fn started(self, _: u32) -> Result<ChildProcesses> {
        Ok(ChildProcesses)
    }
}

impl ChildProcesses {
    /// Does nothing.
    pub fn ask_to_end(&self) {}

    /// Does nothing: the caller kills the child itself.
    pub fn kill(&self) {}

    /// Returns true: nothing is known of other processes.
    #[expect(clippy::unused_async, reason = "as on Unix")]
    pub async fn end(self, _: Duration) -> bool {
        true
    }
}
