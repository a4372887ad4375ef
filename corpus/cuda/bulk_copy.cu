// Bulk copies through cuda::ptx: a mbarrier counts the bytes that come in, a bulk group those that go out, the proxy fence between.
#include <cuda/ptx>
namespace ptx = cuda::ptx;
extern "C" __global__ void __launch_bounds__(128) bulk_copy(const float* __restrict__ x, float* __restrict__ y, int tiles, float scale) {
    __shared__ __align__(128) float stage[2][256];
    __shared__ __align__(8) uint64_t full[2];
    int t = threadIdx.x;
    const float* from = x + blockIdx.x * tiles * 256; float* to = y + blockIdx.x * tiles * 256;
    if (t == 0) { ptx::mbarrier_init(&full[0], 1); ptx::mbarrier_init(&full[1], 1); ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster); ptx::fence_proxy_async(ptx::space_shared); }
    __syncthreads();
    auto fetch = [&](int tile) {
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[tile & 1], 1024);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage[tile & 1], from + tile * 256, 1024, &full[tile & 1]);
    };
    if (t == 0) fetch(0);
    #pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        if (t == 0 && tile + 1 < tiles) { ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>()); fetch(tile + 1); }
        while (!ptx::mbarrier_try_wait_parity(&full[tile & 1], tile >> 1 & 1)) {}
        float* s = stage[tile & 1];
        s[t] *= scale; s[t + 128] = s[t + 128] * scale + 1.f;
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (t == 0) { ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, to + tile * 256, s, 1024); ptx::cp_async_bulk_commit_group(); }
    }
    if (t == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}
