//! Arithmetic on 16-bit floats, one or two to a register. PTX ISA, "Half Precision Floating-Point Instructions".

#[rustfmt::skip] // One row per line.
super::forms! { Half:
    // op                    spelling, as the PTX manual writes it          operands             PTX   target effect
    Add                      "add{.rn}{.ftz}{.sat}(.f16|.f16x2)"            "d:T, a:T, b:T"      "4.2" sm_53 Pure;
    Subtract                 "sub{.rn}{.ftz}{.sat}(.f16|.f16x2)"            "d:T, a:T, b:T"      "4.2" sm_53 Pure;
    Multiply                 "mul{.rn}{.ftz}{.sat}(.f16|.f16x2)"            "d:T, a:T, b:T"      "4.2" sm_53 Pure;
    FusedMultiplyAdd         "fma.rn{.ftz}{.sat}(.f16|.f16x2)"              "d:T, a:T, b:T, c:T" "4.2" sm_53 Pure;
    FusedMultiplyAddRelu     "fma.rn{.ftz}.relu(.f16|.f16x2)"               "d:T, a:T, b:T, c:T" "7.0" sm_80 Pure;
    Negate                   "neg{.ftz}(.f16|.f16x2)"                       "d:T, a:T"           "6.0" sm_53 Pure;
    Absolute                 "abs{.ftz}(.f16|.f16x2)"                       "d:T, a:T"           "6.5" sm_53 Pure;
    Minimum                  "min{.ftz}{.NaN}{.xorsign}{.abs}(.f16|.f16x2)" "d:T, a:T, b:T"      "7.0" sm_80 Pure;
    Maximum                  "max{.ftz}{.NaN}{.xorsign}{.abs}(.f16|.f16x2)" "d:T, a:T, b:T"      "7.0" sm_80 Pure;
    PowerOfTwo               "ex2.approx(.f16|.f16x2)"                      "d:T, a:T"           "7.0" sm_75 Pure;
    HyperbolicTangent        "tanh.approx(.f16|.f16x2)"                     "d:T, a:T"           "7.0" sm_75 Pure;
    AddBrain16               "add{.rn}(.bf16|.bf16x2)"                      "d:T, a:T, b:T"      "7.8" sm_90 Pure;
    SubtractBrain16          "sub{.rn}(.bf16|.bf16x2)"                      "d:T, a:T, b:T"      "7.8" sm_90 Pure;
    MultiplyBrain16          "mul{.rn}(.bf16|.bf16x2)"                      "d:T, a:T, b:T"      "7.8" sm_90 Pure;
    FusedMultiplyAddBrain16  "fma.rn{.relu}(.bf16|.bf16x2)"                 "d:T, a:T, b:T, c:T" "7.0" sm_80 Pure;
    NegateBrain16            "neg(.bf16|.bf16x2)"                           "d:T, a:T"           "7.0" sm_80 Pure;
    AbsoluteBrain16          "abs(.bf16|.bf16x2)"                           "d:T, a:T"           "7.0" sm_80 Pure;
    MinimumBrain16           "min{.NaN}{.xorsign}{.abs}(.bf16|.bf16x2)"     "d:T, a:T, b:T"      "7.0" sm_80 Pure;
    MaximumBrain16           "max{.NaN}{.xorsign}{.abs}(.bf16|.bf16x2)"     "d:T, a:T, b:T"      "7.0" sm_80 Pure;
    PowerOfTwoBrain16        "ex2.approx.ftz(.bf16|.bf16x2)"                "d:T, a:T"           "7.8" sm_90 Pure;
    HyperbolicTangentBrain16 "tanh.approx(.bf16|.bf16x2)"                   "d:T, a:T"           "7.8" sm_90 Pure;
}
