//! Figures of the bench: medians with their extremes, and lines of its table.

/// Rounds of each measurement; the guest's script has the same number.
pub(crate) const ROUNDS: usize = 7;

/// One line of the table: a figure, and what it must not exceed.
pub(crate) struct Line {
    pub(crate) what: &'static str,
    /// Not a number in a heading.
    pub(crate) figure: f64,
    /// Infinite where a figure only explains another.
    pub(crate) limit: f64,
    pub(crate) unit: &'static str,
    /// How the figure came about.
    pub(crate) from: String,
}

impl Line {
    /// A time that only explains another, milliseconds.
    pub(crate) fn share(what: &'static str, times: &Spread) -> Self {
        let (figure, from) = (times.median, times.text());
        Self { what, figure, limit: f64::INFINITY, unit: "ms", from }
    }

    /// What the lines after it are of.
    pub(crate) fn head(what: &'static str) -> Self {
        Self { what, figure: f64::NAN, limit: f64::INFINITY, unit: "", from: String::new() }
    }

    /// ibprov's time in `other`'s.
    pub(crate) fn ratio(
        what: &'static str,
        ibprov: &Spread,
        (name, other): (&str, &Spread),
        limit: f64,
    ) -> Self {
        Self {
            what,
            figure: ibprov.median / other.median,
            limit,
            unit: "x",
            from: format!("ibprov {} ms, {name} {} ms", ibprov.text(), other.text()),
        }
    }
}

/// Median and extremes.
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

pub(crate) fn spread(figures: Vec<f64>) -> Spread {
    assert!(figures.len() >= ROUNDS, "only {} rounds: {figures:?}", figures.len());
    spread_of(figures)
}

/// Of as many as there are.
pub(crate) fn spread_of(mut figures: Vec<f64>) -> Spread {
    assert!(!figures.is_empty(), "nothing was measured");
    figures.sort_by(f64::total_cmp);
    Spread {
        least: figures[0],
        median: figures[figures.len() / 2],
        most: figures[figures.len() - 1],
    }
}

impl Spread {
    pub(crate) fn text(&self) -> String {
        format!("{:.1} ({:.1} to {:.1})", self.median, self.least, self.most)
    }
}
