//! Ways to answer an input request of a bridged call.

/// A way for the user of a client without elicitation to answer an input request.
///
/// Both ways are opt-in, because they are visible to the model. The command line always works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnswerBy {
    /// A link to a page with a form. It works once, without a login. Only HTTP servers have it.
    Link,
    /// The tool `task_answer`, which the model calls with the answer of its user.
    Tool,
}
