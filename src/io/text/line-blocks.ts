/** Splits a stream of chunks at line or token ends, so that scanners never see a partial number. */
import { type Advice, failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Chunks } from '../byte-source.ts'
import { Numbers } from './number.ts'

const NEWLINE = 10
/** Longest line (token): without a limit, a binary file would be buffered completely. */
const MAX_PIECE_BYTES = 1 << 20
/** Most bytes of comments and blanks between two entries: compressed, they arrive a thousand times as fast as data. */
const MAX_IDLE_BYTES = 1 << 24

const isSpace = (c: number): boolean => c === 32 || (c >= 9 && c <= 13)

const firstCut = (b: Uint8Array, separator: 'line' | 'token'): number =>
  separator === 'line' ? b.indexOf(NEWLINE) : b.findIndex(isSpace)

const lastCut = (b: Uint8Array, separator: 'line' | 'token'): number =>
  separator === 'line' ? b.lastIndexOf(NEWLINE) : b.findLastIndex(isSpace)

function join(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const out = new Uint8Array(length)
  let offset = 0
  for (const piece of pieces) {
    out.set(piece, offset)
    offset += piece.length
  }
  return out
}

/**
 * Blocks that end just after a newline (`line`) or after white space (`token`), except possibly the last. Blocks are
 * views; only pieces across chunk borders are copied.
 */
async function* blocks(
  chunks: Chunks,
  separator: 'line' | 'token',
  name: string,
): AsyncGenerator<Uint8Array> {
  // The unfinished piece and its length, joined once however small the chunks are.
  let pending: Uint8Array[] = []
  let pendingBytes = 0
  for await (const chunk of chunks) {
    const first = pendingBytes > 0 ? firstCut(chunk, separator) : -1
    if (pendingBytes > 0) {
      const piece = first < 0 ? chunk : chunk.subarray(0, first + 1)
      pendingBytes += piece.length
      if (pendingBytes > MAX_PIECE_BYTES)
        failWith('io/line-too-long', `${name}: a ${separator} of more than ${MAX_PIECE_BYTES} bytes`, {
          hint: 'Is this a text file of the format that the ending promises?',
        })
      if (first < 0) {
        pending.push(piece.slice())
        continue
      }
      yield join([...pending, piece], pendingBytes)
    }
    const remainder = chunk.subarray(first + 1)
    const last = lastCut(remainder, separator)
    if (last >= 0) yield remainder.subarray(0, last + 1)
    pendingBytes = remainder.length - last - 1
    pending = pendingBytes > 0 ? [remainder.slice(last + 1)] : []
  }
  if (pendingBytes > 0) yield join(pending, pendingBytes)
}

/**
 * Reads a text block by block. @throws SptError `io/line-too-long`, `io/comments-too-long` for too much text without
 * data, and errors of the parser
 */
export async function parseText<Result>(
  chunks: Chunks,
  separator: 'line' | 'token',
  parser: TextParser<unknown, Result>,
): Promise<Result> {
  const { name } = parser
  let idle = 0
  for await (const block of blocks(chunks, separator, name)) {
    const dataBefore = parser.dataCount
    parser.push(block)
    idle = parser.dataCount === dataBefore ? idle + block.length : 0
    if (idle > MAX_IDLE_BYTES)
      failWith(
        'io/comments-too-long',
        `${name}: more than ${MAX_IDLE_BYTES} bytes of comments and blanks without any data`,
        { hint: 'Is this a text file of the format that the ending promises?' },
      )
  }
  return parser.finish()
}

/** A hint for files with fewer entries than announced. */
export const CUT_SHORT = 'The file may be truncated, or its size line wrong.'

/** A scanner of one text that reports errors with its name and line. */
export abstract class TextParser<Options, Result> {
  readonly name: string
  protected readonly numbers = new Numbers()
  protected line = 0

  constructor(
    protected readonly options: Options & { readonly name?: string | undefined },
    defaultName = 'matrix',
  ) {
    this.name = options.name ?? defaultName
  }

  abstract push(block: Uint8Array): void
  /** Number of data and header lines or numbers so far, without comments and blanks. */
  abstract get dataCount(): number
  abstract finish(): Result

  protected fail(code: string, message: string, advice: Advice): never {
    return failWith(code, `${this.name}:${this.line}: ${message}`, advice)
  }
}
