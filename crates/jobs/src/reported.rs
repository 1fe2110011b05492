//! The progress and statuses that a reader has reported, and those that it reports before the exit.

use super::{Event, Exit, Progress, output::last_line};

/// The last reported progress and status.
///
/// A reader can miss news of a command that ends at once. All readers report the newest progress and
/// then the last line of standard error before the exit, so the last event does not depend on what
/// they have read in time.
#[derive(Debug, Default)]
pub(super) struct Reported {
    progress: Option<Progress>,
    status: Option<String>,
    /// Whether no progress with a message was reported after the status.
    is_status_last: bool,
    /// Whether the status is the last line of an ended command.
    is_ended: bool,
}

impl Reported {
    /// Returns the event of a progress, unless it is the last reported one.
    pub(super) fn progress(&mut self, progress: Progress) -> Option<Event> {
        if self.progress.as_ref() == Some(&progress) {
            return None;
        }
        self.is_status_last &= progress.message.is_empty();
        self.progress = Some(progress.clone());
        Some(Event::Progress(progress))
    }

    /// Returns the event of a status, unless it is the last reported one.
    pub(super) fn status(&mut self, status: String) -> Option<Event> {
        if self.status.as_ref() == Some(&status) {
            return None;
        }
        self.is_status_last = true;
        self.status = Some(status.clone());
        Some(Event::Status(status))
    }

    /// Returns the next event of an ended command: unreported progress, the last line, then the exit.
    pub(super) fn end(&mut self, exit: &Exit) -> Event {
        let progress = exit.progress.clone();
        if let Some(event) = progress.and_then(|progress| self.progress(progress)) {
            return event;
        }
        if !std::mem::replace(&mut self.is_ended, true)
            && let Some(last) = last_line(&exit.stderr_tail)
        {
            // A progress or the warning about lost output replaced the status.
            if !self.is_status_last || exit.output_lost.is_some() {
                self.status = None;
            }
            if let Some(event) = self.status(last) {
                return event;
            }
        }
        Event::Exit(exit.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::{Event, Exit, Progress, Reported};
    use crate::How;

    fn packing() -> Progress {
        Progress { progress: 1.0, total: None, message: "packing".to_owned() }
    }

    fn broken() -> Exit {
        let exit = Exit::silent(How::Code(3), 0);
        Exit { stderr_tail: "working\nbroken".to_owned(), progress: Some(packing()), ..exit }
    }

    /// Returns the events before the exit.
    fn ends(reported: &mut Reported, exit: &Exit) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            match reported.end(exit) {
                Event::Exit(_) => return events,
                event => events.push(event),
            }
        }
    }

    #[test]
    fn last_line_is_the_last_event_for_early_and_late_readers() {
        let (progress, last) = (Event::Progress(packing()), Event::Status("broken".to_owned()));
        let read = |news: &[&Event]| {
            let mut reported = Reported::default();
            for event in news {
                match event {
                    Event::Progress(progress) => drop(reported.progress(progress.clone())),
                    Event::Status(status) => drop(reported.status(status.clone())),
                    other => panic!("{other:?}"),
                }
            }
            reported
        };
        assert_eq!(ends(&mut read(&[]), &broken()), [progress.clone(), last.clone()]);
        assert_eq!(ends(&mut read(&[&progress]), &broken()), slice::from_ref(&last));
        assert_eq!(ends(&mut read(&[&last]), &broken()), [progress.clone(), last.clone()]);
        assert_eq!(ends(&mut read(&[&last, &progress]), &broken()), slice::from_ref(&last));
        assert_eq!(ends(&mut read(&[&progress, &last]), &broken()), []);
        let lost = Exit { output_lost: Some("the disk is full".to_owned()), ..broken() };
        assert_eq!(ends(&mut read(&[&progress, &last]), &lost), [last]);
    }
}
