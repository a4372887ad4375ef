//! From figures to places.

/// A straight line from figures to places, or from their logarithms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    figures: (f64, f64),
    places: (f64, f64),
    logarithmic: bool,
}

impl Scale {
    pub fn linear(figures: (f64, f64), places: (f64, f64)) -> Scale {
        Scale { figures, places, logarithmic: false }
    }

    pub fn logarithmic(figures: (f64, f64), places: (f64, f64)) -> Scale {
        Scale { figures, places, logarithmic: true }
    }

    /// What lies outside is put at the end: an interval without an end still has a place to go to.
    pub fn place(&self, figure: f64) -> f64 {
        let of = |figure: f64| if self.logarithmic { figure.ln() } else { figure };
        let (low, high) = (of(self.figures.0), of(self.figures.1));
        let share = if high > low { ((of(figure) - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 };
        self.places.0 + share * (self.places.1 - self.places.0)
    }
}

/// Round figures from the one to the other, about as many as wanted.
pub(crate) fn ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return vec![low];
    }
    let rough = span / wanted as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|one| one * power).into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
    let (first, last) = ((low / step).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|count| count as f64 * step).collect()
}

/// As few digits as tell ticks apart that are this far from each other.
pub(crate) fn tick_text(figure: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{figure:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_places_and_what_is_outside_has_an_end() {
        let linear = Scale::linear((0.0, 10.0), (100.0, 0.0));
        assert_eq!([0.0, 5.0, 10.0, 99.0, -1.0].map(|figure| linear.place(figure)), [100.0, 50.0, 0.0, 0.0, 100.0]);
        let logarithmic = Scale::logarithmic((0.5, 2.0), (0.0, 100.0));
        assert_eq!(
            [0.5, 1.0, 2.0, f64::INFINITY, 0.0].map(|one| logarithmic.place(one)),
            [0.0, 50.0, 100.0, 100.0, 0.0]
        );
        assert_eq!(Scale::linear((3.0, 3.0), (0.0, 10.0)).place(3.0), 5.0);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 989.0, 5), [0.0, 200.0, 400.0, 600.0, 800.0]);
        assert_eq!(
            ticks(1.93, 2.04, 3).iter().map(|tick| tick_text(*tick, 0.05)).collect::<Vec<_>>(),
            ["1.95", "2.00"]
        );
        assert_eq!(ticks(4.0, 4.0, 5), [4.0]);
        assert_eq!((tick_text(1.95, 0.05), tick_text(400.0, 200.0)), ("1.95".into(), "400".into()));
    }
}
