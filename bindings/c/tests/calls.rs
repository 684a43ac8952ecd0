//! The C functions as a careless program calls them.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use hotset::*;

fn told() -> String {
    // SAFETY: it is valid until this thread's next call.
    unsafe { CStr::from_ptr(hotset_last_error()) }.to_str().unwrap().to_owned()
}

fn cache(policy: &str, experts: &[u32], slots: &[u32]) -> (Status, *mut Cache) {
    let (policy, mut cache) = (CString::new(policy).unwrap(), null_mut());
    let top_k = vec![2; experts.len()];
    // SAFETY: the arrays have these lengths.
    let status = unsafe {
        hotset_cache_new(
            policy.as_ptr(),
            experts.len(),
            experts.as_ptr(),
            top_k.as_ptr(),
            slots.len(),
            slots.as_ptr(),
            &mut cache,
        )
    };
    (status, cache)
}

#[test]
fn what_cannot_be_is_a_status_with_a_text() {
    assert_eq!(cache("lrru", &[8], &[4]).0, Status::InvalidArgument);
    assert!(told().contains("did you mean 'lru'"), "{}", told());
    assert_eq!(cache("belady", &[8], &[4]).0, Status::InvalidArgument);
    assert_eq!(cache("lru", &[8], &[9]).0, Status::InvalidArgument);
    assert_eq!(cache("lru", &[], &[9]).0, Status::InvalidArgument);
    assert_eq!(cache("lru", &[8, 8, 8], &[4, 4]).0, Status::InvalidArgument);
    assert!(told().contains("2 numbers for 3 layers"), "{}", told());
    assert_eq!(cache("lru", &[u32::MAX, u32::MAX], &[4]).0, Status::InvalidArgument);
    let (status, cache) = cache("lru", &[8, 4], &[6]);
    assert_eq!(status, Status::Ok);
    let mut plan = MaybeUninit::uninit();
    // SAFETY: the cache is one, the arrays have the lengths given.
    unsafe {
        let experts = [3, 1];
        let demand = |layer, experts: *const u32, count, plan| {
            hotset_cache_demand(cache, layer, experts, null(), count, plan)
        };
        assert_eq!(demand(2, experts.as_ptr(), 2, plan.as_mut_ptr()), Status::InvalidArgument);
        assert_eq!(demand(1, [0, 4].as_ptr(), 2, plan.as_mut_ptr()), Status::InvalidArgument);
        assert!(told().contains("experts[1] is 4: layer 1 has experts 0 to 3"), "{}", told());
        assert_eq!(demand(0, null(), 2, plan.as_mut_ptr()), Status::NullPointer);
        assert_eq!(demand(0, experts.as_ptr(), 2, null_mut()), Status::NullPointer);
        assert_eq!(
            demand(0, experts.as_ptr(), usize::MAX, plan.as_mut_ptr()),
            Status::InvalidArgument
        );
        let nan = [f32::NAN, 0.0];
        let weighted =
            hotset_cache_demand(cache, 0, experts.as_ptr(), nan.as_ptr(), 2, plan.as_mut_ptr());
        assert_eq!(weighted, Status::InvalidArgument);
        assert_eq!(demand(0, experts.as_ptr(), 2, plan.as_mut_ptr()), Status::Ok);
        let plan = plan.assume_init();
        let placed = std::slice::from_raw_parts(plan.placements, plan.count as usize);
        assert_eq!((placed[0].expert, placed[0].action), (1, Do::Fetch));
        assert_eq!(placed[0].evicted, HOTSET_NOBODY);
        assert_eq!(
            hotset_cache_resize(cache, 1, [1].as_ptr(), 0, null_mut(), null_mut()),
            Status::InUse
        );
        assert_eq!(hotset_cache_complete(cache, 0, 1), Status::Ok);
        assert_eq!(hotset_cache_complete(cache, 0, 8), Status::InvalidArgument);
        let mut slot = 0;
        assert_eq!(hotset_cache_slot_of(cache, 0, 1, &mut slot), Status::Ok);
        assert_eq!(slot, placed[0].slot);
        assert_eq!(hotset_cache_slot_of(cache, 0, 3, &mut slot), Status::Ok);
        assert_eq!(slot, HOTSET_NOBODY);
        let (mut layer, mut expert) = (0, 0);
        assert_eq!(hotset_cache_expert_of(cache, 9, &mut layer, &mut expert), Status::Ok);
        assert_eq!((layer, expert), (1, 1));
        assert_eq!(
            hotset_cache_expert_of(cache, 12, &mut layer, &mut expert),
            Status::InvalidArgument
        );
        assert_eq!((hotset_cache_capacity(cache), hotset_cache_resident(cache)), (6, 2));
        assert_eq!(hotset_cache_release(cache, 7), Status::InvalidArgument);
        hotset_cache_free(cache);
        hotset_cache_free(null_mut());
        assert_eq!(hotset_cache_begin_step(null_mut(), 1), Status::NullPointer);
        assert_eq!(hotset_cache_capacity(null()), 0);
    }
}

#[test]
fn a_trace_is_read() {
    let (mut trace, nowhere) = (null_mut(), CString::new("nowhere.hst").unwrap());
    // SAFETY: what is written to is there.
    unsafe {
        assert_eq!(hotset_trace_open(nowhere.as_ptr(), &mut trace), Status::Io);
        assert!(told().contains("nowhere.hst"), "{}", told());
        assert_eq!(hotset_trace_open(null(), &mut trace), Status::Ok);
        let mut shape = MaybeUninit::uninit();
        assert_eq!(hotset_trace_shape(trace, shape.as_mut_ptr()), Status::Ok);
        let shape = shape.assume_init();
        assert_eq!((shape.tokens, shape.layers, shape.max_top_k), (21504, 16, 8));
        let (mut experts, mut count, mut phase) = ([0u32; 8], 0, 9);
        let mut read = |token, layer, room| {
            hotset_trace_experts(
                trace,
                token,
                layer,
                room,
                experts.as_mut_ptr(),
                &mut count,
                &mut phase,
            )
        };
        assert_eq!(read(21504, 0, 8), Status::InvalidArgument);
        assert_eq!(read(0, 16, 8), Status::InvalidArgument);
        assert_eq!(read(0, 0, 7), Status::InvalidArgument);
        assert_eq!(read(0, 0, 8), Status::Ok);
        assert_eq!((count, phase), (8, 0));
        let (mut width, mut top_k) = (0, 0);
        assert_eq!(hotset_trace_layer(trace, 15, &mut width, &mut top_k), Status::Ok);
        assert_eq!((width, top_k), (64, 8));
        assert_eq!(hotset_trace_layer(trace, 16, &mut width, &mut top_k), Status::InvalidArgument);
        hotset_trace_free(trace);
    }
}
