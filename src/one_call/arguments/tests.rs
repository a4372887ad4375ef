use super::super::Options;
use super::super::call::Call;
use super::super::extras::Extra;
use super::*;
use attention::problem::DType;

fn view(shape: [u32; 4]) -> View {
    View::new(DType::F16, shape, Layout::Bhsd)
}

fn problem(q: &View, k: &View, v: &View, options: &Options) -> Result<Problem, Error> {
    Ok(Call::of_kernels(q, k, v, options)?.problem)
}

fn refused(q: [u32; 4], k: [u32; 4], v: [u32; 4]) -> String {
    problem(&view(q), &view(k), &view(v), &Options::new()).unwrap_err().to_string()
}

#[test]
fn what_goes_together_is_a_problem() {
    let [q, k, v] = [[2, 6, 5, 64], [2, 2, 7, 64], [2, 2, 7, 128]].map(view);
    let found = problem(&q, &k, &v, &Options::new().causal().scale(0.5)).unwrap();
    assert_eq!(found, "B2 H6/2 Sq5 Sk7 D64/128 causal scale0.5".parse().unwrap());
    let none = view([2, 2, 0, 64]);
    assert_eq!(problem(&q, &none, &none, &Options::new()).unwrap().keys(), 0);
}

#[test]
fn sizes_that_do_not_go_together_name_the_argument() {
    let right = [2, 6, 5, 64];
    assert_eq!(refused(right, [3, 6, 5, 64], right), "`k` has 3 batch entries: expected 2, as in `q`");
    assert_eq!(refused(right, [2, 6, 5, 72], right), "`k` has 72 columns: expected 64, as in `q`");
    assert_eq!(refused(right, right, [1, 6, 5, 64]), "`v` has 1 batch entries: expected 2, as in `q`");
    assert_eq!(refused(right, right, [2, 3, 5, 64]), "`v` has 3 heads: expected 6, as in `k`");
    assert_eq!(refused(right, right, [2, 6, 4, 64]), "`v` has 4 rows: expected 5, as in `k`");
    let four = [2, 4, 5, 64];
    assert_eq!(refused(right, four, four), "`k` has 4 heads: expected a divisor of the 6 heads of `q`");
}

#[test]
fn empty_and_odd_sizes_name_the_argument() {
    let refused_all = |shape| refused(shape, shape, shape);
    assert_eq!(refused_all([0, 6, 5, 64]), "`q` has 0 batch entries: expected at least 1");
    assert_eq!(refused_all([2, 0, 5, 64]), "`q` has 0 heads: expected at least 1");
    assert_eq!(refused_all([2, 6, 0, 64]), "`q` has 0 rows: expected at least 1");
    assert_eq!(refused_all([2, 6, 5, 68]), "`q` has 68 columns: expected a multiple of 8 from 16 to 256");
    assert_eq!(refused_all([2, 6, 5, 0]), "`q` has 0 columns: expected at least 1");
    let (right, wide, none) = ([2, 6, 5, 64], [2, 6, 5, 264], [2, 0, 5, 64]);
    assert_eq!(refused(right, right, wide), "`v` has 264 columns: expected a multiple of 8 from 16 to 256");
    assert_eq!(refused(right, none, none), "`k` has 0 heads: expected at least 1");
}

#[test]
fn types_and_scales_are_checked() {
    let (half, brain) = (view([1, 1, 1, 64]), View::new(DType::Bf16, [1, 1, 1, 64], Layout::Bhsd));
    let error = problem(&half, &half, &brain, &Options::new()).unwrap_err();
    assert_eq!(error.to_string(), "`v` is bf16: expected f16, as `q` is");
    let error = problem(&half, &half, &half, &Options::new().scale(f32::NAN)).unwrap_err();
    assert!(error.to_string().starts_with("scale NaN is not supported"), "{error}");
}

/// Q, K, V, O of (2, 6, 5, 64) and the log-sum-exp, far from each other.
fn right() -> [Placed; 5] {
    let names = ["q", "k", "v", "o", "lse"];
    std::array::from_fn(|index| {
        let (shape, bytes) = if index < 4 { ([2, 6, 5, 64], 2 * 6 * 5 * 64 * 2) } else { ([0; 4], 2 * 6 * 5 * 4) };
        Placed { argument: names[index], view: view(shape), address: 0x10_0000 * (index as u64 + 1), bytes, device: 1 }
    })
}

