//! Floating-point arithmetic. PTX ISA, "Floating-Point Instructions".

#[rustfmt::skip] // One row per line.
super::forms! { Float:
    // op            spelling, as the PTX manual writes it                 operands                     PTX   target effect
    Add              "add{.rn}{.ftz}.f32"                                  "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    Subtract         "sub{.rn}{.ftz}.f32"                                  "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    Multiply         "mul{.rn}{.ftz}.f32"                                  "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    FusedMultiplyAdd "fma.rn{.ftz}.f32"                                    "d:T, a:T, b:T, c:T"         "2.0" sm_20  Pure;
    Divide           "div.rn.f32"                                          "d:T, a:T, b:T"              "1.4" sm_20  Pure;
    DivideFull       "div.full{.ftz}.f32"                                  "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    Minimum          "min{.ftz}.f32"                                       "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    Maximum          "max{.ftz}.f32"                                       "d:T, a:T, b:T"              "1.0" sm_10  Pure;
    Negate           "neg{.ftz}.f32"                                       "d:T, a:T"                   "1.0" sm_10  Pure;
    Absolute         "abs{.ftz}.f32"                                       "d:T, a:T"                   "1.0" sm_10  Pure;
    PowerOfTwo       "ex2.approx{.ftz}.f32"                                "d:T, a:T"                   "1.4" sm_10  Pure;
    LogarithmOfTwo   "lg2.approx{.ftz}.f32"                                "d:T, a:T"                   "1.4" sm_10  Pure;
    Reciprocal       "rcp.approx{.ftz}.f32"                                "d:T, a:T"                   "1.4" sm_10  Pure;
    ReciprocalExact  "rcp.rn.f32"                                          "d:T, a:T"                   "1.4" sm_20  Pure;
    SquareRoot       "sqrt.rn.f32"                                         "d:T, a:T"                   "1.4" sm_20  Pure;
    ReciprocalRoot   "rsqrt.approx{.ftz}.f32"                              "d:T, a:T"                   "1.4" sm_10  Pure;
}
