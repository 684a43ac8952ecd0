//! Flags of `advise`.

use clap::Args;

use super::CompareArgs;

/// Flags of `advise`: those of a comparison, whose lists are multiplied out.
#[derive(Debug, Args)]
#[command(
    mut_arg("policy", |arg| arg.default_value(POLICIES).help("Policies to try; parameters follow as name:key=value,key=value")),
    mut_arg("scope", |arg| arg.default_value("global,layer")),
    mut_arg("capacity", |arg| arg.default_value("25%")),
    mut_arg("phase", |arg| arg.default_value("decode").help("Steps to replay; of 'all' the decode tokens count")),
    mut_arg("link", |arg| arg.default_values(None::<&str>).help("Links by name (see 'hotset link'), or profiles (.toml) [default: those of --machine, else h200-pcie]")),
    mut_arg("prefetch", |arg| arg.help("Prefetchers to try beside none, as in none,ahead,cross-layer:width=4 [default: none, previous-token, and ahead where the trace has predictions]")),
    mut_arg("miss", |arg| arg.help("Ways to handle misses to try, as in fetch,balanced,cpu-layers:n=4 [default: fetch, and where the host was measured upload-cap:n=1, balanced, hybrimoe, cpu-layers]")),
    mut_arg("no_timeline", |arg| arg.hide(true)),
    mut_arg("semantics", |arg| arg.hide(true)),
    mut_arg("sample", |arg| arg.hide(true)),
    mut_arg("plot", |arg| arg.hide(true)),
    after_help = "\
Examples:
  hotset advise
  hotset advise x.hst --link h200-pcie --capacity 12.5%,25%,50%
  hotset advise x.hst --machine h200 --dense-bytes 20MiB
  hotset advise x.hst --link mine.toml --policy lru,s3-fifo --miss fetch --prefetch none

Every policy and scope is replayed under every way to handle misses and every prefetcher, each with
its interval over sequences. The first line is the answer; 'to type' reproduces each row."
)]
pub struct AdviseArgs {
    #[command(flatten)]
    pub compare: CompareArgs,
    /// Rows that a table shows of each answer; other formats have all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
}

/// Policies that cost little, and the best learner.
pub const POLICIES: &str = "lru,slru-50,class-lru,s3-fifo,td-pairs";
