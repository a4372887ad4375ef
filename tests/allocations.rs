//! Attention on plain cores allocates nothing once its shape was met. A test program of its own: all allocations count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use veriflash::half::{bf16, f16};
use veriflash::{HostTensor, Number, Options, attention_into_host};

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST_HELD: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: the system's allocator does the work.
#[allow(unsafe_code)] // The trait is unsafe.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        MOST_HELD.fetch_max(HELD.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a thread may hold besides the tensors.
const MOST_BYTES: usize = 4 << 20;
const THREADS: usize = 2;

/// As many heads of K and V as of Q.
fn check<N: Number>(queries: u32, keys: u32, dim: u32, one: N, options: &Options) {
    let [q, k] = [queries, keys].map(|rows| vec![one; (8 * rows * dim) as usize]);
    let [q, k] = [(&q, queries), (&k, keys)].map(|(values, rows)| HostTensor::new(values, [1, 8, rows, dim]));
    check_tensors(q, k, one, options);
}

fn check_tensors<N: Number>(q: HostTensor<N>, k: HostTensor<N>, one: N, options: &Options) {
    let ([_, heads, queries, dim], [_, _, keys, _]) = (q.shape(), k.shape());
    let (mut o, mut lse) = (vec![one; (heads * queries * dim) as usize], vec![0.0; (heads * queries) as usize]);
    let before = HELD.load(Relaxed);
    MOST_HELD.store(before, Relaxed);
    let mut call = || {
        attention_into_host(&q, &k, &k, &mut o, &mut lse, options).unwrap();
    };
    for _ in 0..20 {
        call(); // The first ones may be over before all threads are awake.
    }
    let count = ALLOCATIONS.load(Relaxed);
    for _ in 0..20 {
        call();
    }
    assert_eq!(ALLOCATIONS.load(Relaxed) - count, 0, "{queries} × {keys}, {dim} columns");
    let held = MOST_HELD.load(Relaxed) - before;
    assert!(held <= THREADS * MOST_BYTES, "{held} bytes for {queries} × {keys}, {dim} columns");
}

/// In a pool, as a program has it that computes on more than one thread. (Calls from outside of one go through rayon's queue,
/// which allocates a block for every 63 of them.)
#[test]
fn a_shape_that_was_met_allocates_nothing() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build().unwrap();
    pool.install(|| {
        check(1, 40_000, 64, 1f32, &Options::new());
        check(100, 5000, 128, bf16::ONE, &Options::new().causal());
        check(33, 700, 72, f16::ONE, &Options::new().window(50, 3).softcap(2.0));
        check(300, 300, 256, 1f32, &Options::new().causal());
        packed_sequences();
        many_heads_on_one_key();
    });
}

/// Long ones, and some with few queries.
fn packed_sequences() {
    let begins: [u32; 7] = [0, 100, 103, 104, 104, 290, 300];
    let values = vec![1f32; 300 * 8 * 64];
    let tensor = HostTensor::packed(&values, [300, 8, 64]);
    check_tensors(tensor, tensor, 1f32, &Options::new().causal().packed(&begins, &begins));
}

/// So many that they do not fit into a thread's memory at once.
fn many_heads_on_one_key() {
    for (heads, dim) in [(1024, 1024), (8192, 128)] {
        let (q, k) = (vec![bf16::ONE; (heads * 4 * dim) as usize], vec![bf16::ONE; (2 * dim) as usize]);
        let (q, k) = (HostTensor::new(&q, [1, heads, 4, dim]), HostTensor::new(&k, [1, 1, 2, dim]));
        check_tensors(q, k, bf16::ONE, &Options::new());
    }
}
