//! Files of `torch.save`: what SGLang, slime and miles write.

use super::{Contents, IDS, REQUESTS, cell, tokens, torch_file, wide};

/// Pieces of a pickle of protocol 2.
mod pickle {
    pub(super) fn whole(value: Vec<u8>) -> Vec<u8> {
        [b"\x80\x02", value.as_slice(), b"."].concat()
    }

    pub(super) fn int(value: i32) -> Vec<u8> {
        [b"J", &value.to_le_bytes()[..]].concat()
    }

    pub(super) fn text(value: &str) -> Vec<u8> {
        [b"X", &(value.len() as u32).to_le_bytes()[..], value.as_bytes()].concat()
    }

    pub(super) fn none() -> Vec<u8> {
        b"N".to_vec()
    }

    pub(super) fn list(values: &[Vec<u8>]) -> Vec<u8> {
        [b"](", values.concat().as_slice(), b"e"].concat()
    }

    pub(super) fn ints(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
        list(&values.into_iter().map(int).collect::<Vec<_>>())
    }

    pub(super) fn tuple(values: &[Vec<u8>]) -> Vec<u8> {
        [b"(", values.concat().as_slice(), b"t"].concat()
    }

    pub(super) fn dict(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let entries: Vec<u8> =
            entries.iter().flat_map(|(key, value)| [text(key), value.clone()].concat()).collect();
        [b"}(", entries.as_slice(), b"u"].concat()
    }

    pub(super) fn call(module: &str, name: &str, arguments: &[Vec<u8>]) -> Vec<u8> {
        [format!("c{module}\n{name}\n").as_bytes(), &tuple(arguments), b"R"].concat()
    }

    /// A whole tensor of a storage.
    pub(super) fn tensor(kind: &str, key: usize, shape: &[i32]) -> Vec<u8> {
        let count: i32 = shape.iter().product();
        let kind = format!("ctorch\n{kind}\n").into_bytes();
        let id = [text("storage"), kind, text(&key.to_string()), text("cuda:0"), int(count)];
        let storage = [tuple(&id).as_slice(), b"Q"].concat();
        let strides: Vec<Vec<u8>> =
            (0..shape.len()).map(|axis| int(shape[axis + 1..].iter().product())).collect();
        let shape: Vec<Vec<u8>> = shape.iter().map(|&size| int(size)).collect();
        let hooks = call("collections", "OrderedDict", &[]);
        let arguments = [storage, int(0), tuple(&shape), tuple(&strides), b"\x89".to_vec(), hooks];
        call("torch._utils", "_rebuild_tensor_v2", &arguments)
    }
}

fn i32s(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(i32::to_le_bytes).collect()
}

/// The recorder's file: one extend pass of both prompts, then one decode pass of both.
pub(super) fn sglang(per_token: bool) -> Contents {
    let passes: [(&[usize], [i32; 2]); 2] = [(&[0, 1, 3], [2, 1]), (&[2, 4], [0, 0])];
    let (mut records, mut storages) = (Vec::new(), Vec::new());
    for (pass, (rows, extends)) in passes.iter().enumerate() {
        let positions =
            tokens().filter(|token| rows.contains(&token.0)).map(|token| token.2 as i32);
        let head = [
            ("forward_pass_id", pickle::int(pass as i32 + 1)),
            ("rank", pickle::int(0)),
            ("gatherer_key", pickle::text("primary")),
        ];
        let mut entries = head.to_vec();
        let key = storages.len();
        if per_token {
            let lens = if pass == 0 { pickle::ints(*extends) } else { pickle::none() };
            entries.extend([
                ("input_ids", pickle::ints(rows.iter().map(|&row| row as i32))),
                ("positions", pickle::ints(positions)),
                ("extend_seq_lens", lens),
                ("forward_mode", pickle::int(pass as i32 + 1)),
                (
                    "topk_ids_of_layer",
                    pickle::tensor("IntStorage", key, &[2, rows.len() as i32, 8]),
                ),
            ]);
            storages.push(i32s((0..2).flat_map(|layer| {
                rows.iter().flat_map(move |&row| {
                    (0..8).map(move |rank| cell(row, layer).get(rank).map_or(-1, |&id| id.into()))
                })
            })));
        } else {
            let counts = pickle::tensor("IntStorage", key, &[2, 8]);
            entries.push(("global_physical_count", counts));
            storages.push(i32s((0..2).flat_map(|layer| {
                (0..8u8).map(move |expert| {
                    let ids = rows.iter().flat_map(|&row| cell(row, layer));
                    ids.filter(|&id| id == expert).count() as i32
                })
            })));
        }
        records.push(pickle::dict(&entries));
    }
    let map = pickle::tensor("LongStorage", storages.len(), &[2, 8]);
    storages.push((0..16i64).flat_map(|place| (place % 8).to_le_bytes()).collect());
    let root = [("records", pickle::list(&records)), ("last_physical_to_logical_map", map)];
    torch_file(pickle::whole(pickle::dict(&root)), storages)
}

