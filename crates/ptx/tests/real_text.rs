//! Text as compilers and people write it: every form seen in the wild, and what stands around instructions.

mod support;

use ptx::{FunctionKind, Linkage, Module, Source, Statement};
use support::{Picks, instruction, module};

/// Forms of 258 modules from CUDA C++, Triton, CuTe DSL and hand-written kernels for sm_75 to sm_90a.
const SEEN: &str = include_str!("seen_forms.txt");

fn read(text: &str) -> Module {
    let source = Source::new("test.ptx", text);
    let parsed = ptx::parse(&source).unwrap_or_else(|errors| panic!("{errors}"));
    let errors = ptx::verify(&parsed);
    assert!(errors.is_empty(), "{}", ptx::Diagnostics { source, all: errors });
    parsed.module
}

/// Reads, prints, reads again, compares; the module.
fn round(text: &str) -> Module {
    let first = read(text);
    let printed = ptx::print(&first);
    assert_eq!(read(&printed), first, "{text}\n--- was printed as ---\n{printed}");
    first
}

#[test]
fn every_form_seen_is_in_the_table_and_verifies() {
    assert!(SEEN.lines().count() >= 496);
    for mnemonic in SEEN.lines() {
        let rows = ptx::forms::candidates(mnemonic);
        assert!(!rows.is_empty(), "{mnemonic} is not in the table");
        let lines = rows.iter().map(|(form, _)| instruction(form.op, mnemonic, &mut Picks(7)));
        round(&module("9.0", "sm_90a", &[lines.collect()]));
    }
}

const HEAD: &str = ".version 9.0\n.target sm_90a\n.address_size 64\n";

const CALLS: &str = "
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
)
;
.extern .func __assertfail
(
	.param .b64 __assertfail_param_0,
	.param .b32 __assertfail_param_1
)
.noreturn
;
.weak .func  (.param .b32 func_retval0) helper(.param .b32 helper_param_0, .param .align 8 .b8 helper_param_1[16]);
.visible .global .align 8 .u64 table[2] = {helper, 0};
.global .align 1 .b8 $str[6] = {104, 101, 108, 108, 111};
.visible .global .align 8 .u64 text = generic($str)+1;
.global .align 1 .u8 parts[2] = {0xFF(generic($str)), 0xFF00(generic($str))};
.const .align 4 .b32 grid[2][3] = {{1, 2}, {4, 5, 6}};
.weak .func  (.param .b32 func_retval0) helper(.param .b32 helper_param_0, .param .align 8 .b8 helper_param_1[16])
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<2>;
	ld.param.u32 %r1, [helper_param_0];
	ld.param.u64 %rd1, [helper_param_1+8];
	cvt.u32.u64 %r2, %rd1;
	add.s32 %r2, %r1, %r2;
	st.param.b32 [func_retval0+0], %r2;
	ret;
}
.visible .entry kernel(.param .u64 kernel_param_0)
.maxntid 128, 1, 1
.minnctapersm 2
{
	.local .align 16 .b8 	__local_depot0[32];
	.reg .b64 	%SP;
	.reg .b64 	%SPL;
	.reg .pred 	%p<2>;
	.reg .b32 	%r<9>;
	.reg .b64 	%rd<9>;
	mov.u64 	%SPL, __local_depot0;
	cvta.local.u64 	%SP, %SPL;
	add.u64 	%rd1, %SP, 16;
	add.u64 	%rd2, %SPL, 16;
	st.local.u32 	[%rd2], 7;
	{ // callseq 0, 0
	.param .b64 param0;
	st.param.b64 	[param0], %rd1;
	.param .b64 param1;
	st.param.b64 	[param1], %rd1;
	.param .b32 retval0;
	call.uni (retval0),
	vprintf,
	(
	param0,
	param1
	);
	ld.param.b32 	%r1, [retval0];
	} // callseq 0
	ld.global.u64 	%rd3, [table];
	{ // callseq 1, 0
	.param .b32 param0;
	st.param.b32 	[param0], %r1;
	.param .align 8 .b8 param1[16];
	st.param.b64 	[param1], %rd1;
	st.param.b64 	[param1+8], %rd1;
	.param .b32 retval0;
	prototype_1 : .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[16]);
	call (retval0),
	%rd3,
	(
	param0,
	param1
	)
	, prototype_1;
	ld.param.b32 	%r2, [retval0];
	} // callseq 1
	setp.eq.s32 	%p1, %r2, 0;
	@%p1 bra 	$L__BB0_2;
	call __assertfail, (%rd1, 3);
	trap;
$L__BB0_2:
	ret;
}
";

