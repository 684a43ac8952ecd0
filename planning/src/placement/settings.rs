//! What to type, by engine.

use hotset_cost_models::model::KvFormat;

use super::{Placing, Stage};

/// The command of an engine with these settings.
pub(super) fn settings(placing: &Placing<'_>, on_host: u32, stages: &[Stage]) -> Vec<String> {
    let request = placing.request;
    let model = &request.model;
    let several = stages.len() > 1;
    match placing.engine.name.as_str() {
        "KTransformers" => {
            let experts = model.moe_layers().map(|(_, experts)| experts.count).max().unwrap_or(0);
            let all = placing.expert_layers().max(1);
            // Every layer keeps the same number of experts on the accelerator.
            let kept = u64::from(experts) * u64::from(all - on_host.min(all)) / u64::from(all);
            vec![format!(
                "python -m sglang.launch_server --model MODEL --kt-weight-path WEIGHTS --kt-num-gpu-experts {kept} \
                 --kt-method AMXINT4 --tensor-parallel-size {} --chunked-prefill-size {} --context-length {} \
                 --max-running-requests {}",
                stages.len(), request.reserve.chunk, request.context, request.users
            )]
        }
        "vLLM" if on_host == 0 => vec![format!(
            "vllm serve MODEL --pipeline-parallel-size {} --max-model-len {} --max-num-seqs {} --max-num-batched-tokens {}",
            stages.len(), request.context, request.users, request.reserve.chunk
        )],
        "SGLang" if on_host == 0 => vec![format!(
            "python -m sglang.launch_server --model-path MODEL --pp-size {} --context-length {} \
             --max-running-requests {} --chunked-prefill-size {}",
            stages.len(), request.context, request.users, request.reserve.chunk
        )],
        "vLLM" | "SGLang" => vec![
            "computes no experts on the host: KTransformers' kt-kernel with SGLang, or llama.cpp, does".to_owned(),
        ],
        _ => {
            let micro = placing.micro_batch();
            // Layers without experts stand first and are counted by the flag.
            let dense = model.layers.iter().take_while(|layer| layer.experts.is_none()).count();
            let flag = match on_host {
                0 => String::new(),
                all if all == placing.expert_layers() => " -cmoe".to_owned(),
                some => format!(" -ncmoe {}", some as usize + dense),
            };
            let kv = match request.storage.kv {
                KvFormat::Q8_0 | KvFormat::Fp8 => " -ctk q8_0 -ctv q8_0",
                KvFormat::Q4_0 => " -ctk q4_0 -ctv q4_0",
                KvFormat::Bf16 => "",
            };
            let split: Vec<String> = stages.iter().map(|stage| stage.layers.to_string()).collect();
            let split = if several { format!(" -ts {}", split.join(",")) } else { String::new() };
            let context = request.context.saturating_mul(u64::from(request.users));
            let users = if request.users > 1 { format!(" -np {}", request.users) } else { String::new() };
            vec![format!(
                "llama-server -m MODEL.gguf -ngl 99{flag}{split} -fa on -ub {} -b {} -c {context}{users}{kv}",
                micro, micro.max(2048)
            )]
        }
    }
}
