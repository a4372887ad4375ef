//! The backend on a real GPU; on a machine without one, the sentence that says so.
//!
//! All cases are one test: they share the process's primary context. The one that ends it has a process of its own.
//! With `VERIFLASH_REQUIRE_GPU` set, a machine without a GPU fails the test instead of passing with the sentence.

#![allow(unsafe_code, reason = "other libraries' contexts are made by calls of the driver")]

use std::panic::AssertUnwindSafe;
use std::process::Command;
use std::ptr;
use std::sync::Barrier;

use cuda::{Cache, Context, Cuda, DeviceBuffer, DeviceSlice, Error, Event, Graph, Module, Prepared, Stream};
use cudarc::driver::sys::{CUresult, cuCtxCreate_v2, cuCtxDestroy_v2, cuCtxSetCurrent};
use launch::backend::{Backend, Options, Run};
use launch::{Kernel, Memory};

const HEAD: &str = ".version 7.0\n.target sm_80\n.address_size 64\n";
const HEAD_90: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// `c = a + b`, then twice `c = c + c`: two entries, two launches, one of them repeated.
fn add() -> Kernel {
    let expected = (0..1000).map(|index| format!("{}", (index + 3) * 4)).collect::<Vec<_>>().join(", ");
    let text = format!(
        r#"//@ [let]
//@ n = 1000
//@ [buffer.a]
//@ type = "f32"
//@ shape = ["n"]
//@ init = "ramp"
//@ [buffer.b]
//@ type = "f32"
//@ shape = ["n"]
//@ init = "const(3.0)"
//@ [buffer.c]
//@ type = "f32"
//@ shape = ["n"]
//@ init = "poison"
//@ expect = [{expected}]
//@ [[launch]]
//@ entry = "add"
//@ grid = ["ceil_div(n, 128)", 1, 1]
//@ block = [128, 1, 1]
//@ args = [{{ u32 = "n" }}, {{ buffer = "a" }}, {{ buffer = "b" }}, {{ buffer = "c" }}]
//@ [[launch]]
//@ entry = "double"
//@ grid = ["ceil_div(n, 128)", 1, 1]
//@ block = [128, 1, 1]
//@ repeat = 2
//@ args = [{{ buffer = "c" }}, {{ u32 = "n" }}]
{HEAD}
.visible .entry add(.param .u32 n, .param .u64 a, .param .u64 b, .param .u64 c)
{{
    .reg .pred %outside;
    .reg .b32 %r<5>;
    .reg .b64 %rd<5>;
    .reg .f32 %f<3>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    mad.lo.s32 %r2, %r0, 128, %r1;
    ld.param.u32 %r3, [n];
    setp.ge.u32 %outside, %r2, %r3;
    @%outside bra $done;
    mul.wide.u32 %rd0, %r2, 4;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    add.s64 %rd1, %rd1, %rd0;
    add.s64 %rd2, %rd2, %rd0;
    add.s64 %rd3, %rd3, %rd0;
    ld.global.f32 %f0, [%rd1];
    ld.global.f32 %f1, [%rd2];
    add.f32 %f2, %f0, %f1;
    st.global.f32 [%rd3], %f2;
$done:
    ret;
}}
.visible .entry double(.param .u64 c, .param .u32 n)
{{
    .reg .pred %outside;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    .reg .f32 %f<2>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    mad.lo.s32 %r2, %r0, 128, %r1;
    ld.param.u32 %r3, [n];
    setp.ge.u32 %outside, %r2, %r3;
    @%outside bra $done;
    mul.wide.u32 %rd0, %r2, 4;
    ld.param.u64 %rd1, [c];
    add.s64 %rd1, %rd1, %rd0;
    ld.global.f32 %f0, [%rd1];
    add.f32 %f1, %f0, %f0;
    st.global.f32 [%rd1], %f1;
$done:
    ret;
}}
"#
    );
    Kernel::parse("add.ptx", &text).unwrap()
}

