//! The CPU backend against the oracle: random problems of every kind, with every instruction set that this processor has.

mod special;
mod wrong;

use attention::cpu::{Change, Forward, InstructionSet, Number, Sight, Strided};
use attention::kernels::parts::Lengths;
use attention::kernels::parts::masks::{self, Mask};
use attention::kernels::parts::scores::{self, Head, Score};
use attention::oracle::{Control, Inputs, Oracle, Outcome, Outputs, Parity};
use attention::problem::{DType, Problem, Shape};
use attention::scoring::{ScoreKind, Scoring};
use attention::visibility::Visibility;
use half::{bf16, f16};
use std::ops::Range;
use tile::prelude::{Coordinate, F32, Pred, U32};

/// Numbers that look random, the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Nearly normal: the sum of twelve evenly distributed numbers.
    fn normal(&mut self) -> f32 {
        (0..12).map(|_| (self.next() >> 40) as f32 / (1 << 24) as f32).sum::<f32>() - 6.0
    }
}

trait Type: Number {
    fn round(value: f32) -> Self;
    fn value(self) -> f32;
}

macro_rules! type_of_tensors {
    ($type:ty, $round:expr, $value:expr) => {
        impl Type for $type {
            fn round(value: f32) -> $type {
                $round(value)
            }
            fn value(self) -> f32 {
                $value(self)
            }
        }
    };
}

type_of_tensors!(f32, |value| value, |value| value);
type_of_tensors!(f16, f16::from_f32, f16::to_f32);
type_of_tensors!(bf16, bf16::from_f32, bf16::to_f32);

/// A problem with its inputs, in the problem's layout.
#[derive(Clone)]
struct Given<N> {
    problem: Problem,
    tensors: [Vec<N>; 3],
    numbers: Vec<f32>,
    sinks: Vec<f32>,
    documents: [Vec<u32>; 2],
}

fn rows(shape: Shape) -> usize {
    shape.elements() / shape.columns as usize
}

impl<N: Type> Given<N> {
    fn new(text: &str, deviation: f32, random: &mut Random) -> Given<N> {
        let problem: Problem = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let shapes = [problem.q_shape(), problem.k_shape(), problem.v_shape()];
        let tensors =
            shapes.map(|shape| (0..shape.elements()).map(|_| N::round(deviation * random.normal())).collect());
        let of_heads = |random: &mut Random| (0..problem.heads()).map(|_| random.normal()).collect();
        let mut ids = |shape: Shape| {
            let mut id = 0;
            let step = |_| {
                id += u32::from(random.below(9) == 0);
                id
            };
            (0..shape.batch * shape.rows).map(step).collect()
        };
        let documents = [ids(problem.q_shape()), ids(problem.k_shape())];
        Given { numbers: of_heads(random), sinks: of_heads(random), documents, tensors, problem }
    }

    fn oracle_inputs(&self) -> Inputs {
        let [q, k, v] = self.tensors.each_ref().map(|tensor| tensor.iter().map(|x| x.value()).collect::<Vec<_>>());
        let mut inputs = Inputs::from_values(&self.problem, &q, &k, &v).unwrap();
        if self.problem.score() == ScoreKind::Alibi {
            inputs = inputs.with_numbers(self.numbers.clone());
        }
        if self.problem.sinks() {
            inputs = inputs.with_sinks(self.sinks.clone());
        }
        if self.problem.documents() {
            let [queries, keys] = self.documents.clone();
            inputs = inputs.with_documents(queries, keys);
        }
        inputs
    }

    fn run(&self, set: InstructionSet, mask: Sight, score: Change) -> (Vec<N>, Vec<f32>) {
        // Of packed sequences the backend is told the shapes, and where they begin.
        let shapes = [self.problem.q_shape(), self.problem.k_shape(), self.problem.v_shape()];
        let [q, k, v] = [0, 1, 2]
            .map(|index| Strided::new(&self.tensors[index], shapes[index].strides(), shapes[index].columns as usize));
        let dims = self.problem.dims();
        let whole = Problem::builder().batch(shapes[0].batch).heads(shapes[0].heads).kv_heads(shapes[1].heads);
        let whole = whole.queries(shapes[0].rows).keys(shapes[1].rows).head_dim(dims.head).value_dim(dims.value);
        let whole = whole.scale(self.problem.scale()).build().unwrap();
        let forward = Forward {
            problem: &whole,
            q,
            k,
            v,
            mask,
            score,
            numbers: &self.numbers,
            sinks: if self.problem.sinks() { &self.sinks } else { &[] },
            documents: self.problem.documents().then(|| self.documents.each_ref().map(Vec::as_slice)),
            packed: self.problem.packed().map(|packed| [packed.queries(), packed.keys()]),
        };
        let shape = self.problem.o_shape();
        // What nobody writes shows.
        let (mut o, mut lse) = (vec![N::round(f32::NAN); shape.elements()], vec![f32::NAN; rows(shape)]);
        forward.run_with(set, &mut o, shape.strides(), &mut lse);
        (o, lse)
    }

