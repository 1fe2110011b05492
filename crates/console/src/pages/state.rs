//! A state as shape, word and color.

use askama::Template;
use outlive::store::TaskState;

use crate::html::Markup;

/// The badge of a state.
#[derive(Template)]
#[template(
    source = "<span class=\"state s-{{ name }}\"><svg class=\"icon\" aria-hidden=\"true\"><use href=\"#i-{{ name }}\"/></svg>{{ word }}</span>",
    ext = "html"
)]
pub(super) struct StateBadge {
    name: &'static str,
    word: &'static str,
}

impl StateBadge {
    /// Returns the badge of a state.
    pub(super) fn html(state: TaskState) -> Markup {
        Markup::new(&Self { name: state.as_str(), word: word(state) })
    }
}

/// Returns the word of a state.
pub(super) fn word(state: TaskState) -> &'static str {
    match state {
        TaskState::InputRequired => "input required",
        other => other.as_str(),
    }
}

/// Returns whether a task in this state never changes again.
pub(super) fn is_terminal(state: TaskState) -> bool {
    use TaskState::{Cancelled, Completed, Expired, Failed};
    matches!(state, Completed | Failed | Cancelled | Expired)
}

#[cfg(test)]
mod tests {
    use outlive::store::TaskState;

    use crate::assets::{CSS, ICONS};

    #[test]
    fn every_state_has_a_symbol_and_a_color() {
        for state in TaskState::ALL {
            let name = state.as_str();
            assert!(ICONS.contains(&format!("id=\"i-{name}\"")), "{name}");
            assert!(CSS.contains(&format!(".s-{name}")), "{name}");
        }
    }
}
