/**
 * Reads zip archives at random (PKWARE APPNOTE 6.3: stored and deflated entries, zip64). Only the central
 * directory is trusted; every entry's size and CRC are checked.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { type ByteSource, pieces, WHOLE } from '../byte-source.ts'
import { inflate, MAX_EXPANSION } from './inflate.ts'

export interface ZipEntry {
  readonly name: string
  readonly method: 'stored' | 'deflated'
  readonly crc: number
  /** Sizes in bytes: in the archive, and decompressed. */
  readonly packed: number
  readonly size: number
  /** Offset of the local header. */
  readonly offset: number
}

const END = 0x06054b50
const END64 = 0x06064b50
const END64_LOCATOR = 0x07064b50
const CENTRAL = 0x02014b50
const LOCAL = 0x04034b50
const END_BYTES = 22
const LOCATOR_BYTES = 20
const END64_BYTES = 56
const CENTRAL_BYTES = 46
const LOCAL_BYTES = 30
const MAX_COMMENT = 65535
const IN_ZIP64 = 0xffffffff
const ZIP64_FIELD = 1
const ENCRYPTED = 1

const viewOf = (b: Uint8Array): DataView => new DataView(b.buffer, b.byteOffset, b.byteLength)
const uint64 = (v: DataView, at: number): number =>
  v.getUint32(at, true) + v.getUint32(at + 4, true) * 4294967296

function rejectArchive(name: string, what: string): never {
  return failWith('io/corrupt', `${name}: not a whole zip archive (${what})`, { hint: WHOLE })
}

/** All bytes of `[start, start + length)`. @throws SptError if they are cut off */
async function readExactly(
  source: ByteSource,
  start: number,
  length: number,
  what: string,
): Promise<DataView> {
  if (start < 0 || start + length > source.size) rejectArchive(source.name, `${what} is out of the file`)
  const bytes = await source.read(start, start + length)
  if (bytes.length < length) rejectArchive(source.name, `${what} is cut off`)
  return viewOf(bytes)
}

interface Directory {
  readonly entries: number
  readonly bytes: number
  readonly offset: number
}

async function findDirectory(source: ByteSource): Promise<Directory> {
  const start = Math.max(0, source.size - END_BYTES - MAX_COMMENT)
  const tail = await readExactly(source, start, source.size - start, 'the end')
  let at = tail.byteLength - END_BYTES
  while (at >= 0 && tail.getUint32(at, true) !== END) at--
  if (at < 0) return rejectArchive(source.name, 'it has no central directory')
  const directory = {
    entries: tail.getUint16(at + 10, true),
    bytes: tail.getUint32(at + 12, true),
    offset: tail.getUint32(at + 16, true),
  }
  if (directory.entries !== 0xffff && directory.bytes !== IN_ZIP64 && directory.offset !== IN_ZIP64)
    return directory
  if (start + at < LOCATOR_BYTES) return directory
  const locator = await readExactly(source, start + at - LOCATOR_BYTES, LOCATOR_BYTES, 'the zip64 locator')
  if (locator.getUint32(0, true) !== END64_LOCATOR) return directory
  const end = await readExactly(source, uint64(locator, 8), END64_BYTES, 'the zip64 directory')
  if (end.getUint32(0, true) !== END64) rejectArchive(source.name, 'its zip64 directory is damaged')
  return { entries: uint64(end, 32), bytes: uint64(end, 40), offset: uint64(end, 48) }
}

/** The sizes and offset that exceed 32 bits, in the format's order. */
function zip64(v: DataView, start: number, end: number, isWide: readonly boolean[]): (number | undefined)[] {
  for (let at = start; at + 4 <= end; at += 4 + v.getUint16(at + 2, true)) {
    if (v.getUint16(at, true) !== ZIP64_FIELD) continue
    const last = Math.min(end, at + 4 + v.getUint16(at + 2, true))
    let from = at + 4
    return isWide.map((want) => {
      if (!want || from + 8 > last) return undefined
      from += 8
      return uint64(v, from - 8)
    })
  }
  return []
}

