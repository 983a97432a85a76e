/** SHA-256 (FIPS 180-4) of a text in UTF-8, synchronous on every platform. */

/** The first 32 bits of the fractional part of a root of each of the first primes. */
const fractions = (root: number, count: number): number[] => {
  const out: number[] = []
  for (let n = 2; out.length < count; n++) {
    let isPrime = true
    for (let d = 2; d * d <= n; d++) if (n % d === 0) isPrime = false
    if (isPrime) out.push((n ** (1 / root) % 1) * 2 ** 32)
  }
  return out.map((x) => x | 0)
}
const ROUNDS = fractions(3, 64)
const START = fractions(2, 8)

export function sha256(text: string): string {
  const bytes = new TextEncoder().encode(text)
  const padded = new DataView(new ArrayBuffer(Math.ceil((bytes.length + 9) / 64) * 64))
  new Uint8Array(padded.buffer).set(bytes)
  padded.setUint8(bytes.length, 0x80)
  padded.setBigUint64(padded.byteLength - 8, BigInt(bytes.length) * 8n)
  const state = [...START]
  const w = new Int32Array(64)
  const turned = (x: number, by: number): number => (x >>> by) | (x << (32 - by))
  for (let at = 0; at < padded.byteLength; at += 64) {
    for (let t = 0; t < 64; t++) {
      if (t < 16) {
        w[t] = padded.getInt32(at + 4 * t)
        continue
      }
      const [x, y] = [w[t - 15]!, w[t - 2]!]
      const small = turned(x, 7) ^ turned(x, 18) ^ (x >>> 3)
      const large = turned(y, 17) ^ turned(y, 19) ^ (y >>> 10)
      w[t] = w[t - 16]! + small + w[t - 7]! + large
    }
    let [a, b, c, d, e, f, g, h] = state as [number, number, number, number, number, number, number, number]
    for (let t = 0; t < 64; t++) {
      const first =
        h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[t]! + w[t]!
      const second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
      ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0]
    }
    for (const [k, x] of [a, b, c, d, e, f, g, h].entries()) state[k] = (state[k]! + x) | 0
  }
  return state.map((x) => (x >>> 0).toString(16).padStart(8, '0')).join('')
}
