//! Every raw sample as CSV, for those who compute for themselves.

use super::point::Point;

pub fn csv(points: &[Point]) -> String {
    let mut text =
        "kernel,problem,contract,sets,calls,round,kept,contender,place,seconds,megahertz,watts,celsius\n".to_string();
    for point in points {
        let kept = point.rounds.kept();
        for (number, round) in point.rounds.0.iter().enumerate() {
            let is_kept = kept.iter().any(|other| std::ptr::eq(*other, round));
            let condition = round.condition.as_ref();
            let watts =
                condition.and_then(|now| now.watts).map_or(String::new(), |watts| format!("{:.0}", watts.value()));
            let celsius = condition.and_then(|now| now.celsius).map_or(String::new(), |celsius| celsius.to_string());
            for (contender, reading) in point.contenders.iter().enumerate().zip(&round.readings) {
                let (index, contender) = contender;
                let place =
                    round.order.iter().position(|other| *other == index).map_or(String::new(), |at| at.to_string());
                let megahertz = reading.megahertz.map_or(String::new(), |clock| format!("{:.1}", clock.value()));
                text.push_str(&format!(
                    "{},{},{},{},{},{number},{is_kept},{},{place},{:e},{megahertz},{watts},{celsius}\n",
                    point.subject.kernel,
                    point.problem,
                    point.plan.contract,
                    point.plan.sets,
                    point.plan.calls,
                    contender.name,
                    reading.seconds.value(),
                ));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_sample() {
        let text = csv(&[super::super::point::tests::point(&[10.0, 10.0, 12.0])]);
        assert_eq!(text.lines().count(), 1 + 20 * 3);
        assert_eq!(text.lines().nth(3), Some("k,B1 H1 S64 D64,graph,10,10,0,true,contender 2,,1.2e-5,1980.0,,"));
    }
}