#[test]
fn calls_and_what_they_pass() {
    let module = round(&format!("{HEAD}{CALLS}"));
    let kinds: Vec<_> = module.functions.iter().map(|one| (one.kind, one.linkage, one.declared)).collect();
    assert_eq!(kinds[0], (FunctionKind::Callee, Linkage::Extern, true));
    assert_eq!(kinds[3], (FunctionKind::Callee, Linkage::Weak, false));
    assert_eq!(module.entries().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["kernel"]);
    assert!(!module.function("helper").expect("it is there").declared);
    assert_eq!(module.variables[4].init.len(), 6);
}

const SCOPES: &str = "
.visible .entry kernel(.param .align 64 .b8 map[128])
.explicitcluster
.reqnctapercluster 2, 1, 1
.pragma \"global\";
{
	.shared .align 8 .b8 barrier[16];
	.reg .b16 %rs<2>; .reg .b32 %r<6>; .reg .f16 low,high; .reg .b64 %rd<3>;
	mov.b64 %rd1, map;
	cvta.param.u64 %rd2, %rd1;
	mov.u32 %r1, %cluster_ctarank;
	mov.u32 %r3, barrier;
	mov.b32 %r2, 0;
	mov.b32 {low, high}, %r2;
	mov.b32 %r2, {low, high};
	st.shared.v2.b32 [ %r3 + 0 ], {0, 16843009};
	{.reg .pred %p;mbarrier.test_wait.shared.b64 %p, [%r3], %rd1;selp.u16 %rs1, 1, 0, %p;}
	{
		.reg .pred complete;
		waitLoop:
		mbarrier.try_wait.parity.shared.b64 complete, [%r3], %r2;
		@!complete bra.uni waitLoop;
	}
	{
		.reg .pred complete;
		waitLoop:
		mbarrier.try_wait.parity.shared.b64 complete, [barrier+8], %r2;
		@!complete bra.uni waitLoop;
	}
	{ .reg .pred p; .reg.b16 x; elect.sync _|p, -1; @p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128; mov.b16 x, 3; }
	.pragma \"used_bytes_mask 0xff\";
	shfl.sync.idx.b32 %r4, %r2, 0, 31, -1;
	cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2, {%r1, %r2}], [%r3];
	targets: .branchtargets one, two;
	brx.idx %r1, targets;
one:
	ret;
two:
	exit;
}
";

#[test]
fn scopes_sinks_and_tables() {
    let module = round(&format!("{HEAD}{SCOPES}"));
    let kernel = &module.functions[0];
    assert_eq!(kernel.scopes.len(), 5);
    assert!(kernel.body.iter().any(|one| matches!(one, Statement::BranchTargets(_, targets) if targets.len() == 2)));
}

const DEBUG: &str = "
.file 1 \"/src/kernel.cu\", 1700000000, 512
.file 2 \"header.h\"
.visible .entry kernel()
{
$L__func_begin0:
	.loc 1 10 3
	.loc 2 20 5, function_name $L__info_string0, inlined_at 1 12 7
	ret;
	.loc 2 21 5, function_name $L__info_string0+8, inlined_at 1 12 7
$L__tmp0:
$L__func_end0:
}
	.section	.debug_abbrev
	{
.b8 1
.b8 17
	}
	.section	.debug_info
	{
.b32 $L__end-$L__start
.b32 .debug_abbrev
.b64 $L__func_begin0
	}
	.section	.debug_str { $L__info_string0: .b8 107,0 }
	.section	.debug_macinfo	{	}
";

#[test]
fn debug_information_is_read_and_left_out() {
    let module = round(&format!("{HEAD}{DEBUG}"));
    let (kernel, places) = (&module.functions[0], [(1, 10, 3), (2, 20, 5), (2, 21, 5)]);
    let found = kernel.body.iter().filter_map(|one| match one {
        Statement::Location { file, line, column } => Some((*file, *line, *column)),
        _ => None,
    });
    assert_eq!(found.collect::<Vec<_>>(), places);
    assert_eq!(kernel.instructions().count(), 1, "`ret` behind `inlined_at` is an instruction");
}

/// `VERIFLASH_PTXAS=/path/to/ptxas cargo test -p ptx --test real_text -- --ignored`
#[test]
#[ignore = "needs ptxas: set VERIFLASH_PTXAS to its path"]
fn ptxas_assembles_what_is_printed() {
    let ptxas = std::env::var("VERIFLASH_PTXAS").expect("VERIFLASH_PTXAS is the path of ptxas");
    for (number, text) in [CALLS, SCOPES, DEBUG].into_iter().enumerate() {
        let file = std::env::temp_dir().join(format!("veriflash-real-{}-{number}.ptx", std::process::id()));
        std::fs::write(&file, ptx::print(&read(&format!("{HEAD}{text}"))))
            .expect("the temporary folder can be written");
        let run =
            std::process::Command::new(&ptxas).args(["-c", "-arch", "sm_90a", "-o", "/dev/null"]).arg(&file).output();
        let run = run.expect("ptxas runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        std::fs::remove_file(&file).expect("the file was there");
    }
}