fn place(tensors: [Placed; 5]) -> Result<(), Error> {
    let [q, k, v, o, lse] = tensors;
    let problem = problem(&q.view, &k.view, &v.view, &Options::new())?;
    placement(&problem, [&q, &k, &v], &o, &lse, &Extras::default(), None, 1)
}

fn wrong(change: impl FnOnce(&mut [Placed; 5])) -> String {
    let mut tensors = right();
    change(&mut tensors);
    place(tensors).unwrap_err().to_string()
}

#[test]
fn memory_that_kernels_can_use_passes() {
    place(right()).unwrap();
    let mut tensors = right();
    // Heads apart from each other in rows of 1024, and K the same for every batch entry.
    tensors[3].view.strides = [6 * 5 * 1024, 1024 * 5, 1024, 1];
    tensors[3].bytes = 2 * 6 * 5 * 1024 * 2;
    tensors[1].view.strides[0] = 0;
    tensors[1].bytes /= 2;
    place(tensors).unwrap();
}

#[test]
fn places_that_kernels_cannot_use_name_the_argument() {
    assert_eq!(wrong(|all| all[2].address += 8), "`v` begins at 0x300008: expected a multiple of 16");
    assert_eq!(wrong(|all| all[4].address += 4), "`lse` begins at 0x500004: expected a multiple of 16");
    assert_eq!(wrong(|all| all[0].device = 0), "`q` lies on GPU 0: expected GPU 1, where the stream is");
    assert_eq!(wrong(|all| all[1].bytes -= 2), "`k` has 7678 bytes: expected 7680 for its shape");
    assert_eq!(wrong(|all| all[4].bytes += 4), "`lse` has 244 bytes: expected 240 for its shape");
    assert_eq!(wrong(|all| all[3].view.dtype = DType::Bf16), "`o` is bf16: expected f16, as `q` is");
    assert_eq!(wrong(|all| all[3].view.shape[3] = 72), "`o` has 72 columns: expected 64, as `q` and `v` say");
}

#[test]
fn outputs_have_memory_of_their_own() {
    assert_eq!(wrong(|all| all[3].address = all[0].address), "`o` overlaps `q`: expected memory of its own");
    let last_of_v = |all: &mut [Placed; 5]| all[3].address = all[2].address + all[2].bytes - 16;
    assert_eq!(wrong(last_of_v), "`o` overlaps `v`: expected memory of its own");
    let last_of_o = |all: &mut [Placed; 5]| all[4].address = all[3].address + all[3].bytes - 16;
    assert_eq!(wrong(last_of_o), "`o` overlaps `lse`: expected memory of its own");
    assert_eq!(wrong(|all| all[4].address = all[1].address), "`lse` overlaps `k`: expected memory of its own");
    let mut tensors = right();
    tensors[4].address = tensors[3].address + tensors[3].bytes;
    place(tensors).unwrap();
}

#[test]
fn strides_that_kernels_cannot_follow_name_the_argument() {
    let stride = |tensor: usize, index: usize, stride: u64| {
        wrong(|all| {
            all[tensor].view.strides[index] = stride;
            all[tensor].bytes = u64::MAX;
        })
    };
    assert_eq!(stride(0, 3, 2), "`q` has a stride of 2 elements between columns: expected 1: columns are contiguous");
    assert_eq!(
        stride(1, 1, 324),
        "`k` has a stride of 324 elements between heads: expected a multiple of 8 elements, which are 16 bytes"
    );
    assert_eq!(stride(2, 2, 1 << 31), "`v` has a stride of 2147483648 elements between rows: expected at most 2^30");
    let shared = "so that no two elements share a place";
    assert_eq!(
        stride(3, 0, 0),
        format!("`o` has a stride of 0 elements between batch entries: expected at least 1, {shared}")
    );
    assert_eq!(
        stride(3, 2, 56),
        format!("`o` has a stride of 56 elements between rows: expected at least 64, {shared}")
    );
    let huge = stride(0, 0, u64::MAX - 7);
    assert!(huge.contains("overlaps") || huge.contains("bytes"), "{huge}");
}