/// 256 threads write 256 bytes apart in dynamic shared memory, and read each other's words in reverse.
fn shared(bytes: u32) -> Kernel {
    let expected = (0..256).rev().map(|index| index.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        r#"//@ [buffer.out]
//@ type = "u32"
//@ shape = [256]
//@ init = "poison"
//@ expect = [{expected}]
//@ [[launch]]
//@ grid = [1, 1, 1]
//@ block = [256, 1, 1]
//@ shared = {bytes}
//@ args = [{{ buffer = "out" }}]
{HEAD}
.extern .shared .align 16 .b8 stage[];
.visible .entry reverse(.param .u64 out)
{{
    .reg .b32 %r<7>;
    .reg .b64 %rd<3>;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, stage;
    mad.lo.s32 %r2, %r0, 256, %r1;
    st.shared.u32 [%r2], %r0;
    bar.sync 0;
    sub.s32 %r3, 255, %r0;
    mad.lo.s32 %r4, %r3, 256, %r1;
    ld.shared.u32 %r5, [%r4];
    mul.wide.u32 %rd0, %r0, 4;
    ld.param.u64 %rd1, [out];
    add.s64 %rd2, %rd1, %rd0;
    st.global.u32 [%rd2], %r5;
    ret;
}}
"#
    );
    Kernel::parse("reverse.ptx", &text).unwrap()
}

/// Every block writes its rank in the cluster and the cluster's size.
fn clusters(blocks: u32) -> Kernel {
    let expected = (0..32).map(|block| format!("{}", block % blocks * 100 + blocks)).collect::<Vec<_>>().join(", ");
    let text = format!(
        r#"//@ [buffer.out]
//@ type = "u32"
//@ shape = [32]
//@ init = "poison"
//@ expect = [{expected}]
//@ [[launch]]
//@ grid = [32, 1, 1]
//@ block = [32, 1, 1]
//@ cluster = [{blocks}, 1, 1]
//@ args = [{{ buffer = "out" }}]
{HEAD_90}
.visible .entry rank(.param .u64 out)
{{
    .reg .b32 %r<5>;
    .reg .b64 %rd<3>;
    mov.u32 %r0, %cluster_ctarank;
    mov.u32 %r1, %cluster_nctarank;
    mad.lo.s32 %r2, %r0, 100, %r1;
    mov.u32 %r3, %ctaid.x;
    mul.wide.u32 %rd0, %r3, 4;
    ld.param.u64 %rd1, [out];
    add.s64 %rd2, %rd1, %rd0;
    st.global.u32 [%rd2], %r2;
    ret;
}}
"#
    );
    Kernel::parse("rank.ptx", &text).unwrap()
}

/// Loads rows 2 to 5 of four, eight columns wide, through a tensor map, and stores what arrived.
fn tile(stride: u32) -> Kernel {
    let rows = [[16, 17, 18, 19, 20, 21, 22, 23], [24, 25, 26, 27, 28, 29, 30, 31], [0; 8], [0; 8]];
    let expected = rows.concat().iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let text = format!(
        r#"//@ [buffer.out]
//@ type = "u32"
//@ shape = [32]
//@ init = "poison"
//@ expect = [{expected}]
//@ [buffer.in]
//@ type = "u32"
//@ shape = [32]
//@ init = "ramp"
//@ [[launch]]
//@ grid = [1, 1, 1]
//@ block = [32, 1, 1]
//@ args = [{{ buffer = "out" }}, {{ map = "in", dims = [8, 4], strides = [{stride}], box = [8, 4] }}]
{HEAD_90}
.visible .entry tile(.param .u64 out, .param .align 64 .b8 map[128])
{{
    .shared .align 128 .b8 stage[128];
    .shared .align 8 .b64 full;
    .reg .pred %other, %done;
    .reg .b32 %r<7>;
    .reg .b64 %rd<6>;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, stage;
    mov.u32 %r2, full;
    setp.ne.u32 %other, %r0, 0;
    @%other bra $ready;
    mbarrier.init.shared::cta.b64 [%r2], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
    mov.b64 %rd0, map;
    cvta.param.u64 %rd1, %rd0;
    mov.u32 %r3, 0;
    mov.u32 %r4, 2;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {{%r3, %r4}}], [%r2];
$ready:
    bar.sync 0;
$again:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%r2], 0;
    @!%done bra $again;
    mad.lo.s32 %r5, %r0, 4, %r1;
    ld.shared.u32 %r6, [%r5];
    mul.wide.u32 %rd2, %r0, 4;
    ld.param.u64 %rd3, [out];
    add.s64 %rd4, %rd3, %rd2;
    st.global.u32 [%rd4], %r6;
    ret;
}}
"#
    );
    Kernel::parse("tile.ptx", &text).unwrap()
}

/// Takes no parameters and traps.
fn trap() -> Kernel {
    let header = "//@ [[launch]]\n//@ grid = [1, 1, 1]\n//@ block = [32, 1, 1]\n";
    let body = ".visible .entry stop()\n{\n    trap;\n    ret;\n}\n";
    Kernel::parse("stop.ptx", &format!("{header}{HEAD}{body}")).unwrap()
}

