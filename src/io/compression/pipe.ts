/** Pipes a stream through one of the platform's transforms (compression, decompression). */
import type { Chunks } from '../byte-source.ts'

/**
 * The output of `transform` for the input `chunks`. Errors of either end reject; a consumer that stops early closes both.
 */
export async function* pipeThrough(
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