#[test]
fn host_slices_are_as_long_as_their_shapes() {
    let values = vec![half::f16::ZERO; 4000];
    let q = HostTensor::new(&values[..3840], [2, 6, 5, 64]);
    let check = |layout, count| {
        let k = HostTensor::new(&values[..count], [2, 6, 5, 64]).layout(layout);
        host("k", &k, &q, &Options::new()).map_err(|e| e.to_string())
    };
    assert_eq!(check(Layout::Bhsd, 3840), Ok(()));
    assert_eq!(check(Layout::Bhsd, 3839).unwrap_err(), "`k` has 3839 elements: expected 3840 for its shape");
    assert_eq!(check(Layout::Bshd, 3840).unwrap_err(), "`k` is bshd: expected bhsd, as `q` is");
    let q = HostTensor::new(&values[..1920], [1, 6, 5, 64]);
    let packed = host("q", &q, &q, &Options::new().packed(&[0, 5], &[0, 5])).unwrap_err();
    assert_eq!(packed.to_string(), "`q` is bhsd: expected bshd, as packed sequences are: (rows, heads, columns)");
    let forgotten = host("k", &HostTensor::packed(&values[..1920], [5, 6, 64]), &q, &Options::new()).unwrap_err();
    assert_eq!(
        forgotten.to_string(),
        "`k` is one of packed sequences: expected `Options::packed`, which says where they begin"
    );
}

#[test]
fn host_slices_are_as_long_as_their_strides_reach() {
    let values = vec![0f32; 700];
    let check = |count, strides| {
        let k = HostTensor::new(&values[..count], [1, 2, 5, 64]).strides(strides);
        host("k", &k, &k, &Options::new()).map_err(|e| e.to_string())
    };
    assert_eq!(check(640, [0, 64, 128, 1]), Ok(()));
    assert_eq!(check(639, [0, 64, 128, 1]).unwrap_err(), "`k` has 639 elements: expected 640 for its shape");
    assert_eq!(
        check(700, [0, 1, 128, 2]).unwrap_err(),
        "`k` has a stride of 2 elements between columns: expected 1: columns are contiguous"
    );
}

#[test]
fn arrays_lie_where_kernels_can_read_them() {
    let [q, k, v, o, lse] = right();
    let problem = problem(&q.view, &k.view, &v.view, &Options::new()).unwrap();
    let place = |extra, address, device| {
        let mut extras = Extras::default();
        extras.set(extra, Memory { address, bytes: 24, device });
        placement(&problem, [&q, &k, &v], &o, &lse, &extras, None, 1).map_err(|error| error.to_string())
    };
    assert_eq!(place(Extra::Sinks, 0x60_0004, 1), Ok(()));
    assert_eq!(place(Extra::Sinks, 0x60_0002, 1).unwrap_err(), "`sinks` begins at 0x600002: expected a multiple of 4");
    let elsewhere = place(Extra::CuK, 0x60_0000, 0).unwrap_err();
    assert_eq!(elsewhere, "`cu_k` lies on GPU 0: expected GPU 1, where the stream is");
    let (in_o, in_lse) = (place(Extra::QIds, o.address + 100, 1), place(Extra::Slopes, lse.address, 1));
    assert_eq!(in_o.unwrap_err(), "`o` overlaps `q_ids`: expected memory of its own");
    assert_eq!(in_lse.unwrap_err(), "`lse` overlaps `slopes`: expected memory of its own");
}

/// No element, or all in one place: nothing for a tensor map.
#[test]
fn what_no_tensor_map_describes_is_named() {
    let view = |shape| View::new(DType::F16, shape, Layout::Bhsd);
    let (right, empty) = (view([2, 3, 5, 64]), view([2, 3, 0, 64]));
    let repeating = View { strides: [0, 320, 64, 1], ..right };
    let single = View { shape: [1, 3, 5, 64], ..repeating };
    let refused = |views: [&View; 3]| mapped(views, 12).unwrap_err().to_string();
    mapped([&right, &single, &right], 12).unwrap();
    assert_eq!(unmapped([&right, &right, &repeating]), Some(("v", 0)));
    assert_eq!(
        refused([&right, &empty, &empty]),
        "`k` has 0 rows: expected at least 1 for config 12, which copies by tensor maps"
    );
    assert_eq!(
        refused([&right, &right, &repeating]),
        "`v` has a stride of 0 elements between batch entries: expected at least 1 for config 12, which copies by tensor maps"
    );
}