fn run(cuda: &Cuda, kernel: &Kernel) -> Result<Run, Error> {
    let mut loaded = cuda.load(kernel)?;
    let mut memory = Memory::new(loaded.resolved(), 0)?;
    let run = cuda.run(&mut loaded, &mut memory, &Options::default())?;
    memory.check(loaded.resolved())?;
    Ok(run)
}

#[test]
fn backend() {
    // The kernels are read on every machine, so that a mistake in them shows without a GPU.
    let (add, shared_64, shared_1024) = (add(), shared(64 << 10), shared(1 << 20));
    trap();
    let (ranks, tiles) = ([2, 8, 16].map(clusters), [32, 24].map(tile));
    let cuda = match Cuda::open(0) {
        Ok(cuda) => cuda,
        Err(error) => return no_gpu(error),
    };
    println!("GPU: {}", cuda.device());
    println!("{:?}", cuda.device());
    results_and_times(&cuda, &add);
    repeated_runs_start_afresh(&cuda, &add);
    resources(&cuda, &add);
    large_shared_memory(&cuda, &shared_64);
    refused_launches_harm_nothing(&cuda, &shared_1024, &add);
    refused_modules_carry_the_log(&cuda);
    wrong_memory_is_refused(&cuda, &add);
    buffers_keep_bytes(&cuda);
    a_full_gpu_says_what_was_asked_for(&cuda, &add);
    kept_code_is_loaded(&cuda, &add);
    prepared_launches_and_graphs(&cuda, &add);
    graphs_keep_what_they_recorded(&cuda, &add);
    graphs_that_are_not_recorded(&cuda, &add);
    parameters_are_counted(&cuda, &add);
    handles_go_out_and_come_back(&cuda, &add);
    contexts_of_the_callers_are_used(&cuda);
    contexts_of_other_libraries_are_used(&cuda);
    if cuda.device().has_clusters() {
        clusters_of_every_size(&cuda, &ranks);
        prepared_clusters(&cuda, &ranks);
        tensor_maps(&cuda, &tiles);
    } else {
        older_gpus_say_what_they_lack(&cuda, &ranks[0], &tiles[0]);
    }
    lost_context();
}

fn no_gpu(error: Error) {
    println!("not run on a GPU: {error}");
    assert!(std::env::var_os("VERIFLASH_REQUIRE_GPU").is_none(), "a GPU is required: {error}");
    assert!(matches!(error, Error::NoDriver | Error::NoGpu), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("no NVIDIA ") && text.ends_with("compute without a GPU"), "{text}");
}

fn results_and_times(cuda: &Cuda, add: &Kernel) {
    let run = run(cuda, add).expect("vector add must give the expected sums");
    assert!(run.findings.is_empty(), "a GPU has no checks: {:?}", run.findings);
    assert_eq!(run.times.len(), 2, "one time per launch: {:?}", run.times);
    assert!(run.times.iter().all(|time| time.as_nanos() > 0), "events must show time: {:?}", run.times);
    assert_eq!(run.outputs.len(), 1, "only `c` changes: {:?}", run.outputs);
    assert_eq!(run.outputs[0].buffer, "c");
    let seen: Vec<_> = run.witness.iter().map(|one| (one.entry.as_str(), one.grid, one.block, one.count)).collect();
    assert_eq!(seen, [("add", [8, 1, 1], [128, 1, 1], 1), ("double", [8, 1, 1], [128, 1, 1], 2)], "witness");
    println!("vector add: two launches, times {:?}", run.times);
}

fn repeated_runs_start_afresh(cuda: &Cuda, add: &Kernel) {
    let mut loaded = cuda.load(add).expect("load");
    for seed in 0..2 {
        let mut memory = Memory::new(loaded.resolved(), seed).unwrap();
        cuda.run(&mut loaded, &mut memory, &Options::default()).expect("run");
        memory.check(loaded.resolved()).expect("every run begins with the bytes of its own memory");
        assert!(memory.buffer("c").unwrap().initialised, "the run wrote `c`");
    }
    println!("same kernel, two runs: equal");
}

fn resources(cuda: &Cuda, add: &Kernel) {
    let loaded = cuda.load(add).expect("load");
    let resources = loaded.resources("add").expect("resources of `add`");
    assert!((4..=64).contains(&resources.registers), "a small kernel needs few registers: {resources:?}");
    assert_eq!((resources.local_bytes, resources.shared_bytes), (0, 0), "no spills, no shared memory: {resources:?}");
    let error = loaded.resources("subtract").unwrap_err().to_string();
    assert_eq!(error, "the loaded module has no entry `subtract`");
    println!("resources of add: {resources:?}\nlog: {}", loaded.module().log());
}

