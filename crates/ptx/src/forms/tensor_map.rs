//! Tensor maps: prefetched, rewritten on the device, published. PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy".

#[rustfmt::skip] // One row per line.
super::forms! { TensorMap:
    // op          spelling, as the PTX manual writes it                                                                           operands                             PTX   target effect
    Prefetch       "prefetch{.const|.param}.tensormap"                                                                             "[a]"                                "8.0" sm_90  Reads;
    ReplaceAddress "tensormap.replace.tile.global_address{.global|.shared::cta}.b1024.b64"                                         "[a], b:b64"                         "8.3" sm_90a Writes;
    ReplaceRank    "tensormap.replace.tile.rank{.global|.shared::cta}.b1024.b32"                                                   "[a], b:b32"                         "8.3" sm_90a Writes;
    ReplaceSize    "tensormap.replace.tile(.box_dim|.global_dim|.element_stride){.global|.shared::cta}.b1024.b32"                  "[a], n:imm(0..4), b:b32"            "8.3" sm_90a Writes;
    ReplaceStride  "tensormap.replace.tile.global_stride{.global|.shared::cta}.b1024.b64"                                          "[a], n:imm(0..3), b:b64"            "8.3" sm_90a Writes;
    ReplaceMode    "tensormap.replace.tile(.elemtype|.interleave_layout|.swizzle_mode|.fill_mode){.global|.shared::cta}.b1024.b32" "[a], n:imm(0..15)"                  "8.3" sm_90a Writes;
    Publish        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release(<scope>).sync.aligned"                   "[d@global], [a@shared], n:imm(128)" "8.3" sm_90  Writes;
}
