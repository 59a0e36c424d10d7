//! Medians and means.

use serde::Serialize;

/// The times of several runs, in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Times {
    /// The median; of an even number the mean of the middle two.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// All, in order.
    pub runs: Vec<f64>,
}

impl Times {
    /// Sums them up. The median of none is NaN, and the least of none infinite.
    pub fn of(runs: Vec<f64>) -> Self {
        let least = runs.iter().copied().fold(f64::INFINITY, f64::min);
        Self { median: median(&runs), least, runs }
    }
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.as_slice() {
        [] => f64::NAN,
        all if all.len() % 2 == 1 => all[middle],
        all => f64::midpoint(all[middle - 1], all[middle]),
    }
}

/// The geometric mean; none of none.
pub fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let count = u32::try_from(ratios.len()).ok().filter(|&count| count > 0)?;
    Some((ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "these are exact")]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(Times::of(vec![3.0, 1.0, 2.0]).least, 1.0);
    }

    #[test]
    fn geometric_means() {
        let mean = geometric_mean(&[2.0, 8.0]).unwrap_or_default();
        assert!((mean - 4.0).abs() < 1e-12, "{mean}");
        assert_eq!(geometric_mean(&[]), None);
    }
}
