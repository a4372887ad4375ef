//! What the buffers of a kernel mean, so that anybody can judge it as attention.

use super::parts::scores::scale_parameter;
use super::recipe::{scale_factor, value_dim};
use crate::Problem;
use crate::problem::Layout;
use crate::scoring::ScoreKind;
use crate::visibility::MaskKind;
use launch::Expr;
use launch::buffer::Float;
use launch::contract::{self, AttentionContract, Scale};

pub fn of(problem: &Problem) -> Result<AttentionContract, launch::Fault> {
    let score = problem.score().score();
    Ok(AttentionContract {
        q: "q".into(),
        k: "k".into(),
        v: "v".into(),
        o: "o".into(),
        lse: Some("lse".into()),
        scale: Some(Scale { arg: scale_parameter(&*score).into(), factor: scale_factor(&*score) }),
        layout: match problem.layout() {
            Layout::Bhsd => contract::Layout::Bhsd,
            Layout::Bshd => contract::Layout::Bshd,
        },
        mask: match problem.mask() {
            MaskKind::None => contract::Mask::None,
            MaskKind::CausalBottomRight => contract::Mask::CausalBottomRight,
            MaskKind::CausalTopLeft => contract::Mask::CausalTopLeft,
            MaskKind::Window { left, right } => contract::Mask::Window(left.into(), right.into()),
        },
        score: match problem.score() {
            ScoreKind::Plain => contract::Score::Plain,
            ScoreKind::SoftCap { cap } => contract::Score::SoftCap(Float(cap.into())),
            ScoreKind::Alibi => contract::Score::Alibi("slopes".into()),
        },
        sinks: problem.sinks().then(|| "sinks".into()),
        documents: problem.documents().then(|| contract::Pair { q: "q_ids".into(), k: "k_ids".into() }),
        cumulative: problem.packed().map(|_| contract::Pair { q: "cu_q".into(), k: "cu_k".into() }),
        lengths: contract::Lengths {
            q: Expr::parse("sq")?,
            k: Expr::parse("sk")?,
            batch: Expr::parse("b")?,
            heads: Expr::parse("h")?,
            kv_heads: Some(Expr::parse("hk")?),
            dim: Expr::parse("d")?,
            value_dim: value_dim(problem).map(Expr::parse).transpose()?,
        },
    })
}
