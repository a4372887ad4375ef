//! A reference that is computed: the product of what two other buffers hold before the first launch.

use std::fmt;
use std::path::Path;

use crate::buffer::{self, split_call};
use crate::error::{Error, Fault};
use crate::resolved::{Buffer, Init};
use crate::source::Spot;

/// Multiplications that a recipe may ask for: a few minutes of one core.
const MOST: u64 = 1 << 38;

/// `expect = "product(a, b)"`, or `"product(a, transposed(b))"`, where a row of `b` has what a column of the result is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    left: String,
    right: String,
    transposed: bool,
}

impl Product {
    /// Of the words between `product(` and `)`.
    pub(crate) fn parse(factors: &str) -> Option<Product> {
        let (left, right) = factors.split_once(',')?;
        let (right, transposed) = match split_call(right) {
            ("transposed", Some(right)) => (right, true),
            (right, None) => (right, false),
            _ => return None,
        };
        let [left, right] = [left, right].map(str::trim);
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.' || c == '-')
        };
        [left, right].into_iter().all(is_name).then(|| Product { left: left.into(), right: right.into(), transposed })
    }

    /// Of buffers that the recipe has, for one of that name and shape.
    pub(crate) fn resolve(&self, of: &str, shape: &[u64], spot: Spot, buffers: &[Buffer]) -> Result<Factors, Fault> {
        let fault = |message: String| Fault::new(spot, format!("`{self}`, which buffer `{of}` expects: {message}"));
        let factor = |name: &str| {
            let found = buffers.iter().find(|buffer| buffer.name == name);
            let known: Vec<&str> = buffers.iter().map(|buffer| buffer.name.as_str()).collect();
            let missing = || match &*known {
                [] => fault(format!("there is no buffer `{name}`: factors are declared before their product")),
                known => {
                    let known = known.join(", ");
                    fault(format!("there is no buffer `{name}`: expected one of those before it, {known}"))
                }
            };
            let found = found.ok_or_else(missing)?;
            match found.init {
                Init::Poison => Err(fault(format!("`{name}` has no content: give it an `init`"))),
                Init::Normal { seed: None, .. } => Err(fault(format!(
                    "what `{name}` holds changes with the run: give it a seed, as in normal(1.0, 7)"
                ))),
                _ => Ok(Buffer { expectation: None, ..found.clone() }),
            }
        };
        let factors = Factors { left: factor(&self.left)?, right: factor(&self.right)?, transposed: self.transposed };
        match factors.sizes() {
            Some((sizes, product)) if product == shape => match sizes.multiplications() {
                Some(count) if count <= MOST => Ok(factors),
                _ => Err(fault(format!("more than {MOST} multiplications: expect a file or a hash"))),
            },
            Some((_, product)) => {
                Err(fault(format!("the product is {product:?}: expected that shape, and not {shape:?}")))
            }
            None => {
                let shapes = format!("{:?} and {:?} cannot be multiplied", factors.left.shape, factors.right.shape);
                Err(fault(format!("{shapes}: expected matrices with as many columns as the other has rows")))
            }
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Product { left, right, transposed } = self;
        if *transposed {
            write!(formatter, "product({left}, transposed({right}))")
        } else {
            write!(formatter, "product({left}, {right})")
        }
    }
}

/// The buffers that are multiplied. Dimensions before the last two count matrices.
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    left: Buffer,
    right: Buffer,
    transposed: bool,
}

struct Sizes {
    matrices: u64,
    rows: u64,
    inner: u64,
    columns: u64,
}

impl Sizes {
    fn multiplications(&self) -> Option<u64> {
        self.matrices.checked_mul(self.rows)?.checked_mul(self.inner)?.checked_mul(self.columns)
    }
}

impl Factors {
    /// Sizes and the shape of the product, if there is one.
    fn sizes(&self) -> Option<(Sizes, Vec<u64>)> {
        let [left @ .., rows, inner] = &*self.left.shape else { return None };
        let [right @ .., first, second] = &*self.right.shape else { return None };
        let (right_inner, columns) = if self.transposed { (second, first) } else { (first, second) };
        let fits = left == right && inner == right_inner;
        let sizes = Sizes { matrices: left.iter().product(), rows: *rows, inner: *inner, columns: *columns };
        fits.then(|| (sizes, [left, &[*rows, *columns]].concat()))
    }

    /// Every element of the product, summed in float64.
    pub(crate) fn multiply(&self, folder: &Path) -> Result<Vec<f64>, Error> {
        let Some((Sizes { matrices, rows, inner, columns }, _)) = self.sizes() else { return Ok(vec![]) };
        let (left, right) = (numbers(&self.left, folder)?, numbers(&self.right, folder)?);
        let [step, start] = if self.transposed { [1, inner] } else { [columns, 1] };
        let mut product = vec![];
        for row in 0..matrices * rows {
            let left = &left[(row * inner) as usize..][..inner as usize];
            let right = &right[(row / rows * inner * columns) as usize..];
            for column in 0..columns {
                let right = right[(column * start) as usize..].iter().step_by(step as usize);
                product.push(left.iter().zip(right).map(|(left, right)| left * right).sum());
            }
        }
        Ok(product)
    }
}

fn numbers(factor: &Buffer, folder: &Path) -> Result<Vec<f64>, Error> {
    // Its content follows from the recipe alone.
    let bytes = buffer::fill(factor, 0, folder)?.to_vec();
    Ok(factor.element.read_all(&bytes).into_iter().map(|bits| factor.element.decode(bits)).collect())
}
