//! # wgmma-registers
//!
//! The accumulators of a product, and the registers of its matrix A, belong to the tensor cores from `wgmma.mma_async`
//! until a `wgmma.wait_group` that covers it: a thread that reads them sees old values, and one that writes them changes
//! the operands of a product under way. Before a product, `wgmma.fence` hands over what threads did with its registers.
//! The assembler often repairs both silently, by waiting more than the program asks (infos C7515, C7517 and C7519): such
//! a kernel is right by its grace, and slow.
//!
//! ```ptx
//! wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %a, %b, 1, 1, 1, 0, 0;
//! wgmma.commit_group.sync.aligned;
//! add.f32 %sum, %d0, %d1;               // the product may still be under way
//! ```
//!
//! Products of one shape may follow each other on the same accumulators without a wait or a fence between them.
//!
//! Fix: `wgmma.wait_group` before the registers are used again; `wgmma.fence` before the first product, and between
//! registers that threads touch and the next product that uses them. PTX ISA, "wgmma.fence", "wgmma.wait_group".

use super::{Check, words};
use crate::async_engines::Touch;
use crate::exec::{At, Multiply, Role};
use crate::finding::{Actor, Report};
use crate::machine::{Cluster, Touched};
use ::launch::finding::Severity;
use ptx::RegisterId;

pub const CHECK: Check = Check::error("wgmma-registers", include_str!("wgmma_registers.rs"));

/// Before a step that touches registers of products.
pub fn watch_touch(cluster: &mut Cluster, at: At, touched: &Touched) {
    if at.mask == 0 {
        return;
    }
    let writes = touched.writes.iter().map(|register| (*register, true));
    for (register, write) in touched.reads.iter().map(|register| (*register, false)).chain(writes) {
        let verb = if write { "written" } else { "read" };
        report_in_flight(cluster, at, verb, |multiply| Some(register).zip(multiply.role(register)));
        cluster.products[at.warp].touched.insert(register, Touch { at, write });
    }
}

/// Before a product is issued.
pub fn watch_product(cluster: &mut Cluster, at: At, multiply: &Multiply) {
    let products = &cluster.products[at.warp];
    let touch = multiply.registers().find_map(|register| Some((register, *products.touched.get(&register)?)));
    if touch.is_some() || !products.fenced {
        report_no_fence(cluster, at, touch);
        cluster.products[at.warp].fence();
    }
    report_in_flight(cluster, at, "used by another product", |earlier| {
        let register = multiply.clash(earlier)?;
        Some(register).zip(earlier.role(register))
    });
}

/// Reports the youngest product in flight whose register is misused. Older ones on the same register say the same.
fn report_in_flight(
    cluster: &mut Cluster,
    at: At,
    verb: &str,
    misused: impl Fn(&Multiply) -> Option<(RegisterId, Role)>,
) {
    let (mut found, committed) = (None, cluster.products[at.warp].committed);
    for product in cluster.products[at.warp].unobserved() {
        let Some((register, role)) = misused(&product.multiply) else { continue };
        // The product only reads A, so that whoever reads it too gets the right value, though the manual forbids it.
        let harmless = role == Role::Operand && verb == "read";
        let severity = if harmless { Severity::Warning } else { CHECK.severity };
        let news = product.told < Some(severity);
        product.told = product.told.max(Some(severity));
        found.get_or_insert((product.at, committed - product.group, register, role, news.then_some(severity)));
    }
    let Some((issued, groups, register, role, Some(severity))) = found else { return };
    let name = cluster.findings.register(register);
    let (what, does) = match role {
        Role::Accumulator => (format!("the accumulator `{name}`"), "accumulates into it"),
        Role::Operand => (format!("`{name}`, a register of A,"), "reads it"),
    };
    let message = format!("{what} is {verb} while the product that uses it is in flight");
    let first = cluster.actor(issued, &format!("(1) a product that {does}"));
    let second = cluster.actor(at, &format!("(2) {verb} by {}", words::who(cluster, at.warp, at.mask)));
    let (missing, help) = remedy(groups);
    let report = Report::new(&CHECK, message, second).first(first).missing(missing).help(help);
    cluster.findings.add(report.severity(severity));
}

/// The wait that would do, and where it goes, if so many groups were committed since the product was issued.
fn remedy(groups: u64) -> (String, String) {
    match groups.checked_sub(1) {
        Some(pending) => {
            let wait = format!("`wgmma.wait_group.sync.aligned {pending}`");
            (format!("{wait} between (1) and (2)"), format!("emit {wait} before (2)"))
        }
        None => (
            "a group: the warpgroup does not commit the product before (2)".into(),
            "emit `wgmma.commit_group.sync.aligned` after (1), and wait for that group before (2)".into(),
        ),
    }
}

fn report_no_fence(cluster: &mut Cluster, at: At, touch: Option<(RegisterId, Touch)>) {
    let label = format!("issued by {}", words::who(cluster, at.warp, at.mask));
    let report = match touch {
        Some((register, touch)) => {
            let name = cluster.findings.register(register);
            let verb = if touch.write { "written" } else { "read" };
            let message = format!("a product uses `{name}`, which was {verb} without a `wgmma.fence` since");
            let first = format!("(1) {verb} by {}", words::who(cluster, touch.at.warp, touch.at.mask));
            let first: Actor = cluster.actor(touch.at, &first);
            Report::new(&CHECK, message, cluster.actor(at, &format!("(2) {label}")))
                .first(first)
                .missing("`wgmma.fence.sync.aligned` between (1) and (2)")
        }
        None => {
            let message = "the first product of the warp comes without a `wgmma.fence` before it".into();
            Report::new(&CHECK, message, cluster.actor(at, &label)).missing("`wgmma.fence.sync.aligned` before it")
        }
    };
    let help = "emit `wgmma.fence.sync.aligned` before the product, behind the last access to its registers";
    cluster.findings.add(report.help(help));
}
