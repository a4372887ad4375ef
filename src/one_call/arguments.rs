//! What is checked before anything is launched: a wrong argument is named, and costs nothing but this call.

use super::tensor::View;
use super::{Error, Options};
use attention::problem::{HEAD_DIMS, Layout, Problem};

/// What `cp.async` copies at a time, in bytes: addresses and distances are multiples of it.
const COPY_BYTES: u64 = 16;
const ELEMENT_BYTES: u64 = 2;
/// Kernels count the bytes of a row in 32 bits.
const MAX_ROW_STRIDE: u64 = 1 << 30;

const DIMENSIONS: [&str; 4] = ["batch entries", "heads", "rows", "columns"];

/// A tensor in memory.
#[derive(Clone, Copy)]
pub struct Placed {
    pub argument: &'static str,
    pub view: View,
    pub address: u64,
    pub bytes: u64,
    pub device: u32,
}

/// Whether sizes and types of Q, K and V go together, and what is computed then. The layout is that of Q.
pub fn problem(q: &View, k: &View, v: &View, options: &Options) -> Result<Problem, Error> {
    let [batch, heads, queries, columns] = q.shape;
    let [_, kv_heads, keys, _] = k.shape;
    for (argument, view, expected) in
        [("k", k, [Some(batch), None, None, Some(columns)]), ("v", v, [Some(batch), Some(kv_heads), Some(keys), None])]
    {
        same_dtype(argument, view, q)?;
        let other = if argument == "k" { "`q`" } else { "`q` and `k`" };
        for ((dimension, found), expected) in DIMENSIONS.into_iter().zip(view.shape).zip(expected) {
            if let Some(expected) = expected.filter(|expected| *expected != found) {
                return Err(shape(argument, dimension, found, || format!("{expected}, as in {other}")));
            }
        }
    }
    sizes("q", q, 1)?;
    sizes("k", k, 0)?;
    sizes("v", v, 0)?;
    if heads % kv_heads != 0 {
        return Err(shape("k", "heads", kv_heads, || format!("a divisor of the {heads} heads of `q`")));
    }
    let mut builder = Problem::builder().batch(batch).heads(heads).kv_heads(kv_heads).queries(queries).keys(keys);
    builder = builder.head_dim(columns).value_dim(v.shape[3]).dtype(q.dtype).mask(options.mask).layout(q.layout());
    builder = options.scale.into_iter().fold(builder, |builder, scale| builder.scale(scale));
    Ok(builder.build()?)
}

/// Nothing is empty (there may be no rows of K and V: then nothing is seen), and heads have columns that kernels take.
fn sizes(argument: &'static str, view: &View, least_rows: u32) -> Result<(), Error> {
    for ((dimension, found), least) in DIMENSIONS.into_iter().zip(view.shape).zip([1, 1, least_rows, 1]) {
        if found < least {
            return Err(shape(argument, dimension, found, || "at least 1".into()));
        }
    }
    let columns = view.shape[3];
    if !HEAD_DIMS.contains(&columns) || !columns.is_multiple_of(8) {
        return Err(shape(argument, "columns", columns, || "a multiple of 8 from 16 to 256".into()));
    }
    Ok(())
}

fn same_dtype(argument: &'static str, view: &View, q: &View) -> Result<(), Error> {
    match view.dtype == q.dtype {
        true => Ok(()),
        false => Err(Error::DType { argument, found: view.dtype.to_string(), expected: q.dtype.to_string() }),
    }
}

fn shape(argument: &'static str, dimension: &'static str, found: u32, expected: impl FnOnce() -> String) -> Error {
    Error::Shape { argument, dimension, found: found.into(), expected: expected() }
}

/// Whether Q, K, V, O and the log-sum-exp lie where a kernel on that GPU can read and write them.
pub fn placement(problem: &Problem, inputs: [&Placed; 3], o: &Placed, lse: &Placed, device: u32) -> Result<(), Error> {
    output_shape(problem, inputs[0], o)?;
    let needed = 4 * u64::from(problem.batch()) * u64::from(problem.heads()) * u64::from(problem.queries());
    if lse.bytes != needed {
        return Err(Error::Length { argument: "lse", unit: "bytes", found: lse.bytes, expected: needed });
    }
    let [q, k, v] = inputs;
    for tensor in [q, k, v, o, lse] {
        if tensor.device != device {
            return Err(Error::Device { argument: tensor.argument, found: tensor.device, expected: device });
        }
        if !tensor.address.is_multiple_of(COPY_BYTES) {
            return Err(Error::Alignment { argument: tensor.argument, address: tensor.address });
        }
    }
    for tensor in [q, k, v, o] {
        tensor.check_strides()?;
        tensor.check_reach()?;
    }
    o.check_places_differ()?;
    overlaps(&[(o, [q, k, v, lse]), (lse, [q, k, v, o])])
}

