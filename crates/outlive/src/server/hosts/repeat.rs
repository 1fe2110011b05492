//! The policy for repeated calls.

/// Policy for a call that equals a call whose result was not delivered.
///
/// Two calls are equal if they have the same principal (anonymous: the same session), tool and
/// arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a repeated call either joins a run or starts one")]
pub enum Repeat {
    /// The call joins the run of the earlier call, if no request waits for that run.
    #[default]
    Join,
    /// The call starts a new run.
    New,
}
