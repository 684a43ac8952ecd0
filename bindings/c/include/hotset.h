/* hotset: the expert cache that an engine links, and recorded traces. MIT OR Apache-2.0.
 *
 * Made from bindings/c/src by cbindgen; `HOTSET_WRITE_HEADER=1 cargo test` in bindings/c makes it again.
 *
 * Every function that can fail returns a HotsetStatus; hotset_last_error() then says what, where and
 * what to do, for the calling thread. A failed call has changed nothing, unless its comment says so.
 * Nothing throws or unwinds into the caller. A handle is for one thread at a time. */

#ifndef HOTSET_H
#define HOTSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Nobody held the slot.
#define HOTSET_NOBODY UINT32_MAX

// How a call ended.
typedef enum HotsetStatus {
  // Done.
  HOTSET_STATUS_OK = 0,
  // A pointer is null that must not be.
  HOTSET_STATUS_NULL_POINTER = 1,
  // A number, name or text that cannot be.
  HOTSET_STATUS_INVALID_ARGUMENT = 2,
  // The cache cannot do it now: a slot is in use.
  HOTSET_STATUS_IN_USE = 3,
  // A file that cannot be read.
  HOTSET_STATUS_IO = 4,
  // A fault of hotset's own; the handle must only be freed.
  HOTSET_STATUS_PANIC = 5,
} HotsetStatus;

// What to do for an expert.
typedef enum HotsetDo {
  // Resident: use the slot.
  HOTSET_DO_HIT = 0,
  // Resident thanks to a prefetch, and asked for the first time since: use the slot.
  HOTSET_DO_PREFETCH_HIT = 1,
  // On its way into the slot: wait for its copy.
  HOTSET_DO_PENDING = 2,
  // Copy the expert into the slot, then call hotset_cache_complete.
  HOTSET_DO_FETCH = 3,
  // No slot for it: a demand is served through a buffer of the engine's, a prefetch is given up.
  HOTSET_DO_UNPLACED = 4,
} HotsetDo;

// A cache of expert slots: events in, plans out. It copies nothing.
typedef struct HotsetCache HotsetCache;

// A recorded router trace; immutable, so that threads may share it.
typedef struct HotsetTrace HotsetTrace;

// Where one expert of an event goes.
typedef struct HotsetPlacement {
  // Its id within its layer.
  uint32_t expert;
  // Its slot in the layer's pool; meaningless if unplaced.
  uint32_t slot;
  // The dense key of whoever held the slot until now, or HOTSET_NOBODY.
  uint32_t evicted;
  // What to do.
  enum HotsetDo action;
} HotsetPlacement;

// The answer to one event. What it points to is the cache's, until the next call on it.
typedef struct HotsetPlan {
  // One entry a distinct expert: hits and pending ones as asked, then misses by ascending id.
  const struct HotsetPlacement *placements;
  // Distinct experts.
  uint32_t count;
  // Dense keys of experts that left without another taking their slot.
  const uint32_t *dropped;
  // How many of them there are.
  uint32_t dropped_count;
  // Experts that can be used at once.
  uint32_t hits;
  // Of the hits, those that a prefetch brought in.
  uint32_t prefetch_hits;
  // Experts on their way.
  uint32_t pending;
  // Experts to copy.
  uint32_t fetches;
  // Experts without a slot.
  uint32_t unplaced;
  // Prefetched experts that left before anything asked for them.
  uint32_t wasted;
  // Whether the event needs more experts than its pool has slots.
  bool overflow;
} HotsetPlan;

// A trace's measures.
typedef struct HotsetTraceShape {
  // Tokens: rows.
  size_t tokens;
  // MoE layers.
  size_t layers;
  // The most experts that any layer has.
  uint32_t max_experts;
  // The most experts that a token uses in any layer.
  uint32_t max_top_k;
} HotsetTraceShape;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a cache for a model with experts[l] experts in MoE layer l, of which a token uses top_k[l].
// slots: one number for a pool over all layers, or one for each layer. policy: a name as in
// `hotset policies`, with parameters as "lru-k:k=2". The cache is to be freed.
//
// # Safety
// `policy` is a text; `experts` and `top_k` have `layers` entries, `slots` has `slots_count`; `cache`
// can be written to.
enum HotsetStatus hotset_cache_new(const char *policy,
                                   size_t layers,
                                   const uint32_t *experts,
                                   const uint32_t *top_k,
                                   size_t slots_count,
                                   const uint32_t *slots,
                                   struct HotsetCache **cache);

// Frees a cache; null is passed over.
//
// # Safety
// `cache` is null or from `hotset_cache_new`, and is not used afterwards.
void hotset_cache_free(struct HotsetCache *cache);

// A step over so many tokens begins. Some policies go by it; call it once a forward pass.
//
// # Safety
// `cache` is from `hotset_cache_new`.
enum HotsetStatus hotset_cache_begin_step(struct HotsetCache *cache, uint32_t tokens);

