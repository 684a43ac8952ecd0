//! Every policy against a naive reference written for clarity: the resident set after every
//! event, on random and looping sequences, in both scopes and both semantics.

mod harness;
mod naive_basic;

use harness::{check_all, check_future};
use hotset_policies::{Clock, Fifo, Lfu, Lru};
use naive_basic::{NaiveBelady, NaiveClock, NaiveFifo, NaiveLfu, NaiveLru};

#[test]
fn lru() {
    check_all(Lru::new, NaiveLru::new);
}

#[test]
fn fifo() {
    check_all(Fifo::new, NaiveFifo::new);
}

#[test]
fn clock() {
    check_all(Clock::new, NaiveClock::new);
}

#[test]
fn lfu() {
    check_all(Lfu::new, NaiveLfu::new);
}

#[test]
fn belady() {
    check_future(NaiveBelady::new);
}
