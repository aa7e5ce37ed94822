//! Plans, as the commands make and report them.

use relayout::{Explanation, LoopExplanation, Pass, PlanBuilder, Tier};
use serde_json::{Value, json};

use crate::failure::Failure;

/// The environment variable that names a tier to use instead of the best one.
pub(crate) const TIER: &str = "RELAYOUT_TIER";

/// Plans of the tier that the environment asks for, or of the best one.
pub(crate) fn builder() -> Result<PlanBuilder, Failure> {
    match std::env::var_os(TIER) {
        Some(name) => {
            let tier = name.to_string_lossy().parse::<Tier>();
            let tier = tier.map_err(|e| Failure::usage(format!("{TIER}: {e}")))?;
            Ok(PlanBuilder::new().tier(tier))
        }
        None => Ok(PlanBuilder::new()),
    }
}

/// What a plan does, for machines. Steps are in bits.
pub(crate) fn json(direction: &str, explanation: &Explanation) -> Value {
    let steps = |l: &LoopExplanation| {
        json!({
            "extent": l.extent,
            "source_step_bits": l.source_bits,
            "destination_step_bits": l.destination_bits,
        })
    };
    // The passes that share scratch memory follow each other: two of them, or three.
    let (mut before, mut last_pass) = (Pass::Only, 2);
    let parts: Vec<Value> = explanation
        .parts
        .iter()
        .map(|part| {
            match part.pass {
                Pass::Between => last_pass = 3,
                Pass::First if matches!(before, Pass::Only | Pass::Second) => last_pass = 2,
                _ => {}
            }
            before = part.pass;
            json!({
                "loops": part.loops.iter().map(steps).collect::<Vec<_>>(),
                "kernel": part.kernel,
                "block_op": part.op.to_string(),
                "lines": steps(&part.lines),
                "blocks": steps(&part.blocks),
                "rows": part.rows,
                "columns": part.columns,
                "pad_bytes": part.pad_bytes,
                "last_columns": part.last_columns,
                "last_rows": part.last_rows,
                "scratch_bytes": part.scratch_bytes,
                "pass": match part.pass {
                    Pass::First => Some(1),
                    Pass::Between => Some(2),
                    Pass::Second => Some(last_pass),
                    _ => None,
                },
                "slow": part.slow,
            })
        })
        .collect();
    json!({
        "direction": direction,
        "from": explanation.from.to_string(),
        "to": explanation.to.to_string(),
        "tier": explanation.tier.name(),
        "streaming": explanation.streaming,
        "hops": explanation.hops,
        "regions": explanation.regions,
        "source_bytes": explanation.source_bytes,
        "destination_bytes": explanation.destination_bytes,
        "slow": explanation.slow,
        "parts": parts,
    })
}
