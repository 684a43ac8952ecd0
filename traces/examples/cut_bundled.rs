//! Cuts the bundled trace from the recorded one:
//! `cargo run -p hotset-traces --example cut_bundled -- ROUTES.npz traces/bundled/h200-moe.hst`

use hotset_traces::{Codec, write_hst};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [routes, out] = &arguments[..] else {
        return Err("usage: cut_bundled ROUTES.npz OUT.hst".into());
    };
    let trace = hotset_traces::bundled::cut(routes.as_ref())?;
    write_hst(&trace, out, Codec::Zstd(19))?;
    println!("digest         {}", trace.digest());
    println!("content digest {}", trace.content_digest());
    println!("tokens         {}", trace.tokens());
    println!("bytes          {}", std::fs::metadata(out)?.len());
    Ok(())
}
