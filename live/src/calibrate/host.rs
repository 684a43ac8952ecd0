//! Host cores that compute experts: alone, beside copies, and as a layer waits for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{CHAIN, Grid, ROUND_KERNEL};
use crate::LiveError;
use crate::host::{Flags, Workers};
use crate::model::LiveModel;
use crate::pool::{HostPool, Pool};

/// Experts of a task: as many as take long enough to be timed by the host's clock.
const EXPERTS: u32 = 64;

pub(super) fn measure(
    grid: &mut Grid<'_>,
    model: &LiveModel,
    threads: u32,
    bytes: u64,
) -> Result<(), LiveError> {
    let Pool::Host(pool) = &model.pool else { return Ok(()) };
    let mut host = Host { workers: Workers::new(threads, pool, &model.inputs), pool, next: 0 };
    let link = model.source().link();
    let mode = model.source().mode();
    host.task(EXPERTS);
    for _ in 0..grid.repeats {
        let ms = host.task(EXPERTS) / f64::from(EXPERTS);
        grid.row("cpu", &format!("expert-{threads}t"), (bytes, 1), ms);
    }
    // Copies for longer than the cores are at work, and the reverse.
    for _ in 0..grid.repeats {
        let copies = 400;
        let mut task = 0.0;
        let alone = |grid: &Grid<'_>| -> Result<(), LiveError> {
            (0..copies).try_for_each(|_| grid.bench.copy(bytes))
        };
        grid.bench.timed(&grid.bench.copies, || {
            alone(grid)?;
            task = host.task(EXPERTS) / f64::from(EXPERTS);
            Ok(())
        })?;
        grid.row("cpu", &format!("expert-{threads}t-while-h2d"), (bytes, 1), task);
        let copies = 64;
        let number = host.begin(EXPERTS * 16);
        let ms = grid
            .bench
            .timed(&grid.bench.copies, || (0..copies).try_for_each(|_| grid.bench.copy(bytes)))?;
        host.end(number);
        grid.row(link, &format!("{mode}-while-cpu-{threads}t"), (bytes, copies), ms);
    }
    for experts in [1, 2, 4, 8] {
        for _ in 0..grid.repeats {
            let ms = rounds(grid, &mut host, experts)? / f64::from(CHAIN);
            grid.row("cpu", &format!("expert-round-{threads}t"), (bytes, experts), ms);
        }
    }
    host.workers.take_results();
    Ok(())
}

/// A kernel, the routing told, experts on the host's cores, the wait for them, a kernel.
fn rounds(grid: &Grid<'_>, host: &mut Host<'_>, experts: u32) -> Result<f64, LiveError> {
    let bench = &grid.bench;
    bench.timed(&bench.compute, || {
        for _ in 0..CHAIN {
            bench.kernel(ROUND_KERNEL, 1)?;
            let number = host.queue(experts);
            bench.compute.tell(host.pool.flags(), Flags::ROUTED, number)?;
            bench.compute.wait_for(host.pool.flags(), Flags::DONE, number)?;
            bench.kernel(ROUND_KERNEL, 1)?;
        }
        Ok(())
    })
}

struct Host<'a> {
    workers: Workers,
    pool: &'a Arc<HostPool>,
    next: u32,
}

impl Host<'_> {
    fn queue(&mut self, experts: u32) -> u32 {
        let all = self.pool.experts();
        // One far from the one before it, as a router chooses them.
        let far = all / 3 + 1;
        let keys: Vec<u32> =
            (0..experts).map(|i| (self.next + i.wrapping_mul(far)) % all).collect();
        self.next = (self.next + experts.wrapping_mul(far) + 1) % all;
        // The first layer's input will do: what is computed is not compared.
        self.workers.queue(0, keys)
    }

    fn begin(&mut self, experts: u32) -> u32 {
        let number = self.queue(experts);
        self.pool.flag(Flags::ROUTED).store(number, Ordering::Release);
        number
    }

    fn end(&self, number: u32) {
        while self.pool.flag(Flags::DONE).load(Ordering::Acquire) < number {
            std::hint::spin_loop();
        }
    }

    /// Milliseconds that so many experts take.
    fn task(&mut self, experts: u32) -> f64 {
        let started = Instant::now();
        let number = self.begin(experts);
        self.end(number);
        started.elapsed().as_secs_f64() * 1e3
    }
}