fn large_shared_memory(cuda: &Cuda, shared: &Kernel) {
    run(cuda, shared).expect("64 KB of dynamic shared memory must be allowed and give the reversed numbers");
    println!("64 KB of dynamic shared memory: right");
}

fn refused_launches_harm_nothing(cuda: &Cuda, shared: &Kernel, add: &Kernel) {
    let error = run(cuda, shared).expect_err("1 MB of shared memory must be refused");
    assert!(matches!(error, Error::SharedMemory { dynamic: 1_048_576, .. }), "{error}");
    println!("1 MB of dynamic shared memory: {error}");
    run(cuda, add).expect("a refused launch must not end the context");
}

fn refused_modules_carry_the_log(cuda: &Cuda) {
    let text = format!("{HEAD}.visible .entry wrong()\n{{\n    frobnicate.u32 %r1, %r2;\n    ret;\n}}\n");
    let error = Module::from_ptx(cuda.context(), "wrong.ptx", &text).expect_err("the driver must refuse wrong PTX");
    let Error::Jit { file, log, .. } = &error else { panic!("expected the compiler's log, found: {error}") };
    assert!(file == "wrong.ptx" && log.contains("line 6"), "the log must name line 6: {error}");
    println!("wrong PTX: {error}");
    let error = Module::from_cubin(cuda.context(), "wrong.cubin", text.as_bytes()).expect_err("PTX is no cubin");
    assert!(matches!(error, Error::NotCubin { .. }), "{error}");
}

fn kept_code_is_loaded(cuda: &Cuda, add: &Kernel) {
    let (folder, text) = (tempfile::tempdir().unwrap(), &add.parsed.source.text);
    let load = || {
        let cache = Cache::at(folder.path());
        let module = Module::from_ptx_cached(cuda.context(), &cache, "add.ptx", text).expect("load");
        module.function("add").expect("the entry is there");
        cache.counts()
    };
    let (first, second) = (load(), load());
    assert_eq!((first.compiled, first.from_disk, first.refused, first.unwritable), (1, 0, 0, 0), "{first:?}");
    assert_eq!((second.compiled, second.from_disk, second.refused), (0, 1, 0), "{second:?}");
    one_way_for_all_code(cuda, add);
    let wrong = format!("{HEAD}.visible .entry wrong()\n{{\n    frobnicate.u32 %r1, %r2;\n    ret;\n}}\n");
    let error = Module::from_ptx_cached(cuda.context(), &Cache::in_process(), "wrong.ptx", &wrong).unwrap_err();
    assert!(matches!(&error, Error::Jit { log, .. } if log.contains("line 6")), "{error}");
    println!("code kept on disk: loaded again");
}

/// However it is loaded, it is the linker's machine code.
fn one_way_for_all_code(cuda: &Cuda, add: &Kernel) {
    let text = &add.parsed.source.text;
    let loaded = cuda.load(add).expect("load");
    let cubin = loaded.module().cubin().expect("the linker takes it").to_vec();
    assert!(loaded.module().log().contains("registers"), "the linker's log: {}", loaded.module().log());
    let again = Module::from_ptx_cached(cuda.context(), &Cache::in_process(), "add.ptx", text).unwrap();
    assert_eq!((again.hash(), again.cubin()), (loaded.module().hash(), Some(&cubin[..])));
    let direct = Module::from_cubin(cuda.context(), "add.cubin", &cubin).expect("what the linker made can be loaded");
    assert_eq!(direct.hash(), loaded.module().hash());
    println!("one way for all code: {} bytes, SHA-256 {}", cubin.len(), direct.hash().unwrap());
    if cuda.device().capability == (9, 0) {
        let text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry fence()\n{\n    \
                    wgmma.fence.sync.aligned;\n    ret;\n}\n";
        let module = Module::from_ptx(cuda.context(), "fence.ptx", text).expect("of this very architecture");
        println!("sm_90a: hash {:?}, log {}", module.hash(), module.log());
    }
}