fn output_shape(problem: &Problem, q: &Placed, o: &Placed) -> Result<(), Error> {
    same_dtype("o", &o.view, &q.view)?;
    let expected = [problem.batch(), problem.heads(), problem.queries(), problem.value_dim()];
    for ((dimension, found), expected) in DIMENSIONS.into_iter().zip(o.view.shape).zip(expected) {
        if found != expected {
            return Err(shape("o", dimension, found, || format!("{expected}, as `q` and `v` say")));
        }
    }
    Ok(())
}

fn overlaps(outputs: &[(&Placed, [&Placed; 4])]) -> Result<(), Error> {
    for (output, others) in outputs {
        let touches = |other: &&&Placed| output.address < other.end() && other.address < output.end();
        if let Some(other) = others.iter().find(touches) {
            return Err(Error::Overlap { argument: output.argument, other: other.argument });
        }
    }
    Ok(())
}

impl Placed {
    /// The byte behind the last that it reaches.
    fn end(&self) -> u64 {
        match self.view.shape {
            // The log-sum-exp has no shape of its own.
            [0, 0, 0, 0] => self.address.saturating_add(self.bytes),
            _ => self.address.saturating_add(self.reach()),
        }
    }

    /// Bytes from the first to behind the last element.
    fn reach(&self) -> u64 {
        if self.view.shape.contains(&0) {
            return 0;
        }
        let last = self.steps().map(|(_, extent, stride)| stride.saturating_mul(u64::from(extent) - 1));
        last.fold(1, u64::saturating_add).saturating_mul(ELEMENT_BYTES)
    }

    /// Dimensions that have a second element, with their extents and strides.
    fn steps(&self) -> impl Iterator<Item = (usize, u32, u64)> {
        let View { shape, strides, .. } = self.view;
        (0..4).map(move |index| (index, shape[index], strides[index])).filter(|(_, extent, _)| *extent > 1)
    }

    fn check_reach(&self) -> Result<(), Error> {
        let expected = self.reach();
        match expected <= self.bytes {
            true => Ok(()),
            false => Err(Error::Length { argument: self.argument, unit: "bytes", found: self.bytes, expected }),
        }
    }

    fn check_strides(&self) -> Result<(), Error> {
        let in_copies = COPY_BYTES / ELEMENT_BYTES;
        for (index, _, stride) in self.steps() {
            let expected = match index {
                3 if stride != 1 => "1: columns are contiguous",
                0..3 if !stride.is_multiple_of(in_copies) => "a multiple of 8 elements, which are 16 bytes",
                2 if stride > MAX_ROW_STRIDE => "at most 2^30",
                _ => continue,
            };
            return Err(self.stride(index, stride, expected.into()));
        }
        Ok(())
    }

    /// Elements of an output do not share their place: each dimension steps over all that the nearer ones reach. (Inputs may
    /// repeat themselves: a stride of zero is a broadcast.)
    fn check_places_differ(&self) -> Result<(), Error> {
        let mut steps = [(0, 0, 0); 4];
        let mut count = 0;
        for step in self.steps() {
            steps[count] = step;
            count += 1;
        }
        steps[..count].sort_unstable_by_key(|(_, _, stride)| *stride);
        let mut reach: u64 = 1;
        for (index, extent, stride) in steps[..count].iter().copied() {
            if stride < reach {
                let expected = format!("at least {reach}, so that no two elements share a place");
                return Err(self.stride(index, stride, expected));
            }
            reach = stride.saturating_mul(u64::from(extent) - 1).saturating_add(reach);
        }
        Ok(())
    }

    fn stride(&self, index: usize, stride: u64, expected: String) -> Error {
        Error::Strides { argument: self.argument, dimension: DIMENSIONS[index], stride, expected }
    }
}

/// Whether the slice of a host tensor is as long as its shape says, and its order that of `q`.
pub fn host(argument: &'static str, view: &View, layout: Layout, values: usize, of_q: Layout) -> Result<(), Error> {
    if layout != of_q {
        return Err(Error::Layout { argument, found: layout.to_string(), expected: of_q.to_string() });
    }
    let expected = view.shape.into_iter().map(u64::from).fold(1, u64::saturating_mul);
    match values as u64 == expected {
        true => Ok(()),
        false => Err(Error::Length { argument, unit: "elements", found: values as u64, expected }),
    }
}

#[cfg(test)]
mod tests;
