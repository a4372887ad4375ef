// Quantises two f32 matrices to e4m3 on the way in and multiplies them with mma.m16n8k32 (sm_89): C[MxN] = A[MxK] B[NxK]^T.
#include <cuda_fp8.h>
#include <cstdint>
__device__ __forceinline__ uint32_t quad(const float* p) {
    float4 v = *(const float4*)p;
    return __nv_cvt_float2_to_fp8x2(make_float2(v.x, v.y), __NV_SATFINITE, __NV_E4M3) | (uint32_t)__nv_cvt_float2_to_fp8x2(make_float2(v.z, v.w), __NV_SATFINITE, __NV_E4M3) << 16;
}
extern "C" __global__ void __launch_bounds__(32) fp8_gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, __nv_fp8_e5m2* __restrict__ C8, int N, int K) {
    int l = threadIdx.x, g = l >> 2, p = l & 3, r = blockIdx.y * 16 + g, c = blockIdx.x * 8;
    float acc[4] = {};
    const float *a = A + r * K + p * 4, *b = B + (c + g) * K + p * 4;
    #pragma unroll 1
    for (int k = 0; k < K; k += 32)
        asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
            : "r"(quad(a + k)), "r"(quad(a + 8 * K + k)), "r"(quad(a + k + 16)), "r"(quad(a + 8 * K + k + 16)), "r"(quad(b + k)), "r"(quad(b + k + 16)));
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        int at = (r + (i >> 1) * 8) * N + c + p * 2 + (i & 1);
        C[at] = acc[i];
        C8[at] = __nv_fp8_e5m2(acc[i]);
    }
}
