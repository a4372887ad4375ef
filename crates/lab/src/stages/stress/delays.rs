//! A kernel that dawdles: some of its warps sleep before some of its synchronisations. What is right whatever the order of
//! execution stays right, to the bit.

use launch::Kernel;

/// Instructions that order something, by how they begin.
const ORDERING: [&str; 8] =
    ["bar.", "barrier.", "cp.async.wait", "cp.async.commit", "mbarrier.", "wgmma.wait", "wgmma.fence", "fence."];

/// The longest sleep, in nanoseconds.
const LONGEST: u32 = 4_000;

/// The kernel with sleeps that the seed decides, and before how many instructions they stand.
pub fn delayed(kernel: &Kernel, seed: u64) -> Result<(Kernel, usize), String> {
    let source = &kernel.parsed.source;
    let mut random = fastrand::Rng::with_seed(seed);
    let sites = sites(kernel);
    let mut text = String::with_capacity(source.text.len());
    for (number, line) in (1..).zip(source.text.lines()) {
        if sites.binary_search(&number).is_ok() {
            text.push_str(&sleep(&mut random));
        }
        text.push_str(line);
        text.push('\n');
    }
    let kernel = Kernel::with_text(&source.name, &text, kernel.recipe.clone()).map_err(|error| error.to_string())?;
    Ok((kernel, sites.len()))
}

/// Lines that begin with an instruction that orders something, in order.
fn sites(kernel: &Kernel) -> Vec<u32> {
    let parsed = &kernel.parsed;
    let orders = |line: &str| {
        // Behind a guard.
        let after_guard = line.strip_prefix('@').and_then(|rest| rest.split_once(char::is_whitespace));
        let instruction = after_guard.map_or(line, |(_, instruction)| instruction.trim_start());
        ORDERING.iter().any(|begin| instruction.starts_with(begin))
    };
    (1..)
        .zip(parsed.source.text.lines())
        .filter(|(_, line)| orders(line.trim_start()))
        .map(|(number, _)| number)
        .collect()
}

/// One warp in two or four sleeps.
fn sleep(random: &mut fastrand::Rng) -> String {
    let mask = if random.bool() { 1 } else { 3 };
    let (who, time) = (random.u32(0..=mask), random.u32(LONGEST / 8..LONGEST));
    format!(
        "{{ .reg .pred %late; .reg .b32 %warp; mov.u32 %warp, %tid.x; shr.u32 %warp, %warp, 5; and.b32 %warp, %warp, {mask}; \
         setp.eq.u32 %late, %warp, {who}; @%late nanosleep.u32 {time}; }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_synchronisation_of_a_kernel_gets_its_delay_and_the_module_stays_well_formed() {
        let problem = "f16 B1 H1 Sq33 Sk97 D64".parse().unwrap();
        let kernel = attention::kernels::kernel(&problem, &attention::configs::CONFIGS[0]).unwrap();
        let (one, count) = delayed(&kernel, 1).unwrap();
        assert!(count >= 4, "{count}");
        assert_eq!(one.parsed.source.text.matches("nanosleep").count(), count);
        assert!(ptx::verify(&one.parsed).is_empty());
        assert_ne!(one.hash(), delayed(&kernel, 2).unwrap().0.hash());
        assert_eq!(one.hash(), delayed(&kernel, 1).unwrap().0.hash());
    }
}
