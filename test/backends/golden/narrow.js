const f16_to_f32 = (h) => {
  const e = (h >> 10) & 31, m = h & 1023, s = h & 32768 ? -1 : 1
  if (e === 0) return s * m * 5.9604644775390625e-8
  return e === 31 ? (m ? NaN : s * Infinity) : s * (1 + m / 1024) * 2 ** (e - 15)
}

const f32_view = new Float32Array(1), u32_view = new Uint32Array(f32_view.buffer)

const f32_to_bf16 = (x) => {
  f32_view[0] = x
  const u = u32_view[0]
  return x !== x ? 0x7fc0 : ((u + 0x7fff + ((u >>> 16) & 1)) >>> 16) & 0xffff
}

export function narrow_0(h, b, flag, half, byte_1, n, limit, on) {
  for (let block_x = 0; block_x < (((n + 63) / 64) | 0); block_x++) {
    for (let thread_x = 0; thread_x < 64; thread_x++) {
      const at = Math.imul(block_x, 64) + thread_x;
      if (at < n) {
        const h_at = f16_to_f32(h[at]);
        const value = Math.fround(b[at]);
        flag[at] = on && h_at < limit ? 1 : 0;
        half[at] = f32_to_bf16(h_at * value);
        byte_1[at] = (Math.trunc(Math.min(255, Math.max(0, Math.exp(value)))) || 0);
      }
    }
  }
}
