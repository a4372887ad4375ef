//! Properties of the kernels as text and as recipes, for every configuration.

use attention::configs::{CONFIGS, Config, HISTORIC, Math};
use attention::problem::{DType, Dims, HEAD_DIMS, Layout};
use attention::visibility::MaskKind;
use attention::{Error, Problem, kernels};
use launch::resolved::ArgumentValue::Scalar;
use launch::{Element, Kernel, Limits};

const MASKS: [MaskKind; 4] =
    [MaskKind::None, MaskKind::CausalBottomRight, MaskKind::CausalTopLeft, MaskKind::Window { left: 100, right: 0 }];

/// Columns of K, and of V where they are others.
const OTHER_VALUES: [(u32, u32); 8] =
    [(192, 128), (64, 128), (128, 64), (40, 72), (72, 40), (16, 256), (256, 16), (136, 200)];

fn dims() -> impl Iterator<Item = Dims> {
    let same = HEAD_DIMS.step_by(8).map(|columns| (columns, columns));
    same.chain(OTHER_VALUES).map(|(head, value)| Dims { head, value })
}

/// Each configuration with each mask and dtype, and each head dimension that it has room for; fewer on plain cores.
fn all() -> Vec<(Config, Problem)> {
    let scalar = [(40, 72), (64, 64), (128, 128)].into_iter().flat_map(|(head, value)| {
        CONFIGS.into_iter().filter_map(Config::scalar).map(move |config| (config, Dims { head, value }))
    });
    let tensor = CONFIGS.into_iter().flat_map(|config| dims().map(move |dims| (config, dims)));
    let mut all = vec![];
    for (config, dims) in tensor.chain(scalar).filter(|(config, dims)| config.fits(*dims)) {
        for (mask, dtype) in MASKS.into_iter().flat_map(|mask| [DType::F16, DType::Bf16].map(|dtype| (mask, dtype))) {
            let builder = Problem::builder().mask(mask).dtype(dtype).head_dim(dims.head).value_dim(dims.value);
            all.push((config, builder.build().unwrap()));
        }
    }
    all
}

fn kernel(problem: &Problem) -> Kernel {
    kernels::kernel(problem, &CONFIGS[0]).unwrap()
}

