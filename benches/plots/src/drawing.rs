//! The SVG text of a plot: its frame, marks, lines and labels.

use std::fmt::Write as _;

use crate::{data::Kind, scale::Scale};

/// Width of every plot in pixels.
pub(crate) const WIDTH: f64 = 760.0;

/// Text on the background, at a contrast of 17:1.
const TEXT: &str = "#0f172a";
/// Text of axes, at a contrast of 7:1.
const QUIET: &str = "#475569";
const GRID: &str = "#e2e8f0";
const BACKGROUND: &str = "#f8fafc";
const BORDER: &str = "#cbd5e1";

/// A plot that is being drawn.
#[derive(Debug)]
pub(crate) struct Drawing {
    body: String,
}

/// The horizontal position of a text relative to its point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The look of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stroke {
    /// A line of the grid.
    Grid,
    /// A threshold or percentile.
    Marker,
    /// The range or course of a target.
    Target(Kind),
}

impl Drawing {
    /// Starts a drawing with a title, a line below it, and a text alternative with all figures.
    pub(crate) fn new(height: f64, title: &str, subtitle: &str, alternative: &str) -> Self {
        let height = number(height);
        let mut body = String::new();
        let (title, subtitle) = (escaped(title), escaped(subtitle));
        let alternative = escaped(alternative);
        let _ = writeln!(
            body,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}' \
             role='img' aria-labelledby='t d' font-family='system-ui, -apple-system, Segoe UI, Helvetica, Arial, \
             sans-serif' font-size='14'>\n  \
             <title id='t'>{title}</title>\n  <desc id='d'>{alternative}</desc>\n  \
             <rect width='{WIDTH}' height='{height}' rx='10' fill='{BACKGROUND}' stroke='{BORDER}'/>\n  \
             <text x='24' y='34' font-size='18' fill='#334155' font-weight='600'>{title}</text>\n  \
             <text x='24' y='56' fill='{QUIET}'>{subtitle}</text>"
        );
        Self { body }
    }

    /// Adds a text in the color of labels.
    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        self.write_text(x, y, anchor, TEXT, "", text);
    }

    /// Adds a bold text in the color of labels.
    pub(crate) fn bold(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        self.write_text(x, y, anchor, TEXT, " font-weight='600'", text);
    }

    /// Adds a text in the color of axes.
    pub(crate) fn quiet(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        self.write_text(x, y, anchor, QUIET, "", text);
    }

    fn write_text(&mut self, x: f64, y: f64, anchor: Anchor, fill: &str, more: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, text) = (number(x), number(y), escaped(text));
        let _ = writeln!(
            self.body,
            "  <text x='{x}' y='{y}' text-anchor='{anchor}' fill='{fill}'{more}>{text}</text>"
        );
    }

    /// Adds a text along a vertical axis, from bottom to top.
    pub(crate) fn vertical(&mut self, x: f64, y: f64, text: &str) {
        let (x, y, text) = (number(x), number(y), escaped(text));
        let _ = writeln!(
            self.body,
            "  <text transform='translate({x} {y}) rotate(-90)' text-anchor='middle' fill='{QUIET}'>{text}</text>"
        );
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, from: [f64; 2], to: [f64; 2], stroke: Stroke) {
        let look = match stroke {
            Stroke::Grid => format!("stroke='{GRID}' stroke-width='1'"),
            Stroke::Marker => {
                format!("stroke='{QUIET}' stroke-width='1.5' stroke-dasharray='4 3'")
            }
            Stroke::Target(kind @ Kind::Peer) => {
                format!("stroke='{}' stroke-width='2.5' stroke-dasharray='7 4'", color(kind))
            }
            Stroke::Target(kind) => format!("stroke='{}' stroke-width='2.5'", color(kind)),
        };
        let [[x1, y1], [x2, y2]] = [from, to].map(|point| point.map(number));
        let _ = writeln!(self.body, "  <path d='M{x1} {y1} L{x2} {y2}' {look}/>");
    }

    /// Adds a horizontal range without dashes, such as quartiles.
    pub(crate) fn range(&mut self, from: f64, to: f64, y: f64, kind: Kind) {
        let [from, to, y] = [from, to, y].map(number);
        let color = color(kind);
        let _ = writeln!(
            self.body,
            "  <path d='M{from} {y} L{to} {y}' stroke='{color}' stroke-width='5' stroke-opacity='0.35'/>"
        );
    }

    /// Adds a bar.
    pub(crate) fn bar(&mut self, from: [f64; 2], width: f64, height: f64, kind: Kind) {
        let ([x, y], color) = (from.map(number), color(kind));
        let [width, height] = [width, height].map(number);
        let _ = writeln!(
            self.body,
            "  <rect x='{x}' y='{y}' width='{width}' height='{height}' rx='2' fill='{color}'/>"
        );
    }

    /// Adds the mark of a target: a disc for Outlive, a ring for a control, a diamond for a peer.
    pub(crate) fn mark(&mut self, x: f64, y: f64, kind: Kind) {
        let color = color(kind);
        let shape = match kind {
            Kind::Outlive => {
                format!("<circle cx='{}' cy='{}' r='5.5' fill='{color}'/>", number(x), number(y))
            }
            Kind::Control => format!(
                "<circle cx='{}' cy='{}' r='4.5' fill='{BACKGROUND}' stroke='{color}' stroke-width='2.5'/>",
                number(x),
                number(y)
            ),
            Kind::Peer => format!(
                "<path d='M{} {} l6 6 l-6 6 l-6 -6 z' fill='{color}'/>",
                number(x),
                number(y - 6.0)
            ),
        };
        let _ = writeln!(self.body, "  {shape}");
    }

    /// Adds a small dot of Outlive.
    pub(crate) fn dot(&mut self, x: f64, y: f64, radius: f64) {
        let [x, y, radius] = [x, y, radius].map(number);
        let color = color(Kind::Outlive);
        let _ = writeln!(self.body, "  <circle cx='{x}' cy='{y}' r='{radius}' fill='{color}'/>");
    }

    /// Adds the grid and the labels of a horizontal axis, and its name with the unit.
    pub(crate) fn horizontal_axis(&mut self, scale: &Scale, [top, bottom]: [f64; 2], name: &str) {
        for tick in scale.ticks() {
            let x = scale.at(tick);
            self.line([x, top], [x, bottom], Stroke::Grid);
            self.quiet(x, bottom + 18.0, Anchor::Middle, &whole(tick));
        }
        self.quiet(scale.middle(), bottom + 40.0, Anchor::Middle, name);
    }

    /// Returns the text of the file.
    pub(crate) fn finish(self) -> String {
        self.body + "</svg>\n"
    }
}