/// `double` in a stream, from another that waits, and six times in a graph.
fn prepared_launches_and_graphs(cuda: &Cuda, add: &Kernel) {
    let context = cuda.context();
    let module = Module::from_ptx_cached(context, &Cache::in_process(), "add.ptx", &add.parsed.source.text).unwrap();
    let entry = add.module().functions.iter().find(|function| function.name == "double").unwrap();
    let double = Prepared::new(module, entry, [128, 1, 1], 0).unwrap();
    let (first, second) = (Stream::new(context).unwrap(), Stream::new(context).unwrap());
    let mut buffer = DeviceBuffer::new(context, 4000).unwrap();
    buffer.write(&first, &1f32.to_le_bytes().repeat(1000)).unwrap();
    let parameters = [&buffer.address().to_le_bytes()[..], &1000u32.to_le_bytes()].concat();
    double.launch(&first, [8, 1, 1], &parameters).expect("a launch");
    second.wait(&Event::record(&first).unwrap()).unwrap();
    let graph = Graph::capture(&second, || (0..3).try_for_each(|_| double.launch(&second, [8, 1, 1], &parameters)));
    let graph = graph.expect("three launches are recorded");
    graph.launch(&second).and_then(|()| graph.launch(&second)).expect("the graph runs twice");
    Event::record(&second).unwrap().synchronise().unwrap();
    let mut bytes = vec![0; 4000];
    buffer.read(&second, &mut bytes).unwrap();
    assert_eq!(bytes, 128f32.to_le_bytes().repeat(1000), "one launch and twice three double seven times");
    let error = double.launch(&first, [8, 1, 1], &parameters[1..]).unwrap_err();
    assert!(error.to_string().contains("12 bytes of parameters"), "{error}");
    let failed = Graph::capture(&second, || Err::<(), _>(Error::NoGpu));
    assert!(matches!(failed, Err(Error::NoGpu)), "why the work failed");
    double.launch(&second, [8, 1, 1], &parameters).expect("a stream whose recording failed still works");
    second.synchronise().unwrap();
    println!("prepared launches, waits between streams, graphs: right");
}

fn prepared(cuda: &Cuda, add: &Kernel) -> Prepared {
    let text = &add.parsed.source.text;
    let module = Module::from_ptx_cached(cuda.context(), &Cache::in_process(), "add.ptx", text).unwrap();
    let entry = add.module().functions.iter().find(|function| function.name == "double").unwrap();
    Prepared::new(module, entry, [128, 1, 1], 0).unwrap()
}

/// The graph outlives the code and one of the two buffers that it runs on.
fn graphs_keep_what_they_recorded(cuda: &Cuda, add: &Kernel) {
    let (context, double) = (cuda.context(), prepared(cuda, add));
    let stream = Stream::new(context).unwrap();
    let [mut read, mut dropped] = [(); 2].map(|()| DeviceBuffer::new(context, 4000).unwrap());
    for buffer in [&mut read, &mut dropped] {
        buffer.write(&stream, &1f32.to_le_bytes().repeat(1000)).unwrap();
    }
    let graph = Graph::capture(&stream, || {
        [&read, &dropped].into_iter().try_for_each(|buffer| {
            let parameters = [&buffer.address().to_le_bytes()[..], &1000u32.to_le_bytes()].concat();
            double.launch(&stream, [8, 1, 1], &parameters)
        })
    });
    let (graph, address) = (graph.unwrap(), dropped.address());
    drop((double, dropped));
    let others: Vec<_> = (0..64).map(|_| DeviceBuffer::new(context, 4000).unwrap()).collect();
    assert!(others.iter().all(|other| other.address() != address), "the graph still writes there");
    graph.launch(&stream).unwrap();
    let mut bytes = vec![0; 4000];
    read.read(&stream, &mut bytes).unwrap();
    assert_eq!(bytes, 2f32.to_le_bytes().repeat(1000));
    drop(graph);
    context.synchronise().unwrap();
    println!("a graph keeps its code and its memory");
}

fn graphs_that_are_not_recorded(cuda: &Cuda, add: &Kernel) {
    let (context, double) = (cuda.context(), prepared(cuda, add));
    let [recording, other] = [(); 2].map(|()| Stream::new(context).unwrap());
    let mut buffer = DeviceBuffer::new(context, 4000).unwrap();
    buffer.write(&other, &1f32.to_le_bytes().repeat(1000)).unwrap();
    let parameters = [&buffer.address().to_le_bytes()[..], &1000u32.to_le_bytes()].concat();
    let error = Graph::capture(&recording, || double.launch(&other, [8, 1, 1], &parameters)).unwrap_err();
    assert!(matches!(error, Error::EmptyGraph), "{error}");
    let panics = || Graph::capture(&recording, || -> Result<(), Error> { panic!("in a recording, as the test wants") });
    std::panic::catch_unwind(AssertUnwindSafe(panics)).expect_err("the panic goes on");
    double.launch(&recording, [8, 1, 1], &parameters).expect("the stream records no more");
    recording.synchronise().unwrap();
    let mut bytes = vec![0; 4000];
    buffer.read(&other, &mut bytes).unwrap();
    assert_eq!(bytes, 4f32.to_le_bytes().repeat(1000), "twice doubled, never by a graph");
}

