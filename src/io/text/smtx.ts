/**
 * Reads `.smtx`, the text format of the Deep Learning Matrix Collection (Gale et al., SC 2020): `rows, cols, nnz`, then
 * a line with the row offsets and one with the column indices. Lines grow with the matrix, so the file is read number
 * by number.
 */
import { allocate, type Chunks } from '../byte-source.ts'
import { type CompressedMatrix, checkCompressed } from '../sparse-matrix.ts'
import { CUT_SHORT, parseText, TextParser } from './line-blocks.ts'
import type { TextOptions } from './matrix-market.ts'
import type { Numbers } from './number.ts'

const INT32_MAX = 2147483647
const SIZES = ['rows', 'columns', 'nonzeros'] as const
const COMMA = 44

class Parser extends TextParser<TextOptions, CompressedMatrix> {
  private readonly sizes: number[] = []
  private indptr = new Int32Array(0)
  private indices = new Int32Array(0)
  private numbersRead = 0
  protected override line = 1

  push(block: Uint8Array): void {
    const n = this.numbers
    n.reset(block)
    while (this.nextToken(n)) {
      const v = n.int()
      if (!n.ok)
        this.fail('io/not-a-number', `'${n.token()}' is not a whole number`, {
          expected: 'whole numbers between blanks or commas',
        })
      if (v < 0 || v > INT32_MAX)
        this.fail('io/index-range', `${n.lastToken()} is out of range`, { expected: `0 to ${INT32_MAX}` })
      if (this.sizes.length < SIZES.length) this.size(v)
      else this.element(v)
    }
  }

  get dataCount(): number {
    return this.sizes.length + this.numbersRead
  }

  private nextToken(n: Numbers): boolean {
    for (;;) {
      if (n.skipBlanks()) {
        if (n.bytes[n.pos] !== COMMA) return true
        n.pos++
      } else if (n.pos >= n.end) return false
      else {
        this.line++
        n.pos++
      }
    }
  }

  private size(v: number): void {
    this.sizes.push(v)
    if (this.sizes.length < SIZES.length) return
    const [rows, , nonzeros] = this.sizes as [number, number, number]
    const { maxBytes } = this.options
    if (maxBytes !== undefined && (rows + 1 + nonzeros) * 2 > maxBytes)
      this.fail(
        'io/too-few-entries',
        `${rows} rows and ${nonzeros} nonzeros are promised, but the file is too short to hold them`,
        { hint: CUT_SHORT },
      )
    this.indptr = allocate(Int32Array, rows + 1, this.name, 'row offsets')
    this.indices = allocate(Int32Array, nonzeros, this.name, 'column indices')
  }

  private element(v: number): void {
    const at = this.numbersRead++
    if (at < this.indptr.length) this.indptr[at] = v
    else if (at < this.indptr.length + this.indices.length) this.indices[at - this.indptr.length] = v
    else
      this.fail(
        'io/too-many-entries',
        `more numbers than ${this.indptr.length} offsets and ${this.indices.length} indices`,
        { hint: 'correct the sizes, if the offsets and indices are right' },
      )
  }

  finish(): CompressedMatrix {
    const [rows, cols] = this.sizes
    if (this.sizes.length < SIZES.length)
      return this.fail('io/size-line', 'the file ends within its sizes', { expected: SIZES.join(', ') })
    const promised = this.indptr.length + this.indices.length
    if (this.numbersRead < promised)
      this.fail(
        'io/too-few-entries',
        `the file ends after ${this.numbersRead} of ${promised} offsets and indices`,
        { hint: CUT_SHORT },
      )
    const { indptr, indices } = this
    return checkCompressed(
      {
        kind: 'csr',
        shape: [rows!, cols!],
        indptr,
        indices,
        values: null,
        dtype: this.options.dtype ?? 'f32',
      },
      this.name,
    )
  }
}

/**
 * A pattern in CSR. @throws SptError `io/size-line`, `io/not-a-number`, `io/too-…-entries`, `io/indptr`,
 * `io/index-range`
 */
export function readSmtx(chunks: Chunks, options: TextOptions = {}): Promise<CompressedMatrix> {
  return parseText(chunks, 'token', new Parser(options))
}
