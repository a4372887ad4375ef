// Double buffering with cuda::pipeline: of one thread (cp.async groups), and of the block (barriers in shared memory).
#include <cooperative_groups.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
extern "C" __global__ void __launch_bounds__(64) pipeline_thread(const float4* __restrict__ x, float4* __restrict__ y, int tiles, float scale) {
    __shared__ float4 stage[2][64];
    auto pipe = cuda::make_pipeline();
    const float4* from = x + blockIdx.x * tiles * 64 + threadIdx.x;
    float4 sum = make_float4(0, 0, 0, 0);
    auto fetch = [&](int tile) {
        pipe.producer_acquire();
        cuda::memcpy_async(&stage[tile & 1][threadIdx.x], from + tile * 64, cuda::aligned_size_t<16>(16), pipe);
        pipe.producer_commit();
    };
    fetch(0);
    #pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        if (tile + 1 < tiles) { fetch(tile + 1); cuda::pipeline_consumer_wait_prior<1>(pipe); } else cuda::pipeline_consumer_wait_prior<0>(pipe);
        float4 v = stage[tile & 1][threadIdx.x];
        sum.x += v.x * scale; sum.y += v.y * scale; sum.z += v.z * scale; sum.w += v.w * scale;
        pipe.consumer_release();
    }
    y[blockIdx.x * 64 + threadIdx.x] = sum;
}
extern "C" __global__ void __launch_bounds__(64) pipeline_block(const float* __restrict__ x, float* __restrict__ y, int tiles) {
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ __align__(16) float stage[2][64];
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    float sum = 0.f;
    for (int ahead = 0, tile = 0; tile < tiles; ++tile) {
        for (; ahead < tiles && ahead < tile + 2; ++ahead) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, stage[ahead & 1], x + (blockIdx.x * tiles + ahead) * 64, cuda::aligned_size_t<16>(256), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum = sum * 0.5f + stage[tile & 1][63 - threadIdx.x];
        pipe.consumer_release();
    }
    y[blockIdx.x * 64 + threadIdx.x] = sum;
}
