//! Control flow. PTX ISA, "Control Flow Instructions".

#[rustfmt::skip] // One row per line.
super::forms! { Control:
    // op            spelling, as the PTX manual writes it    operands      PTX   target effect
    Branch           "bra{.uni}"                              "l:label"     "1.0" sm_10  Jumps;
    Return           "ret{.uni}"                              ""            "1.0" sm_10  Jumps;
    Exit             "exit"                                   ""            "1.0" sm_10  Jumps;
    Trap             "trap"                                   ""            "1.0" sm_10  Jumps;
}
