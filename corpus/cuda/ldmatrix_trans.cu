// Transposes 32x32 tiles of 16-bit elements with ldmatrix.trans; on sm_90 the other half of the tile goes out through stmatrix.trans.
#include <cstdint>
__device__ __forceinline__ uint32_t sa(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
extern "C" __global__ void __launch_bounds__(32) ldmatrix_trans(const uint16_t* __restrict__ in, uint16_t* __restrict__ out, int rows, int cols) {
    __shared__ __align__(16) uint16_t tile[32][40], done[32][40];
    int l = threadIdx.x, r0 = blockIdx.y * 32, c0 = blockIdx.x * 32;
    #pragma unroll 1
    for (int i = l; i < 128; i += 32) *(uint4*)&tile[i >> 2][(i & 3) * 8] = *(const uint4*)(in + (r0 + (i >> 2)) * cols + c0 + (i & 3) * 8);
    __syncwarp();
    #pragma unroll
    for (int q = 0; q < 4; ++q) {
        int r = (q >> 1) * 16, c = (q & 1) * 16;
        uint32_t m[4];
#if __CUDA_ARCH__ >= 900
        if (q & 1) {
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(sa(&tile[r + (l & 15)][c + (l >> 4) * 8])));
            asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" :: "r"(sa(&done[c + (l >> 4) * 8 + (l & 7)][r + (l >> 3 & 1) * 8])), "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3]) : "memory");
            continue;
        }
#endif
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3]) : "r"(sa(&tile[r + (l & 15)][c + (l >> 4) * 8])));
        #pragma unroll
        for (int i = 0; i < 4; ++i) *(uint32_t*)&done[c + (i >> 1) * 8 + (l >> 2)][r + (i & 1) * 8 + (l & 3) * 2] = m[i];
    }
    __syncwarp();
    #pragma unroll 1
    for (int i = l; i < 128; i += 32) *(uint4*)(out + (c0 + (i >> 2)) * rows + r0 + (i & 3) * 8) = *(uint4*)&done[i >> 2][(i & 3) * 8];
}
