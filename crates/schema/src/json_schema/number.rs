//! JSON numbers, compared without loss.

use std::cmp::Ordering;

/// A JSON number without loss: `serde_json` parses integers up to 64 bits, and all others as `f64`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Integer(i128),
    Fraction(f64),
}

/// Every larger `f64` exceeds every integer that `serde_json` parses.
const HUGE: f64 = 1e30;

impl Number {
    pub(super) fn of(number: &serde_json::Number) -> Option<Self> {
        match number.as_i128() {
            Some(integer) => Some(Self::Integer(integer)),
            None => number.as_f64().map(Self::Fraction),
        }
    }

    /// Returns the number as an integer, if it has no fraction and fits.
    pub(super) fn whole(self) -> Option<i128> {
        match self {
            Self::Integer(integer) => Some(integer),
            Self::Fraction(float) => {
                (float.fract() == 0.0 && float.abs() < HUGE).then_some(float as i128)
            }
        }
    }

    pub(super) fn is_whole(self) -> bool {
        match self {
            Self::Integer(_) => true,
            Self::Fraction(float) => float.fract() == 0.0,
        }
    }

    pub(super) fn is_multiple_of(self, step: i128) -> bool {
        match self {
            Self::Integer(integer) => integer % step == 0,
            // The remainder of two floats is exact.
            Self::Fraction(float) => float % step as f64 == 0.0,
        }
    }

    pub(super) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.cmp(&other),
            (Self::Fraction(one), Self::Fraction(other)) => {
                one.partial_cmp(&other).unwrap_or(Ordering::Equal)
            }
            (Self::Integer(one), Self::Fraction(other)) => compare_mixed(one, other),
            (Self::Fraction(one), Self::Integer(other)) => compare_mixed(other, one).reverse(),
        }
    }
}

fn compare_mixed(integer: i128, float: f64) -> Ordering {
    if float.abs() >= HUGE {
        return if float > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    let whole = float.trunc();
    integer.cmp(&(whole as i128)).then(if float > whole {
        Ordering::Less
    } else if float < whole {
        Ordering::Greater
    } else {
        Ordering::Equal
    })
}
