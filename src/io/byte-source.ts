/**
 * Byte sources. Readers take a `ByteSource` (a file, a browser `File`, bytes in memory) or a stream of chunks; this
 * module needs no file system.
 */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import type { Work } from '../ast/work.ts'

/** A chunk is valid only until the next one is requested: the producer may reuse its memory. */
export type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** Bytes with sequential and random access. */
export interface ByteSource {
  /** The name in diagnostics; its ending selects the file format. */
  readonly name: string
  /** Bytes. */
  readonly size: number
  /** The bytes `[start, end)`, clipped to the source. */
  read(start: number, end: number): Promise<Uint8Array>
  stream(): AsyncIterable<Uint8Array>
  /** Opens the file of that name in the same folder; absent without a folder. */
  beside?(name: string): Promise<ByteSource>
}

/** 256 KiB: large enough that per-chunk costs vanish, small beside any array. */
export const CHUNK_BYTES = 1 << 18

type Read = ByteSource['read']

/** The bytes `[start, end)` in pieces of at most `CHUNK_BYTES`. */
export async function* pieces(read: Read, start: number, end: number): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end; at += CHUNK_BYTES) yield await read(at, Math.min(end, at + CHUNK_BYTES))
}

const sourceOf = (name: string, size: number, read: Read): ByteSource => ({
  name,
  size,
  read,
  stream: () => pieces(read, 0, size),
})

/** The same source, with a checkpoint of a long call before each piece. */
export function withCheckpoints(source: ByteSource, { checkpoint }: Pick<Work, 'checkpoint'>): ByteSource {
  return {
    ...source,
    read: async (start, end) => {
      await checkpoint()
      return source.read(start, end)
    },
    async *stream() {
      for await (const chunk of source.stream()) {
        await checkpoint()
        yield chunk
      }
    },
    ...(source.beside && {
      beside: async (name: string) => withCheckpoints(await source.beside!(name), { checkpoint }),
    }),
  }
}

/** Bytes in memory as a source. */
export const bytesSource = (name: string, bytes: Uint8Array): ByteSource =>
  sourceOf(name, bytes.length, async (start, end) => bytes.subarray(start, end))

/** The part of a browser's `Blob` that is needed. */
export interface BlobLike {
  readonly size: number
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> }
}

/** A browser `File` or `Blob` as a source; read piecewise, never whole. */
export const blobSource = (name: string, blob: BlobLike): ByteSource =>
  sourceOf(
    name,
    blob.size,
    async (start, end) => new Uint8Array(await blob.slice(start, Math.min(end, blob.size)).arrayBuffer()),
  )

/** A hint for files that end too early. */
export const WHOLE = 'Was the file downloaded or copied whole?'

/** A typed array of `length` elements. @throws SptError `io/too-large` if the host cannot allocate it */
export function allocate<T>(
  make: { new (length: number): T },
  length: number,
  name: string,
  what: string,
): T {
  try {
    return new make(length)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return failWith('io/too-large', `${name}: cannot allocate ${what} of ${length} elements`, {
      hint: 'The header may be wrong; otherwise split the file or use a machine with more memory.',
    })
  }
}

/** Typed arrays have the host's byte order; files have their own. */
export const HOST_IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1

/** The bytes of both; `b` itself if `a` is empty. */
export function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a.length === 0) return b
  const out = new Uint8Array(a.length + b.length)
  out.set(a)
  out.set(b, a.length)
  return out
}
