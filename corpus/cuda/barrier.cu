// Producer and consumer warps that meet at cuda::barrier (mbarrier): one warp fills two stages, three take them.
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void __launch_bounds__(128) barrier_ring(const int* __restrict__ x, int* __restrict__ y, int tiles) {
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier full[2], empty[2];
    __shared__ int stage[2][96];
    int t = threadIdx.x;
    if (t == 0) for (int s = 0; s < 2; ++s) { init(&full[s], 128); init(&empty[s], 128); }
    __syncthreads();
    if (t < 32) {
        #pragma unroll 1
        for (int tile = 0; tile < tiles; ++tile) {
            empty[tile & 1].arrive_and_wait();
            #pragma unroll 1
            for (int i = t; i < 96; i += 32) stage[tile & 1][i] = x[tile * 96 + i] * 3;
            barrier::arrival_token token = full[tile & 1].arrive();
            (void)token;
        }
    } else {
        int sum = 0;
        #pragma unroll 1
        for (int s = 0; s < 2; ++s) { auto token = empty[s].arrive(); (void)token; }
        #pragma unroll 1
        for (int tile = 0; tile < tiles; ++tile) {
            full[tile & 1].arrive_and_wait();
            sum = sum * 5 + stage[tile & 1][(t - 32) ^ 1];
            auto token = empty[tile & 1].arrive(); (void)token;
        }
        y[t - 32] = sum;
    }
}
