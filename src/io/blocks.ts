/** Cuts a stream of chunks at line or token ends, so that scanners never see half a number. */
import { fail } from '../ast/diagnostic.ts'
import type { Chunks } from './source.ts'

const NEWLINE = 10
/** No line (token) of a sane file is longer; without a limit a binary file would be collected whole. */
const MAX_PIECE_BYTES = 1 << 20

const isSpace = (c: number): boolean => c === 32 || (c >= 9 && c <= 13)

function firstCut(b: Uint8Array, cut: 'line' | 'token'): number {
  if (cut === 'line') return b.indexOf(NEWLINE)
  for (let i = 0; i < b.length; i++) if (isSpace(b[i]!)) return i
  return -1
}

function lastCut(b: Uint8Array, cut: 'line' | 'token'): number {
  if (cut === 'line') return b.lastIndexOf(NEWLINE)
  for (let i = b.length - 1; i >= 0; i--) if (isSpace(b[i]!)) return i
  return -1
}

function join(a: Uint8Array, b: Uint8Array): Uint8Array {
  const out = new Uint8Array(a.length + b.length)
  out.set(a)
  out.set(b, a.length)
  return out
}

/**
 * Blocks that each end just after a newline (`line`) or after white space (`token`); only the last may not.
 * Chunks are passed on as views: only the pieces across chunk borders are copied.
 */
export async function* blocks(
  chunks: Chunks,
  cut: 'line' | 'token',
  name: string,
): AsyncGenerator<Uint8Array> {
  let carry = new Uint8Array(0)
  for await (const chunk of chunks) {
    let rest = chunk
    if (carry.length > 0) {
      const first = firstCut(rest, cut)
      const head = join(carry, first < 0 ? rest : rest.subarray(0, first + 1))
      if (head.length > MAX_PIECE_BYTES)
        fail({
          code: 'io/line-too-long',
          message: `${name}: a ${cut} of more than ${MAX_PIECE_BYTES} bytes`,
          hint: 'Is this a text file of the format that its ending promises?',
        })
      if (first < 0) {
        carry = head as Uint8Array<ArrayBuffer>
        continue
      }
      carry = new Uint8Array(0)
      yield head
      rest = rest.subarray(first + 1)
    }
    const last = lastCut(rest, cut)
    if (last >= 0) yield rest.subarray(0, last + 1)
    carry = rest.slice(last + 1) as Uint8Array<ArrayBuffer>
  }
  if (carry.length > 0) yield carry
}