/** The archive's entries, in its order. @throws SptError `io/corrupt`, `io/unsupported` */
export async function zipEntries(source: ByteSource): Promise<ZipEntry[]> {
  const { name } = source
  const directory = await findDirectory(source)
  const v = await readExactly(source, directory.offset, directory.bytes, 'the central directory')
  const entries: ZipEntry[] = []
  let at = 0
  for (let k = 0; k < directory.entries; k++) {
    if (at + CENTRAL_BYTES > v.byteLength || v.getUint32(at, true) !== CENTRAL)
      rejectArchive(name, 'its central directory is damaged')
    const method = v.getUint16(at + 10, true)
    const nameEnd = at + CENTRAL_BYTES + v.getUint16(at + 28, true)
    const extraEnd = nameEnd + v.getUint16(at + 30, true)
    const end = extraEnd + v.getUint16(at + 32, true)
    if (end > v.byteLength) rejectArchive(name, 'its central directory is damaged')
    const entry = new TextDecoder().decode(
      new Uint8Array(v.buffer, v.byteOffset + at + CENTRAL_BYTES, nameEnd - at - CENTRAL_BYTES),
    )
    if (v.getUint16(at + 8, true) & ENCRYPTED)
      failWith('io/unsupported', `${name}: the entry ${entry} is encrypted`, {
        hint: 'write the archive without a password',
      })
    if (method !== 0 && method !== 8)
      failWith('io/unsupported', `${name}: the entry ${entry} is compressed by method ${method}`, {
        expected: 'stored (0) or deflated (8)',
      })
    const size = v.getUint32(at + 24, true)
    const packed = v.getUint32(at + 20, true)
    const offset = v.getUint32(at + 42, true)
    const wide = zip64(v, nameEnd, extraEnd, [size === IN_ZIP64, packed === IN_ZIP64, offset === IN_ZIP64])
    entries.push({
      name: entry,
      method: method === 0 ? 'stored' : 'deflated',
      crc: v.getUint32(at + 16, true),
      packed: wide[1] ?? packed,
      size: wide[0] ?? size,
      offset: wide[2] ?? offset,
    })
    at = end
  }
  return entries
}

async function* packedBytes(source: ByteSource, entry: ZipEntry): AsyncGenerator<Uint8Array> {
  const local = await readExactly(source, entry.offset, LOCAL_BYTES, `the entry ${entry.name}`)
  if (local.getUint32(0, true) !== LOCAL)
    rejectArchive(source.name, `the entry ${entry.name} is not where the directory says`)
  const start = entry.offset + LOCAL_BYTES + local.getUint16(26, true) + local.getUint16(28, true)
  const end = start + entry.packed
  if (end > source.size) rejectArchive(source.name, `the entry ${entry.name} is cut off`)
  yield* pieces((from, to) => source.read(from, to), start, end)
}

/** An entry's decompressed bytes. @throws SptError `io/corrupt`, `io/truncated` */
export async function* zipBytes(source: ByteSource, entry: ZipEntry): AsyncGenerator<Uint8Array> {
  const label = `${source.name}, entry ${entry.name}`
  if (
    entry.method === 'stored' ? entry.size !== entry.packed : entry.size > (entry.packed + 1) * MAX_EXPANSION
  )
    rejectArchive(source.name, `the sizes of the entry ${entry.name} cannot be`)
  const raw = packedBytes(source, entry)
  const bytes = entry.method === 'stored' ? raw : inflate(raw, 'deflate-raw', label)
  let crc = 0
  let size = 0
  for await (const chunk of bytes) {
    crc = crc32(chunk, crc)
    size += chunk.length
    if (size > entry.size) break
    yield chunk
  }
  if (size !== entry.size || crc !== entry.crc)
    rejectArchive(
      source.name,
      `the entry ${entry.name} does not match its ${size === entry.size ? 'checksum' : 'size'}`,
    )
}

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
function crc32(bytes: Uint8Array, previous = 0): number {
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
