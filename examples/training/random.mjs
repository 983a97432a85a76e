/** Philox-4x32-10 on the host, for initial weights. `random.spt` has the same generator for kernels. */
const [M0, M1] = [0xd2511f53, 0xcd9e8d57]

/**
 * Four random words (unsigned, 32 bits).
 * @param {readonly number[]} counter four words
 * @param {readonly number[]} key two words
 */
export function philox(counter, key) {
  let [a, b, c, d] = counter
  let [k, l] = key
  for (let round = 0; round < 10; round++) {
    const [x, y] = [BigInt(M0) * BigInt(a >>> 0), BigInt(M1) * BigInt(c >>> 0)]
    ;[a, b, c, d] = [
      Number(y >> 32n) ^ b ^ k,
      Number(y & 0xffffffffn),
      Number(x >> 32n) ^ d ^ l,
      Number(x & 0xffffffffn),
    ]
    k = (k + 0x9e3779b9) | 0
    l = (l + 0xbb67ae85) | 0
  }
  return [a, b, c, d].map((w) => w >>> 0)
}

/** `count` standard normal numbers (Box and Muller) of a seed; `stream` distinguishes tensors. */
export function normals(count, seed, stream = 0) {
  const out = new Float32Array(count)
  for (let k = 0; k < count; k += 2) {
    const [a, b] = philox([k / 2, 0, 0, 0], [seed, stream]).map((w) => (w + 0.5) / 2 ** 32)
    const length = Math.sqrt(-2 * Math.log(a))
    out[k] = length * Math.cos(2 * Math.PI * b)
    if (k + 1 < count) out[k + 1] = length * Math.sin(2 * Math.PI * b)
  }
  return out
}
