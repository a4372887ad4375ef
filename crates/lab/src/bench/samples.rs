//! Every raw sample as CSV, for those who compute for themselves.

use super::point::Point;
use crate::measure::{Reading, Round};

pub fn csv(points: &[Point]) -> String {
    let mut text =
        "kernel,problem,contract,sets,calls,round,kept,contender,place,seconds,megahertz,watts,celsius\n".to_string();
    for point in points {
        let kept = point.rounds.kept();
        for (number, round) in point.rounds.0.iter().enumerate() {
            let is_kept = kept.iter().any(|other| std::ptr::eq(*other, round)).to_string();
            let refused = round.refused.iter().flatten();
            refused.for_each(|one| text.push_str(&line(point, number, "refused", one.contender, &one.reading)));
            for (contender, reading) in round.readings.iter().enumerate().take(point.contenders.len()) {
                text.push_str(&line(point, number, &is_kept, contender, reading));
            }
        }
    }
    text
}

/// `kept` is whether the round counts, or `refused` for a sample that was taken again.
fn line(point: &Point, number: usize, kept: &str, contender: usize, reading: &Reading) -> String {
    let Round { order, condition, .. } = &point.rounds.0[number];
    let condition = condition.as_ref();
    let watts = condition.and_then(|now| now.watts).map_or(String::new(), |watts| format!("{:.0}", watts.value()));
    let celsius = condition.and_then(|now| now.celsius).map_or(String::new(), |celsius| celsius.to_string());
    let place = order.iter().position(|other| *other == contender).map_or(String::new(), |at| at.to_string());
    let megahertz = reading.megahertz.map_or(String::new(), |clock| format!("{:.1}", clock.value()));
    format!(
        "{},{},{},{},{},{number},{kept},{},{place},{:e},{megahertz},{watts},{celsius}\n",
        point.subject.kernel,
        point.problem,
        point.plan.contract,
        point.plan.sets,
        point.plan.calls,
        point.contenders.get(contender).map_or("", |one| one.name.as_str()),
        reading.seconds.value(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Refused;

    #[test]
    fn a_line_for_each_sample() {
        let text = csv(&[super::super::point::tests::point(&[10.0, 10.0, 12.0])]);
        assert_eq!(text.lines().count(), 1 + 20 * 3);
        assert_eq!(text.lines().nth(3), Some("k,B1 H1 S64 D64,graph,10,10,0,true,contender 2,,1.2e-5,1980.0,,"));
    }

    #[test]
    fn a_line_for_each_sample_that_was_taken_again() {
        let mut point = super::super::point::tests::point(&[10.0, 10.0, 12.0]);
        let reading = point.rounds.0[1].readings[2];
        point.rounds.0[1].refused = Some(vec![Refused { contender: 2, reading }]);
        let text = csv(&[point]);
        assert_eq!(text.lines().count(), 1 + 20 * 3 + 1);
        assert_eq!(text.lines().nth(4), Some("k,B1 H1 S64 D64,graph,10,10,1,refused,contender 2,,1.2e-5,1980.0,,"));
    }
}
