/** Streaming reader for Matrix Market: memory for the arrays only. */
import type { Dtype } from '../../ir/values/dtype.ts'
import type { CoordTensor, DenseTensor, ValueArray } from '../../storage/tensor.ts'
import { allocate, type Chunks, WHOLE } from '../byte-source.ts'
import { beyondDoubles, encoder, valueArray } from '../element-arrays.ts'
import { CUT_SHORT, parseText, TextParser } from './line-blocks.ts'
import { type Banner, type Header, parseBanner, parseSizes } from './matrix-market-header.ts'
import type { Numbers } from './number.ts'

export interface TextOptions {
  /** The name of the file in diagnostics. */
  readonly name?: string
  /** Element type of the values; default f64 for real, i32 for integer (u32 for unsigned ones), f32 for patterns (which store none). */
  readonly dtype?: Dtype | undefined
  /** Upper bound on the bytes of text: headers that announce more data are rejected before allocation. */
  readonly maxBytes?: number | undefined
}

const PERCENT = 37
const DEFAULT_DTYPE = { real: 'f64', integer: 'i32', pattern: 'f32' } as const
const MAX_LINE = 200

class Parser extends TextParser<TextOptions, CoordTensor | DenseTensor> {
  private banner: Banner | null = null
  private header: Header | null = null
  private dtype: Dtype = 'f64'
  private rows: Int32Array = new Int32Array(0)
  private cols: Int32Array = new Int32Array(0)
  private values: ValueArray | null = null
  /** Number of entries read, and of elements stored for them. */
  private entriesRead = 0
  private elementsStored = 0
  /** The triangles of a symmetric file that have occurred: mirroring both would count elements twice. */
  private lower = false
  private upper = false
  /** Next element of an array file, in column-major order. */
  private row = 0
  private col = 0

  push(block: Uint8Array): void {
    const n = this.numbers
    n.reset(block)
    while (this.header === null && n.pos < n.end) this.headerLine(n)
    if (this.header === null) return
    if (this.header.layout === 'coordinate') this.coordinates(n, this.header)
    else this.elements(n, this.header)
  }

  get dataCount(): number {
    return Number(this.banner !== null) + Number(this.header !== null) + this.entriesRead
  }

  private headerLine(n: Numbers): void {
    if (this.banner === null) this.line++
    else if (!this.startLine(n)) return
    const start = n.pos
    n.skipLine()
    const text = new TextDecoder().decode(n.bytes.subarray(start, Math.min(n.pos, start + MAX_LINE)))
    if (this.banner === null) this.banner = parseBanner(text, this.name)
    else this.startData(parseSizes(text, this.line, this.banner, this.name))
  }

  private startData(header: Header): void {
    this.header = header
    const { name } = this
    const { maxBytes } = this.options
    // The shortest entry lines: `1 1\n`, `1 1 1\n`, `1\n`; the last newline may be missing.
    const shortest = header.layout === 'array' ? 2 : header.field === 'pattern' ? 4 : 6
    if (maxBytes !== undefined && header.entries * shortest > maxBytes + 1)
      this.fail(
        'io/too-few-entries',
        `${header.entries} entries are promised, but the file is too short to hold them`,
        { hint: CUT_SHORT },
      )
    this.dtype = this.options.dtype ?? (header.unsigned ? 'u32' : DEFAULT_DTYPE[header.field])
    if (header.layout === 'array') {
      this.values = valueArray(this.dtype, header.rows * header.cols, name)
      this.row = header.symmetry === 'skew-symmetric' ? 1 : 0
      return
    }
    const capacity = header.entries * (header.symmetry === 'general' ? 1 : 2)
    this.rows = allocate(Int32Array, capacity, name, 'row indices')
    this.cols = allocate(Int32Array, capacity, name, 'column indices')
    if (header.field !== 'pattern') this.values = valueArray(this.dtype, capacity, name)
  }

  private coordinates(n: Numbers, header: Header): void {
    const { rows, cols, values, dtype } = this
    const { entries, field } = header
    const encode = this.encode(dtype, n)
    const general = header.symmetry === 'general'
    let k = this.elementsStored
    while (n.pos < n.end) {
      if (!this.startLine(n)) continue
      if (this.entriesRead === entries) this.rejectExtra(entries)
      const i = n.int()
      if (!n.ok || i < 1 || i > header.rows) this.rejectIndex(n, i, 'row', header.rows)
      n.skipBlanks()
      const j = n.int()
      if (!n.ok || j < 1 || j > header.cols) this.rejectIndex(n, j, 'column', header.cols)
      rows[k] = i - 1
      cols[k] = j - 1
      let v = 1
      if (values !== null) {
        n.skipBlanks()
        v = this.number(n, field)
        values[k] = encode(v, this.line)
      }
      k++
      if (!general) {
        this.checkSymmetry(i, j, header)
        if (i !== j) {
          rows[k] = j - 1
          cols[k] = i - 1
          if (values !== null) {
            const m = header.symmetry === 'symmetric' ? v : -v
            values[k] = encode(m, this.line)
          }
          k++
        }
      }
      this.entriesRead++
      this.endOfLine(n)
    }
    this.elementsStored = k
  }

