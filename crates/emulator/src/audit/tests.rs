//! What belongs to no instruction is counted, whoever tells of it.

use super::*;
use happens_before::{Kind, Lanes, Places, Site};

const BYTES: Range<u64> = 16..20;

fn detector() -> Detector {
    let mut detector = Detector::numbered(0, &[u32::MAX], 1);
    detector.keep_record();
    detector
}

fn read(detector: &mut Detector) {
    let at = Lanes { warp: 0, mask: 1 };
    detector.access(at, Site(0), Kind::Read, Space::Shared, Places::Same(BYTES.start), 4);
}

/// What is wrong in the end.
fn orphans(audit: Audit, mut detector: Detector) -> Option<(String, u64)> {
    audit.into_tally(&mut detector).into_parts().1.first
}

#[test]
fn bytes_that_move_between_instructions_are_orphans() {
    let (audit, mut detector) = (Audit::default(), detector());
    audit.note(Column::Read, Region::Parameter, BYTES, 1);
    audit.begin(0, &mut detector);
    audit.end(&mut detector);
    audit.note(Column::Read, Region::Shared, BYTES, 1);
    audit.note(Column::Written, Region::Global, BYTES, 1);
    assert_eq!(orphans(audit, detector), Some(("4 bytes of shared memory at 0x10, read".into(), 2)));
}

#[test]
fn what_the_detector_saw_between_instructions_is_an_orphan() {
    let (audit, mut detector) = (Audit::default(), detector());
    read(&mut detector);
    audit.begin(0, &mut detector);
    audit.end(&mut detector);
    read(&mut detector);
    assert_eq!(orphans(audit, detector), Some(("4 bytes of shared memory at 0x10, seen to be read".into(), 2)));
}

#[test]
fn an_operation_lands_once() {
    let (audit, mut detector) = (Audit::default(), detector());
    let number = Number::default();
    audit.begin(0, &mut detector);
    audit.departs(number);
    audit.end(&mut detector);
    let outer = audit.finish(number);
    audit.lands(outer);
    assert_eq!(audit.books.borrow().tally.clone().into_parts().1.first, None);
    let outer = audit.finish(number);
    audit.lands(outer);
    assert_eq!(orphans(audit, detector), Some(("a part of an operation that did not start".into(), 2)));
}
