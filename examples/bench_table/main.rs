//! Makes the tables of benches/README.md: every policy one access at a time and through the real
//! cache, against a plain array-linked LRU loop of the same run; and what opening a file costs.
//!
//! `cargo run --release --example bench_table -- [--rounds N] [--policy NAME,...] [--tokens N] [--write]`
//!
//! `--write` puts the tables into benches/README.md. Times are processor time where the system
//! tells it, so that other programs disturb less; of all rounds the best counts.

mod clock;
mod library;
mod loading;
mod replays;
#[path = "../../benches/support/mod.rs"]
mod support;

use std::error::Error;
use std::path::Path;

use support::TOKENS;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Options {
    rounds: u32,
    tokens: usize,
    only: Option<Vec<String>>,
    write: bool,
}

fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path] = &arguments[..]
        && flag == "--open"
    {
        return loading::open_alone(Path::new(path));
    }
    let options = options(&mut arguments)?;
    let (replays, loading) =
        (replays::replay_table(&options)?, loading::load_table(options.rounds)?);
    let tables = format!("{}\n{replays}\n{loading}", clock::machine());
    println!("{tables}");
    if options.write {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/README.md");
        let text = std::fs::read_to_string(&path)?;
        let (begin, end) = ("<!-- measured -->\n", "<!-- /measured -->");
        let head = text.find(begin).ok_or("no place for the tables")? + begin.len();
        let tail = text.find(end).ok_or("no end of the tables")?;
        std::fs::write(&path, format!("{}\n{tables}\n{}", &text[..head], &text[tail..]))?;
    }
    Ok(())
}

fn options(arguments: &mut Vec<String>) -> Result<Options> {
    let mut options = Options { rounds: 7, tokens: TOKENS, only: None, write: false };
    let mut rest = arguments.drain(..);
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--rounds" => options.rounds = rest.next().ok_or("--rounds N")?.parse()?,
            "--policy" => {
                let names = rest.next().ok_or("--policy NAME,...")?;
                options.only = Some(names.split(',').map(str::to_owned).collect());
            }
            "--tokens" => options.tokens = rest.next().ok_or("--tokens N")?.parse()?,
            "--write" => options.write = true,
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    if options.write && (options.only.is_some() || options.tokens != TOKENS) {
        return Err(
            "--write takes every policy over the whole workload: leave out --policy and --tokens"
                .into(),
        );
    }
    Ok(options)
}