/// The driver knows what an entry declares (since CUDA 12.4): other parameters are refused before a launch.
fn parameters_are_counted(cuda: &Cuda, add: &Kernel) {
    if cuda.device().cuda_version < (12, 4) {
        return;
    }
    let load = || Module::from_ptx(cuda.context(), "add.ptx", &add.parsed.source.text).unwrap();
    let entry = |name: &str| add.module().functions.iter().find(|function| function.name == name).unwrap();
    let wrong = ptx::Function { name: "double".into(), ..entry("add").clone() };
    let error = Prepared::new(load(), &wrong, [128, 1, 1], 0).unwrap_err();
    assert!(matches!(&error, Error::OtherParameters { expected, .. } if *expected == [8, 4]), "{error}");
    let stream = Stream::new(cuda.context()).unwrap();
    let error = load().function("double").unwrap().start(&stream, [1, 32], &[0; 3]).unwrap_err();
    assert!(matches!(&error, Error::OtherParameters { found, .. } if *found == [8, 8, 8]), "{error}");
    println!("other parameters: {error}");
}

/// Another library has the memory and the stream: raw handles of ours stand for them.
fn handles_go_out_and_come_back(cuda: &Cuda, add: &Kernel) {
    let (context, double) = (cuda.context(), prepared(cuda, add));
    let (stream, mut buffer) = (Stream::new(context).unwrap(), DeviceBuffer::new(context, 4000).unwrap());
    buffer.write(&stream, &1f32.to_le_bytes().repeat(1000)).unwrap();
    // SAFETY: the stream is of this context and lives longer; nobody else uses the memory meanwhile.
    let (borrowed, slice) =
        unsafe { (Stream::borrow(context, stream.raw()), DeviceSlice::from_raw(buffer.address(), 4000, 0)) };
    context.check_same("memory", slice.context()).expect("raw memory is of no known context");
    let parameters = [&slice.address().to_le_bytes()[..], &1000u32.to_le_bytes()].concat();
    double.launch(&borrowed, [8, 1, 1], &parameters).unwrap();
    drop(borrowed);
    let event = Event::record(&stream).expect("a borrowed stream is not destroyed");
    event.synchronise().unwrap();
    let mut bytes = vec![0; 4000];
    buffer.read(&stream, &mut bytes).unwrap();
    assert_eq!(bytes, 2f32.to_le_bytes().repeat(1000));
    assert!(context.raw() != 0 && event.raw() != 0);
}

/// Ranks in clusters of 2, 8 and 16 blocks, as a prepared launch says.
fn prepared_clusters(cuda: &Cuda, ranks: &[Kernel]) {
    let (context, stream) = (cuda.context(), Stream::new(cuda.context()).unwrap());
    for (kernel, blocks) in ranks.iter().zip([2u32, 8, 16]) {
        let module = Module::from_ptx(context, "rank.ptx", &kernel.parsed.source.text).unwrap();
        let prepared = Prepared::new(module, &kernel.module().functions[0], [32, 1, 1], 0).unwrap();
        let prepared = prepared.with_cluster([blocks, 1, 1]).unwrap().with_overlap();
        let buffer = DeviceBuffer::new(context, 128).unwrap();
        prepared.launch(&stream, [32, 1, 1], &buffer.address().to_le_bytes()).unwrap();
        let mut bytes = [0; 128];
        buffer.read(&stream, &mut bytes).unwrap();
        let expected: Vec<u8> = (0..32u32).flat_map(|block| (block % blocks * 100 + blocks).to_le_bytes()).collect();
        assert_eq!(bytes[..], expected, "clusters of {blocks}");
    }
    println!("prepared launches in clusters: right");
}

