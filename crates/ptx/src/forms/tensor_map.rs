//! Tensor maps: prefetched, rewritten on the device, published. PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy".

#[rustfmt::skip] // One row per line.
super::forms! { TensorMap:
    // op              spelling, as the PTX manual writes it                                                          operands                             PTX   target effect
    Prefetch           "prefetch{.const|.param}.tensormap"                                                            "[a]"                                "8.0" sm_90  Reads;
    ReplaceAddress     "tensormap.replace.tile.global_address{.global|.shared::cta}.b1024.b64"                        "[a], b:u64"                         "8.3" sm_90a Writes;
    ReplaceRank        "tensormap.replace.tile.rank{.global|.shared::cta}.b1024.b32"                                  "[a], b:u32"                         "8.3" sm_90a Writes;
    ReplaceSize        "tensormap.replace.tile(.box_dim|.global_dim|.element_stride){.global|.shared::cta}.b1024.b32" "[a], n:imm(0..4), b:u32"            "8.3" sm_90a Writes;
    ReplaceStride      "tensormap.replace.tile.global_stride{.global|.shared::cta}.b1024.b64"                         "[a], n:imm(0..3), b:u64"            "8.3" sm_90a Writes;
    ReplaceElementType "tensormap.replace.tile.elemtype{.global|.shared::cta}.b1024.b32"                              "[a], n:imm(0..15)"                  "8.3" sm_90a Writes;
    ReplaceInterleave  "tensormap.replace.tile.interleave_layout{.global|.shared::cta}.b1024.b32"                     "[a], n:imm(0..2)"                   "8.3" sm_90a Writes;
    ReplaceSwizzle     "tensormap.replace.tile.swizzle_mode{.global|.shared::cta}.b1024.b32"                          "[a], n:imm(0..3)"                   "8.3" sm_90a Writes;
    ReplaceFill        "tensormap.replace.tile.fill_mode{.global|.shared::cta}.b1024.b32"                             "[a], n:imm(0..1)"                   "8.3" sm_90a Writes;
    Publish            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release(<scope>).sync.aligned"  "[d@global], [a@shared], n:imm(128)" "8.3" sm_90  Writes;
}
