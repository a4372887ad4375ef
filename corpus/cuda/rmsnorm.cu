// RMSNorm of rows of 512, 16 bytes of bf16 at a time.
#include <cuda_bf16.h>
extern "C" __global__ void __launch_bounds__(64) rmsnorm(const uint4* __restrict__ x, const uint4* __restrict__ g, uint4* __restrict__ y, float eps) {
    __shared__ float part[2];
    uint4 v = x[blockIdx.x * 64 + threadIdx.x], w = g[threadIdx.x], o;
    float sum = 0.f;
    #pragma unroll
    for (int i = 0; i < 4; ++i) { float2 f = __bfloat1622float2(((__nv_bfloat162*)&v)[i]); sum = fmaf(f.x, f.x, fmaf(f.y, f.y, sum)); }
    #pragma unroll
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = sum;
    __syncthreads();
    float scale = rsqrtf((part[0] + part[1]) / 512.f + eps);
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        float2 f = __bfloat1622float2(((__nv_bfloat162*)&v)[i]), h = __bfloat1622float2(((__nv_bfloat162*)&w)[i]);
        ((__nv_bfloat162*)&o)[i] = __floats2bfloat162_rn(f.x * scale * h.x, f.y * scale * h.y);
    }
    y[blockIdx.x * 64 + threadIdx.x] = o;
}
