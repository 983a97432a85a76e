/** Expands gzip (RFC 1952) and raw deflate (RFC 1951) streams with the platform's own decompressor. */
import { failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { type Chunks, WHOLE } from '../byte-source.ts'

/** Deflate encodes at best 258 bytes in two bits: no stream expands by more than this factor. */
export const MAX_EXPANSION = 1032

/** Node's zlib reports a truncated stream by this code; browsers only throw a TypeError. */
const ENDED_EARLY = 'Z_BUF_ERROR'

function rejectStream(name: string, format: string, error: unknown): never {
  if (error instanceof SptError) throw error
  if ((error as { code?: unknown } | null)?.code === ENDED_EARLY)
    return failWith('io/truncated', `${name}: the ${format} data end too early`, { hint: WHOLE })
  const reason = error instanceof Error ? error.message : String(error)
  return failWith('io/corrupt', `${name}: not whole and valid ${format} data (${reason})`, {
    hint:
      format === 'gzip'
        ? 'download or copy the file again, or remove .gz from the name of an unpacked file'
        : 'download or copy the file again',
  })
}

/**
 * The decompressed bytes. gzip: all members, with lengths and CRCs checked. @throws SptError `io/truncated`,
 * `io/corrupt`, and errors of the source
 */
export async function* inflate(
  chunks: Chunks,
  format: 'gzip' | 'deflate-raw',
  name: string,
): AsyncGenerator<Uint8Array> {
  try {
    yield* pipeThrough(chunks, new DecompressionStream(format))
  } catch (error) {
    rejectStream(name, format === 'gzip' ? 'gzip' : 'deflate', error)
  }
}

/** The chunks as a gzip file. */
export const gzip = (chunks: Chunks): AsyncGenerator<Uint8Array> =>
  pipeThrough(chunks, new CompressionStream('gzip'))

// Pipes a stream through one of the platform's transforms (compression, decompression).

/**
 * The output of `transform` for the input `chunks`. Errors of either end reject; a consumer that stops early closes both.
 */
async function* pipeThrough(
  chunks: Chunks,
  transform: { readonly readable: ReadableStream; readonly writable: WritableStream },
): AsyncGenerator<Uint8Array> {
  const writer = transform.writable.getWriter()
  const reader = transform.readable.getReader()
  const pump = async (): Promise<void> => {
    const iterator =
      Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : chunks[Symbol.iterator]()
    for (;;) {
      let next: IteratorResult<Uint8Array>
      try {
        next = await iterator.next()
      } catch (error) {
        await writer.abort(error).catch(() => undefined)
        return
      }
      try {
        // Copied, because the transform may keep a chunk longer than its producer allows.
        if (next.done) return await writer.close()
        await writer.write(next.value.slice())
      } catch {
        // The transform failed or was cancelled; its reader reports the error.
        await iterator.return?.()
        return
      }
    }
  }
  const pumping = pump()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
    await pumping
  }
}
