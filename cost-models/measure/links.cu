// Raw timings of a machine's links and memory, for `hotset link fit`: CSV on the standard output.
//
//     nvcc -O3 -std=c++17 -arch=native -o links links.cu && ./links 8 >links.csv && hotset link fit links.csv
//
// The argument is the pool in GiB that copies come from; make it as large as all experts of the model, for copies from
// random places of a large pool pay for address translation. Host memory that large is pinned. With two GPUs that can
// reach each other, the second one's memory is measured as `nvlink-peer`. Takes about a minute a link. The modes are
// defined in docs/link-model.md.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#define CHECK(call)                                                                      \
    do {                                                                                 \
        cudaError_t error = (call);                                                      \
        if (error != cudaSuccess) {                                                      \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(error));       \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

constexpr size_t KIB = 1024, MIB = 1024 * KIB, GIB = 1024 * MIB;
constexpr int REPEATS = 15, ROUND_REPEATS = 5;
// Kernels and rounds in a chain.
constexpr int CHAIN = 100;
// Kernels read this much memory in turn: many times what caches hold.
constexpr size_t READ_POOL = 2 * GIB;
// The kernels at both ends of a round.
constexpr size_t ROUND_KERNEL = 8 * MIB;

struct Pieces {
    const uint4* at[8];
};

// Reads `vectors` of 16 bytes of each piece, a piece for each row of the grid.
__global__ void __launch_bounds__(256) read_pieces(const __grid_constant__ Pieces pieces, unsigned vectors, unsigned* sink) {
    const uint4* piece = pieces.at[blockIdx.y];
    unsigned sum = 0, step = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += 4 * step) {
        uint4 read[4];
#pragma unroll
        for (int u = 0; u < 4; ++u) read[u] = i + u * step < vectors ? __ldcs(piece + i + u * step) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int u = 0; u < 4; ++u) sum ^= read[u].x ^ read[u].y ^ read[u].z ^ read[u].w;
    }
    if (sum == 0x9e3779b9u) *sink = sum;  // Keeps the reads.
}

// Holds a stream until the host says go, so that what is queued behind it does not wait for the host.
__global__ void hold(volatile int* go) {
    while (!*go) {
    }
}

struct Link {
    const char *name, *mode;
    char* source;
    cudaMemcpyKind kind;
};

struct Bench {
    std::string device;
    cudaStream_t compute, copies;
    cudaEvent_t begin, end, routed;
    std::vector<cudaEvent_t> arrived;
    char *memory, *slots;
    unsigned* sink;
    int* go;
    int processors;
    size_t pool, read_at = 0;
    std::mt19937_64 random{7};

    void row(const char* link, const char* mode, size_t bytes, int transfers, double ms) {
        printf("%s,%s,%s,%zu,%d,%.6f\n", device.c_str(), link, mode, bytes, transfers, ms);
    }

    void kernel(size_t bytes, int pieces) {
        Pieces of;
        for (int i = 0; i < pieces; ++i) {
            if (read_at + bytes > READ_POOL) read_at = 0;
            of.at[i] = reinterpret_cast<const uint4*>(memory + read_at);
            read_at += bytes;
        }
        unsigned vectors = unsigned(bytes / 16), most = unsigned(processors * 8 / pieces);
        dim3 grid(std::max(1u, std::min((vectors + 1023) / 1024, most)), unsigned(pieces));
        read_pieces<<<grid, 256, 0, compute>>>(of, vectors, sink);
    }

    // One copy from and to random places of the pools.
    void copy(const Link& link, size_t bytes) {
        size_t places = pool / bytes;
        size_t from = random() % places * bytes, to = random() % places * bytes;
        CHECK(cudaMemcpyAsync(slots + to, link.source + from, bytes, link.kind, copies));
    }

