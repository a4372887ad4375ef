//! One kernel and the attention problem that its recipe says it solves.

use std::path::Path;

use attention::Problem;
use attention::oracle::{Inputs, Oracle, Outputs, Parity};
use attention::problem::{DType, Layout, Shape};
use attention::scoring::{ScoreKind, Scoring};
use attention::visibility::{MaskKind, Visibility};
use launch::buffer::{Float, Init};
use launch::contract::{self, AttentionContract, Pair};
use launch::recipe::{ArgumentValue, Number};
use launch::resolved::{self, Resolved};
use launch::{Element, Expr, Kernel, Limits, Memory, Recipe};

use crate::Error;
use crate::figures::Subject;

/// A kernel with its recipe resolved and its problem known.
#[derive(Clone, Debug)]
pub struct Case {
    /// A folder name in the pack.
    pub name: String,
    pub kernel: Kernel,
    pub problem: Problem,
    pub(crate) contract: AttentionContract,
    pub(crate) resolved: Resolved,
}

impl Case {
    /// Reads a `.ptx` or `.toml` whose recipe has an `[attention]` table.
    pub fn open(path: &Path) -> Result<Case, Error> {
        Case::new(Kernel::open(path)?)
    }

    /// A kernel with an `[attention]` table in its recipe.
    pub fn new(kernel: Kernel) -> Result<Case, Error> {
        let refuse = |message: String| Error::Contract { kernel: kernel.name.clone(), message };
        let Some(contract) = kernel.recipe.attention.clone() else {
            let message = "the recipe has no [attention] table: add one that names q, k, v, o and the lengths, \
                           or use `veriflash sanitize` for kernels that are not attention";
            return Err(refuse(message.into()));
        };
        if let Some(file) = file_of(&kernel.recipe) {
            let message = format!("the recipe reads `{file}`, which a pack does not carry: use init = \"normal(1.0)\"");
            return Err(refuse(message));
        }
        let resolved = kernel.resolve(&Limits::default())?;
        let problem = problem(&contract, &resolved).map_err(refuse)?;
        check_buffers(&contract, &resolved, &problem).map_err(refuse)?;
        Ok(Case { name: file_name(&kernel.name), problem, contract, resolved, kernel })
    }

    /// Under another name, made fit for a folder.
    pub fn named(self, name: &str) -> Case {
        Case { name: file_name(name), ..self }
    }

    pub(crate) fn subject(&self) -> Subject {
        Subject { kernel: self.name.clone(), module: self.kernel.hash(), recipe: self.kernel.recipe.hash() }
    }

    /// What a run left in memory, judged by the oracle.
    pub fn judge(&self, memory: &Memory) -> Result<Parity, attention::Error> {
        self.judge_with(memory, self.problem.visibility(), self.problem.scoring())
    }

    /// The same with a mask and a score of the caller's own, instead of those that the recipe names.
    pub fn judge_with(
        &self,
        memory: &Memory,
        visibility: &dyn Visibility,
        scoring: &dyn Scoring,
    ) -> Result<Parity, attention::Error> {
        let inputs = self.read_inputs(memory)?;
        let oracle = Oracle::with(&self.problem, &inputs, visibility, scoring)?;
        self.judge_by(&oracle, memory)
    }

    /// The same by an oracle that knows the inputs.
    pub(crate) fn judge_by(&self, oracle: &Oracle, memory: &Memory) -> Result<Parity, attention::Error> {
        let parity = oracle.judge(&self.read_outputs(memory, oracle.exact())?)?;
        Ok(if self.contract.lse.is_some() { parity } else { parity.of_output_alone() })
    }

    /// The buffers that the kernel reads by contract.
    pub(crate) fn inputs(&self) -> Vec<&str> {
        let tensors = [&self.contract.q, &self.contract.k, &self.contract.v];
        tensors.into_iter().chain(self.contract.numbers()).map(String::as_str).collect()
    }

    /// The buffers that the kernel must write.
    pub(crate) fn outputs(&self) -> Vec<&str> {
        [Some(&self.contract.o), self.contract.lse.as_ref()].into_iter().flatten().map(String::as_str).collect()
    }

    /// Q, K and V as the oracle reads them.
    pub(crate) fn read_inputs(&self, memory: &Memory) -> Result<Inputs, attention::Error> {
        let AttentionContract { q, k, v, score, sinks, documents, .. } = &self.contract;
        let (problem, tensor) = (&self.problem, |name, shape: Shape| halves(&bytes(memory, name), shape.elements()));
        let [q, k, v] = [(q, problem.q_shape()), (k, problem.k_shape()), (v, problem.v_shape())]
            .map(|(name, shape)| tensor(name, shape));
        let mut inputs = Inputs::from_bits(problem, &q, &k, &v)?;
        if let contract::Score::Alibi(slopes) = score {
            inputs = inputs.with_numbers(floats(&bytes(memory, slopes)));
        }
        if let Some(sinks) = sinks {
            inputs = inputs.with_sinks(floats(&bytes(memory, sinks)));
        }
        if let Some(Pair { q, k }) = documents {
            let ids = |name, shape: Shape| words(&bytes(memory, name), shape.batch as usize * shape.rows as usize);
            inputs = inputs.with_documents(ids(q, problem.q_shape()), ids(k, problem.k_shape()));
        }
        Ok(inputs)
    }