pub(super) fn sglang_stat() -> Contents {
    let root = [
        ("rank", pickle::int(0)),
        ("logical_count", pickle::tensor("IntStorage", 0, &[2, 2, 8])),
        ("average_utilization_rate_over_window", pickle::none()),
    ];
    torch_file(pickle::whole(pickle::dict(&root)), vec![i32s(0..32)])
}

/// A rollout whose samples have these routes.
fn rollout(routes: impl Fn(usize, &[u8], i32) -> Vec<u8>, miles: bool) -> Vec<u8> {
    let mut at = 0;
    let samples = REQUESTS.iter().enumerate().map(|(index, &(tokens, prompt))| {
        let ids = IDS[at..at + tokens].as_flattened().as_flattened();
        at += tokens;
        pickle::dict(&[
            ("index", pickle::int(index as i32)),
            ("prompt", pickle::text("x")),
            ("tokens", pickle::ints(0..=tokens as i32)),
            ("response_length", pickle::int((tokens + 1 - prompt) as i32)),
            ("rollout_routed_experts", routes(index, ids, tokens as i32)),
        ])
    });
    let samples = pickle::list(&samples.collect::<Vec<_>>());
    let mut root = vec![("rollout_id", pickle::int(0)), ("samples", samples)];
    if miles {
        root.push(("metadata", b"}".to_vec()));
    }
    pickle::whole(pickle::dict(&root))
}

pub(super) fn slime() -> Contents {
    let tensor = |key, _: &[u8], tokens| pickle::tensor("IntStorage", key, &[tokens, 2, 2]);
    let mut at = 0;
    let storages = REQUESTS.iter().map(|&(tokens, _)| {
        let ids = IDS[at..at + tokens].as_flattened().as_flattened();
        at += tokens;
        i32s(ids.iter().map(|&id| id.into()))
    });
    let storages = storages.collect();
    torch_file(rollout(tensor, false), storages)
}

pub(super) fn miles() -> Contents {
    let array = |_, ids: &[u8], tokens| {
        let raw = wide(ids, |id| i32::from(id).to_le_bytes());
        let raw: String = raw.iter().map(|&byte| char::from(byte)).collect();
        let data = pickle::call("_codecs", "encode", &[pickle::text(&raw), pickle::text("latin1")]);
        let empty =
            [b"cnumpy\nndarray\n".to_vec(), pickle::tuple(&[pickle::int(0)]), pickle::text("b")];
        let array = pickle::call("numpy._core.multiarray", "_reconstruct", &empty);
        let arguments = [pickle::text("i4"), b"\x89".to_vec(), b"\x88".to_vec()];
        let dtype = pickle::call("numpy", "dtype", &arguments);
        let state = [pickle::int(3), pickle::text("<"), pickle::none()];
        let dtype = [dtype.as_slice(), &pickle::tuple(&state), b"b"].concat();
        let shape = pickle::tuple(&[pickle::int(tokens), pickle::int(2), pickle::int(2)]);
        let state = [pickle::int(1), shape, dtype, b"\x89".to_vec(), data];
        [array.as_slice(), &pickle::tuple(&state), b"b"].concat()
    };
    torch_file(rollout(array, true), Vec::new())
}

/// Scores of the router, bf16, one tensor a layer in a tuple: what `output_router_logits` returns.
pub(super) fn router_logits() -> Contents {
    let layer = |layer: usize| -> Vec<u8> {
        let scores = (0..IDS.len()).flat_map(|row| {
            let mut scores = [-1.5f32; 8];
            let [best, next] = cell(row, layer);
            (scores[usize::from(best)], scores[usize::from(next)]) = (2.25, 0.5);
            scores
        });
        scores.flat_map(|score| half::bf16::from_f32(score).to_le_bytes()).collect()
    };
    let tensor = |key| pickle::tensor("BFloat16Storage", key, &[5, 8]);
    let root = pickle::tuple(&[tensor(0), tensor(1)]);
    torch_file(pickle::whole(root), vec![layer(0), layer(1)])
}

/// How often each expert was used, as load balancers dump it.
pub(super) fn expert_load() -> Contents {
    let counts = (0..2).flat_map(|layer| {
        (0..8u8).map(move |expert| {
            let ids = (0..IDS.len()).flat_map(move |row| cell(row, layer));
            ids.filter(|&id| id == expert).count() as i64
        })
    });
    let root = [
        ("expert_load", pickle::tensor("LongStorage", 0, &[2, 8])),
        ("num_tokens", pickle::int(5)),
    ];
    let counts = counts.flat_map(i64::to_le_bytes).collect();
    torch_file(pickle::whole(pickle::dict(&root)), vec![counts])
}