    // Milliseconds between two events around `work` on a stream.
    double timed(cudaStream_t stream, const std::function<void()>& work) {
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaEventRecord(begin, stream));
        work();
        CHECK(cudaEventRecord(end, stream));
        return elapsed();
    }

    // The same of kernels that run while copies do: both queues are full before either begins.
    double beside(const std::function<void()>& copying, const std::function<void()>& kernels) {
        CHECK(cudaDeviceSynchronize());
        *static_cast<volatile int*>(go) = 0;
        hold<<<1, 1, 0, compute>>>(go);
        hold<<<1, 1, 0, copies>>>(go);
        copying();
        CHECK(cudaEventRecord(begin, compute));
        kernels();
        CHECK(cudaEventRecord(end, compute));
        *static_cast<volatile int*>(go) = 1;
        return elapsed();
    }

    double elapsed() {
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        CHECK(cudaDeviceSynchronize());
        return ms;
    }

    // A kernel, an event, the copies with an event each, the wait for them all, a kernel.
    void round(const Link* link, size_t bytes, int number) {
        kernel(ROUND_KERNEL, 1);
        CHECK(cudaEventRecord(routed, compute));
        CHECK(cudaStreamWaitEvent(copies, routed));
        for (int i = 0; i < number; ++i) {
            copy(*link, bytes);
            CHECK(cudaEventRecord(arrived[i], copies));
        }
        for (int i = 0; i < number; ++i) CHECK(cudaStreamWaitEvent(compute, arrived[i]));
        kernel(ROUND_KERNEL, 1);
    }

    void measure_memory() {
        for (size_t bytes : {64 * KIB, 256 * KIB, 512 * KIB, 768 * KIB, MIB, 27 * MIB / 16, 2 * MIB, 3 * MIB, 4 * MIB, 6 * MIB,
                             8 * MIB, 12 * MIB, 16 * MIB, 20 * MIB, 32 * MIB, 64 * MIB})
            for (int pieces : {1, 2, 4, 8})
                for (int i = 0; i < REPEATS; ++i) {
                    auto chain = [&] { for (int k = 0; k < CHAIN; ++k) kernel(bytes, pieces); };
                    row("hbm", "kernel-chain", bytes, pieces, timed(compute, chain) / CHAIN);
                    row("hbm", "kernel-read", bytes, pieces, timed(compute, [&] { kernel(bytes, pieces); }));
                }
        for (int i = 0; i < REPEATS; ++i) {
            auto rounds = [&] { for (int k = 0; k < CHAIN; ++k) round(nullptr, 0, 0); };
            row("hbm", "chain", ROUND_KERNEL, 0, timed(compute, rounds) / CHAIN);
        }
    }

    void measure_link(const Link& link) {
        std::vector<size_t> sizes = {4 * KIB, 64 * KIB, 256 * KIB, 512 * KIB, 768 * KIB, MIB,      27 * MIB / 16, 2 * MIB,
                                     3 * MIB, 4 * MIB,  6 * MIB,   8 * MIB,   12 * MIB,  16 * MIB, 32 * MIB,      64 * MIB};
        for (size_t bytes : sizes)
            for (int number : {1, 2, 4, 8, 16})
                for (int i = 0; i < REPEATS; ++i)
                    row(link.name, link.mode, bytes, number,
                        timed(copies, [&] { for (int k = 0; k < number; ++k) copy(link, bytes); }));
        for (size_t bytes : sizes) {
            if (bytes > 16 * MIB) continue;
            for (int number : {1, 2, 4, 8})
                for (int i = 0; i < ROUND_REPEATS; ++i) {
                    auto rounds = [&] { for (int k = 0; k < CHAIN; ++k) round(&link, bytes, number); };
                    row(link.name, "scattered-chain", bytes, number, timed(compute, rounds) / CHAIN);
                }
        }
        // Many more copies than the kernels last.
        for (size_t bytes : {8 * MIB, 12 * MIB, 16 * MIB, 32 * MIB})
            for (int pieces : {1, 8})
                for (int i = 0; i < REPEATS; ++i) {
                    auto copying = [&] { for (int k = 0; k < 400; ++k) copy(link, 2 * MIB); };
                    auto kernels = [&] { for (int k = 0; k < 40; ++k) kernel(bytes / pieces, pieces); };
                    row(link.name, "kernel-while-copy", bytes / pieces, pieces, beside(copying, kernels) / 40);
                }
    }
};

int main(int arguments, char** argument) {
    int gib = arguments > 1 ? atoi(argument[1]) : 0;
    if (gib < 1) {
        fprintf(stderr, "usage: links GIB >links.csv\n  GIB: gibibytes of the pool that copies come from, 1 or more\n");
        return 2;
    }
    Bench bench;
    bench.pool = size_t(gib) * GIB;
    CHECK(cudaSetDevice(0));
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    bench.device = device.name;
    // It becomes the machine's name.
    std::replace(bench.device.begin(), bench.device.end(), ' ', '-');
    bench.processors = device.multiProcessorCount;
    CHECK(cudaStreamCreateWithFlags(&bench.compute, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&bench.copies, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&bench.begin));
    CHECK(cudaEventCreate(&bench.end));
    bench.arrived.resize(8);
    CHECK(cudaEventCreateWithFlags(&bench.routed, cudaEventDisableTiming));
    for (auto& event : bench.arrived) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaMalloc(&bench.memory, READ_POOL));
    CHECK(cudaMemset(bench.memory, 1, READ_POOL));
    CHECK(cudaMalloc(&bench.slots, bench.pool));
    CHECK(cudaMalloc(&bench.sink, sizeof(unsigned)));
    CHECK(cudaHostAlloc(&bench.go, sizeof(int), cudaHostAllocMapped));

    char *host, *peer;
    CHECK(cudaMallocHost(&host, bench.pool));
    memset(host, 1, bench.pool);
    // Name the link after yours: the first word decides what `hotset` takes it for.
    std::vector<Link> links = {{"pcie", "pinned-h2d", host, cudaMemcpyHostToDevice}};
    int devices, reachable = 0;
    CHECK(cudaGetDeviceCount(&devices));
    if (devices > 1) CHECK(cudaDeviceCanAccessPeer(&reachable, 0, 1));
    if (reachable) {
        CHECK(cudaDeviceEnablePeerAccess(1, 0));
        CHECK(cudaSetDevice(1));
        CHECK(cudaMalloc(&peer, bench.pool));
        CHECK(cudaMemset(peer, 1, bench.pool));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaSetDevice(0));
        links.push_back({"nvlink-peer", "p2p", peer, cudaMemcpyDeviceToDevice});
    }
    // A second of kernels, for the clocks to rise.
    for (int i = 0; i < 200000; ++i) bench.kernel(ROUND_KERNEL, 1);
    printf("device,link,mode,bytes,transfers,ms\n");
    bench.measure_memory();
    for (const Link& link : links) bench.measure_link(link);
}
