//! Figures of the bench: medians with their extremes, and lines of its table.

/// Rounds of each measurement; the guest's script has the same number.
pub(crate) const ROUNDS: usize = 7;

/// One line of the table: a figure, and what it must not exceed.
pub(crate) struct Line {
    pub(crate) what: &'static str,
    /// Not a number in a heading.
    pub(crate) figure: f64,
    /// What it is at least, where it was measured on several machines: the lower end of its
    /// interval of 90 %.
    pub(crate) at_least: Option<f64>,
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
        Self { what, figure, at_least: None, limit: f64::INFINITY, unit: "ms", from }
    }

    /// What the lines after it are of.
    pub(crate) fn head(what: &'static str) -> Self {
        let (figure, limit, from) = (f64::NAN, f64::INFINITY, String::new());
        Self { what, figure, at_least: None, limit, unit: "", from }
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
            at_least: None,
            limit,
            unit: "x",
            from: format!("ibprov {} ms, {name} {} ms", ibprov.text(), other.text()),
        }
    }
}

impl Line {
    /// The same line of several machines: the mean of its figures, and their interval.
    pub(crate) fn mean(self, figures: &[f64]) -> Self {
        let (low, high) = interval(figures);
        let from = format!("{low:.2} to {high:.2} on {}; {}", figures.len(), self.from);
        let figure = figures.iter().sum::<f64>() / figures.len() as f64;
        Self { figure, at_least: Some(low), from, ..self }
    }

    pub(crate) fn is_too_much(&self) -> bool {
        self.at_least.unwrap_or(self.figure) > self.limit
    }
}

/// Where the mean of such figures is in nine cases of ten (Student's t); of one figure, anywhere.
pub(crate) fn interval(figures: &[f64]) -> (f64, f64) {
    const T: [f64; 11] = [6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80];
    let count = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / count;
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    let Some(t) = figures.len().checked_sub(2).map(|n| T[n.min(T.len() - 1)]) else {
        return (f64::NEG_INFINITY, f64::INFINITY);
    };
    let half = t * (squares / (count - 1.0) / count).sqrt();
    (mean - half, mean + half)
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
