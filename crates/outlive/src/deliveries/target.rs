//! [`Target`]: a receiver of notifications, its events and tools, and the form of its messages.

use std::{fmt, sync::Arc};

use outlive_tasks::store::{Subscription, TaskEvent};

use super::transport::DeliveryTransport;

/// Maximum bytes of the name of a target.
const MAX_NAME: usize = 64;

/// Texts of the caller in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contents {
    /// No text of the caller.
    #[default]
    None,
    /// The message of an input request, and the arguments of the call without secret ones.
    Summary,
}

/// Form of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `{"type", "timestamp", "data"}`, as in Standard Webhooks.
    #[default]
    Standard,
    /// `{"text"}` with one line for people, as chats accept it.
    Text,
}

/// A receiver of notifications.
///
/// ```
/// use outlive::deliveries::{Contents, Target, TaskEvent};
/// # use outlive::deliveries::{DeliveryTransport, Message, SendFuture};
/// # struct ToLog;
/// # impl DeliveryTransport for ToLog {
/// #     fn send<'a>(&'a self, _: &'a Message) -> SendFuture<'a> { Box::pin(async { Ok(()) }) }
/// # }
///
/// let target = Target::new("on-call", ToLog)
///     .events([TaskEvent::TaskQuarantined])
///     .tools(["deploy"])
///     .contents(Contents::Summary);
/// ```
#[derive(Clone)]
#[must_use]
pub struct Target {
    name: String,
    transport: Arc<dyn DeliveryTransport>,
    events: Vec<TaskEvent>,
    tools: Option<Vec<String>>,
    links: bool,
    contents: Contents,
    format: Format,
}

impl Target {
    /// Creates a target that is notified of all events of all tools. The store has the name of the
    /// target, so a target that is renamed loses the deliveries that wait for it.
    pub fn new(name: impl Into<String>, transport: impl DeliveryTransport) -> Self {
        Self {
            name: name.into(),
            transport: Arc::new(transport),
            events: TaskEvent::ALL.to_vec(),
            tools: None,
            links: false,
            contents: Contents::None,
            format: Format::Standard,
        }
    }

    /// Sets the events; all by default.
    pub fn events(mut self, events: impl IntoIterator<Item = TaskEvent>) -> Self {
        self.events.clear();
        for event in events {
            if !self.events.contains(&event) {
                self.events.push(event);
            }
        }
        self
    }

    /// Sets the tools whose tasks are reported; all by default.
    pub fn tools(mut self, tools: impl IntoIterator<Item: Into<String>>) -> Self {
        self.tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Sets whether messages carry answer links of tools that allow them; off by default. The holder
    /// of such a link decides without signing in, so every reader of the receiver is trusted.
    pub fn links(mut self, links: bool) -> Self {
        self.links = links;
        self
    }

    /// Sets the texts of the caller in messages; [`Contents::None`] by default.
    pub fn contents(mut self, contents: Contents) -> Self {
        self.contents = contents;
        self
    }

    /// Sets the form of the messages; [`Format::Standard`] by default.
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn transport(&self) -> &dyn DeliveryTransport {
        &*self.transport
    }

    pub(crate) fn has_links(&self) -> bool {
        self.links
    }

    pub(crate) fn has_summary(&self) -> bool {
        self.contents == Contents::Summary
    }

    pub(super) fn message_format(&self) -> Format {
        self.format
    }

    /// Returns the subscriptions of a new task of a tool.
    pub(crate) fn subscriptions(&self, tool: &str) -> impl Iterator<Item = Subscription> + '_ {
        let is_wanted =
            self.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool));
        let events = self.events.iter().filter(move |_| is_wanted);
        events.map(|event| Subscription::new(*event, &self.name))
    }

    /// Checks the settings. The error names the remedy.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let name = &self.name;
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_plain) {
            return Err(format!(
                "the notification target `{name}` has an invalid name; use 1 to {MAX_NAME} letters, digits, `_`, `-` or `.`"
            ));
        }
        if self.events.is_empty() {
            return Err(format!(
                "the notification target `{name}` has no events; name at least one"
            ));
        }
        let checked = self.transport.check();
        checked.map_err(|error| format!("the notification target `{name}`: {error}"))
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, transport: _, events, tools, links, contents, format } = self;
        f.debug_struct("Target")
            .field("name", name)
            .field("events", events)
            .field("tools", tools)
            .field("links", links)
            .field("contents", contents)
            .field("format", format)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Target, TaskEvent};
    use crate::deliveries::{DeliveryTransport, Message, SendFuture};

    struct Nowhere;

    impl DeliveryTransport for Nowhere {
        fn send<'a>(&'a self, _: &'a Message) -> SendFuture<'a> {
            Box::pin(async { Ok(()) })
        }
    }

    #[test]
    fn target_is_subscribed_to_its_events_of_its_tools() {
        let events = [TaskEvent::TaskEnded, TaskEvent::TaskEnded, TaskEvent::TaskQuarantined];
        let target = Target::new("chat", Nowhere).events(events).tools(["deploy"]);
        let of_deploy: Vec<_> = target.subscriptions("deploy").map(|it| it.event).collect();
        assert_eq!(of_deploy, [TaskEvent::TaskEnded, TaskEvent::TaskQuarantined]);
        assert_eq!(target.subscriptions("render").count(), 0);
        assert_eq!(Target::new("all", Nowhere).subscriptions("render").count(), 4);
    }

    #[test]
    fn target_without_name_or_events_is_rejected() {
        let long = "x".repeat(65);
        for name in ["", "a b", "a/b", &long] {
            let error = Target::new(name, Nowhere).check().unwrap_err();
            assert!(error.contains("invalid name"), "{error}");
        }
        let error = Target::new("chat", Nowhere).events([]).check().unwrap_err();
        assert!(error.contains("has no events"), "{error}");
        Target::new("on-call.2", Nowhere).check().unwrap();
    }
}
