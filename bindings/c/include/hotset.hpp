// hotset for C++17: handles that free themselves, exceptions in place of statuses. A page over hotset.h.
#ifndef HOTSET_HPP
#define HOTSET_HPP

#include <hotset.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace hotset {

// What a call was refused for; what() says what, where and what to do.
struct Error : std::runtime_error {
    Error(HotsetStatus status, const char *text) : std::runtime_error(text), status(status) {}
    HotsetStatus status;
};

inline void check(HotsetStatus status) {
    if (status != HOTSET_STATUS_OK) throw Error(status, hotset_last_error());
}

// A recorded trace; an empty path opens the one that comes with hotset.
class Trace {
  public:
    explicit Trace(const std::string &path = "") {
        HotsetTrace *opened = nullptr;
        check(hotset_trace_open(path.empty() ? nullptr : path.c_str(), &opened));
        handle.reset(opened);
        check(hotset_trace_shape(handle.get(), &shape));
        for (size_t layer = 0; layer < shape.layers; layer++) {
            uint32_t width = 0, k = 0;
            check(hotset_trace_layer(handle.get(), layer, &width, &k));
            experts.push_back(width);
            top_k.push_back(k);
        }
    }
    // The experts of one token in one layer, best first.
    std::vector<uint32_t> at(size_t token, size_t layer, uint8_t *phase = nullptr) const {
        std::vector<uint32_t> chosen(shape.max_top_k);
        size_t count = 0;
        check(hotset_trace_experts(handle.get(), token, layer, chosen.size(), chosen.data(), &count,
                                   phase));
        chosen.resize(count);
        return chosen;
    }
    HotsetTraceShape shape{};
    std::vector<uint32_t> experts, top_k;

  private:
    struct Free { void operator()(HotsetTrace *trace) const { hotset_trace_free(trace); } };
    std::unique_ptr<HotsetTrace, Free> handle;
};

// The cache. One number of slots: a pool over all layers; one for each layer: a pool a layer.
class Cache {
  public:
    Cache(const std::string &policy, const std::vector<uint32_t> &experts,
          const std::vector<uint32_t> &top_k, const std::vector<uint32_t> &slots) {
        if (top_k.size() != experts.size()) throw std::invalid_argument("one top_k for each layer");
        HotsetCache *made = nullptr;
        check(hotset_cache_new(policy.c_str(), experts.size(), experts.data(), top_k.data(),
                               slots.size(), slots.data(), &made));
        handle.reset(made);
    }
    // Valid until the next call on this cache, as what it points to.
    HotsetPlan demand(uint32_t layer, const std::vector<uint32_t> &experts) {
        HotsetPlan plan;
        check(hotset_cache_demand(get(), layer, experts.data(), nullptr, experts.size(), &plan));
        return plan;
    }
    HotsetPlan prefetch(uint32_t layer, const std::vector<uint32_t> &experts) {
        HotsetPlan plan;
        check(hotset_cache_prefetch(get(), layer, experts.data(), experts.size(), &plan));
        return plan;
    }
    void begin_step(uint32_t tokens) { check(hotset_cache_begin_step(get(), tokens)); }
    void complete(uint32_t layer, uint32_t expert) { check(hotset_cache_complete(get(), layer, expert)); }
    void release(uint32_t layer) { check(hotset_cache_release(get(), layer)); }
    HotsetCache *get() const { return handle.get(); }

  private:
    struct Free { void operator()(HotsetCache *cache) const { hotset_cache_free(cache); } };
    std::unique_ptr<HotsetCache, Free> handle;
};

}  // namespace hotset

#endif
