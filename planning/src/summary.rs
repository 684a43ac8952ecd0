//! A request in results: the model, the machine, and what was asked beside them.

use hotset_cost_models::model::Experts;
use serde::Serialize;

use crate::Request;
use crate::weights::RankWeights;

/// A model in results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelSummary {
    /// Its name.
    pub name: String,
    /// Its architecture.
    pub architecture: String,
    /// Parameters.
    pub parameters: u64,
    /// Parameters of one token's way.
    pub active_parameters: u64,
    /// Layers, and those with experts.
    pub layers: usize,
    /// Layers with routed experts.
    pub moe_layers: usize,
    /// Experts of a layer.
    pub experts: u32,
    /// Of them, chosen for a token.
    pub top_k: u32,
    /// What mixes tokens, by kind of layer.
    pub mixers: String,
    /// Weights in bytes on one accelerator, draft layers left out.
    pub weights_bytes: u64,
    /// Of them, the routed experts.
    pub routed_bytes: u64,
    /// Bytes of the largest expert as stored.
    pub expert_bytes: u64,
    /// Where those come from.
    pub weights_source: String,
}

/// A machine in results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineSummary {
    /// Its name.
    pub name: String,
    /// One line for a person.
    pub description: String,
    /// Accelerators in use, and hosts that they stand in.
    pub ranks: u32,
    /// Of them, in one host.
    pub ranks_per_host: u32,
    /// Host and accelerator share one memory.
    pub unified: bool,
    /// Memory of one accelerator.
    pub memory_bytes: u64,
    /// Memory of one host.
    pub host_memory_bytes: u64,
    /// The link.
    pub link: String,
}

/// What was asked, beside model and machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestSummary {
    /// Tokens that each sequence may hold.
    pub context: u64,
    /// Sequences at once.
    pub users: u32,
    /// Tokens drafted a step.
    pub drafts: u32,
    /// Format of keys and values.
    pub kv: &'static str,
    /// Bytes of one sequence's keys, values and states by the algorithm.
    pub kv_bytes_algorithm: u64,
    /// The same as the engine lays them out.
    pub kv_bytes: u64,
    /// Tensor-parallel accelerators.
    pub tensor_parallel: u32,
    /// Expert-parallel accelerators.
    pub expert_parallel: u32,
    /// The engine, where one was named.
    pub engine: Option<String>,
}

impl ModelSummary {
    pub(crate) fn of(request: &Request, weights: &RankWeights) -> Self {
        let model = &request.model;
        let most = |of: fn(&Experts) -> u32| {
            model.moe_layers().map(|(_, experts)| of(experts)).max().unwrap_or(0)
        };
        Self {
            name: model.name.clone(),
            architecture: model.architecture.clone(),
            parameters: model.parameters().total(),
            active_parameters: model.active_parameters(),
            layers: model.layers.len(),
            moe_layers: model.moe_layers().count(),
            experts: most(|experts| experts.count),
            top_k: most(|experts| experts.top_k),
            mixers: model.mixers(),
            weights_bytes: weights.bytes.total(),
            routed_bytes: weights.bytes.routed(),
            expert_bytes: weights.bytes.experts.iter().map(|layer| layer.stored).max().unwrap_or(0),
            weights_source: weights.source.clone(),
        }
    }
}

impl MachineSummary {
    pub(crate) fn of(request: &Request) -> Self {
        let machine = &request.machine;
        Self {
            name: machine.name.clone(),
            description: machine.description.clone(),
            ranks: request.ranks(),
            ranks_per_host: request.ranks_per_host(),
            unified: machine.unified,
            memory_bytes: machine.memory.value,
            host_memory_bytes: machine.host_memory.value,
            link: request.link().name.clone(),
        }
    }
}

impl RequestSummary {
    pub(crate) fn of(request: &Request) -> Self {
        let (model, tensor) = (&request.model, request.parallel.tensor);
        let context = request.context;
        Self {
            context,
            users: request.users,
            drafts: request.speculation.drafts,
            kv: request.storage.kv.name(),
            kv_bytes_algorithm: model.kv(context, request.storage.kv, tensor).total(),
            kv_bytes: model
                .kv_in(request.storage.layout, context, 1, request.storage.kv, tensor)
                .total(),
            tensor_parallel: request.parallel.tensor,
            expert_parallel: request.parallel.expert,
            engine: request.engine.as_ref().map(|engine| engine.name.clone()),
        }
    }
}