    fn outputs(&self, (o, lse): &(Vec<N>, Vec<f32>)) -> Outputs {
        let o: Vec<f32> = o.iter().map(|x| x.value()).collect();
        Outputs::from_values(&self.problem, &o, lse).unwrap()
    }

    /// Judges the result of every instruction set.
    fn judge(&self, oracle: &Oracle, mask: Sight, score: Change) -> Vec<(InstructionSet, Parity)> {
        let sets = InstructionSet::ALL.into_iter().filter(|set| set.is_here());
        sets.map(|set| (set, oracle.judge(&self.outputs(&self.run(set, mask, score))).unwrap())).collect()
    }
}

/// A problem of any kind, as text.
fn any_problem(dtype: &str, random: &mut Random) -> String {
    let heads = random.one_of(&["H1", "H2", "H3", "H4/2", "H6/2", "H4/1"]);
    let lengths = match random.below(6) {
        0 => format!("Sq1 Sk{}", random.below(2500)),
        1 => format!("Sq{} Sk{}", 1 + random.below(5), random.below(700)),
        2 => format!("Sq{} Sk{}", 1 + random.below(40), random.below(400)),
        3 => {
            let mut list = || (0..3).map(|_| random.below(70).to_string()).collect::<Vec<_>>().join(",");
            format!("Sq1,{} Sk3,{}", list(), list())
        }
        _ => format!("Sq{} Sk{}", 1 + random.below(150), 1 + random.below(300)),
    };
    let batch = if lengths.contains(',') { String::new() } else { format!("B{}", 1 + random.below(2)) };
    let layout = if lengths.contains(',') { "" } else { random.one_of(&["bhsd", "bshd"]) };
    let dim = |random: &mut Random| match random.below(3) {
        0 => random.one_of(&[64, 128]),
        1 => 8 * (1 + random.below(24)),
        _ => 1 + random.below(130),
    };
    let (head, value) = (dim(random), dim(random));
    let mask = random.one_of(&["full", "causal", "causal", "causal-top-left", "window7/0", "window20/9", "window0/3"]);
    let score = random.one_of(&["plain", "plain", "plain", "alibi", "softcap2", "softcap20"]);
    let [sinks, documents] = ["sinks", "documents"].map(|word| if random.below(5) == 0 { word } else { "" });
    format!("{dtype} {batch} {heads} {lengths} D{head}/{value} {mask} {score} {sinks} {documents} {layout}")
}

/// How many problems of each type; `CPU_PROBLEMS` overrides it.
fn problems() -> usize {
    std::env::var("CPU_PROBLEMS").ok().and_then(|count| count.parse().ok()).unwrap_or(200)
}

fn random_problems_are_within_the_rule<N: Type>(dtype: DType) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ dtype as u64);
    let (mut nearest, mut wrong): (f64, Vec<String>) = (0.0, vec![]);
    for _ in 0..problems() {
        let text = any_problem(&dtype.to_string(), &mut random);
        let deviation = random.one_of(&[0.3, 1.0, 3.0]);
        let given = Given::<N>::new(&text, deviation, &mut random);
        let inputs = given.oracle_inputs();
        let oracle = Oracle::new(&given.problem, &inputs).unwrap();
        let (mask, score) = (Sight::Kind(given.problem.mask()), Change::Kind(given.problem.score()));
        for (set, parity) in given.judge(&oracle, mask, score) {
            if !parity.passes() {
                wrong.push(format!("{set:?}, deviation {deviation}: {text}: {parity:?}"));
            }
            nearest = nearest.max(parity.ratio());
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    println!("{dtype}: {} problems within the rule, the nearest at {nearest:.2} of it", problems());
}

#[test]
fn random_problems_in_f32_are_within_the_rule() {
    random_problems_are_within_the_rule::<f32>(DType::F32);
}

#[test]
fn random_problems_in_f16_are_within_the_rule() {
    random_problems_are_within_the_rule::<f16>(DType::F16);
}

#[test]
fn random_problems_in_bf16_are_within_the_rule() {
    random_problems_are_within_the_rule::<bf16>(DType::Bf16);
}

/// The rule is sharp enough for every type: a wrong computation fails it.
fn negative_controls_fail<N: Type>(dtype: DType) {
    let mut random = Random(7);
    let given = Given::<N>::new(&format!("{dtype} B2 H2 Sq70 Sk150 D64 causal"), 1.0, &mut random);
    let inputs = given.oracle_inputs();
    let oracle = Oracle::new(&given.problem, &inputs).unwrap();
    let mut applied = 0;
    for control in Control::ALL {
        let outcome = oracle.control(control);
        assert!(!outcome.is_missed(), "{dtype}: {control:?} passes");
        applied += u32::from(matches!(outcome, Outcome::Applies(_)));
    }
    assert!(applied >= 5, "{dtype}: only {applied} apply");
}

#[test]
fn negative_controls_fail_in_every_type() {
    negative_controls_fail::<f32>(DType::F32);
    negative_controls_fail::<f16>(DType::F16);
    negative_controls_fail::<bf16>(DType::Bf16);
}

/// The same bits for any number of threads, with tiles, few queries, split keys and packed sequences.
fn results_do_not_depend_on_threads<N: Type>(dtype: DType) {
    let mut random = Random(11);
    for text in [
        "B1 H3 Sq600 Sk500 D64 causal",
        "B1 H2 Sq1 Sk5000 D64",
        "B2 H4/2 Sq3 Sk3000 D40/72 window2000/1",
        "H2 Sq300,40,1 Sk200,300,90 D64 causal",
        "B1 H700/1 Sq4 Sk70 D40",
        "H4/2 Sq1,3,0,2,1 Sk900,40,7,300,2 D64",
    ] {
        let given = Given::<N>::new(&format!("{dtype} {text}"), 1.0, &mut random);
        let (mask, score) = (Sight::Kind(given.problem.mask()), Change::Kind(given.problem.score()));
        let bits = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (o, lse) = pool.install(|| given.run(InstructionSet::best(), mask, score));
            o.iter().map(|x| x.value()).chain(lse).map(f32::to_bits).collect::<Vec<_>>()
        };
        let one = bits(1);
        for threads in [2, 3, 7] {
            assert!(bits(threads) == one, "{dtype} {text} on {threads} threads");
        }
    }
}

