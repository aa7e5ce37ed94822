"""Writes the NumPy files of this folder; needs numpy and ml_dtypes.

Each file under numpy/ holds the numbers 0 to 59 as 6 rows of 10, in the type
and form that its name says (modulo 8 where the type is narrow).
"""

import pathlib

import ml_dtypes
import numpy as np

here = pathlib.Path(__file__).parent
numbers = np.arange(60).reshape(6, 10)
small = numbers % 8


def save(name, array, version=(1, 0)):
    with open(here / "numpy" / f"{name}.npy", "wb") as f:
        np.lib.format.write_array(f, array, version=version)


save("f32", numbers.astype("<f4"))
save("f32_big_endian", numbers.astype(">f4"))
save("f32_fortran", np.asfortranarray(numbers.astype("<f4")))
save("f32_fortran_big_endian", np.asfortranarray(numbers.astype(">f4")))
save("f32_version_2", numbers.astype("<f4"), (2, 0))
save("f32_version_3", numbers.astype("<f4"), (3, 0))
save("f16", numbers.astype("<f2"))
save("c64_big_endian", (numbers + 1j * small).astype(">c8"))
save("bf16", numbers.astype(ml_dtypes.bfloat16))
save("bf16_raw", numbers.astype(ml_dtypes.bfloat16).view("V2"))
bf16 = np.dtype(ml_dtypes.bfloat16)
save("bf16_big_endian", numbers.astype(bf16).astype(bf16.newbyteorder(">")))
save("bf16_unsigned_big_endian", numbers.astype(ml_dtypes.bfloat16).view("<u2").astype(">u2"))
save("f8e4m3fn", small.astype(ml_dtypes.float8_e4m3fn))
save("f8e5m2", small.astype(ml_dtypes.float8_e5m2))
save("f4e2m1fn", (small % 4).astype(ml_dtypes.float4_e2m1fn))
save("s4", (small - 4).astype(ml_dtypes.int4))
save("s4_int8", (small - 4).astype("i1"))
save("pred", small == 3)
save("scalar_s32", np.array(7, "<i4"))
save("empty_f32", np.zeros((0, 10), "<f4"))
save("object", np.array([None, 1]))
save("text", np.array(["one", "two"]))
save("record", np.zeros(2, [("a", "<i4"), ("b", "<f4")]))

# The array of the README: what a small layer of a model might hold.
rng = np.random.default_rng(7)
weights = (rng.standard_normal((100, 300)) * 0.02).astype(ml_dtypes.bfloat16)
np.save(here / "weights.npy", weights)
