// Cross entropy of rows of f16 logits with an online softmax. The total counts in steps of 2^-20: sums of integers do not
// depend on the order of the blocks.
#include <cuda_fp16.h>
extern "C" __global__ void __launch_bounds__(32) cross_entropy(const half* __restrict__ logits, const int* __restrict__ labels, float* __restrict__ loss, unsigned long long* total, int n) {
    const half* row = logits + blockIdx.x * n;
    float m = -INFINITY, s = 0.f;
    #pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 32) {
        float v = __half2float(row[i]), o = m;
        m = fmaxf(m, v);
        s = s * expf(o - m) + expf(v - m);
    }
    #pragma unroll 1
    for (int d = 16; d; d /= 2) {
        float om = __shfl_xor_sync(~0u, m, d), os = __shfl_xor_sync(~0u, s, d), top = fmaxf(m, om);
        s = s * expf(m - top) + os * expf(om - top);
        m = top;
    }
    if (threadIdx.x == 0) {
        float l = logf(s) + m - __half2float(row[labels[blockIdx.x]]);
        loss[blockIdx.x] = l;
        atomicAdd(total, (unsigned long long)__float2ll_rn(l * 1048576.f));
    }
}
