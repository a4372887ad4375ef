//! What is checked before anything is launched: a wrong argument is named, and costs nothing but this call.

use super::extras::{Extra, Extras, Memory, WORD_BYTES};
use super::tensor::{HostTensor, Number, View};
use super::{Error, Options};
use attention::problem::{HEAD_DIMS, Layout, MOST_COLUMNS, Problem};

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

/// Whether sizes and types of Q, K and V go together.
pub fn shapes(q: &View, k: &View, v: &View) -> Result<(), Error> {
    let [batch, heads, _, columns] = q.shape;
    let [_, kv_heads, keys, _] = k.shape;
    for (argument, view, expected) in
        [("k", k, [Some(batch), None, None, Some(columns)]), ("v", v, [Some(batch), Some(kv_heads), Some(keys), None])]
    {
        same_dtype(argument, view, q)?;
        for ((dimension, found), expected) in DIMENSIONS.into_iter().zip(view.shape).zip(expected) {
            let other = if argument == "k" || dimension == DIMENSIONS[0] { "`q`" } else { "`k`" };
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
    Ok(())
}

/// Nothing is empty (there may be no rows of K and V: then nothing is seen).
fn sizes(argument: &'static str, view: &View, least_rows: u32) -> Result<(), Error> {
    for ((dimension, found), least) in DIMENSIONS.into_iter().zip(view.shape).zip([1, 1, least_rows, 1]) {
        if found < least {
            return Err(shape(argument, dimension, found, || "at least 1".into()));
        }
    }
    let columns = view.shape[3];
    match columns <= MOST_COLUMNS {
        true => Ok(()),
        false => Err(shape(argument, "columns", columns, || format!("at most {MOST_COLUMNS}"))),
    }
}

/// Whether heads have columns that kernels take.
pub fn kernel_columns(q: &View, v: &View) -> Result<(), Error> {
    for (argument, columns) in [("q", q.shape[3]), ("v", v.shape[3])] {
        if !HEAD_DIMS.contains(&columns) || !columns.is_multiple_of(8) {
            return Err(shape(argument, "columns", columns, || "a multiple of 8 from 16 to 256".into()));
        }
    }
    Ok(())
}

/// The first of Q, K and V that no tensor map describes, and why: its dimension of no size, or with a stride of zero (a broadcast). All
/// else that a map asks for (CUDA driver API, cuTensorMapEncodeTiled: base and strides in sixteens of bytes, strides below 2⁴⁰) is asked of
/// every tensor.
pub fn unmapped(views: [&View; 3]) -> Option<(&'static str, usize)> {
    let missing = |view: &View| (0..4).find(|index| view.shape[*index] == 0);
    let repeating = |view: &View| (0..4).find(|index| view.shape[*index] > 1 && view.strides[*index] == 0);
    let named = ["q", "k", "v"].into_iter().zip(views);
    named.into_iter().find_map(|(argument, view)| Some((argument, missing(view).or_else(|| repeating(view))?)))
}

/// Whether a kernel that copies by tensor maps can have them.
pub fn mapped(views: [&View; 3], id: u32) -> Result<(), Error> {
    let Some((argument, index)) = unmapped(views) else { return Ok(()) };
    let (expected, dimension) = (format!("at least 1 for config {id}, which copies by tensor maps"), DIMENSIONS[index]);
    let view = views[["q", "k", "v"].iter().position(|name| *name == argument).unwrap_or_default()];
    match view.shape[index] {
        0 => Err(shape(argument, dimension, 0, || expected)),
        _ => Err(Error::Strides { argument, dimension, stride: 0, expected }),
    }
}

fn same_dtype(argument: &'static str, view: &View, q: &View) -> Result<(), Error> {
    match view.dtype == q.dtype {
        true => Ok(()),
        false => Err(Error::DType { argument, found: view.dtype.to_string(), expected: q.dtype.to_string() }),
    }
}

pub fn shape(argument: &'static str, dimension: &'static str, found: u32, expected: impl FnOnce() -> String) -> Error {
    Error::Shape { argument, dimension, found: found.into(), expected: expected() }
}

/// Whether Q, K, V, O, the log-sum-exp, the arrays and the workspace lie where a kernel on that GPU can read and write them.
pub fn placement(
    problem: &Problem,
    inputs: [&Placed; 3],
    o: &Placed,
    lse: &Placed,
    extras: &Extras<Memory>,
    workspace: Option<&Memory>,
    device: u32,
) -> Result<(), Error> {
    output_shape(problem, inputs[0], o)?;
    let needed = [4, problem.batch(), problem.heads(), problem.queries()].map(u128::from).into_iter().product();
    if u128::from(lse.bytes) != needed {
        return Err(Error::Length { argument: "lse", unit: "bytes", found: lse.bytes, expected: needed });
    }
    let [q, k, v] = inputs;
    for tensor in [q, k, v, o, lse] {
        place(tensor.argument, tensor.address, COPY_BYTES, tensor.device, device)?;
    }
    for (extra, memory) in extras.iter() {
        place(extra.argument(), memory.address, WORD_BYTES, memory.device, device)?;
    }
    let lse = (lse.argument, lse.address, lse.address.saturating_add(lse.bytes));
    let mut spans = [lse; 4];
    for (span, tensor) in spans.iter_mut().zip([q, k, v, o]) {
        tensor.check_strides()?;
        *span = tensor.span()?;
    }
    o.check_places_differ()?;
    let [q, k, v, o] = spans;
    for (output, others) in [(o, [q, k, v, lse]), (lse, [q, k, v, o])] {
        others.into_iter().try_for_each(|other| apart(output, other))?;
        extras.iter().try_for_each(|(extra, memory)| apart(output, memory.span(extra.argument())))?;
    }
    if let Some(memory) = workspace {
        place("workspace", memory.address, COPY_BYTES, memory.device, device)?;
        let workspace = memory.span("workspace");
        [q, k, v, o, lse].into_iter().try_for_each(|other| apart(workspace, other))?;
        extras.iter().try_for_each(|(extra, memory)| apart(workspace, memory.span(extra.argument())))?;
    }
    Ok(())
}

/// A name, the first byte, and the byte behind the last.
type Span = (&'static str, u64, u64);

impl Memory {
    fn span(&self, argument: &'static str) -> Span {
        (argument, self.address, self.address.saturating_add(self.bytes))
    }
}

/// Whether an output does not touch the other.
fn apart((argument, start, end): Span, (other, other_start, other_end): Span) -> Result<(), Error> {
    match start < other_end && other_start < end {
        true => Err(Error::Overlap { argument, other }),
        false => Ok(()),
    }
}

fn place(argument: &'static str, address: u64, multiple: u64, found: u32, expected: u32) -> Result<(), Error> {
    if found != expected {
        return Err(Error::Device { argument, found, expected });
    }
    match address.is_multiple_of(multiple) {
        true => Ok(()),
        false => Err(Error::Alignment { argument, address, multiple }),
    }
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

impl Placed {
    /// Bytes from the first to behind the last element.
    fn reach(&self) -> u128 {
        if self.view.shape.contains(&0) {
            return 0;
        }
        let last = self.steps().map(|(_, extent, stride)| u128::from(stride) * (u128::from(extent) - 1));
        (1 + last.sum::<u128>()) * u128::from(ELEMENT_BYTES)
    }

    /// Dimensions that have a second element, with their extents and strides.
    fn steps(&self) -> impl Iterator<Item = (usize, u32, u64)> {
        let View { shape, strides, .. } = self.view;
        (0..4).map(move |index| (index, shape[index], strides[index])).filter(|(_, extent, _)| *extent > 1)
    }

    /// All that it reaches, which is inside of its memory.
    fn span(&self) -> Result<Span, Error> {
        let expected = self.reach();
        match u64::try_from(expected) {
            Ok(reach) if reach <= self.bytes => Ok((self.argument, self.address, self.address.saturating_add(reach))),
            _ => Err(Error::Length { argument: self.argument, unit: "bytes", found: self.bytes, expected }),
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
        let mut reach: u128 = 1;
        for (index, extent, stride) in steps[..count].iter().copied() {
            if u128::from(stride) < reach {
                let expected = format!("at least {reach}, so that no two elements share a place");
                return Err(self.stride(index, stride, expected));
            }
            reach += u128::from(stride) * (u128::from(extent) - 1);
        }
        Ok(())
    }

    fn stride(&self, index: usize, stride: u64, expected: String) -> Error {
        Error::Strides { argument: self.argument, dimension: DIMENSIONS[index], stride, expected }
    }
}

/// Whether the slice of a host tensor is as long as its shape and strides say, and its order that of `q`, or that of packed
/// sequences.
pub fn host<N: Number>(
    argument: &'static str,
    tensor: &HostTensor<N>,
    q: &HostTensor<N>,
    options: &Options,
) -> Result<(), Error> {
    let packed = options.extras.get(Extra::CuQ).is_some();
    if tensor.packed && !packed {
        let (found, expected) = ("is one of packed sequences", "`Options::packed`, which says where they begin");
        return Err(Error::Combination { argument, found, expected });
    }
    let (view, values) = (tensor.view(), tensor.values.len() as u64);
    let (expected, reason) = match packed {
        true => (Layout::Bshd, "as packed sequences are: (rows, heads, columns)"),
        false => (q.layout, "as `q` is"),
    };
    // Beside strides of `q`, others may have any order.
    let orders_count = tensor.strides.is_none() && (packed || q.strides.is_none());
    if tensor.layout != expected && orders_count {
        let (found, expected) = (tensor.layout.to_string(), expected.to_string());
        return Err(Error::Layout { argument, found, expected, reason });
    }
    let placed = Placed { argument, view, address: 0, bytes: values * ELEMENT_BYTES, device: 0 };
    if tensor.strides.is_none() {
        let expected = view.shape.into_iter().map(u128::from).product();
        return match u128::from(values) == expected {
            true => Ok(()),
            false => Err(Error::Length { argument, unit: "elements", found: values, expected }),
        };
    }
    if let Some((index, _, stride)) = placed.steps().find(|(index, _, stride)| *index == 3 && *stride != 1) {
        return Err(placed.stride(index, stride, "1: columns are contiguous".into()));
    }
    let expected = placed.reach() / u128::from(ELEMENT_BYTES);
    match expected <= values.into() {
        true => Ok(()),
        false => Err(Error::Length { argument, unit: "elements", found: values, expected }),
    }
}

#[cfg(test)]
mod tests;
