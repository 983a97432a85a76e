/** CRC-32 (ISO 3309, as zip and gzip use it), eight bytes a step. */
const SLICES = 8
const TABLE = new Uint32Array(256 * SLICES)
for (let n = 0; n < 256; n++) {
  let c = n
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1
  TABLE[n] = c
}
for (let n = 256; n < 256 * SLICES; n++) {
  const previous = TABLE[n - 256]!
  TABLE[n] = (previous >>> 8) ^ TABLE[previous & 255]!
}

/** The CRC of `bytes` continued from that of what came before (0 at the start). */
export function crc32(bytes: Uint8Array, previous = 0): number {
  let c = ~previous
  let p = 0
  const t = TABLE
  for (; p + 8 <= bytes.length; p += 8) {
    const lo = c ^ (bytes[p]! | (bytes[p + 1]! << 8) | (bytes[p + 2]! << 16) | (bytes[p + 3]! << 24))
    c =
      t[1792 + (lo & 255)]! ^
      t[1536 + ((lo >>> 8) & 255)]! ^
      t[1280 + ((lo >>> 16) & 255)]! ^
      t[1024 + (lo >>> 24)]! ^
      t[768 + bytes[p + 4]!]! ^
      t[512 + bytes[p + 5]!]! ^
      t[256 + bytes[p + 6]!]! ^
      t[bytes[p + 7]!]!
  }
  for (; p < bytes.length; p++) c = t[(c ^ bytes[p]!) & 255]! ^ (c >>> 8)
  return ~c >>> 0
}
