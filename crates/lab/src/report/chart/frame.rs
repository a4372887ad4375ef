//! The frame that charts with two axes share: lines across with their figures, and figures below.

use super::Svg;
use super::scale::{Scale, tick_text, ticks};

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 350.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 172.0;

/// A chart with axes.
pub(super) struct Frame {
    pub svg: Svg,
    pub across: Scale,
    pub up: Scale,
}

impl Frame {
    /// `label` says what the chart shows, `unit` what its figures upwards are.
    pub fn new(label: &str, unit: &str, across: Scale, up: (f64, f64)) -> Frame {
        let mut frame = Frame { svg: Svg::new(WIDTH, HEIGHT, label), across, up: Scale::linear(up, (BOTTOM, TOP)) };
        let marks = ticks(up.0, up.1, 4);
        let step = marks.get(1).map_or(1.0, |second| second - marks[0]);
        for mark in marks {
            let height = frame.up.place(mark);
            frame.svg.line("grid", (LEFT, height), (RIGHT, height));
            frame.svg.text("tick end", (LEFT - 6.0, height + 4.0), &tick_text(mark, step));
        }
        frame.svg.text("tick", (0.0, TOP - 10.0), unit);
        frame
    }

    /// Where figures across go.
    pub fn width() -> (f64, f64) {
        (LEFT + 8.0, RIGHT - 8.0)
    }

    /// A figure below the chart.
    pub fn below(&mut self, figure: f64, text: &str) {
        let place = self.across.place(figure);
        self.svg.line("grid", (place, BOTTOM), (place, BOTTOM + 4.0));
        self.svg.text("tick middle", (place, BOTTOM + 18.0), text);
    }

    pub fn place(&self, across: f64, up: f64) -> (f64, f64) {
        (self.across.place(across), self.up.place(up))
    }
}
