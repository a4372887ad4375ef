// Attention in plain CUDA C++: a warp for each query, two columns of the head for each lane, one key at a time.
// `veriflash prove --kernel examples/cuda/attention.cu` compiles it and proves it. It is right and slow: the stage `code` asks
// for tensor cores and asynchronous copies, and finds none.
//@ [let]
//@ b = 1
//@ h = 2
//@ sq = 19
//@ sk = 35
//@ d = 64
//@ [buffer.q]
//@ type = "f16"
//@ shape = ["b", "h", "sq", "d"]
//@ init = "normal(1.0)"
//@ [buffer.k]
//@ type = "f16"
//@ shape = ["b", "h", "sk", "d"]
//@ init = "normal(1.0)"
//@ [buffer.v]
//@ type = "f16"
//@ shape = ["b", "h", "sk", "d"]
//@ init = "normal(1.0)"
//@ [buffer.o]
//@ type = "f16"
//@ shape = ["b", "h", "sq", "d"]
//@ [buffer.lse]
//@ type = "f32"
//@ shape = ["b", "h", "sq"]
//@ [[launch]]
//@ entry = "attention"
//@ grid = ["ceil_div(sq,4)", "b*h", 1]
//@ block = [32, 4, 1]
//@ args = [
//@   { buffer = "q" }, { buffer = "k" }, { buffer = "v" }, { buffer = "o" }, { buffer = "lse" },
//@   { u32 = "sq" }, { u32 = "sk" }, { f32 = 0.18033688011112042, name = "scale_log2" },
//@ ]
//@ [attention]
//@ q = "q"
//@ k = "k"
//@ v = "v"
//@ o = "o"
//@ lse = "lse"
//@ scale = { arg = "scale_log2", factor = "log2e" }
//@ layout = "bhsd"
//@ mask = "causal-bottom-right"
//@ lengths = { q = "sq", k = "sk", batch = "b", heads = "h", kv_heads = "h", dim = "d" }
#include <cuda_fp16.h>

constexpr unsigned COLUMNS = 64;
constexpr float LN_2 = 0.6931471805599453f;

__device__ float2 pair(const __half2* matrix, unsigned row) {
    return __half22float2(matrix[row * (COLUMNS / 2) + threadIdx.x]);
}

extern "C" __global__ void attention(const __half2* q, const __half2* k, const __half2* v, __half2* o, float* lse,
                                     unsigned queries, unsigned keys, float scale_log2) {
    unsigned query = blockIdx.x * blockDim.y + threadIdx.y, head = blockIdx.y;
    if (query >= queries) return;
    unsigned row = head * queries + query;
    float2 own = pair(q, row), sum_of_values = {0.f, 0.f};
    float maximum = __int_as_float(0xff800000), sum = 0.f; // minus infinity
    // The last query sees the last key.
    for (unsigned key = 0; key + queries <= query + keys; ++key) {
        float2 other = pair(k, head * keys + key);
        float score = own.x * other.x + own.y * other.y;
        for (unsigned lanes = 16; lanes > 0; lanes /= 2) score += __shfl_xor_sync(0xffffffff, score, lanes);
        score *= scale_log2;
        float higher = fmaxf(maximum, score), shrink = exp2f(maximum - higher), weight = exp2f(score - higher);
        float2 value = pair(v, head * keys + key);
        sum = sum * shrink + weight;
        sum_of_values.x = sum_of_values.x * shrink + weight * value.x;
        sum_of_values.y = sum_of_values.y * shrink + weight * value.y;
        maximum = higher;
    }
    o[row * (COLUMNS / 2) + threadIdx.x] = __floats2half2_rn(sum_of_values.x / sum, sum_of_values.y / sum);
    if (threadIdx.x == 0) lse[row] = (maximum + log2f(sum)) * LN_2;
}