  private elements(n: Numbers, header: Header): void {
    const values = this.values!
    const encode = this.encode(this.dtype, n)
    const { rows, cols, entries, field, symmetry } = header
    while (n.pos < n.end) {
      if (!this.startLine(n)) continue
      if (this.entriesRead === entries) this.rejectExtra(entries)
      const v = this.number(n, field)
      values[this.row * cols + this.col] = encode(v, this.line)
      if (symmetry !== 'general' && this.row !== this.col) {
        const m = symmetry === 'symmetric' ? v : -v
        values[this.col * cols + this.row] = encode(m, this.line)
      }
      if (++this.row === rows) {
        this.col++
        this.row = symmetry === 'general' ? 0 : symmetry === 'symmetric' ? this.col : this.col + 1
      }
      this.entriesRead++
      this.endOfLine(n)
    }
  }

  /** Starts a line; returns false after skipping a blank line or a comment. */
  private startLine(n: Numbers): boolean {
    this.line++
    if (n.skipBlanks() && n.bytes[n.pos] !== PERCENT) return true
    n.skipLine()
    return false
  }

  private endOfLine(n: Numbers): void {
    if (n.skipBlanks() && n.bytes[n.pos] !== PERCENT)
      this.fail('io/extra-text', `unexpected '${n.token()}' after the entry`, {
        expected: 'an entry per line',
      })
    n.skipLine()
  }

  private number(n: Numbers, field: Banner['field']): number {
    const start = n.pos
    let v = field === 'real' ? n.float() : n.int()
    if (field !== 'real' && n.ok && !Number.isSafeInteger(v)) {
      // Integers beyond 2^53 are parsed again as floats, which are correctly rounded.
      n.pos = start
      v = n.float()
    }
    if (!n.ok) this.rejectToken(n, field === 'real' ? 'a number' : 'a whole number')
    return v
  }

  private encode(dtype: Dtype, n: Numbers): (value: number, line: number) => number {
    return encoder(
      dtype,
      (line) => `${this.name}:${line}`,
      () => n.lastToken(),
    )
  }

  private checkSymmetry(i: number, j: number, header: Header): void {
    if (i === j && header.symmetry === 'skew-symmetric')
      this.fail(
        'io/symmetry',
        `the diagonal of a skew-symmetric matrix is zero and not stored, but (${i}, ${j}) is`,
        { hint: 'omit the entry, or call the matrix general in the first line' },
      )
    if (i > j) this.lower = true
    if (i < j) this.upper = true
    if (this.lower && this.upper)
      this.fail('io/symmetry', `(${i}, ${j}) is in the other triangle than the entries before it`, {
        expected: `one triangle of a ${header.symmetry} matrix; the other triangle is the mirror image`,
      })
  }

  private rejectIndex(n: Numbers, index: number, what: string, size: number): never {
    if (!n.ok) return this.rejectToken(n, `a ${what} index`)
    return this.fail('io/index-range', `the ${what} index ${n.lastToken()} is out of range`, {
      expected: `1 to ${size}`,
      ...(index === 0 && { hint: 'Matrix Market counts from 1.' }),
    })
  }

  private lineForm(): string {
    const { layout, field } = this.header!
    const value = field === 'real' ? 'number' : 'whole number'
    if (layout === 'array') return `one ${value} on each line`
    return field === 'pattern'
      ? 'a row and a column on each line'
      : `a row, a column and a ${value} on each line`
  }

  private rejectToken(n: Numbers, what: string): never {
    const token = n.token()
    const expected = this.lineForm()
    if (token === '')
      return this.fail('io/missing-number', `the line ends where ${what} should be`, { expected })
    if (n.overflowed) return this.fail('io/value-range', ...beyondDoubles(token))
    return this.fail('io/not-a-number', `'${token}' is not ${what}`, { expected })
  }

  private rejectExtra(entries: number): never {
    return this.fail('io/too-many-entries', `more entries than the ${entries} that the size line promises`, {
      hint: 'correct the size line, if the entries are right',
    })
  }

  finish(): CoordTensor | DenseTensor {
    const { header, dtype, elementsStored } = this
    if (this.banner === null)
      return this.fail('io/empty', 'the file is empty', { expected: 'a %%MatrixMarket line' })
    if (header === null)
      return this.fail('io/size-line', 'the file ends before the size line', { hint: WHOLE })
    if (this.entriesRead < header.entries)
      return this.fail(
        'io/too-few-entries',
        `the file ends after ${this.entriesRead} of ${header.entries} entries`,
        { hint: CUT_SHORT },
      )
    const shape = [header.rows, header.cols]
    if (header.layout === 'array') return { kind: 'dense', shape, values: this.values!, dtype }
    // One array at a time, so that the untrimmed ones can be freed.
    if (elementsStored < this.rows.length) {
      this.rows = this.rows.slice(0, elementsStored)
      this.cols = this.cols.slice(0, elementsStored)
      this.values = this.values?.slice(0, elementsStored) ?? null
    }
    return { kind: 'coords', shape, coords: [this.rows, this.cols], values: this.values, dtype }
  }
}

/**
 * A Matrix Market file as coordinates (`coordinate`, in file order, symmetry expanded) or as a row-major dense tensor
 * (`array`). @throws SptError `io/…` with the line
 */
export function readMatrixMarket(
  chunks: Chunks,
  options: TextOptions = {},
): Promise<CoordTensor | DenseTensor> {
  return parseText(chunks, 'line', new Parser(options))
}
