// An engine under test: it writes its decisions as the log that `hotset conform` reads.
//
//     engine_cpp right | wrong  > engine.jsonl
//
// "right" asks hotset's cache. "wrong" is a cache of the engine's own with a mistake that real ones
// made: it evicts by arrival where it says it evicts by use.
#include <hotset.hpp>

#include <cstdio>
#include <cstring>
#include <deque>
#include <algorithm>
#include <map>
#include <string>

namespace {

struct Fetch { uint32_t expert, slot; bool evicts; uint32_t from_layer, evicted; };

void write(size_t step, uint32_t layer, const std::vector<std::pair<uint32_t, uint32_t>> &hits,
           const std::vector<Fetch> &fetches) {
    std::printf("{\"step\":%zu,\"layer\":%u,\"hits\":[", step, layer);
    for (size_t i = 0; i < hits.size(); i++)
        std::printf("%s{\"expert\":%u,\"slot\":%u}", i ? "," : "", hits[i].first, hits[i].second);
    std::printf("],\"fetches\":[");
    for (size_t i = 0; i < fetches.size(); i++) {
        const Fetch &f = fetches[i];
        std::printf("%s{\"expert\":%u,\"slot\":%u,\"evicted\":", i ? "," : "", f.expert, f.slot);
        if (f.evicts)
            std::printf("{\"layer\":%u,\"expert\":%u}}", f.from_layer, f.evicted);
        else
            std::printf("null}");
    }
    std::printf("]}\n");
}

void right(const hotset::Trace &trace, uint32_t slots, size_t tokens) {
    hotset::Cache cache("lru", trace.experts, trace.top_k, {slots});
    for (size_t step = 0, token = 0; token < tokens; token++) {
        uint8_t phase = 0;
        trace.at(token, 0, &phase);
        if (phase != 1) continue;
        cache.begin_step(1);
        for (uint32_t layer = 0; layer < trace.shape.layers; layer++) {
            HotsetPlan plan = cache.demand(layer, trace.at(token, layer));
            std::vector<std::pair<uint32_t, uint32_t>> hits;
            std::vector<Fetch> fetches;
            for (uint32_t i = 0; i < plan.count; i++) {
                const HotsetPlacement &placed = plan.placements[i];
                if (placed.action == HOTSET_DO_HIT) hits.push_back({placed.expert, placed.slot});
                if (placed.action != HOTSET_DO_FETCH) continue;
                Fetch fetch{placed.expert, placed.slot, placed.evicted != HOTSET_NOBODY, 0, 0};
                if (fetch.evicts)
                    hotset::check(hotset_cache_expert_of(cache.get(), placed.evicted, &fetch.from_layer,
                                                         &fetch.evicted));
                fetches.push_back(fetch);
            }
            for (const Fetch &fetch : fetches) cache.complete(layer, fetch.expert);
            cache.release(layer);
            write(step, layer, hits, fetches);
        }
        step++;
    }
}

void wrong(const hotset::Trace &trace, uint32_t slots, size_t tokens) {
    using Key = std::pair<uint32_t, uint32_t>;
    std::map<Key, uint32_t> slot_of;
    std::deque<Key> arrived;
    for (size_t step = 0, token = 0; token < tokens; token++) {
        uint8_t phase = 0;
        trace.at(token, 0, &phase);
        if (phase != 1) continue;
        for (uint32_t layer = 0; layer < trace.shape.layers; layer++) {
            std::vector<uint32_t> experts = trace.at(token, layer), missing;
            std::vector<std::pair<uint32_t, uint32_t>> hits;
            for (uint32_t expert : experts) {
                auto found = slot_of.find({layer, expert});
                if (found != slot_of.end()) hits.push_back({expert, found->second});
                else missing.push_back(expert);
            }
            std::sort(missing.begin(), missing.end());
            std::vector<Fetch> fetches;
            for (uint32_t expert : missing) {
                Fetch fetch{expert, static_cast<uint32_t>(slot_of.size()), false, 0, 0};
                if (slot_of.size() == slots) {
                    Key victim = arrived.front();  // the mistake: not who was used least recently
                    arrived.pop_front();
                    fetch.slot = slot_of[victim];
                    slot_of.erase(victim);
                    fetch.evicts = true;
                    fetch.from_layer = victim.first;
                    fetch.evicted = victim.second;
                }
                slot_of[{layer, expert}] = fetch.slot;
                arrived.push_back({layer, expert});
                fetches.push_back(fetch);
            }
            write(step, layer, hits, fetches);
        }
        step++;
    }
}

}  // namespace

int main(int argc, char **argv) {
    try {
        hotset::Trace trace(argc > 2 ? argv[2] : "");
        uint32_t total = 0;
        for (uint32_t experts : trace.experts) total += experts;
        try {
            hotset::Cache impossible("lru", trace.experts, trace.top_k, {total + 1});
            return 3;
        } catch (const hotset::Error &error) {
            std::fprintf(stderr, "refused as it should be: %s\n", error.what());
        }
        bool is_right = argc > 1 && std::strcmp(argv[1], "right") == 0;
        (is_right ? right : wrong)(trace, total / 4, trace.shape.tokens);
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 2;
    }
}
