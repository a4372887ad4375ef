//! Which calls share a kernel, and which never do.

use super::super::kernels::{Key, Loaded};
use super::Attempt;
use crate::{Custom, Mask, Options, Score};
use attention::configs::{CONFIGS, Config};
use attention::kernels::parts::masks::Window;
use attention::kernels::parts::scores::SoftCap;
use attention::planner::Gpu;
use attention::problem::Layout;
use std::sync::Arc;

fn key(shape: [u32; 4], layout: Layout, options: &Options) -> Key {
    let attempt = Attempt::new(shape, layout, options.clone());
    let call = attempt.check().unwrap();
    Key::new(0, &call, options, &options.clone().config(1).config_for(&call, &Gpu::H200).unwrap())
}

#[test]
fn lengths_scale_and_the_contents_of_arrays_do_not_matter() {
    let plain = key([2, 8, 512, 64], Layout::Bhsd, &Options::new().causal());
    assert_eq!(plain, key([1, 4, 7, 64], Layout::Bshd, &Options::new().causal().scale(3.0)));
    let [two, three] = [[2.0; 8], [3.0; 8]];
    let with = |numbers| key([2, 8, 512, 64], Layout::Bhsd, &Options::new().alibi(numbers).sinks(numbers));
    assert_eq!(with(&two), with(&three));
}

#[test]
fn one_module_serves_any_number_of_splits() {
    let options = Options::new();
    let call = Attempt::new([2, 8, 512, 64], Layout::Bhsd, options.clone()).check().unwrap();
    let key = |splits| Key::new(0, &call, &options, &Config { splits, ..CONFIGS[0] });
    assert_eq!(key(2), key(32));
    assert_ne!(key(1), key(2));
}

/// Every pair of these computes something else, or takes other parameters.
#[test]
fn what_the_text_depends_on_tells_kernels_apart() {
    let (floats, ids, places) = ([1.0; 8], [0; 512], [0, 512]);
    let windows = [3, 3].map(|left| Custom::new(Window { left, right: 0 }));
    let caps = [30.0, 30.0].map(|cap| Custom::new(SoftCap { cap }));
    let options = Options::new;
    let all = [
        options(),
        options().debug(),
        options().causal(),
        options().window(3, 0),
        options().softcap(30.0),
        options().softcap(31.0),
        options().alibi(&floats),
        options().sinks(&floats),
        options().documents(&ids, &ids),
        options().packed(&places, &places),
        options().mask_with(&windows[0]),
        options().mask_with(&windows[1]),
        options().score_with(&caps[0]),
        options().score_with(&caps[1]),
    ];
    let keys = all.each_ref().map(|options| key([1, 8, 512, 64], Layout::Bshd, options));
    for (index, one) in keys.iter().enumerate() {
        let same = keys.iter().filter(|other| *other == one).count();
        assert_eq!(same, 1, "{:?}", all[index]);
    }
}

#[test]
fn kernels_of_a_mask_that_is_gone_are_not_found_again() {
    let loaded = Loaded::default();
    let mask = Custom::new(Window { left: 3, right: 0 });
    let kept = key([1, 8, 512, 64], Layout::Bhsd, &Options::new());
    let own = key([1, 8, 512, 64], Layout::Bhsd, &Options::new().mask_with(&mask));
    loaded.keep(kept, Arc::new("plain"));
    loaded.keep(own, Arc::new("own"));
    assert_eq!(*loaded.keep(own, Arc::new("another thread's")), "own");
    loaded.forget(mask.id());
    assert_eq!((loaded.get(&kept).as_deref(), loaded.get(&own)), (Some(&"plain"), None));
}

/// The value is not to be changed, but to be asked.
#[test]
fn a_custom_part_is_asked_as_it_is() {
    let (mask, score) = (Custom::new(Window { left: 3, right: 1 }), Custom::new(SoftCap { cap: 2.0 }));
    let (as_mask, as_score): (&Custom<dyn Mask>, &Custom<dyn Score>) = (&mask, &score);
    assert_eq!((mask.left, as_mask.knows_the_end(), as_score.is_plain()), (3, true, false));
}