/// Of the smallest kernel: every part is in it. Not which line of ours printed what: other lines move these.
fn text(mask: MaskKind) -> String {
    let problem = Problem::builder().mask(mask).head_dim(16).build().unwrap();
    let text = kernels::kernel(&problem, &Config::by_id(2).unwrap()).unwrap().parsed.source.text;
    text.lines().filter(|line| !line.trim_start().starts_with(".loc")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn full_prints_as_recorded() {
    insta::assert_snapshot!(launch::hash::hex(text(MaskKind::None).as_bytes()), @"f1c00c16cc68c149ec2ddfcd5b9d356edcf16fe524e8290977b6b0461edc5477");
}

#[test]
fn causal_prints_as_recorded() {
    insta::assert_snapshot!("config2_causal", text(MaskKind::CausalBottomRight));
}

/// Of the kernel on plain cores, its two products: the innermost loops.
#[test]
fn scalar_products_print_as_recorded() {
    let config = Config::by_id(5).and_then(Config::scalar).unwrap();
    let kernel = kernels::kernel(&Problem::builder().build().unwrap(), &config).unwrap();
    assert_eq!(kernel.name, "attention_config5_scalar_f16_B2_H8_S512_D64_full");
    let mut instructions = kernel.parsed.source.text.lines().filter(|line| !line.contains(".loc"));
    instructions.find(|line| line.starts_with("$loop"));
    let mut loops = String::new();
    while instructions.any(|line| line.starts_with("$loop") && !line.contains("end")) {
        let inside = instructions.by_ref().take_while(|line| !line.starts_with("$loop_end"));
        inside.for_each(|line| loops += &format!("{}\n", line.trim()));
        loops += "\n";
    }
    insta::assert_snapshot!(launch::hash::hex(loops.as_bytes()), @"a068ed8b94d03c7554e4030af89661c07dcaf9ecba7efbcc05dca86af6c9dd0c");
}

#[test]
fn printed_modules_read_back_equal_and_verify() {
    for (config, problem) in all() {
        let built = kernels::build(&problem, &config).unwrap();
        let source = ptx::Source::new("kernel.ptx", ptx::print(&built.module));
        let parsed = ptx::parse(&source).unwrap_or_else(|errors| panic!("config {} {problem}: {errors}", config.id));
        assert!(parsed.module == built.module, "config {} {problem} reads back differently", config.id);
        assert_eq!(ptx::verify(&parsed), vec![], "config {} {problem}", config.id);
    }
}

#[test]
fn the_table_counts_the_shared_memory_that_kernels_take() {
    for (config, problem) in all() {
        let built = kernels::build(&problem, &config).unwrap();
        assert_eq!(built.shared_bytes, config.shared_bytes(problem.dims()), "config {}", config.id);
    }
}

#[test]
fn every_instruction_has_a_line_of_the_kernels() {
    for (config, problem) in all() {
        let module = kernels::build(&problem, &config).unwrap().module;
        let foreign = module.files.iter().find(|(_, file)| !file.starts_with("crates/attention/src/kernels/"));
        assert_eq!(foreign, None);
        let function = &module.functions[0];
        assert!(function.instructions().all(|(statement, _)| function.location(statement).is_some()));
    }
}

#[test]
fn the_same_text_every_time() {
    assert_eq!(text(MaskKind::None), text(MaskKind::None));
}

/// One wait and one barrier for the queries, for each tile of keys and of values, and one barrier before warps join.
#[test]
fn nothing_waits_without_need() {
    let text = text(MaskKind::CausalBottomRight);
    let synchronises =
        |line: &&str| line.starts_with("bar") || line.starts_with("cp.async.wait") || line.starts_with("$loop");
    let found: Vec<&str> = text.lines().map(str::trim).filter(synchronises).collect();
    let expected = [
        "cp.async.wait_group 2;",
        "bar.sync 0;",
        "$loop_3:",
        "cp.async.wait_group 1;",
        "bar.sync 0;",
        "cp.async.wait_group 1;",
        "bar.sync 0;",
        "$loop_end_4:",
        "bar.sync 0;",
    ];
    assert_eq!(found, expected);
    assert_eq!(text.matches("cp.async.commit_group").count(), 5);
}

/// The same, and one for the lanes of a warp, between their weights and the product.
#[test]
fn a_warp_waits_for_its_lanes_once() {
    let problem = Problem::builder().build().unwrap();
    let text = kernels::kernel(&problem, &CONFIGS[0].scalar().unwrap()).unwrap().parsed.source.text;
    let synchronises = |line: &&str| line.starts_with("bar") || line.starts_with("cp.async.wait");
    let found: Vec<&str> = text.lines().map(str::trim).filter(synchronises).collect();
    let waits = ["cp.async.wait_group 2;", "cp.async.wait_group 1;", "cp.async.wait_group 1;"];
    let expected: Vec<&str> = waits.into_iter().flat_map(|wait| [wait, "bar.sync 0;"]).collect();
    assert_eq!(found, [&expected[..], &["bar.warp.sync 4294967295;"]].concat());
}

#[test]
fn recipes_resolve_and_fit_the_parameters() {
    let shapes = [(97, 161), (1, 1), (33, 0), (150, 40)];
    for (layout, (queries, keys)) in
        [Layout::Bhsd, Layout::Bshd].into_iter().flat_map(|layout| shapes.map(|shape| (layout, shape)))
    {
        let builder = Problem::builder().batch(3).heads(6).kv_heads(2).queries(queries).keys(keys);
        let problem = builder.layout(layout).build().unwrap();
        let kernel = kernel(&problem);
        let resolved = kernel.resolve(&Limits::default()).unwrap();
        let launch = &resolved.launches[0];
        assert_eq!((launch.grid, launch.block), ([queries.div_ceil(32), 6, 3], [128, 1, 1]));
        let names: Vec<_> = launch.args.iter().filter_map(|argument| argument.name.as_deref()).collect();
        let parameters = &kernel.module().functions[0].parameters;
        assert_eq!(names, parameters.iter().map(|parameter| parameter.name.as_str()).collect::<Vec<_>>());
    }
}

/// Two entries, with a launch each, and what the first leaves the second reads.
#[test]
fn kernels_that_split_keys_are_whole_cases() {
    for problem in [
        "f16 B3 H6/2 Sq97 Sk161 D64 causal sinks",
        "bf16 B1 H2 Sq1 Sk300 D40/72 full softcap30 bshd",
        "f16 B2 H2/1 Sq97,1 Sk161,300 D64 window20/3 sinks documents",
    ] {
        let problem: Problem = problem.parse().unwrap();
        for config in CONFIGS.iter().filter(|config| config.fits(problem.dims())) {
            let kernel = kernels::kernel(&problem, &Config { splits: 3, ..*config }).unwrap();
            assert_eq!(ptx::verify(&kernel.parsed), vec![], "config {} {problem}", config.id);
            let resolved = kernel.resolve(&Limits::default()).unwrap();
            let names: Vec<_> = resolved.launches.iter().filter_map(|launch| launch.entry.as_deref()).collect();
            assert_eq!(names, [kernels::ENTRY, kernels::COMBINE_ENTRY]);
            for (launch, function) in resolved.launches.iter().zip(&kernel.module().functions) {
                let passed = launch.args.iter().filter_map(|argument| argument.name.as_deref());
                assert!(passed.eq(function.parameters.iter().map(|parameter| parameter.name.as_str())), "{problem}");
                let located = |statement| function.location(statement).is_some();
                assert!(function.instructions().all(|(statement, _)| located(statement)), "{problem}");
            }
            let [forward, combine] = [0, 1].map(|index| resolved.launches[index].grid);
            let blocks = config.heads.rows(problem.queries(), &problem).div_ceil(config.rows);
            assert_eq!(forward, [blocks * 3, config.heads.count(&problem), problem.batch()]);
            assert_eq!(combine, [problem.queries(), problem.heads(), problem.batch()]);
        }
    }
}

/// Strides in the recipe are those of the problem's shapes.
#[test]
fn recipes_pass_the_strides_of_the_layout() {
    for (layout, value_dim) in [(Layout::Bhsd, 64), (Layout::Bshd, 64), (Layout::Bhsd, 128), (Layout::Bshd, 40)] {
        let problem = Problem::builder()
            .batch(3)
            .heads(6)
            .kv_heads(2)
            .queries(5)
            .keys(7)
            .layout(layout)
            .value_dim(value_dim)
            .build()
            .unwrap();
        let resolved = kernel(&problem).resolve(&Limits::default()).unwrap();
        let passed = |name: String| {
            let found = resolved.launches[0].args.iter().find(|argument| argument.name.as_ref() == Some(&name));
            found.map(|argument| argument.value.clone())
        };
        let [q, k, v, o] = [problem.q_shape(), problem.k_shape(), problem.v_shape(), problem.o_shape()];
        for (name, shape) in [("q", q), ("k", k), ("v", v), ("o", o)] {
            let [batch, head, row] = shape.strides();
            assert_eq!(passed(format!("{name}_batch_stride")), Some(Scalar(Element::U64, batch as u64)));
            assert_eq!(passed(format!("{name}_head_stride")), Some(Scalar(Element::U64, head as u64)));
            assert_eq!(passed(format!("{name}_row_stride")), Some(Scalar(Element::U32, row as u64)));
        }
        let scale = (f64::from(problem.scale()) * std::f64::consts::LOG2_E) as f32;
        assert_eq!(passed("scale_log2".into()), Some(Scalar(Element::F32, scale.to_bits().into())));
    }
}

/// Up to 128 columns every historic configuration serves, and beyond at least one; queries are read again only where they must.
#[test]
fn heads_of_any_width_have_a_configuration() {
    for (head, value) in HEAD_DIMS.step_by(8).flat_map(|head| HEAD_DIMS.step_by(8).map(move |value| (head, value))) {
        let dims = Dims { head, value };
        let serving: Vec<&Config> = CONFIGS.iter().filter(|config| config.fits(dims)).collect();
        let historic = || serving.iter().filter(|config| config.id <= HISTORIC);
        assert!(historic().count() == 5 || (!serving.is_empty() && head.max(value) > 128), "{dims:?}: {serving:?}");
        assert!(head.max(value) > 128 || historic().all(|config| config.holds_queries(dims)), "{dims:?}");
    }
    let loads = |head_dim: u32| {
        let problem = Problem::builder().head_dim(head_dim).build().unwrap();
        let text = kernels::kernel(&problem, &Config::by_id(6).unwrap()).unwrap().parsed.source.text;
        let (before, after) = text.split_once("$loop").unwrap();
        [before, after].map(|part| part.matches("ldmatrix").count())
    };
    // Keys of 32 rows are two loads for each 16 columns, values the same; queries one.
    assert_eq!((loads(192), loads(256)), ([12, 48], [0, 80]));
}

/// Predicates of the branches around each instruction that starts with `word`.
fn branches_around<'a>(text: &'a str, word: &str) -> Vec<Vec<&'a str>> {
    let (mut open, mut found) = (vec![], vec![]);
    for line in text.lines().map(str::trim) {
        if let Some((guard, label)) = line.split_once(" bra $end") {
            open.push((label.trim_end_matches(';'), guard.trim_start_matches("@!")));
        } else if let Some(label) = line.strip_prefix("$end") {
            open.retain(|(end, _)| *end != label.trim_end_matches(':'));
        } else if line.starts_with(word) {
            found.push(open.iter().map(|(_, guard)| *guard).collect());
        }
    }
    found
}