#[test]
fn results_in_f32_do_not_depend_on_threads() {
    results_do_not_depend_on_threads::<f32>(DType::F32);
}

#[test]
fn results_in_f16_do_not_depend_on_threads() {
    results_do_not_depend_on_threads::<f16>(DType::F16);
}

#[test]
fn results_in_bf16_do_not_depend_on_threads() {
    results_do_not_depend_on_threads::<bf16>(DType::Bf16);
}

/// Every third key, from the query on backwards.
struct EveryThird;

impl Mask for EveryThird {
    fn seen_by_some(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
        masks::Causal.seen_by_some(queries, of)
    }

    fn seen_by_all(&self, _: Range<U32>, _: Lengths) -> Range<U32> {
        0.into()..0.into()
    }

    fn sees(&self, query: Coordinate, key: Coordinate, of: Lengths) -> Pred {
        (key.value() % 3u32).eq(0u32) & masks::Causal.sees(query, key, of)
    }
}

/// Half of what it was, and less for keys far behind.
struct Fading;

impl Score for Fading {
    fn apply(&self, score: F32, query: Coordinate, key: Coordinate, _: Head) -> F32 {
        score * 0.5 + key.minus(query) * 0.01
    }
}

fn own_masks_and_scores_are_within_the_rule<N: Type>(dtype: DType) {
    let mut random = Random(13);
    for text in ["B1 H2 S150 D64", "B1 H4/2 Sq2 Sk300 D40", "H2 Sq3,20,1 Sk50,70,90 D40"] {
        let given = Given::<N>::new(&format!("{dtype} {text}"), 1.0, &mut random);
        let inputs = given.oracle_inputs();
        let (mask, score) = (masks::OnHost(&EveryThird), scores::OnHost(&Fading));
        let (mask, score): (&dyn Visibility, &dyn Scoring) = (&mask, &score);
        let oracle = Oracle::with(&given.problem, &inputs, mask, score).unwrap();
        for (set, parity) in given.judge(&oracle, Sight::Own(&EveryThird), Change::Own(&Fading)) {
            assert!(parity.passes(), "{set:?}: {dtype} {text}: {parity:?}");
        }
    }
}

#[test]
fn masks_and_scores_of_the_users_own() {
    own_masks_and_scores_are_within_the_rule::<f32>(DType::F32);
    own_masks_and_scores_are_within_the_rule::<f16>(DType::F16);
    own_masks_and_scores_are_within_the_rule::<bf16>(DType::Bf16);
}

/// Wider heads and more keys than those of the random problems; and heads that share their keys, so many that they are computed in
/// several portions, of which the last is smaller.
fn large_problems_are_within_the_rule<N: Type>(dtype: DType) {
    let mut random = Random(19);
    for text in [
        "B1 H1 Sq20 Sk3000 D1024 causal",
        "B1 H2 Sq33 Sk5000 D64 window3000/0",
        "B1 H2/1 Sq2 Sk9000 D500/1023",
        "B1 H70/1 Sq4 Sk33 D1024",
        "B1 H514/2 Sq3 Sk300 D128/40",
        "H4/2 Sq1,40,2 Sk3000,100,1 D256 causal",
    ] {
        let given = Given::<N>::new(&format!("{dtype} {text}"), 1.0, &mut random);
        let inputs = given.oracle_inputs();
        let oracle = Oracle::new(&given.problem, &inputs).unwrap();
        for (set, parity) in given.judge(&oracle, Sight::Kind(given.problem.mask()), Change::Kind(ScoreKind::Plain)) {
            assert!(parity.passes(), "{set:?}: {dtype} {text}: {parity:?}");
        }
    }
}

#[test]
fn large_problems() {
    large_problems_are_within_the_rule::<f32>(DType::F32);
    large_problems_are_within_the_rule::<f16>(DType::F16);
    large_problems_are_within_the_rule::<bf16>(DType::Bf16);
}
