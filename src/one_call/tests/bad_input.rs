//! Every kind of bad input, by name.

use super::super::extras::{Extra, Memory};
use super::{Attempt, DEVICE};
use crate::{Custom, Options};
use attention::kernels::parts::masks::Full;
use attention::kernels::parts::scores::{Alibi, Plain};
use attention::problem::{DType, Layout};

type Change = fn(&mut Attempt<'static>);

/// Cumulative lengths of five rows, and of others.
static PLACES: [u32; 3] = [0, 2, 5];
static BACKWARDS: [u32; 3] = [0, 6, 5];
static LATE: [u32; 3] = [1, 2, 5];
static SHORT: [u32; 3] = [0, 2, 4];
/// Of 4096 keys for five queries of six heads, on an H200.
const SPLITS: u64 = 32;
static NUMBERS: [f32; 6] = [0.5; 6];
static NOT_A_NUMBER: [f32; 6] = [0.5, 0.5, f32::NAN, 0.5, 0.5, 0.5];
static IDS: [u32; 5] = [0; 5];

/// What is wrong, how, and the sentence that says so: it begins with the argument, and ends with what to do.
const TABLE: &[(&str, Change, &str)] = &[
    ("shape mismatch", |call| call.k.view.shape[0] = 2, "`k` has 2 batch entries: expected 1, as in `q`"),
    ("shape mismatch", |call| call.k.view.shape[3] = 72, "`k` has 72 columns: expected 64, as in `q`"),
    ("shape mismatch", |call| call.v.view.shape[1] = 3, "`v` has 3 heads: expected 2, as in `k`"),
    ("shape mismatch", |call| call.v.view.shape[2] = 4, "`v` has 4 rows: expected 5, as in `k`"),
    ("shape mismatch", |call| call.q.view.shape[1] = 5, "`k` has 2 heads: expected a divisor of the 5 heads of `q`"),
    ("shape mismatch", |call| call.o.view.shape[2] = 4, "`o` has 4 rows: expected 5, as `q` and `v` say"),
    ("type mismatch", |call| call.v.view.dtype = DType::Bf16, "`v` is bf16: expected f16, as `q` is"),
    ("type mismatch", |call| call.o.view.dtype = DType::Bf16, "`o` is bf16: expected f16, as `q` is"),
    ("zero-size dimension", |call| each(call, 0, 0), "`q` has 0 batch entries: expected at least 1"),
    ("zero-size dimension", |call| call.q.view.shape[1] = 0, "`q` has 0 heads: expected at least 1"),
    ("zero-size dimension", |call| call.q.view.shape[2] = 0, "`q` has 0 rows: expected at least 1"),
    ("zero-size dimension", |call| each(call, 3, 0), "`q` has 0 columns: expected at least 1"),
    (
        "unsupported head dimension",
        |call| each(call, 3, 68),
        "`q` has 68 columns: expected a multiple of 8 from 16 to 256",
    ),
    (
        "unsupported head dimension",
        |call| each(call, 3, 8),
        "`q` has 8 columns: expected a multiple of 8 from 16 to 256",
    ),
    (
        "unsupported head dimension",
        |call| call.v.view.shape[3] = 264,
        "`v` has 264 columns: expected a multiple of 8 from 16 to 256",
    ),
    ("misaligned pointer", |call| call.q.address += 8, "`q` begins at 0x10000008: expected a multiple of 16"),
    ("misaligned pointer", |call| call.o.address += 2, "`o` begins at 0x40000002: expected a multiple of 16"),
    ("misaligned pointer", |call| call.lse.address += 4, "`lse` begins at 0x50000004: expected a multiple of 16"),
    ("overlapping output", |call| call.o.address = call.q.address, "`o` overlaps `q`: expected memory of its own"),
    ("overlapping output", |call| call.o.address = call.v.address + 16, "`o` overlaps `v`: expected memory of its own"),
    ("overlapping output", |call| call.lse.address = call.k.address, "`lse` overlaps `k`: expected memory of its own"),
    ("overlapping output", |call| call.lse.address = call.o.address, "`o` overlaps `lse`: expected memory of its own"),
    ("wrong device", |call| call.q.device = 0, "`q` lies on GPU 0: expected GPU 1, where the stream is"),
    ("wrong device", |call| call.lse.device = 7, "`lse` lies on GPU 7: expected GPU 1, where the stream is"),
    ("short memory", |call| call.k.bytes -= 2, "`k` has 1278 bytes: expected 1280 for its shape"),
    ("short memory", |call| call.lse.bytes -= 4, "`lse` has 116 bytes: expected 120 for its shape"),
    (
        "stride",
        |call| call.q.view.strides[3] = 2,
        "`q` has a stride of 2 elements between columns: expected 1: columns are contiguous",
    ),
    (
        "stride",
        |call| call.k.view.strides[1] = 36,
        "`k` has a stride of 36 elements between heads: \
         expected a multiple of 8 elements, which are 16 bytes",
    ),
    (
        "strides that alias",
        |call| call.o.view.strides[1] = 0,
        "`o` has a stride of 0 elements between heads: expected at least 1, so that no two elements share a place",
    ),
    (
        "strides that alias",
        |call| call.o.view.strides[2] = 64,
        "`o` has a stride of 64 elements between rows: expected at least 384, so that no two elements share a place",
    ),
    (
        "non-monotone cumulative lengths",
        |call| packed(call, &BACKWARDS, &PLACES),
        "`cu_q` goes from 6 to 5 at entry 2: \
         expected where each sequence begins and the last one ends, from 0 on and never backwards",
    ),
    (
        "non-monotone cumulative lengths",
        |call| packed(call, &PLACES, &BACKWARDS),
        "`cu_k` goes from 6 to 5 at entry 2: \
         expected where each sequence begins and the last one ends, from 0 on and never backwards",
    ),
    (
        "cumulative lengths",
        |call| packed(call, &LATE, &PLACES),
        "`cu_q` begins with 1: \
         expected where each sequence begins and the last one ends, from 0 on and never backwards",
    ),
    ("cumulative lengths", |call| packed(call, &SHORT, &PLACES), "`cu_q` ends at 4: expected 5, the rows of `q`"),
    ("cumulative lengths", |call| packed(call, &PLACES, &SHORT), "`cu_k` ends at 4: expected 5, the rows of `k`"),
    (
        "cumulative lengths",
        |call| packed(call, &PLACES, &PLACES[..2]),
        "`cu_k` has 2 numbers: expected 3, as many as `cu_q` has",
    ),
    (
        "cumulative lengths",
        |call| packed(call, &PLACES[..1], &PLACES),
        "`cu_q` has 1 numbers: expected 2, at least, where a sequence begins and where it ends",
    ),
    (
        "cumulative lengths",
        |call| {
            each(call, 0, 2);
            packed(call, &PLACES, &PLACES)
        },
        "`q` has 2 batch entries: expected 1: packed sequences lie one behind the other in one",
    ),
    (
        "cumulative lengths",
        |call| call.options = Options::new().packed(&PLACES, &PLACES).longest(2),
        "`longest` has 2 queries: expected at least 3, as `cu_q` says",
    ),
    (
        "cumulative lengths",
        |call| call.options = Options::new().longest(2),
        "`longest` is given: expected `packed` beside it: other sequences are all of one length",
    ),
    (
        "length of an array",
        |call| call.options = Options::new().alibi(&NUMBERS[..5]),
        "`slopes` has 5 numbers: expected 6, one for each head",
    ),
    (
        "length of an array",
        |call| call.options = Options::new().sinks(&NUMBERS[..2]),
        "`sinks` has 2 numbers: expected 6, one for each head",
    ),
    (
        "length of an array",
        |call| call.options = Options::new().documents(&IDS[..4], &IDS),
        "`q_ids` has 4 numbers: expected 5, one for each query of each sequence",
    ),
    (
        "length of an array",
        |call| call.options = Options::new().documents(&IDS, &IDS[..0]),
        "`k_ids` has 0 numbers: expected 5, one for each key of each sequence",
    ),
    (
        "content of an array",
        |call| call.options = Options::new().alibi(&NOT_A_NUMBER),
        "`slopes` has NaN at 2: expected a finite number",
    ),
    (
        "content of an array",
        |call| call.options = Options::new().sinks(&NOT_A_NUMBER),
        "`sinks` has NaN at 2: expected a finite number, or −∞ for no sink",
    ),
    (
        "number",
        |call| call.options = Options::new().scale(0.0),
        "scale 0 is not supported: expected a number above 0, and at most 2^127",
    ),
    (
        "number",
        |call| call.options = Options::new().scale(3e38),
        "scale 300000000000000000000000000000000000000 is not supported: expected a number above 0, and at most 2^127",
    ),
    (
        "number",
        |call| call.options = Options::new().softcap(-1.0),
        "soft-cap -1 is not supported: expected a finite number above 0",
    ),
    (
        "options that exclude each other",
        |call| call.options = Options::new().softcap(1.0).alibi(&NUMBERS),
        "`alibi` is given beside another score: expected one score: `score_with` takes one that does both",
    ),
    (
        "options that need each other",
        |call| call.options = Options::new().score_numbers(&NUMBERS),
        "`score_numbers` is given: expected a score of your own (`score_with`) that reads it",
    ),
    (
        "misaligned pointer",
        |call| workspace(call, |memory| memory.address += 8),
        "`workspace` begins at 0xf0000008: expected a multiple of 16",
    ),
    (
        "wrong device",
        |call| workspace(call, |memory| memory.device = 0),
        "`workspace` lies on GPU 0: expected GPU 1, where the stream is",
    ),
    (
        "short memory",
        |call| workspace(call, |memory| memory.bytes -= 1),
        "`workspace` has 253439 bytes: expected 253440, at least, for the parts of split keys",
    ),
    (
        "overlapping output",
        |call| over(call, |call| call.q.address),
        "`workspace` overlaps `q`: expected memory of its own",
    ),
    (
        "overlapping output",
        |call| over(call, |call| call.o.address),
        "`workspace` overlaps `o`: expected memory of its own",
    ),
    (
        "overlapping output",
        |call| over(call, |call| call.lse.address),
        "`workspace` overlaps `lse`: expected memory of its own",
    ),
    (
        "overlapping output",
        |call| {
            *call = Attempt::new([1, 6, 5, 64], Layout::Bshd, Options::new().sinks(&NUMBERS));
            over(call, |call| call.extras.get(Extra::Sinks).map_or(0, |sinks| sinks.address));
        },
        "`workspace` overlaps `sinks`: expected memory of its own",
    ),
];

/// So many keys that they are split, and a workspace that is as long as it must be but for the change.
fn workspace(call: &mut Attempt, change: impl FnOnce(&mut Memory)) {
    call.of_keys(4096);
    let bytes = 5 * 6 * SPLITS * (64 + 2) * 4;
    let mut memory = Memory { address: 0xf000_0000, bytes, device: DEVICE };
    call.workspace = Some(memory);
    call.check().unwrap();
    change(&mut memory);
    call.workspace = Some(memory);
}

/// A workspace that begins where something else does.
fn over(call: &mut Attempt, other: fn(&Attempt) -> u64) {
    let address = other(call);
    workspace(call, |memory| memory.address = address);
}

/// The same size in every tensor.
fn each(call: &mut Attempt, dimension: usize, size: u32) {
    for tensor in [&mut call.q, &mut call.k, &mut call.v, &mut call.o] {
        tensor.view.shape[dimension] = size;
    }
}

fn packed(call: &mut Attempt<'static>, cu_q: &'static [u32], cu_k: &'static [u32]) {
    call.options = Options::new().packed(cu_q, cu_k);
}

/// Q of six heads, five rows and 64 columns, as (batch, rows, heads, columns).
fn right() -> Attempt<'static> {
    Attempt::new([1, 6, 5, 64], Layout::Bshd, Options::new())
}

