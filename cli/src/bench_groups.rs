//! The arrays of `relayout bench --group`.

use clap::ValueEnum;

/// Arrays that belong together.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Group {
    /// The TPU formats that have names, which is what is measured without a group
    Formats,
    /// The formats with the two dimensions swapped, at 256 MiB, 8 MiB and 256 KiB
    Swapped,
    /// One dimension
    OneDim,
    /// Elements narrower than a byte
    SubByte,
    /// From one layout of a TPU to another one
    TiledToTiled,
    /// Plain permutations of dimensions
    Permute,
    /// Arrays of few columns
    Narrow,
}

impl Group {
    /// As `--group` takes it.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Its arrays and pairs of them; none for the formats, which have sizes.
    pub(crate) fn texts(self) -> &'static [&'static str] {
        match self {
            Group::Formats => &[],
            Group::Swapped => &[
                "f32[8192,8192]{0,1:T(8,128)}",
                "bf16[8192,16384]{0,1:T(8,128)(2,1)}",
                "s8[8192,32768]{0,1:T(8,128)(4,1)}",
                "f32[1024,2048]{0,1:T(8,128)}",
                "bf16[1024,4096]{0,1:T(8,128)(2,1)}",
                "s8[1024,8192]{0,1:T(8,128)(4,1)}",
                "f32[128,512]{0,1:T(8,128)}",
                "bf16[128,1024]{0,1:T(8,128)(2,1)}",
                "s8[128,2048]{0,1:T(8,128)(4,1)}",
                "bf16[64,1024,2048]{2,0,1:T(8,128)(2,1)}",
            ],
            Group::OneDim => &[
                "f32[67108864]{0:T(1024)}",
                "bf16[134217728]{0:T(1024)(128)(2,1)}",
                "s8[268435456]{0:T(1024)(128)(4,1)}",
                "s4[268435456]{0:T(1024)(128)(8,1)E(4)}",
            ],
            Group::SubByte => &[
                "s4[8192,32768]{1,0:T(8,128)(8,1)E(4)}",
                "s4[8192,32768]{1,0:T(64,128)(8,1)E(4)}",
                "s2[8192,32768]{1,0:T(16,128)(16,1)E(2)}",
                "s2[8192,32768]{1,0:T(128,128)(16,1)E(2)}",
                "pred[8192,32768]{1,0:T(32,128)(32,1)E(1)}",
                // From and to packed host arrays.
                "s4[16384,32768]{1,0:E(4)} -> s4[16384,32768]{1,0:T(8,128)(8,1)E(4)}",
                "s4[16384,32768]{1,0:T(8,128)(8,1)E(4)} -> s4[16384,32768]{1,0:E(4)}",
                "s4[16384,32768]{1,0:E(4)} -> s4[16384,32768]{0,1:T(8,128)(8,1)E(4)}",
                "s2[16384,32768]{1,0:E(2)} -> s2[16384,32768]{1,0:T(16,128)(16,1)E(2)}",
                "pred[16384,32768]{1,0:E(1)} -> pred[16384,32768]{1,0:T(32,128)(32,1)E(1)}",
                "pred[16384,32768]{1,0:E(1)} -> pred[16384,32768]{1,0:T(8,128)(4,1)}",
            ],
            Group::TiledToTiled => &[
                "bf16[8192,16384]{1,0:T(16,128)(2,1)} -> bf16[8192,16384]{1,0:T(8,128)(2,1)}",
                "s4[8192,32768]{1,0:T(64,128)(8,1)E(4)} -> s4[8192,32768]{1,0:T(8,128)(8,1)E(4)}",
                "f32[8192,8192]{0,1:T(8,128)} -> f32[8192,8192]{1,0:T(8,128)}",
                "bf16[8192,16384]{0,1:T(8,128)(2,1)} -> bf16[8192,16384]{1,0:T(8,128)(2,1)}",
                "s8[8192,32768]{1,0:T(32,128)(4,1)} -> s8[8192,32768]{0,1:T(8,128)(4,1)}",
                "bf16[4096,64,4,128]{3,1,2,0:T(8,128)(2,1)} \
                 -> bf16[4096,64,4,128]{3,2,1,0:T(4,128)(2,1)}",
            ],
            Group::Permute => &[
                "f32[4096,4096] -> f32[4096,4096]{0,1}",
                "f32[256,256,256] -> f32[256,256,256]{1,2,0}",
                "f32[256,256,256] -> f32[256,256,256]{2,0,1}",
                "f32[256,256,256] -> f32[256,256,256]{0,2,1}",
                "f32[256,256,256] -> f32[256,256,256]{1,0,2}",
                "f32[256,256,256] -> f32[256,256,256]{0,1,2}",
                "f32[64,224,224,3] -> f32[64,224,224,3]{0,3,2,1}",
                "u8[4096,4096] -> u8[4096,4096]{0,1}",
                "u8[256,256,256] -> u8[256,256,256]{1,2,0}",
                "u8[256,256,256] -> u8[256,256,256]{2,0,1}",
                "u8[256,256,256] -> u8[256,256,256]{0,2,1}",
                "u8[256,256,256] -> u8[256,256,256]{1,0,2}",
                "u8[256,256,256] -> u8[256,256,256]{0,1,2}",
                "u8[64,224,224,3] -> u8[64,224,224,3]{0,3,2,1}",
            ],
            Group::Narrow => &[
                "f32[262144,1]{1,0:T(8,128)}",
                "bf16[262144,3]{1,0:T(8,128)(2,1)}",
                "f32[262144,7]{1,0:T(8,128)}",
                "s8[262144,32]{1,0:T(8,128)(4,1)}",
                "f32[64,224,224,3]{3,2,1,0:T(8,128)}",
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_array_of_a_group_is_one() {
        for group in Group::value_variants() {
            assert!(!group.name().is_empty());
            for text in group.texts() {
                let shapes: Vec<relayout::Shape> =
                    text.split("->").map(|shape| shape.trim().parse().unwrap()).collect();
                if let [from, to] = &shapes[..] {
                    from.check_same_array(to).unwrap();
                }
            }
        }
    }
}
