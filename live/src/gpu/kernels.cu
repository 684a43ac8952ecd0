// Gated MLPs out of expert slots.
//
// An expert of `rows` rows has, for each row, 512 bf16 weights of the gate, 512 of the up and 512 of the down
// projection. With input x of 512 floats, row r gives h = silu(gate . x) (up . x), and the output is the sum over r of
// h down. Of the output y two numbers are kept: y . x and the sum of y.

template <int N>
struct Places {
    unsigned slot[N];
};

constexpr unsigned WIDTH = 512, ROW_BYTES = 3 * WIDTH * 2, WARPS = 8, ROWS_A_WARP = 2;

struct Columns {
    uint4 first, second;
};

__device__ Columns load(const char* row, unsigned lane) {
    const uint4* at = reinterpret_cast<const uint4*>(row) + lane;
    return {__ldcs(at), __ldcs(at + 32)};
}

// The two bf16 of a word, as floats.
__device__ float low(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ float high(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ float dot8(uint4 v, const float* x, float sum) {
    sum = fmaf(low(v.x), x[0], fmaf(high(v.x), x[1], sum));
    sum = fmaf(low(v.y), x[2], fmaf(high(v.y), x[3], sum));
    sum = fmaf(low(v.z), x[4], fmaf(high(v.z), x[5], sum));
    return fmaf(low(v.w), x[6], fmaf(high(v.w), x[7], sum));
}

__device__ float sum8(uint4 v) {
    return ((low(v.x) + high(v.x)) + (low(v.y) + high(v.y))) + ((low(v.z) + high(v.z)) + (low(v.w) + high(v.w)));
}

__device__ float over_lanes(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

template <int N>
__device__ void experts(const char* slots, unsigned long long stride, unsigned rows, const float* input, float* sums,
                        const Places<N>& places) {
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float x[16];
    for (int i = 0; i < 8; ++i) {
        x[i] = input[lane * 8 + i];
        x[8 + i] = input[256 + lane * 8 + i];
    }
    const char* expert = slots + stride * places.slot[blockIdx.y];
    float on_input = 0, plain = 0;
    for (unsigned row = (blockIdx.x * WARPS + warp) * ROWS_A_WARP; row < rows; row += gridDim.x * WARPS * ROWS_A_WARP) {
        Columns gate[ROWS_A_WARP], up[ROWS_A_WARP], down[ROWS_A_WARP];
#pragma unroll
        for (int r = 0; r < ROWS_A_WARP; ++r) {
            // The last row may be read twice; it counts once.
            const char* at = expert + (unsigned long long)min(row + r, rows - 1) * ROW_BYTES;
            gate[r] = load(at, lane);
            up[r] = load(at + 2 * WIDTH, lane);
            down[r] = load(at + 4 * WIDTH, lane);
        }
#pragma unroll
        for (int r = 0; r < ROWS_A_WARP; ++r) {
            float g = over_lanes(dot8(gate[r].second, x + 8, dot8(gate[r].first, x, 0)));
            float u = over_lanes(dot8(up[r].second, x + 8, dot8(up[r].first, x, 0)));
            float h = row + r < rows ? g / (1 + __expf(-g)) * u : 0;
            on_input = fmaf(h, dot8(down[r].second, x + 8, dot8(down[r].first, x, 0)), on_input);
            plain = fmaf(h, sum8(down[r].first) + sum8(down[r].second), plain);
        }
    }
    on_input = over_lanes(on_input);
    plain = over_lanes(plain);
    __shared__ float of_warp[2 * WARPS];
    if (lane == 0) {
        of_warp[2 * warp] = on_input;
        of_warp[2 * warp + 1] = plain;
    }
    __syncthreads();
    if (threadIdx.x < 2) {
        float sum = 0;
        for (unsigned w = 0; w < WARPS; ++w) sum += of_warp[2 * w + threadIdx.x];
        atomicAdd(sums + 2 * blockIdx.y + threadIdx.x, sum);
    }
}

#define EXPERTS(N)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                                   \
        experts_##N(const char* slots, unsigned long long stride, unsigned rows, const float* input, float* sums,       \
                    const __grid_constant__ Places<N> places) {                                                         \
        experts<N>(slots, stride, rows, input, sums, places);                                                           \
    }

EXPERTS(16)
EXPERTS(64)
EXPERTS(256)

// Holds a stream until the host says go, so that what is queued behind it does not wait for the host.
extern "C" __global__ void hold(const volatile unsigned* go) {
    while (!*go) {
    }
}
