/* The loop of an engine around the cache: what a layer needs, what to copy, what was copied.
 *
 * The "model" is a recorded trace, the "GPU" an array of slots: a slot holds the number of its expert, so
 * that the example can check that every expert it computes with is where the plan said.
 */
#include <hotset.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                              \
    do {                                                                         \
        if ((call) != HOTSET_STATUS_OK) {                                        \
            fprintf(stderr, "%s: %s\n", #call, hotset_last_error());             \
            exit(2);                                                             \
        }                                                                        \
    } while (0)

enum { MOST_LAYERS = 64, MOST_EXPERTS = 512, TRANSIENT = -2 };

int main(int argc, char **argv) {
    HotsetTrace *trace = NULL;
    HotsetTraceShape shape;
    CHECK(hotset_trace_open(argc > 1 ? argv[1] : NULL, &trace));
    CHECK(hotset_trace_shape(trace, &shape));
    if (shape.layers > MOST_LAYERS || shape.max_top_k > MOST_EXPERTS) return 2;
    uint32_t experts[MOST_LAYERS], top_k[MOST_LAYERS], total = 0;
    for (size_t layer = 0; layer < shape.layers; layer++) {
        CHECK(hotset_trace_layer(trace, layer, &experts[layer], &top_k[layer]));
        total += experts[layer];
    }
    const uint32_t slots = total / 4;
    HotsetCache *cache = NULL;
    CHECK(hotset_cache_new("lru", shape.layers, experts, top_k, 1, &slots, &cache));

    uint32_t *gpu = calloc(slots, sizeof *gpu); /* 0: nothing; else layer * 1000 + expert + 1 */
    unsigned long long hits = 0, copies = 0, wrong = 0;
    size_t tokens = shape.tokens < 2000 ? shape.tokens : 2000;
    for (size_t token = 0; token < tokens; token++) {
        CHECK(hotset_cache_begin_step(cache, 1));
        for (uint32_t layer = 0; layer < shape.layers; layer++) {
            uint32_t chosen[MOST_EXPERTS];
            size_t count = 0;
            CHECK(hotset_trace_experts(trace, token, layer, MOST_EXPERTS, chosen, &count, NULL));
            HotsetPlan plan;
            CHECK(hotset_cache_demand(cache, layer, chosen, NULL, count, &plan));
            hits += plan.hits;
            /* The plan is the cache's: keep what is needed beyond the next call. */
            HotsetPlacement placed[MOST_EXPERTS];
            for (uint32_t i = 0; i < plan.count; i++) placed[i] = plan.placements[i];
            for (uint32_t i = 0; i < plan.count; i++) {
                if (placed[i].action == HOTSET_DO_FETCH) { /* cudaMemcpyAsync(...) */
                    gpu[placed[i].slot] = layer * 1000 + placed[i].expert + 1;
                    copies++;
                    CHECK(hotset_cache_complete(cache, layer, placed[i].expert));
                }
            }
            for (uint32_t i = 0; i < plan.count; i++) { /* the experts' kernels */
                int transient = placed[i].action == HOTSET_DO_UNPLACED;
                wrong += !transient && gpu[placed[i].slot] != layer * 1000 + placed[i].expert + 1;
            }
            CHECK(hotset_cache_release(cache, layer));
        }
    }
    printf("%zu tokens: %llu hits, %llu copies, %llu wrong experts, %u of %u slots taken\n", tokens,
           hits, copies, wrong, hotset_cache_resident(cache), hotset_cache_capacity(cache));

    /* Less memory: the cache gives slots back while it is in use. */
    const uint32_t fewer = slots / 2;
    uint32_t *moved = calloc(3 * (size_t)slots, sizeof *moved);
    size_t moves = 0;
    CHECK(hotset_cache_resize(cache, 1, &fewer, 3 * (size_t)slots, moved, &moves));
    printf("%u slots now, %zu experts to move\n", hotset_cache_capacity(cache), moves);
    HotsetStatus refused = hotset_cache_complete(cache, 0, 100000);
    printf("status %d: %s\n", (int)refused, hotset_last_error());
    free(moved);
    free(gpu);
    hotset_cache_free(cache);
    hotset_trace_free(trace);
    return wrong != 0;
}