/// Warps 0 to 5 multiply, 6 and 7 copy and wait for their copies, and all meet at the barriers.
#[test]
fn two_warps_of_config_3_copy_for_the_others() {
    for head_dim in [64, 128] {
        let problem = Problem::builder().mask(MaskKind::CausalBottomRight).head_dim(head_dim).build().unwrap();
        let text = kernels::kernel(&problem, &Config::by_id(3).unwrap()).unwrap().parsed.source.text;
        let around = |word: &str| branches_around(&text, word);
        let told_by = |words: &[&str]| {
            let branches: Vec<Vec<&str>> = words.iter().flat_map(|word| around(word)).collect();
            let always = branches[0].iter().find(|guard| branches.iter().all(|around| around.contains(guard)));
            let set = text.lines().find(|line| line.contains(&format!("setp.lt.u32 {},", always.unwrap()))).unwrap();
            set.split_once(", ").unwrap().1.to_owned()
        };
        assert_eq!(told_by(&["ldmatrix", "mma.sync"]), "%warp__2, 6;");
        let copying = told_by(&["cp.async"]);
        let from_six = copying.strip_suffix(", 2;").unwrap();
        assert!(text.contains(&format!("sub.u32 {from_six}, %warp__3, 6;")), "{copying}");
        assert!(around("bar.sync").iter().all(Vec::is_empty));
        // Of 48 queries each of 64 threads moves six chunks for every 64 columns, of keys and of values eight, twice.
        assert_eq!(around("cp.async.cg").len() as u32, (6 + 4 * 8) * head_dim / 64);
    }
}

