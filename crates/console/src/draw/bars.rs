//! Stacked bars over time.

use std::fmt::Write as _;

use crate::html::{Markup, line};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;

/// Counts of one interval, from the bottom up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stack {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) other: u64,
}

impl Stack {
    pub(crate) fn total(&self) -> u64 {
        self.completed + self.failed + self.other
    }

    /// Returns top and height of a part; `None` if its count is zero.
    fn part(&self, class: &str, most: f64) -> Option<(f64, f64)> {
        let parts = [("completed", self.completed), ("failed", self.failed), ("other", self.other)];
        let mut bottom = HEIGHT;
        for (name, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
            // A few failures among many tasks stay visible.
            let height = (count as f64 / most * HEIGHT).max(2.0);
            bottom = (bottom - height).max(0.0);
            if name == class {
                return Some((bottom, height));
            }
        }
        None
    }
}

/// Draws one bar for each interval. `name` is the start of the IDs in the drawing.
pub(crate) fn bars(name: &str, title: &str, description: &str, stacks: &[Stack]) -> Markup {
    let most = stacks.iter().map(Stack::total).max().unwrap_or_default().max(1) as f64;
    let step = WIDTH / stacks.len().max(1) as f64;
    let width = (step - 1.0).max(1.0);
    let mut svg = format!(
        "<svg class=\"drawing\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-labelledby=\"{name}-title {name}-desc\"><title id=\"{name}-title\">{}</title>\
         <desc id=\"{name}-desc\">{}</desc><defs><pattern id=\"hatch-{name}\" width=\"5\" \
         height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <path class=\"hatch\" d=\"M0 0V5\"/></pattern></defs>\
         <path class=\"axis\" d=\"M0 .5H600M0 60H600M0 119.5H600\"/>\n",
        line(title),
        line(description)
    );
    for class in ["completed", "failed", "other"] {
        let fill = match class {
            "failed" => format!(" fill=\"url(#hatch-{name})\""),
            _ => String::new(),
        };
        // Writing to memory does not fail.
        let _ = write!(svg, "<path class=\"{class}\"{fill} d=\"");
        for (at, stack) in stacks.iter().enumerate() {
            let Some((top, height)) = stack.part(class, most) else { continue };
            let x = step * at as f64;
            let _ = write!(svg, "M{x:.1} {top:.1}h{width:.1}v{height:.1}h-{width:.1}z");
        }
        svg.push_str("\"/>");
    }
    svg.push_str("</svg>\n");
    Markup::from_html(svg)
}

#[cfg(test)]
mod tests {
    use super::{Stack, bars};

    #[test]
    fn chart_has_a_bar_for_each_count() {
        let stacks = [
            Stack { completed: 40, failed: 1, other: 0 },
            Stack::default(),
            Stack { completed: 0, failed: 0, other: 7 },
        ];
        let svg = bars("ended", "<Ended>", "3 intervals", &stacks).to_string();
        let bars = |class: &str| {
            let (_, path) = svg.split_once(&format!("<path class=\"{class}\"")).unwrap();
            path.split('>').next().unwrap().matches('M').count()
        };
        assert_eq!(["completed", "failed", "other"].map(bars), [1, 1, 1]);
        assert!(svg.contains("<title id=\"ended-title\">&lt;Ended&gt;</title>"), "{svg}");
        assert!(svg.contains("class=\"failed\" fill=\"url(#hatch-ended)\""), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("style"));
    }

    #[test]
    fn chart_without_intervals_is_empty() {
        assert_eq!(bars("a", "", "", &[]).to_string().matches("d=\"\"").count(), 3);
    }
}
