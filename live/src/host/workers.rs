//! Threads that share each task's rows.

use std::collections::VecDeque;
use std::hint;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use core_affinity::CoreId;

use super::simd;
use crate::pool::HostPool;
use crate::weights::{Input, Sums};

/// Experts of one layer for the host's cores.
pub struct HostTask {
    /// Their keys.
    pub keys: Vec<u32>,
    /// The layer.
    pub layer: usize,
    /// The task's number: the accelerator says so once the routing is known, and waits for it.
    pub number: u32,
    /// Each thread's share of each expert's sums.
    shares: Vec<Mutex<Vec<Sums>>>,
    left: AtomicU32,
}

/// Flags that the accelerator and the host's cores leave each other.
#[derive(Debug, Clone, Copy)]
pub struct Flags;

impl Flags {
    /// The task whose routing the accelerator knows.
    pub const ROUTED: usize = 0;
    /// The task that the host has computed; another cache line.
    pub const DONE: usize = 16;
}

struct Shared {
    pool: Arc<HostPool>,
    inputs: Arc<[Input]>,
    threads: u32,
    queue: Mutex<VecDeque<Arc<HostTask>>>,
    more: Condvar,
    /// The newest task that was queued, for those that spin.
    queued: AtomicU32,
    finished: Mutex<Vec<Arc<HostTask>>>,
    stop: AtomicBool,
}

/// Threads at work.
pub struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    next: u32,
}

impl Workers {
    /// So many threads that compute experts of `pool` on the inputs of their layers.
    #[must_use]
    pub fn new(threads: u32, pool: &Arc<HostPool>, inputs: &Arc<[Input]>) -> Self {
        let shared = Arc::new(Shared {
            pool: Arc::clone(pool),
            inputs: Arc::clone(inputs),
            threads,
            queue: Mutex::default(),
            more: Condvar::new(),
            queued: AtomicU32::new(0),
            finished: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        pool.flag(Flags::ROUTED).store(0, Ordering::Release);
        pool.flag(Flags::DONE).store(0, Ordering::Release);
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        let start = |index| {
            let shared = Arc::clone(&shared);
            let core = core_of(&cores, index, threads);
            std::thread::spawn(move || {
                // Where it is refused, the system places the thread.
                let _ = core.is_some_and(core_affinity::set_for_current);
                work(&shared, index);
            })
        };
        let threads = (0..threads).map(start).collect();
        Self { shared, threads, next: 0 }
    }

    /// Queues a task and returns its number.
    pub fn queue(&mut self, layer: usize, keys: Vec<u32>) -> u32 {
        self.next += 1;
        let shares = (0..self.shared.threads).map(|_| Mutex::default()).collect();
        let left = AtomicU32::new(self.shared.threads);
        let task = HostTask { keys, layer, number: self.next, shares, left };
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(Arc::new(task));
        // Threads that are behind still need those before; what all have passed goes.
        let done = self.shared.pool.flag(Flags::DONE).load(Ordering::Acquire);
        while queue.front().is_some_and(|task| task.number <= done) {
            queue.pop_front();
        }
        // While nobody can be between looking and sleeping.
        self.shared.queued.store(self.next, Ordering::Release);
        self.shared.more.notify_all();
        drop(queue);
        self.next
    }

    /// The keys and sums of what was computed since this was asked last, in no order. Everything
    /// that was queued must be done.
    pub fn take_results(&self) -> Vec<(u32, Sums)> {
        let mut finished = self.shared.finished.lock().unwrap_or_else(PoisonError::into_inner);
        let results = finished.drain(..).flat_map(|task| {
            let mut sums = vec![Sums::default(); task.keys.len()];
            for share in &task.shares {
                let share = share.lock().unwrap_or_else(PoisonError::into_inner);
                for (sum, part) in sums.iter_mut().zip(share.iter()) {
                    sum.on_input += part.on_input;
                    sum.plain += part.plain;
                }
            }
            task.keys.iter().copied().zip(sums).collect::<Vec<_>>()
        });
        results.collect()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.stop.store(true, Ordering::Release);
        self.shared.more.notify_all();
        drop(queue);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The core of a thread: every other one where there are so many, since two often share a core's units, and the first
/// is left to whoever submits. `None` where there are too few to give each its own.
fn core_of(cores: &[CoreId], index: u32, threads: u32) -> Option<CoreId> {
    let (index, threads) = (index as usize, threads as usize);
    match cores.len() {
        enough if enough >= 2 * threads => cores.get(2 * index + 1).copied(),
        some if some > threads => cores.get(index + 1).copied(),
        _ => None,
    }
}

/// Spins so often before a thread sleeps: about a tenth of a second.
const SPINS: u32 = 2_000_000;

/// An accelerator that waits for a thread that has panicked would wait for ever.
struct LetGo<'a>(&'a HostPool);

impl Drop for LetGo<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.flag(Flags::DONE).store(u32::MAX, Ordering::Release);
        }
    }
}

fn work(shared: &Shared, index: u32) {
    let _let_go = LetGo(&shared.pool);
    let mut wanted = 1;
    while let Some(task) = next_task(shared, wanted) {
        wanted += 1;
        while shared.pool.flag(Flags::ROUTED).load(Ordering::Acquire) < task.number {
            if shared.stop.load(Ordering::Relaxed) {
                return;
            }
            hint::spin_loop();
        }
        let input = &shared.inputs[task.layer];
        let sums = task.keys.iter().map(|&key| {
            let expert = shared.pool.expert(key);
            let rows = expert.rows;
            let share =
                |part: u32| (rows as u64 * u64::from(part) / u64::from(shared.threads)) as usize;
            simd::rows(expert.weights, share(index)..share(index + 1), input)
        });
        let sums: Vec<Sums> = sums.collect();
        *task.shares[index as usize].lock().unwrap_or_else(PoisonError::into_inner) = sums;
        if task.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let number = task.number;
            shared.finished.lock().unwrap_or_else(PoisonError::into_inner).push(task);
            // Another thread may have finished the task behind it already.
            shared.pool.flag(Flags::DONE).fetch_max(number, Ordering::AcqRel);
        }
    }
}

/// The task of this number, once it is queued; `None` when the threads are to stop.
fn next_task(shared: &Shared, number: u32) -> Option<Arc<HostTask>> {
    let mut spins = 0;
    while shared.queued.load(Ordering::Acquire) < number {
        if shared.stop.load(Ordering::Relaxed) {
            return None;
        }
        spins += 1;
        if spins < SPINS {
            hint::spin_loop();
            continue;
        }
        let queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.queued.load(Ordering::Acquire) < number && !shared.stop.load(Ordering::Acquire) {
            drop(shared.more.wait(queue).unwrap_or_else(PoisonError::into_inner));
        }
        spins = 0;
    }
    let queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
    queue.iter().find(|task| task.number == number).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_cores_of_their_own_where_there_are_enough() {
        let cores: Vec<CoreId> = (0..16).map(|id| CoreId { id }).collect();
        let of = |cores: &[CoreId], threads| -> Vec<Option<usize>> {
            (0..threads).map(|index| core_of(cores, index, threads).map(|core| core.id)).collect()
        };
        assert_eq!(of(&cores, 3), [Some(1), Some(3), Some(5)]);
        assert_eq!(of(&cores[..4], 3), [Some(1), Some(2), Some(3)]);
        assert_eq!(of(&cores[..2], 2), [None, None]);
    }
}
