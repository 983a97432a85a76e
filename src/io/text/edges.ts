/**
 * Reads edge lists: one edge per line, `source target` or `source target weight`, counted from 0; separated by spaces,
 * tabs or a comma; `#` and `%` start comments. In a table, the first line may name its columns.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { CoordTensor, ValueArray } from '../../storage/tensor.ts'
import type { Chunks } from '../byte-source.ts'
import { beyondDoubles, encoder, valueArray } from '../element-arrays.ts'
import { conversionOf } from '../unknown-ending.ts'
import { parseText, TextParser } from './line-blocks.ts'
import type { TextOptions } from './matrix-market.ts'
import type { Numbers } from './number.ts'

export interface EdgeOptions extends TextOptions {
  /** Rows and columns; default: both one more than the largest id, the adjacency matrix of a graph. */
  readonly shape?: readonly number[] | undefined
  /** The file is a table, whose first line may be a header of names only. */
  readonly table?: boolean | undefined
}

const MAX_ID = 2147483646
const HASH = 35
const PERCENT = 37
const COMMA = 44
const BLOCK = 1 << 16
const COLUMNS = 'two or three columns'

const FIELD = /"[^"]*"|'[^']*'|[^\s,]+/g
const NO_FIELD = /^\s*,|,\s*(,|$)/
/** Column names begin with a letter, an underscore or a non-ASCII character. */
const NAME = /^["']?[A-Za-z_\x80-\xff]/
const NUMBER = /^["']?(inf|infinity|nan)["']?$/i

/** True if all fields of a line are names: a line with a number is an edge, possibly malformed. */
function isHeader(line: string): boolean {
  const fields = line.match(FIELD) ?? []
  return !NO_FIELD.test(line) && fields.every((f) => NAME.test(f) && !NUMBER.test(f))
}

/** A growing array in blocks, copied only once at the end. */
class Column {
  length = 0
  private readonly full: ValueArray[] = []
  private at = 0
  private last: ValueArray

  constructor(
    private readonly dtype: Dtype,
    private readonly name: string,
  ) {
    this.last = valueArray(dtype, BLOCK, name)
  }

  push(v: number): void {
    if (this.at === this.last.length) {
      this.full.push(this.last)
      this.last = valueArray(this.dtype, BLOCK, this.name)
      this.at = 0
    }
    this.last[this.at++] = v
    this.length++
  }

  toArray(): ValueArray {
    const out = valueArray(this.dtype, this.length, this.name)
    let to = 0
    for (const block of this.full) {
      out.set(block, to)
      to += block.length
    }
    out.set(this.last.subarray(0, this.at), to)
    return out
  }
}

class Parser extends TextParser<EdgeOptions, CoordTensor> {
  private readonly dtype: Dtype
  private readonly encode: (value: number, line: number) => number
  private readonly sources: Column
  private readonly targets: Column
  private weights: Column | null = null
  private columns = 0
  private isFirst = true
  private header = 0
  private largest = -1

  constructor(options: EdgeOptions) {
    super(options, 'edges')
    this.dtype = options.dtype ?? 'f64'
    this.encode = encoder(
      this.dtype,
      (line) => `${this.name}:${line}`,
      () => this.numbers.lastToken(),
    )
    this.sources = new Column('i32', this.name)
    this.targets = new Column('i32', this.name)
    const { shape } = options
    if (shape && (shape.length !== 2 || shape.some((n) => !Number.isInteger(n) || n < 0 || n > MAX_ID + 1)))
      failWith('io/shape', `${this.name}: an edge list cannot have the shape ${shape.join(' × ')}`, {
        expected: 'rows and columns',
      })
  }

  push(block: Uint8Array): void {
    const n = this.numbers
    n.reset(block)
    while (n.pos < n.end) {
      this.line++
      if (this.line === 1 && n.bytes[0] === 0xef && n.bytes[1] === 0xbb && n.bytes[2] === 0xbf) n.pos = 3
      if (n.skipBlanks() && n.bytes[n.pos] !== HASH && n.bytes[n.pos] !== PERCENT) this.readEdge(n)
      n.skipLine()
    }
  }

  get dataCount(): number {
    return Number(!this.isFirst) + this.sources.length
  }

  private readEdge(n: Numbers): void {
    const isFirst = this.isFirst
    this.isFirst = false
    if (isFirst && this.options.table && isHeader(n.line())) {
      this.header = this.line
      return
    }
    const source = n.int()
    this.checkId(n, source, 0)
    this.separator(n)
    const target = n.int()
    this.checkId(n, target, 1)
    const weighted = this.separator(n)
    if (this.columns === 0) {
      this.columns = weighted ? 3 : 2
      if (weighted) this.weights = new Column(this.dtype, this.name)
    }
    if (weighted !== (this.columns === 3))
      this.fail(
        'io/columns',
        `this line has ${weighted ? 'more' : 'fewer'} than the ${this.columns} columns before it`,
        { expected: `${this.columns} columns in every line` },
      )
    if (this.weights !== null) {
      const w = n.float()
      if (!n.ok) {
        const token = n.token()
        if (n.overflowed) this.fail('io/value-range', ...beyondDoubles(token))
        this.fail('io/not-a-number', `'${token}' is not a number`, {
          expected: 'a number for the weight',
          ...this.advice(token),
        })
      }
      this.weights.push(this.encode(w, this.line))
      if (this.separator(n))
        this.fail('io/columns', `unexpected '${n.token()}'`, { expected: COLUMNS, ...this.ifDense() })
    }
    this.sources.push(source)
    this.targets.push(target)
    if (source > this.largest) this.largest = source
    if (target > this.largest) this.largest = target
  }

  private ifDense(): { readonly hint?: string } {
    const command = this.options.table ? conversionOf(this.name) : undefined
    return command === undefined ? {} : { hint: `if the table is a dense matrix: ${command}` }
  }

  /** Skips blanks and at most one comma; returns true if the line continues. */
  private separator(n: Numbers): boolean {
    if (!n.skipBlanks()) return false
    if (n.bytes[n.pos] !== COMMA) return true
    n.pos++
    if (!n.skipBlanks()) this.fail('io/missing-number', 'the line ends after a comma', { expected: COLUMNS })
    return true
  }

  private checkId(n: Numbers, checkId: number, dimension: 0 | 1): void {
    const what = dimension === 0 ? 'source' : 'target'
    if (!n.ok) {
      const token = n.token()
      if (token === '')
        this.fail('io/missing-number', `the line has no ${what} node`, {
          expected: COLUMNS,
          hint: 'this format is read as a list of edges; write a vector as .npy, or as a Matrix Market array',
        })
      this.fail('io/not-a-number', `'${token}' is not a node's number`, {
        expected: 'a whole number from 0 on',
        ...(Number.isFinite(Number(token)) ? this.ifDense() : this.advice(token)),
      })
    }
    const size = this.options.shape?.[dimension] ?? MAX_ID + 1
    if (checkId < 0 || checkId >= size)
      this.fail('io/index-range', `the ${what} node ${n.lastToken()} is out of range`, {
        expected: `0 to ${size - 1}`,
      })
  }

  private advice(token: string): { readonly hint?: string } {
    if (/["']/.test(token)) return { hint: 'write numbers without quotes' }
    if (this.sources.length > 0) return {}
    if (this.options.table)
      return this.header > 0 ? {} : { hint: 'the first line is an edge, or a header of names alone' }
    return {
      hint: 'nodes are numbers from 0 on; comments begin with # or %, and headers are for .csv and .tsv',
    }
  }

  finish(): CoordTensor {
    if (this.header > 0 && this.sources.length === 0) {
      this.line = this.header
      this.fail('io/no-edges', 'this line has no numbers, and no edge follows', {
        expected: 'lines of two or three numbers',
      })
    }
    const n = this.largest + 1
    return {
      kind: 'coords',
      shape: this.options.shape ?? [n, n],
      coords: [this.sources.toArray() as Int32Array, this.targets.toArray() as Int32Array],
      values: this.weights?.toArray() ?? null,
      dtype: this.weights ? this.dtype : (this.options.dtype ?? 'f32'),
    }
  }
}

/** Edges in file order; weights default to f64. @throws SptError `io/…` with the line */
export function readEdges(chunks: Chunks, options: EdgeOptions = {}): Promise<CoordTensor> {
  return parseText(chunks, 'line', new Parser(options))
}