fn contexts_of_the_callers_are_used(cuda: &Cuda) {
    assert!(matches!(Context::current(), Err(Error::NoContext)), "calls leave the thread as it was");
    let ids = || (Context::current().unwrap().id(), Context::here().unwrap().id());
    assert_eq!(cuda.context().within(ids).unwrap(), (cuda.context().id(), cuda.context().id()));
    let current = || Context::current().map(|context| context.id());
    let elsewhere = std::thread::spawn(move || (current(), Context::here().unwrap().id(), current().unwrap()));
    let (current, here, afterwards) = elsewhere.join().unwrap();
    assert!(matches!(current, Err(Error::NoContext)), "a new thread has none");
    assert_eq!(here, cuda.context().id(), "and gets the primary one");
    assert_eq!(afterwards, here, "which it keeps");
}

/// A context that another library made, and destroys while a second thread still has it.
fn contexts_of_other_libraries_are_used(cuda: &Cuda) {
    let mut handle = ptr::null_mut();
    // SAFETY: the driver is initialised; 0 is the first GPU, and the context is destroyed below.
    assert_eq!(unsafe { cuCtxCreate_v2(&mut handle, 0, 0) }, CUresult::CUDA_SUCCESS);
    let (other, id) = (Context::here().unwrap(), Context::current().unwrap().id());
    assert_eq!(other.id(), id);
    assert_ne!(id, cuda.context().id());
    let stream = Stream::new(&other).unwrap();
    let mut buffer = DeviceBuffer::new(&other, 64).unwrap();
    buffer.write(&stream, &[7; 64]).unwrap();
    drop(DeviceBuffer::new(cuda.context(), 64).unwrap());
    assert_eq!(Context::current().unwrap().id(), id, "work in one context leaves the thread in the other");
    contexts_are_not_mixed(cuda, &mut buffer, &stream);
    let mut bytes = [0; 64];
    buffer.read(&stream, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 64]);
    drop((buffer, stream));
    let (has_it, is_gone) = (Barrier::new(2), Barrier::new(2));
    let shared = handle.expose_provenance();
    std::thread::scope(|scope| {
        let elsewhere = scope.spawn(|| {
            // SAFETY: the context is alive.
            let set = unsafe { cuCtxSetCurrent(ptr::with_exposed_provenance_mut(shared)) };
            has_it.wait();
            is_gone.wait();
            (set, Context::here().map(|context| context.id()))
        });
        has_it.wait();
        // SAFETY: nothing that was made in it is left.
        let destroyed = unsafe { cuCtxDestroy_v2(handle) };
        is_gone.wait();
        let (set, here) = elsewhere.join().unwrap();
        assert_eq!((set, destroyed), (CUresult::CUDA_SUCCESS, CUresult::CUDA_SUCCESS));
        assert_eq!(here.unwrap(), cuda.context().id(), "a destroyed context is none");
    });
    assert!(matches!(Context::current(), Err(Error::NoContext)), "and took itself off this thread");
    println!("contexts of other libraries: used, and left as they were");
}

/// Buffer and stream are of another context than the backend's.
fn contexts_are_not_mixed(cuda: &Cuda, buffer: &mut DeviceBuffer, stream: &Stream) {
    let (ours, others) = (cuda.context().id(), stream.context().id());
    let mixed = |found, expected, error: Error| {
        let found = Error::WrongContext { what: "stream", found, expected }.to_string() == error.to_string();
        assert!(found, "{error}");
    };
    let (kernel, own) = (add(), Stream::new(cuda.context()).unwrap());
    let double = prepared(cuda, &kernel);
    let parameters = [0; 12];
    mixed(ours, others, buffer.write(&own, &[0; 64]).unwrap_err());
    mixed(ours, others, buffer.read(&own, &mut [0; 64]).unwrap_err());
    mixed(others, ours, double.launch(stream, [0, 1, 1], &parameters).unwrap_err());
    let text = &kernel.parsed.source.text;
    let module = Module::from_ptx(cuda.context(), "add.ptx", text).unwrap();
    mixed(others, ours, module.function("double").unwrap().start(stream, [1, 128], &[0]).unwrap_err());
    let graph = Graph::capture(&own, || double.launch(&own, [1, 1, 1], &parameters)).unwrap();
    mixed(others, ours, graph.launch(stream).unwrap_err());
    assert!(cuda.context().check_same("`q`", buffer.slice().context()).is_err());
}

