//! The progress line at the bottom of a terminal.

use std::{
    io::{self, Write as _},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use console::{Term, measure_text_width, truncate_str};

/// Redraw interval. A call that ends sooner never draws the line.
const TICK: Duration = Duration::from_millis(100);

/// Width of a progress bar in columns.
const COLUMNS: usize = 24;

const SPINNER: [char; 8] = ['⠁', '⠂', '⠄', '⡀', '⢀', '⠠', '⠐', '⠈'];

/// Contents of the progress line.
#[derive(Clone)]
pub(super) struct View {
    /// Completed fraction; `None` shows a spinner.
    pub(super) part: Option<f64>,
    pub(super) message: String,
}

impl View {
    /// Returns the line for a terminal of this width.
    ///
    /// The last columns stay free: the terminal prints `^C` there, which must not wrap. The line is
    /// never wider than 80 columns and never padded, because shrinking a terminal wraps long lines
    /// permanently.
    fn line(&self, width: usize, tick: usize) -> String {
        const FREE: usize = 3;
        const WIDEST: usize = 80;
        let head = match self.part {
            Some(part) => {
                let full = (part * COLUMNS as f64) as usize;
                let bar = "=".repeat(full) + if full < COLUMNS { ">" } else { "" };
                format!("[{bar:COLUMNS$}] {:>3}%  ", (part * 100.0) as u64)
            }
            None => format!("{} ", SPINNER[tick % SPINNER.len()]),
        };
        let room = width.min(WIDEST).saturating_sub(FREE);
        let message = room.saturating_sub(measure_text_width(&head));
        let line = head + &truncate_str(&self.message, message, "…");
        truncate_str(&line, room, "").into_owned()
    }
}

/// The progress line. A thread draws it until the value is dropped, which erases the line.
pub(super) struct Bar {
    canvas: Arc<Mutex<Canvas>>,
    /// Dropping the sender ends the thread. No value is ever sent.
    _alive: mpsc::SyncSender<()>,
}

struct Canvas {
    term: Term,
    /// `None` after the bar was dropped.
    view: Option<View>,
    tick: usize,
    is_drawn: bool,
}

impl Bar {
    pub(super) fn new(view: View) -> Self {
        let canvas =
            Canvas { term: Term::buffered_stderr(), view: Some(view), tick: 0, is_drawn: false };
        let canvas = Arc::new(Mutex::new(canvas));
        let (_alive, ended) = mpsc::sync_channel::<()>(1);
        let drawn = Arc::clone(&canvas);
        let draw = move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let mut canvas = lock(&drawn);
                canvas.tick += 1;
                canvas.draw();
            }
        };
        // A failure only disables the progress line; other output is unaffected.
        let _ = thread::Builder::new().name("outlive-bar".into()).spawn(draw);
        Self { canvas, _alive }
    }

    /// Sets the contents for the next redraw.
    pub(super) fn show(&self, view: View) {
        lock(&self.canvas).view = Some(view);
    }

    /// Erases the line while `write` prints above it.
    pub(super) fn above(&self, write: impl FnOnce()) {
        let mut canvas = lock(&self.canvas);
        let was_drawn = canvas.is_drawn;
        canvas.clear();
        write();
        if was_drawn {
            canvas.draw();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        let mut canvas = lock(&self.canvas);
        canvas.view = None;
        canvas.clear();
    }
}

impl Canvas {
    /// Draws the line. Ignores write errors, which must not end the call.
    fn draw(&mut self) {
        let Some(view) = &self.view else { return };
        let line = view.line(usize::from(self.term.size().1), self.tick);
        let _ = self.put(&line);
        self.is_drawn = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = self.put("");
        }
    }

    /// Replaces the line with `line`.
    fn put(&mut self, line: &str) -> io::Result<()> {
        self.term.clear_line()?;
        self.term.write_all(line.as_bytes())?;
        self.term.flush()
    }
}

fn lock(canvas: &Mutex<Canvas>) -> MutexGuard<'_, Canvas> {
    canvas.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::View;

    fn line(part: Option<f64>, message: &str, width: usize) -> String {
        View { part, message: message.to_owned() }.line(width, 0)
    }

    #[test]
    fn progress_bar_fills_to_completed_fraction() {
        assert_eq!(line(Some(0.0), "", 80), "[>                       ]   0%  ");
        assert_eq!(line(Some(0.5), "half", 80), "[============>           ]  50%  half");
        assert_eq!(line(Some(0.999), "", 80), "[=======================>]  99%  ");
        assert_eq!(line(Some(1.0), "", 80), "[========================] 100%  ");
    }

    #[test]
    fn progress_line_in_narrow_terminal_leaves_columns_free() {
        assert_eq!(
            line(Some(0.5), "2 of 4  counting", 40),
            "[============>           ]  50%  2 o…"
        );
        assert_eq!(line(None, &"x".repeat(200), 200).chars().count(), 77);
        for width in 0..100 {
            for part in [None, Some(0.5)] {
                let drawn = line(part, "a message of some length", width);
                assert!(drawn.chars().count() <= width.saturating_sub(3), "{width}: {drawn}");
            }
        }
    }
}
