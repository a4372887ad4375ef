//! Matrix products of payloads: exact, so that the order of sums does not matter.

use super::payload::{BITS, Payload};
use crate::numerics::tensor_core::Shape;

/// `c += a * b`; `a` is row-major, `b` column-major, `c` row-major.
pub fn multiply(shape: Shape, a: &[Payload], b: &[Payload], c: &mut [Payload]) {
    let residues = [a, b].map(|matrix| matrix.iter().map(residue).collect::<Option<Vec<u16>>>());
    for (place, c) in c.iter_mut().enumerate() {
        let row = place / shape.columns * shape.depth;
        let column = place % shape.columns * shape.depth;
        *c = match &residues {
            [Some(a), Some(b)] => {
                let pairs = a[row..][..shape.depth].iter().zip(&b[column..][..shape.depth]);
                let sum = pairs.fold(0u16, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)));
                c.plus(Payload::integer(sum.into()))
            }
            _ => {
                let pairs = a[row..][..shape.depth].iter().zip(&b[column..][..shape.depth]);
                pairs.fold(*c, |sum, (a, b)| sum.plus(a.times(*b)))
            }
        };
    }
}

/// Of a number that is wholly known.
fn residue(payload: &Payload) -> Option<u16> {
    match payload {
        Payload::Number { residue, bits: BITS } => Some(*residue),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_numbers_and_of_anything_are_the_same() {
        let shape = Shape { rows: 2, columns: 2, depth: 3 };
        let [a, b] = [[1, -2, 3, 0x4001, 5, 6], [7, 8, 9, -10, 11, 0x7fff]].map(|m| m.map(Payload::integer));
        let mut c = [1; 4].map(Payload::integer);
        multiply(shape, &a, &b, &mut c);
        let expected = |row: usize, column: usize| {
            let dot: i64 = (0..3)
                .map(|at| [a[row * 3 + at], b[column * 3 + at]].map(|p| p.to_integer().unwrap()))
                .map(|[a, b]| a * b)
                .sum();
            Payload::integer(1 + dot)
        };
        assert_eq!(c, [expected(0, 0), expected(0, 1), expected(1, 0), expected(1, 1)]);

        let mut hidden = b;
        hidden[3] = Payload::MINUS_INFINITY;
        let mut c = [1; 4].map(Payload::integer);
        multiply(shape, &a, &hidden, &mut c);
        assert_eq!(c, [expected(0, 0), Payload::MINUS_INFINITY, expected(1, 0), Payload::MINUS_INFINITY]);
    }
}
