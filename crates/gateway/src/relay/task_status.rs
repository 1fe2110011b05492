//! Status messages of an upstream's task, as progress of the call.

use outlive::{client::tasks::TaskSnapshot, server::Durable};

/// Longest status message that is shown, in characters.
const MAX_CHARS: usize = 1_000;

/// Shows the status messages of one task.
#[derive(Debug, Default)]
pub(super) struct StatusMessages {
    last: Option<String>,
    /// Number of messages, which is the progress of a task that reports none.
    count: u32,
}

impl StatusMessages {
    /// Shows the progress and the status message of a state, if they are new.
    pub(super) fn show(&mut self, cx: &Durable, snapshot: &TaskSnapshot) {
        let message = snapshot.message.as_deref().map(visible).filter(|text| !text.is_empty());
        if let Some(progress) = &snapshot.progress {
            let text = progress.message.as_deref().map(visible).or(message).unwrap_or_default();
            cx.progress(progress.done, progress.total, text);
            return;
        }
        let Some(message) = message.filter(|text| self.last.as_ref() != Some(text)) else { return };
        cx.set_status_message(message.as_str());
        if !cx.is_task() && cx.call().progress_token().is_some() {
            self.count += 1;
            cx.progress(f64::from(self.count), None::<f64>, message.as_str());
        }
        self.last = Some(message);
    }
}

fn visible(text: &str) -> String {
    outlive::text::line(text).chars().take(MAX_CHARS).collect()
}
