// SwiGLU with bf16x2 intrinsics, and the largest magnitude of the result.
#include <cuda_bf16.h>
extern "C" __global__ void swiglu(const __nv_bfloat162* __restrict__ gate, const __nv_bfloat162* __restrict__ up, __nv_bfloat162* __restrict__ y, __nv_bfloat16* __restrict__ top, int n) {
    __nv_bfloat162 best = __float2bfloat162_rn(-1e30f), one = __float2bfloat162_rn(1.f);
    #pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 32) {
        __nv_bfloat162 g = gate[i], s = h2rcp(__hadd2(one, h2exp(__hneg2(g)))), o = __hmul2(__hmul2(g, s), up[i]);
        best = __hmax2(best, __habs2(o));
        y[i] = o;
    }
    #pragma unroll 1
    for (int d = 16; d; d /= 2) best = __hmax2_nan(best, __shfl_xor_sync(~0u, best, d));
    if (threadIdx.x == 0) *top = __hmax(__low2bfloat16(best), __high2bfloat16(best));
}