#[test]
fn bad_input_is_named() {
    right().check().unwrap();
    for (kind, change, expected) in TABLE {
        let mut call = right();
        change(&mut call);
        match call.check() {
            Ok(_) => panic!("{kind}: expected `{expected}`"),
            Err(error) => assert_eq!(error.to_string(), *expected, "{kind}"),
        }
    }
}

/// Masks and scores of the user's own live no longer than the test.
#[test]
fn custom_parts_exclude_and_need_each_other() {
    let (full, plain, alibi) = (Custom::new(Full), Custom::new(Plain), Custom::new(Alibi));
    let refused = |options: Options| {
        let call = Attempt::new([1, 6, 5, 64], Layout::Bshd, options);
        call.check().map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        refused(Options::new().causal().mask_with(&full)),
        "`mask_with` is given beside another mask: expected one mask, which may be one that does both"
    );
    assert_eq!(
        refused(Options::new().softcap(2.0).score_with(&plain)),
        "`score_with` is given beside another score: expected one score: `score_with` takes one that does both"
    );
    assert_eq!(
        refused(Options::new().score_with(&alibi)),
        "`score_numbers` is missing: expected a number for each head, which the score reads"
    );
    let options = Options::new().mask_with(&full).score_with(&alibi).score_numbers(&NUMBERS);
    Attempt::new([1, 6, 5, 64], Layout::Bshd, options).check().unwrap();
}