// What a layer needs now, best rank first; duplicates are one demand. weights: the router's weight of
// each, or null. The layer's experts stay until hotset_cache_release.
//
// # Safety
// `cache` is from `hotset_cache_new`; `experts` has `count` entries, `weights` too unless it is null;
// `plan` can be written to.
enum HotsetStatus hotset_cache_demand(struct HotsetCache *cache,
                                      uint32_t layer,
                                      const uint32_t *experts,
                                      const float *weights,
                                      size_t count,
                                      struct HotsetPlan *plan);

// Brings in what a layer is predicted to need, in this order, evicting none that an open demand needs.
//
// # Safety
// As `hotset_cache_demand`.
enum HotsetStatus hotset_cache_prefetch(struct HotsetCache *cache,
                                        uint32_t layer,
                                        const uint32_t *experts,
                                        size_t count,
                                        struct HotsetPlan *plan);

// The copy of an expert into its slot is complete.
//
// # Safety
// `cache` is from `hotset_cache_new`.
enum HotsetStatus hotset_cache_complete(struct HotsetCache *cache, uint32_t layer, uint32_t expert);

// The layer's experts have been used: their slots may be given away again.
//
// # Safety
// `cache` is from `hotset_cache_new`.
enum HotsetStatus hotset_cache_release(struct HotsetCache *cache, uint32_t layer);

// Gives or takes slots while the cache is in use; slots as for hotset_cache_new. Whoever no longer
// fits has left, and whoever is in a slot that goes away is moved: `moved`, where it is not null, gets
// (dense key, from, to) for each, `moved_count` how many. Refused with HOTSET_STATUS_IN_USE where a
// demand is open or a copy in flight, and with HOTSET_STATUS_INVALID_ARGUMENT, after the change, where
// `moved` has not room (three numbers for each slot before always suffice).
//
// # Safety
// `cache` is from `hotset_cache_new`; `slots` has `slots_count` entries, `moved` room for `moved_room`
// numbers unless it is null; `moved_count` is null or can be written to.
enum HotsetStatus hotset_cache_resize(struct HotsetCache *cache,
                                      size_t slots_count,
                                      const uint32_t *slots,
                                      size_t moved_room,
                                      uint32_t *moved,
                                      size_t *moved_count);

// The slot of an expert whose copy is complete, else HOTSET_NOBODY.
//
// # Safety
// `cache` is from `hotset_cache_new`; `slot` can be written to.
enum HotsetStatus hotset_cache_slot_of(const struct HotsetCache *cache,
                                       uint32_t layer,
                                       uint32_t expert,
                                       uint32_t *slot);

// Layer and expert of a dense key, such as one that was evicted.
//
// # Safety
// `cache` is from `hotset_cache_new`; `layer` and `expert` can be written to.
enum HotsetStatus hotset_cache_expert_of(const struct HotsetCache *cache,
                                         uint32_t key,
                                         uint32_t *layer,
                                         uint32_t *expert);

// Slots over all pools; 0 for null.
//
// # Safety
// `cache` is null or from `hotset_cache_new`.
uint32_t hotset_cache_capacity(const struct HotsetCache *cache);

// Experts that hold a slot, those on their way included; 0 for null.
//
// # Safety
// `cache` is null or from `hotset_cache_new`.
uint32_t hotset_cache_resident(const struct HotsetCache *cache);

// What went wrong in this thread's last call that failed; empty before the first. Valid until the
// thread's next call.
const char *hotset_last_error(void);

// Opens an .hst file; null opens the trace that comes with hotset. It is to be freed.
//
// # Safety
// `path` is null or a text; `trace` can be written to.
enum HotsetStatus hotset_trace_open(const char *path, struct HotsetTrace **trace);

// Frees a trace; null is passed over.
//
// # Safety
// `trace` is null or from `hotset_trace_open`, and is not used afterwards.
void hotset_trace_free(struct HotsetTrace *trace);

// How large it is.
//
// # Safety
// `trace` is from `hotset_trace_open`; `shape` can be written to.
enum HotsetStatus hotset_trace_shape(const struct HotsetTrace *trace,
                                     struct HotsetTraceShape *shape);

// Experts and top-k of a layer.
//
// # Safety
// `trace` is from `hotset_trace_open`; `experts` and `top_k` can be written to.
enum HotsetStatus hotset_trace_layer(const struct HotsetTrace *trace,
                                     size_t layer,
                                     uint32_t *experts,
                                     uint32_t *top_k);

// The experts of one token in one layer, best first, into `experts`; `count` gets how many. `phase`,
// where it is not null, gets 0 (prefill), 1 (decode) or 2 (verify).
//
// # Safety
// `trace` is from `hotset_trace_open`; `experts` has room for `room` numbers; `count` can be written to,
// `phase` too unless it is null.
enum HotsetStatus hotset_trace_experts(const struct HotsetTrace *trace,
                                       size_t token,
                                       size_t layer,
                                       size_t room,
                                       uint32_t *experts,
                                       size_t *count,
                                       uint8_t *phase);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HOTSET_H */
