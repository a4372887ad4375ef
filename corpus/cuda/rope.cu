// Rotary embedding with sincosf: at far positions the reduction of the angle takes the slow path, with an array in local memory.
extern "C" __global__ void rope(const float2* __restrict__ x, const float* __restrict__ frequency, float2* __restrict__ y, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float angle = (float)(first + (int)blockIdx.x) * frequency[threadIdx.x], s, c;
    sincosf(angle, &s, &c);
    float2 v = x[i];
    y[i] = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}
