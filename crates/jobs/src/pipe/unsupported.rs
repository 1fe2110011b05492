//! Stand-ins for supervised processes on systems without Unix sockets. They return errors.

use std::{
    convert::Infallible,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{
    super::{
        error::{Error, Result},
        spec::How,
    },
    spec::{Attached, PipeHello, PipeInfo, PipeSpec},
};

/// Supervised processes of one folder. They need Unix sockets.
#[derive(Clone, Debug)]
pub struct Pipes(Infallible);

/// A connection to a supervised process.
#[derive(Debug)]
pub struct Pipe(Infallible);

/// Sends messages and instructions to a supervised process.
#[derive(Clone, Debug)]
pub struct PipeSender(Infallible);

/// Event of a supervised process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PipeEvent {
    /// A message of the process.
    Message(Bytes),
    /// A line of standard error.
    Stderr(String),
    /// The supervisor sends the messages of the request to this gateway from now on, if it has the
    /// request.
    Attached {
        /// ID of the request.
        id: u64,
        /// State of the request.
        attached: Attached,
    },
    /// The process has ended.
    Exit(How),
    /// The process was not ended, because others use it.
    Kept,
}

/// A request that survives its gateway.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "both members are needed")]
pub struct Retention {
    /// Time that the request survives without a gateway.
    pub time: Duration,
    /// Task of the request, if there is one.
    pub label: Option<String>,
}

impl Pipes {
    /// Fails, because this system has no Unix sockets.
    ///
    /// # Errors
    ///
    /// Always [`Error::Unsupported`].
    pub fn open(folder: &Path) -> Result<Self> {
        Err(Error::Unsupported(folder.to_owned()))
    }

    /// Sets the program that supervisors run.
    #[must_use]
    pub fn supervisor_program(self, _program: impl Into<PathBuf>) -> Self {
        match self.0 {}
    }

    /// Starts a process.
    ///
    /// # Errors
    ///
    /// Never fails: without Unix sockets, no value of this type exists.
    pub async fn start(
        &self,
        _id: &str,
        _spec: &PipeSpec,
        _variables: &[(OsString, OsString)],
    ) -> Result<Pipe> {
        match self.0 {}
    }

    /// Connects to a process.
    ///
    /// # Errors
    ///
    /// Never fails: without Unix sockets, no value of this type exists.
    pub async fn find(&self, _id: &str) -> Result<Option<Pipe>> {
        match self.0 {}
    }

    /// Connects to a process without keeping it running.
    ///
    /// # Errors
    ///
    /// Never fails: without Unix sockets, no value of this type exists.
    pub async fn observe(&self, _id: &str) -> Result<Option<Pipe>> {
        match self.0 {}
    }

    /// Lists all processes.
    ///
    /// # Errors
    ///
    /// Never fails: without Unix sockets, no value of this type exists.
    pub fn list(&self) -> Result<Vec<PipeInfo>> {
        match self.0 {}
    }

    /// Ends a process.
    ///
    /// # Errors
    ///
    /// Never fails: without Unix sockets, no value of this type exists.
    pub async fn end(&self, _id: &str) -> Result<()> {
        match self.0 {}
    }

    /// Removes what an ended process left.
    ///
    /// # Errors
    ///
    /// Never fails: without Unix sockets, no value of this type exists.
    pub async fn remove(&self, _id: &str) -> Result<()> {
        match self.0 {}
    }
}

impl Pipe {
    /// Returns the ID of the process.
    pub fn id(&self) -> &str {
        match self.0 {}
    }

    /// Returns the state when the connection was opened.
    pub fn hello(&self) -> &PipeHello {
        match self.0 {}
    }

    /// Returns the sending side.
    pub fn sender(&self) -> PipeSender {
        match self.0 {}
    }

    /// Returns the next event.
    pub async fn next(&mut self) -> Option<PipeEvent> {
        match self.0 {}
    }
}

impl PipeSender {
    /// Sets the text that later gateways get.
    pub fn greet(&self, _greeting: &RawValue) {
        match self.0 {}
    }

    /// Writes a message that is not a request.
    pub async fn write(&self, _message: Bytes) {
        match self.0 {}
    }

    /// Writes a request.
    pub async fn request(&self, _id: u64, _message: Bytes, _retention: Option<&Retention>) {
        match self.0 {}
    }

    /// Writes the response to a request of the process.
    pub async fn respond(&self, _message: Bytes) {
        match self.0 {}
    }

    /// Lets a request survive this gateway for a time.
    pub fn retain(&self, _id: u64, _time: Duration) {
        match self.0 {}
    }

    /// Records the task of a request.
    pub fn label(&self, _id: u64, _task: &str) {
        match self.0 {}
    }

    /// Makes this gateway the owner of a request.
    pub fn attach(&self, _id: u64) {
        match self.0 {}
    }

    /// Records that a request carries an input request of the process.
    pub fn carry(&self, _id: u64, _input: &str, _number: u32) {
        match self.0 {}
    }

    /// Cancels a request.
    pub fn cancel(&self, _id: u64, _message: Bytes) {
        match self.0 {}
    }

    /// Closes the slot of a request. The gateway needs no response to it.
    pub fn done(&self, _id: u64) {
        match self.0 {}
    }

    /// Ends the process.
    pub fn end(&self, _at_any_rate: bool) {
        match self.0 {}
    }
}