    /// What the kernel wrote; a kernel without a log-sum-exp is given the right one, and no verdict speaks of it.
    pub(crate) fn read_outputs(&self, memory: &Memory, right: &Outputs) -> Result<Outputs, attention::Error> {
        let log_sum_exp: Vec<f32> = match &self.contract.lse {
            Some(name) => floats(&bytes(memory, name)),
            None => right.log_sum_exp().iter().map(|value| *value as f32).collect(),
        };
        let output = halves(&bytes(memory, &self.contract.o), self.problem.o_shape().elements());
        Outputs::from_bits(&self.problem, &output, &log_sum_exp)
    }

    /// The same kernel, called with a scale that is wrong by the factor; nothing if no argument carries it.
    pub(crate) fn with_scale_times(&self, factor: f64) -> Option<Kernel> {
        let name = &self.contract.scale.as_ref()?.arg;
        let mut kernel = self.kernel.clone();
        for (launch, resolved) in kernel.recipe.launches.iter_mut().zip(&self.resolved.launches) {
            for (argument, resolved) in launch.args.iter_mut().zip(&resolved.args) {
                if let (true, Some((element, value))) = (argument.name.as_ref() == Some(name), scalar(&resolved.value))
                {
                    argument.value = ArgumentValue::Scalar(element, Number::Float(Float(value * factor)));
                }
            }
        }
        Some(kernel)
    }
}

fn bytes(memory: &Memory, name: &str) -> Vec<u8> {
    memory.buffer(name).map_or(vec![], |buffer| buffer.contents.to_vec())
}

/// The first of them: a buffer has at least one, a tensor without keys none.
fn halves(bytes: &[u8], count: usize) -> Vec<u16> {
    bytes.chunks_exact(2).take(count).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

fn words(bytes: &[u8], count: usize) -> Vec<u32> {
    bytes.chunks_exact(4).take(count).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect()
}

fn scalar(value: &resolved::ArgumentValue) -> Option<(Element, f64)> {
    match value {
        resolved::ArgumentValue::Scalar(element, bits) => Some((*element, element.decode(*bits))),
        _ => None,
    }
}

/// A name that is one plain folder on every system.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_matches('.');
    if name.is_empty() { "kernel".into() } else { name.into() }
}

/// A file that the recipe reads.
fn file_of(recipe: &Recipe) -> Option<&str> {
    let of_buffer = recipe.buffers.iter().find_map(|buffer| match &buffer.init {
        Init::File(path) => Some(path.as_str()),
        _ => None,
    });
    let mut arguments = recipe.launches.iter().flat_map(|launch| &launch.args);
    of_buffer.or_else(|| {
        arguments.find_map(|argument| match &argument.value {
            ArgumentValue::Bytes { file, .. } => Some(file.as_str()),
            _ => None,
        })
    })
}

/// The problem that a contract describes, or what about it the oracle cannot judge.
fn problem(contract: &AttentionContract, resolved: &Resolved) -> Result<Problem, String> {
    let lengths = resolved.lengths.ok_or("the [attention] table has no lengths")?;
    let small = |what: &str, value: u64| u32::try_from(value).map_err(|_| format!("lengths.{what} is {value}"));
    let mut builder = Problem::builder()
        .batch(small("batch", lengths.batch)?)
        .heads(small("heads", lengths.heads)?)
        .kv_heads(small("kv_heads", lengths.kv_heads)?)
        .queries(small("q", lengths.q)?)
        .keys(small("k", lengths.k)?)
        .head_dim(small("dim", lengths.dim)?)
        .value_dim(small("value_dim", lengths.value_dim)?)
        .dtype(dtype(&contract.q, resolved)?)
        .mask(mask(&contract.mask)?)
        .score(score(&contract.score))
        .sinks(contract.sinks.is_some())
        .documents(contract.documents.is_some())
        .layout(layout(&contract.layout)?);
    if let Some(Pair { q, k }) = &contract.cumulative {
        builder = builder.cumulative_queries(places(q, resolved)?).cumulative_keys(places(k, resolved)?);
    }
    let problem = builder.clone().build().map_err(|error| error.to_string())?;
    for (what, said, longest) in [("q", lengths.q, problem.queries()), ("k", lengths.k, problem.keys())] {
        if said != u64::from(longest) {
            return Err(format!("lengths.{what} is {said}: expected {longest}, the longest sequence"));
        }
    }
    match &contract.scale {
        None => Ok(problem),
        Some(carrier) => {
            let scale = scale(carrier, resolved, problem.scale())?;
            builder.scale(scale).build().map_err(|error| error.to_string())
        }
    }
}

