//! The parts of a page that depend on its visitor and its address.

use outlive::{people::Role, store::UnixMillis};

use crate::{assets, html::Markup, time_text};

/// The visitor of a page, and the address of the page.
#[derive(Clone, Debug)]
pub(crate) struct PageContext {
    /// Name of the signed-in person.
    pub(crate) visitor_name: String,
    pub(crate) role: Role,
    /// Number of open input requests of the visitor.
    pub(crate) inbox_count: usize,
    /// Relative path from the page to the folder of the console. It ends with a slash, as in `./`.
    pub(crate) base: String,
    /// Sealed for session and path of the page. Every form of the page posts to this path.
    pub(crate) form_token: String,
    /// Whether the console has a stream of changes.
    pub(crate) is_live: bool,
    pub(crate) now: UnixMillis,
    pub(crate) theme: Theme,
    /// Whether the script reacts to keys.
    pub(crate) has_keys: bool,
}

impl PageContext {
    /// Returns a time as in `4 min ago`.
    pub(crate) fn ago(&self, at: UnixMillis) -> Markup {
        let text = match self.now.saturating_sub(at) {
            0..1_000 => "now".to_owned(),
            passed => format!("{} ago", time_text::span(passed)),
        };
        time(at, "ago", &text)
    }

    /// Returns the time since a time, as in `4 min`.
    pub(crate) fn age(&self, at: UnixMillis) -> Markup {
        time(at, "age", &time_text::span(self.now.saturating_sub(at)))
    }

    /// Returns the time until a time, as in `7 h left`.
    pub(crate) fn left(&self, at: UnixMillis) -> Markup {
        let text = match at.checked_sub(self.now) {
            None | Some(0) => "over".to_owned(),
            Some(left) => format!("{} left", time_text::span(left)),
        };
        time(at, "left", &text)
    }

    /// Returns a time as in `18:12`, with the date if it is not today.
    pub(crate) fn clock(&self, at: UnixMillis) -> Markup {
        time(at, "clock", &time_text::clock(at, self.now))
    }

    /// Returns a time of the day to the second.
    pub(crate) fn second(&self, at: UnixMillis) -> Markup {
        // Lists have many of them, so the script sets the title.
        let (exact, clock) = (time_text::rfc3339(at), time_text::second(at));
        Markup::from_html(format!("<time datetime=\"{exact}\" data-t=\"second\">{clock}</time>"))
    }

    /// Returns whether the visitor may read the tasks of all callers.
    pub(crate) fn sees_all(&self) -> bool {
        !matches!(self.role, Role::Person)
    }

    /// Returns whether the visitor may act on the tasks of all callers.
    pub(crate) fn is_operator(&self) -> bool {
        matches!(self.role, Role::Operator)
    }

    fn role_name(&self) -> &'static str {
        match self.role {
            Role::Operator => "operator",
            Role::Viewer => "viewer",
            Role::Person => "person",
        }
    }
}

fn time(at: UnixMillis, kind: &str, text: &str) -> Markup {
    Markup::from_html(format!(
        "<time datetime=\"{}\" data-t=\"{kind}\" title=\"{}\">{}</time>",
        time_text::rfc3339(at),
        time_text::exact(at),
        outlive::text::html(text)
    ))
}

/// Colors of the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Light or dark, as the browser prefers.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// Returns the name in the cookie.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Returns the theme with a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.as_str() == name)
    }
}

/// A section of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Inbox,
    Tasks,
    Overview,
    Audit,
    Settings,
}

/// The frame of a page: head, navigation and the addresses for the script.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) cx: &'a PageContext,
    section: Section,
    /// Tasks whose changes the page shows.
    tasks: Vec<&'a str>,
    /// Seconds between updates that need no hint.
    poll: Option<u32>,
}

/// A link of the navigation.
pub(crate) struct NavLink {
    pub(crate) href: String,
    pub(crate) label: &'static str,
    /// Key after `g` that opens the section.
    pub(crate) key: char,
    pub(crate) is_current: bool,
    pub(crate) is_inbox: bool,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(cx: &'a PageContext, section: Section) -> Self {
        Self { cx, section, tasks: Vec::new(), poll: None }
    }

    /// Updates the page when one of these tasks changes.
    pub(crate) fn tasks(mut self, tasks: impl IntoIterator<Item = &'a str>) -> Self {
        self.tasks = tasks.into_iter().collect();
        self
    }

    /// Also updates the page after this number of seconds.
    pub(crate) fn poll(mut self, seconds: u32) -> Self {
        self.poll = Some(seconds);
        self
    }

    pub(crate) fn links(&self) -> Vec<NavLink> {
        let sections = [
            (Section::Inbox, "", "Inbox", 'i'),
            (Section::Tasks, "tasks", "Tasks", 't'),
            (Section::Overview, "overview", "Overview", 'o'),
            (Section::Audit, "audit", "Audit", 'a'),
        ];
        let is_visible = |section: Section| section != Section::Overview || self.cx.sees_all();
        let visible = sections.into_iter().filter(|(section, ..)| is_visible(*section));
        let link = |(section, path, label, key): (Section, &str, &'static str, char)| NavLink {
            href: format!("{}{path}", self.cx.base),
            label,
            key,
            is_current: section == self.section,
            is_inbox: section == Section::Inbox,
        };
        visible.map(link).collect()
    }

    pub(crate) fn asset(&self, name: &str) -> String {
        format!("{}{}", self.cx.base, assets::path(name))
    }

    pub(crate) fn icons(&self) -> &'static str {
        assets::ICONS
    }

    pub(crate) fn theme(&self) -> &'static str {
        self.cx.theme.as_str()
    }

    pub(crate) fn role(&self) -> &'static str {
        self.cx.role_name()
    }

    /// Returns the start of the title: the number of open input requests.
    pub(crate) fn count(&self) -> String {
        match self.cx.inbox_count {
            0 => String::new(),
            count => format!("({count}) "),
        }
    }

    pub(crate) fn poll_seconds(&self) -> u32 {
        self.poll.unwrap_or(0)
    }

    /// Returns the address of the stream of changes; `None` if the console has none.
    pub(crate) fn stream(&self) -> Option<String> {
        let separator = if self.tasks.is_empty() { "" } else { "?tasks=" };
        let tasks = self.tasks.join(",");
        self.cx.is_live.then(|| format!("{}api/v1/stream{separator}{tasks}", self.cx.base))
    }
}

#[cfg(test)]
mod tests {
    use super::Theme;

    #[test]
    fn theme_is_found_by_its_name() {
        for theme in Theme::ALL {
            assert_eq!(Theme::from_name(theme.as_str()), Some(theme));
        }
        assert_eq!(Theme::from_name("blue"), None);
    }
}