/// The colors are those of Okabe and Ito, which differ for color-blind people too.
fn color(kind: Kind) -> &'static str {
    match kind {
        Kind::Outlive => "#0072b2",
        Kind::Control => "#64748b",
        Kind::Peer => "#d55e00",
    }
}

/// Returns a measured figure with three significant digits, or all digits before the point.
pub(crate) fn shown(value: f64) -> String {
    grouped(
        value,
        if value >= 100.0 {
            0
        } else if value >= 10.0 {
            1
        } else {
            2
        },
    )
}

/// Returns an exact value, such as that of a tick, without needless decimals.
pub(crate) fn whole(value: f64) -> String {
    if value.fract() == 0.0 { grouped(value, 0) } else { shown(value) }
}

/// Returns a value with its thousands in groups.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.char_indices() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// Returns a coordinate with at most one decimal.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{Anchor, Drawing, shown, whole};

    #[test]
    fn figures_have_groups_and_three_digits() {
        let figures = [0.914, 3.0, 18.25, 93.04, 124.6, 2_877.85, 1_000_000.0];
        let expected = ["0.91", "3.00", "18.2", "93.0", "125", "2,878", "1,000,000"];
        assert_eq!(figures.map(shown), expected);
        assert_eq!([3.0, 0.5, 20_000.0].map(whole), ["3", "0.50", "20,000"]);
    }

    #[test]
    fn text_of_figures_is_escaped() {
        let mut drawing = Drawing::new(100.0, "a < b", "c & d", "e > f");
        drawing.text(1.0, 2.55, Anchor::End, "<script>");
        let text = drawing.finish();
        for part in ["a &lt; b", "c &amp; d", "e &gt; f", "&lt;script&gt;", "y='2.5'"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(!text.contains("<script>"));
    }
}
