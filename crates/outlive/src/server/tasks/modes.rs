//! In which way a call that asks for a task is answered: with its result, if that is there at once;
//! with its content, as it grows; or with the task.
//!
//! A dialect of 2025-11-25 that the server switches on and the call asks for. To everybody else a
//! call that asks for a task is answered with one.

use outlive_protocol::{Call, ProtocolError, ResponseModes};
use outlive_wire::ClientCapabilities;

use super::Tasks;

/// How a call is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::server) struct Way {
    /// With the result, if it is there at once.
    pub(super) immediate: bool,
    /// With the content as it grows, if the result is not there at once or was not asked for.
    pub(super) streaming: bool,
    /// Whether a task, if it comes to that, is not what the caller expects: it waits for no more then.
    pub(super) fell_back: bool,
}

impl Way {
    /// Which way a call goes to a tool that emits its content bit by bit, or does not.
    pub(super) fn of(
        tasks: &Tasks,
        call: &Call,
        wanted: Result<Option<ResponseModes>, ProtocolError>,
        incremental: bool,
    ) -> Result<Self, ProtocolError> {
        let Some(offered) = tasks.config.modes else { return Ok(Self::default()) };
        let Some(wanted) = wanted? else { return Ok(Self::default()) };
        if !has_declared(call) {
            tracing::debug!(
                "a client names response modes that it did not declare; it has its way"
            );
        }
        Ok(Self::agreed(offered, wanted, incremental))
    }

    fn agreed(offered: ResponseModes, wanted: ResponseModes, incremental: bool) -> Self {
        let streaming = offered.streaming && wanted.streaming && incremental;
        Self {
            immediate: offered.immediate && wanted.immediate,
            streaming,
            // Who waits for more than the task has to be told that no more comes.
            fell_back: !streaming && (wanted.streaming || !wanted.task),
        }
    }
}

/// Whether the handshake said that the client knows several ways.
fn has_declared(call: &Call) -> bool {
    let declared: ClientCapabilities =
        serde_json::from_str(call.client_capabilities()).unwrap_or_default();
    declared.tasks.is_some_and(|tasks| tasks["responses"]["modes"].is_array())
}

#[cfg(test)]
mod tests {
    use outlive_protocol::ResponseModes;

    use super::Way;

    fn modes(names: &[&str]) -> ResponseModes {
        let has = |name| names.contains(&name);
        ResponseModes {
            immediate: has("immediate"),
            streaming: has("streaming"),
            task: has("task"),
        }
    }

    /// The letters of what is agreed on: with the result, as it grows, with a warning.
    #[track_caller]
    fn check(offered: &[&str], wanted: &[&str], incremental: bool, agreed: &str) {
        let way = Way::agreed(modes(offered), modes(wanted), incremental);
        let letters = [(way.immediate, 'i'), (way.streaming, 's'), (way.fell_back, 'w')];
        let letters: String = letters.iter().filter(|(is, _)| *is).map(|(_, c)| *c).collect();
        assert_eq!(letters, agreed, "{offered:?} {wanted:?} {incremental}");
    }

    // S-04, S-05, S-07, S-13, S-16
    #[test]
    fn what_both_want_and_the_tool_can_do_is_agreed_on() {
        let all = ["immediate", "streaming", "task"];
        check(&all, &["task"], true, "");
        check(&all, &["immediate"], true, "iw");
        check(&all, &["immediate", "task"], true, "i");
        check(&all, &["streaming"], true, "s");
        check(&all, &["task", "streaming", "immediate"], true, "is");
        check(&all, &["streaming", "task"], false, "w");
        check(&all, &["immediate", "streaming"], false, "iw");
        check(&all, &[], true, "w");
        check(&["immediate", "task"], &["streaming"], true, "w");
        check(&["streaming", "task"], &["immediate", "streaming"], true, "s");
        check(&["streaming", "task"], &["immediate", "task"], true, "");
    }
}