fn wrong_memory_is_refused(cuda: &Cuda, add: &Kernel) {
    let mut loaded = cuda.load(add).expect("load");
    let mut memory = Memory::new(loaded.resolved(), 0).unwrap();
    let mut bytes = memory.buffers[1].contents.to_vec();
    bytes.pop();
    memory.buffers[1].contents = bytes.into();
    let error = cuda.run(&mut loaded, &mut memory, &Options::default()).expect_err("a short buffer must be refused");
    assert!(error.to_string().starts_with("the memory has 3999 bytes: the recipe has 4000"), "{error}");
    memory.buffers.pop();
    let error = cuda.run(&mut loaded, &mut memory, &Options::default()).expect_err("a missing buffer must be refused");
    assert!(error.to_string().starts_with("the memory has 2 buffers: the recipe has 3"), "{error}");
}

fn buffers_keep_bytes(cuda: &Cuda) {
    let stream = Stream::new(cuda.context()).expect("stream");
    for length in [0, 1, 4095, 1 << 20] {
        let bytes: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        let mut buffer = DeviceBuffer::new(cuda.context(), length).expect("allocation");
        assert_eq!(buffer.address() % 256, 0, "allocations are aligned");
        buffer.write(&stream, &bytes).expect("write");
        let mut back = vec![0; length];
        buffer.read(&stream, &mut back).expect("read");
        assert!(back == bytes, "{length} bytes must come back as they went");
    }
}

fn a_full_gpu_says_what_was_asked_for(cuda: &Cuda, add: &Kernel) {
    let error = DeviceBuffer::new(cuda.context(), 1 << 50).expect_err("no GPU has a petabyte");
    assert!(matches!(error, Error::OutOfMemory { bytes: Some(0x4_0000_0000_0000), .. }), "{error}");
    assert!(error.to_string().contains("cuMemAlloc_v2 of 1125899906842624 bytes"), "{error}");
    run(cuda, add).expect("a refused allocation must not end the context");
}

fn clusters_of_every_size(cuda: &Cuda, ranks: &[Kernel]) {
    for kernel in ranks {
        run(cuda, kernel).expect("every block must find its rank in the cluster");
    }
    println!("clusters of 2, 8 and 16 blocks: right");
}

fn tensor_maps(cuda: &Cuda, [right, wrong]: &[Kernel; 2]) {
    run(cuda, right).expect("two rows must arrive, and two of zeros");
    let error = run(cuda, wrong).expect_err("a stride of 24 bytes must be refused").to_string();
    assert!(error.starts_with("tensor map of `in`: cuTensorMapEncodeTiled failed: "), "{error}");
    assert!(error.ends_with("strides[0] is 24 bytes: expected a multiple of 16"), "{error}");
    println!("tensor maps: right; {error}");
}

fn older_gpus_say_what_they_lack(cuda: &Cuda, rank: &Kernel, tile: &Kernel) {
    for (kernel, what) in [(rank, "clusters"), (tile, "tensor maps")] {
        let error = run(cuda, kernel).expect_err("needs sm_90").to_string();
        assert_eq!(error, format!("this GPU does not run {what}: expected sm_90 or newer"));
    }
}

const LOSES_ITS_CONTEXT: &str = "CUDA_TEST_LOSES_ITS_CONTEXT";

fn lost_context() {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_process_that_loses_its_context", "--nocapture"]).env(LOSES_ITS_CONTEXT, "1");
    let output = child.output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success() && said.contains("nothing runs any more"), "{said}");
    println!("{said}");
}

/// Not a test of its own: what the process above does. A trap ends the context: the error says so, later calls repeat
/// it, and opening it again does not help, as the error says.
#[test]
fn a_process_that_loses_its_context() {
    if std::env::var_os(LOSES_ITS_CONTEXT).is_none() {
        return;
    }
    Context::here().expect("as calls without a stream do");
    let (cuda, add) = (Cuda::open(0).unwrap(), add());
    let error = run(&cuda, &trap()).expect_err("a trap must be reported");
    println!("trap: {error}");
    assert!(matches!(error, Error::ContextLost { .. }), "expected a lost context, found: {error}");
    let text = error.to_string();
    assert!(text.contains("context is lost: launch of `stop`, grid [1, 1, 1], block [32, 1, 1]"), "{text}");
    assert!(text.ends_with("start the program again"), "{text}");
    let again = run(&cuda, &add).expect_err("nothing can run in a lost context");
    println!("next run in the same context: {again}");
    assert!(matches!(again, Error::ContextLost { .. }), "expected a lost context, found: {again}");
    assert!(cuda.is_lost());
    drop(cuda);
    let error = Cuda::open(0).and_then(|fresh| run(&fresh, &add)).expect_err("it is the same context");
    assert!(matches!(error, Error::ContextLost { .. }), "expected a lost context, found: {error}");
    println!("opened again: {error}; nothing runs any more");
}