/// What a buffer of cumulative lengths lists.
fn places(name: &str, resolved: &Resolved) -> Result<Vec<u32>, String> {
    let buffer = buffer_named(name, resolved)?;
    let listed = match &buffer.init {
        resolved::Init::Values(values) => Some(values.clone()),
        resolved::Init::Bytes(bytes) => Some(buffer.element.read_all(bytes)),
        _ => None,
    };
    match listed {
        Some(values) if buffer.element == Element::U32 => Ok(values.iter().map(|place| *place as u32).collect()),
        _ => Err(format!("buffer `{name}` does not list where sequences begin: expected u32 and init = [0, …]")),
    }
}

fn dtype(buffer: &str, resolved: &Resolved) -> Result<DType, String> {
    match buffer_named(buffer, resolved)?.element {
        Element::F16 => Ok(DType::F16),
        Element::Bf16 => Ok(DType::Bf16),
        other => Err(format!("buffer `{buffer}` is {}: expected f16 or bf16", other.name())),
    }
}

fn mask(mask: &contract::Mask) -> Result<MaskKind, String> {
    match mask {
        contract::Mask::None => Ok(MaskKind::None),
        contract::Mask::CausalTopLeft => Ok(MaskKind::CausalTopLeft),
        contract::Mask::CausalBottomRight => Ok(MaskKind::CausalBottomRight),
        contract::Mask::Window(left, right) => {
            let number = |side: &Expr| side.literal().and_then(|value| u32::try_from(value).ok());
            let both = number(left).zip(number(right));
            let window = both.map(|(left, right)| MaskKind::Window { left, right });
            window.ok_or_else(|| format!("mask `{mask}` is not judged: expected two numbers"))
        }
    }
}

fn score(score: &contract::Score) -> ScoreKind {
    match score {
        contract::Score::Plain => ScoreKind::Plain,
        contract::Score::SoftCap(cap) => ScoreKind::SoftCap { cap: cap.0 as f32 },
        contract::Score::Alibi(_) => ScoreKind::Alibi,
    }
}

fn layout(layout: &contract::Layout) -> Result<Layout, String> {
    match layout {
        contract::Layout::Bhsd => Ok(Layout::Bhsd),
        contract::Layout::Bshd => Ok(Layout::Bshd),
        contract::Layout::Strides(_) => Err("strides have no oracle: expected layout bhsd or bshd".into()),
    }
}

/// The scale that gives the argument's very bits, the problem's own where it does.
fn scale(carrier: &contract::Scale, resolved: &Resolved, standard: f32) -> Result<f32, String> {
    let mut arguments = resolved.launches.iter().flat_map(|launch| &launch.args);
    let argument = arguments.find(|argument| argument.name.as_ref() == Some(&carrier.arg));
    let Some((element, value)) = argument.and_then(|argument| scalar(&argument.value)) else {
        return Err(format!("no launch has a number as argument `{}`, which carries the scale", carrier.arg));
    };
    let factor = carrier.factor.value();
    let passed = |scale: &f32| element.decode(round(element, f64::from(*scale) * factor)) == value;
    let quotient = (value / factor) as f32;
    let near = [standard, quotient, quotient.next_up(), quotient.next_down()];
    Ok(near.into_iter().find(passed).unwrap_or(quotient))
}

fn round(element: Element, value: f64) -> u64 {
    element.encode(launch::element::Value::Float(value)).unwrap_or_default()
}

fn buffer_named<'a>(name: &str, resolved: &'a Resolved) -> Result<&'a resolved::Buffer, String> {
    let buffer = resolved.buffers.iter().find(|buffer| buffer.name == name);
    buffer.ok_or_else(|| format!("the recipe has no buffer `{name}`: declare it, or correct the [attention] table"))
}

/// Every buffer is as large as its tensor, and of its type. A tensor without keys has a buffer of any size: none is empty.
fn check_buffers(contract: &AttentionContract, resolved: &Resolved, problem: &Problem) -> Result<(), String> {
    let element = buffer_named(&contract.q, resolved)?.element;
    let rows = problem.o_shape().elements() / problem.value_dim() as usize;
    let mut tensors = vec![
        (&contract.q, element, problem.q_shape().elements()),
        (&contract.k, element, problem.k_shape().elements()),
        (&contract.v, element, problem.v_shape().elements()),
        (&contract.o, element, problem.o_shape().elements()),
    ];
    tensors.extend(contract.lse.as_ref().map(|lse| (lse, Element::F32, rows)));
    let per_head = |name| (name, Element::F32, problem.heads() as usize);
    if let contract::Score::Alibi(slopes) = &contract.score {
        tensors.push(per_head(slopes));
    }
    tensors.extend(contract.sinks.as_ref().map(per_head));
    if let Some(Pair { q, k }) = &contract.documents {
        let rows = |shape: Shape| shape.batch as usize * shape.rows as usize;
        tensors.extend([(q, Element::U32, rows(problem.q_shape())), (k, Element::U32, rows(problem.k_shape()))]);
    }
    for (name, element, count) in tensors {
        let buffer = buffer_named(name, resolved)?;
        let found = buffer.bytes / buffer.element.bytes() as u64;
        if buffer.element != element || count > 0 && found != count as u64 {
            let (is, wants) = (buffer.element.name(), element.name());
            return Err(format!("buffer `{name}` holds {found} {is}: expected {count} {wants} for {problem}"));
        }
    }
    Ok(())
}
