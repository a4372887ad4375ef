//! Charts as SVG: our own writer, so that the same figures give the same bytes on every machine.
//!
//! A chart says where things stand; the page's style sheet says what they look like, in light and in dark.

pub(crate) mod clock;
pub(crate) mod distribution;
pub(crate) mod forest;
mod frame;
pub(crate) mod heat;
pub(crate) mod pipeline;
mod scale;
pub(crate) mod series;
pub(crate) mod throughput;

use std::fmt::Write;

/// A drawing in the making.
pub(crate) struct Svg {
    head: String,
    body: String,
}

impl Svg {
    /// `label` is read to those who cannot see it.
    pub fn new(width: f64, height: f64, label: &str) -> Svg {
        Svg::with(width, height, label, "")
    }

    /// One that is stretched to whatever place it is given; strokes and dots keep their size.
    pub fn stretched(width: f64, height: f64, label: &str) -> Svg {
        Svg::with(width, height, label, " preserveAspectRatio=\"none\"")
    }

    fn with(width: f64, height: f64, label: &str, ratio: &str) -> Svg {
        let (width, height) = (number(width), number(height));
        let head =
            format!("<svg viewBox=\"0 0 {width} {height}\"{ratio} role=\"img\" aria-label=\"{}\">", escape(label));
        Svg { head, body: String::new() }
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
        let _ = write!(self.body, "<path class=\"{class}\" d=\"M{x1} {y1}L{x2} {y2}\"/>");
    }

    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        if !points.is_empty() {
            let _ = write!(self.body, "<path class=\"{class}\" d=\"{}\"/>", polyline(points));
        }
    }

    /// Round even where the drawing is stretched: the end of a line that goes nowhere.
    pub fn dot(&mut self, class: &str, at: (f64, f64)) {
        let _ = write!(self.body, "<path class=\"dot {class}\" d=\"M{} {}h0\"/>", number(at.0), number(at.1));
    }

    pub fn rectangle(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        let [x, y, width, height] = [at.0, at.1, size.0, size.1].map(number);
        let _ =
            write!(self.body, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>");
    }

    pub fn text(&mut self, class: &str, at: (f64, f64), text: &str) {
        let (x, y) = (number(at.0), number(at.1));
        let _ = write!(self.body, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escape(text));
    }

    pub fn finish(self) -> String {
        self.head + &self.body + "</svg>"
    }
}

/// `M0 0l3.1 2`: after the first, each point from the one before, which takes the fewest bytes.
fn polyline(points: &[(f64, f64)]) -> String {
    let tenths = |value: f64| (value * 10.0).round() as i64;
    let corners = corners(points.iter().map(|point| (tenths(point.0), tenths(point.1))));
    let mut text = String::new();
    let mut last = (0, 0);
    for (place, here) in corners.into_iter().enumerate() {
        let [across, down] = [here.0 - last.0, here.1 - last.1].map(|tenths| number(tenths as f64 / 10.0));
        let _ = match (place, across.as_str(), down.as_str()) {
            (0, ..) => write!(text, "M{across} {down}"),
            (_, "0", _) => write!(text, "v{down}"),
            (_, _, "0") => write!(text, "h{across}"),
            _ => write!(text, "l{across} {down}"),
        };
        last = here;
    }
    text
}

/// Without points that lie on the point before, or on the way straight up or across to the next.
fn corners(points: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut corners: Vec<(i64, i64)> = Vec::new();
    for here in points {
        if let [.., before, last] = corners[..] {
            let between = |of: fn((i64, i64)) -> i64| {
                (of(before)..=of(here)).contains(&of(last)) || (of(here)..=of(before)).contains(&of(last))
            };
            let up = before.0 == last.0 && last.0 == here.0 && between(|point| point.1);
            let across = before.1 == last.1 && last.1 == here.1 && between(|point| point.0);
            if up || across {
                corners.pop();
            }
        }
        if corners.last() != Some(&here) {
            corners.push(here);
        }
    }
    corners
}

/// One decimal, which is a tenth of a pixel; none where it is zero.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".into() } else { text.into() }
}

/// Text that is markup nowhere.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
pub(in crate::report) mod tests;