#[test]
fn problems_that_a_configuration_does_not_compute_are_refused() {
    let refused = |problem: Problem| match kernels::kernel(&problem, &CONFIGS[0]) {
        Err(error @ Error::Unsupported { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let builder = || Problem::builder().batch(1).heads(1).queries(1);
    assert_eq!(
        refused(builder().head_dim(136).build().unwrap()),
        "config 1 does not compute f16 B1 H1 S1 D136 full: 130048 bytes of shared memory for a block, expected at most \
         101376: use config 2 or 4 or 6"
    );
    assert_eq!(
        refused(builder().head_dim(256).build().unwrap()),
        "config 1 does not compute f16 B1 H1 S1 D256 full: 181248 bytes of shared memory for a block, expected at most \
         101376: use config 6"
    );
    let scalar = CONFIGS[0].scalar().unwrap();
    assert_eq!(
        kernels::kernel(&builder().head_dim(192).build().unwrap(), &scalar).unwrap_err().to_string(),
        "config 1 does not compute f16 B1 H1 S1 D192 full: 118784 bytes of shared memory for a block, expected at most \
         101376: use config 2 or 4"
    );
    assert_eq!(
        Config::by_id(7).unwrap().with_math(Math::Scalar).unwrap_err().to_string(),
        "config 7 has no scalar math: expected one of configs 1 to 5"
    );
    assert!(
        refused(builder().keys(1 << 31).build().unwrap()).ends_with("2147483648 keys, expected at most 2147483647")
    );
    assert!(refused(builder().heads(65536).build().unwrap()).ends_with("65536 heads, expected at most 65535"));
    let split = |splits, problem: &Problem| {
        kernels::check(problem, &Config { splits, ..CONFIGS[0] }).map_err(|error| error.to_string())
    };
    let problem = builder().build().unwrap();
    assert_eq!(split(32, &problem), Ok(()));
    let reason = |splits| format!("config 1 does not compute f16 B1 H1 S1 D64 full: {splits} splits, expected 1 to 32");
    assert_eq!([0, 33].map(|splits| split(splits, &problem)), [0, 33].map(|splits| Err(reason(splits))));
    let many = builder().queries(i32::MAX as u32).keys(1).build().unwrap();
    assert_eq!(split(31, &many), Ok(()));
    let refusal = split(32, &many).unwrap_err();
    assert!(
        refusal.ends_with("2147483648 blocks of queries, expected at most 2147483647: use fewer splits"),
        "{refusal}"
    );
}

/// For sm_90a, too: what does not fit is refused with what would.
#[test]
fn hopper_configs_refuse_by_name() {
    let refused = |id, problem: &str| {
        let problem: Problem = problem.parse().unwrap();
        let config = Config::by_id(id).unwrap();
        assert!(!config.serves(&problem), "{problem}");
        let Err(Error::Unsupported { found, expected, .. }) = kernels::check(&problem, &config) else {
            panic!("{problem}: expected a refusal")
        };
        format!("{found}, expected {expected}")
    };
    assert_eq!(
        refused(10, "f16 B1 H1 S64 D256 full"),
        "393344 bytes of shared memory for a block, expected at most 232448: use config 16 or 17"
    );
    assert_eq!(
        refused(11, "f16 B1 H1 S64 D128 full"),
        "295136 bytes of shared memory for a block, expected at most 232448: use config 10 or 13 or 15 or 16 or 17 or 18 or \
         19"
    );
    assert_eq!(
        refused(14, "f16 B2 H1 Sq64,9 Sk64,9 D64 full"),
        "80 registers for fragments, expected at most 48: use config 10 or 12 or 13 or 15 or 16 or 17 or 18 or 19"
    );
    assert_eq!(
        refused(11, "f16 B1 H1 S64 D64 window9/9"),
        "a window, expected registers for it: use a config with fewer warpgroups"
    );
}
