// Grouped 3x3 convolution of f16; a kernel in constant memory is added to the weights.
#include <cuda_fp16.h>
__constant__ float taps[9] = {0.0625f, 0.125f, 0.0625f, 0.125f, 0.25f, 0.125f, 0.0625f, 0.125f, 0.0625f};
extern "C" __global__ void grouped_conv(const half* __restrict__ x, const half* __restrict__ w, half* __restrict__ y, int size, int per_group) {
    int o = blockIdx.x, group = o / per_group, px = threadIdx.x, py = threadIdx.y;
    float acc = 0.f;
    #pragma unroll 1
    for (int i = 0; i < per_group; ++i)
        #pragma unroll 3
        for (int t = 0; t < 9; ++t) {
            int u = py + t / 3 - 1, v = px + t % 3 - 1;
            if (u >= 0 && u < size && v >= 0 && v < size)
                acc = fmaf(__half2float(x[((group * per_group + i) * size + u) * size + v]), __half2float(w[(o * per_group + i) * 9 + t]) + taps[t], acc);
        }
    y[(o * size + py) * size + px] = __float2half_rn(fmaxf(acc, 0.f));
}
