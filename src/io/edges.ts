/**
 * Reads edge lists: a line an edge, `source target` or `source target weight`, counted from 0; separated by
 * spaces, tabs or a comma; `#` and `%` start comments; one header line is allowed.
 */
import { fail } from '../ast/diagnostic.ts'
import type { CoordTensor, ValueArray } from '../formats/tensor.ts'
import type { Dtype } from '../ir/dtype.ts'
import { type Scanner, scan } from './blocks.ts'
import type { TextOptions } from './matrix-market.ts'
import { Numbers } from './number.ts'
import type { Chunks } from './source.ts'
import { encoder, valueArray } from './values.ts'

export interface EdgeOptions extends TextOptions {
  /** Rows and columns; default: both one more than the largest id, the adjacency matrix of a graph. */
  readonly shape?: readonly number[] | undefined
}

const MAX_ID = 2147483646
const HASH = 35
const PERCENT = 37
const COMMA = 44
const BLOCK = 1 << 16

/** Whether a header's column name may start so: a letter, a quote, an underscore or not ASCII. */
const isName = (c: number): boolean => /[A-Za-z"'_]/.test(String.fromCharCode(c)) || c > 127

/** An array that grows without ever being copied until it is taken. */
class Column {
  length = 0
  private readonly full: ValueArray[] = []
  private at = 0
  private last: ValueArray
  private readonly dtype: Dtype
  private readonly name: string

  constructor(dtype: Dtype, name: string) {
    this.dtype = dtype
    this.name = name
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

  take(): ValueArray {
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

/** Takes blocks of whole lines; one instance reads one file. */
class Parser implements Scanner {
  private readonly name: string
  private readonly options: EdgeOptions
  private readonly dtype: Dtype
  private readonly encode: (value: number, line: number) => number
  private readonly numbers = new Numbers()
  private readonly sources: Column
  private readonly targets: Column
  private weights: Column | null = null
  private columns = 0
  private first = true
  private largest = -1
  private line = 0

  constructor(options: EdgeOptions) {
    this.name = options.name ?? 'edges'
    this.options = options
    this.dtype = options.dtype ?? 'f64'
    this.encode = encoder(this.dtype, (line) => `${this.name}:${line}`)
    this.sources = new Column('i32', this.name)
    this.targets = new Column('i32', this.name)
    const { shape } = options
    if (shape && (shape.length !== 2 || shape.some((n) => !Number.isInteger(n) || n < 0 || n > MAX_ID + 1)))
      fail({
        code: 'io/shape',
        message: `${this.name}: an edge list cannot have the shape ${shape.join(' × ')}`,
        expected: 'rows and columns',
      })
  }

  push(block: Uint8Array): void {
    const n = this.numbers
    n.reset(block)
    while (n.pos < n.end) {
      this.line++
      if (n.skipBlanks() && n.bytes[n.pos] !== HASH && n.bytes[n.pos] !== PERCENT) this.edge(n)
      n.skipLine()
    }
  }

  get taken(): number {
    return Number(!this.first) + this.sources.length
  }

  private edge(n: Numbers): void {
    const first = this.first
    this.first = false
    if (first && isName(n.bytes[n.pos]!)) return
    const source = n.int()
    this.id(n, source, 0)
    this.separator(n)
    const target = n.int()
    this.id(n, target, 1)
    const weighted = this.separator(n)
    if (this.columns === 0) {
      this.columns = weighted ? 3 : 2
      if (weighted) this.weights = new Column(this.dtype, this.name)
    }
    if (weighted !== (this.columns === 3))
      this.fail(
        'io/columns',
        `this line has ${weighted ? 'more' : 'fewer'} than the ${this.columns} columns before it`,
      )
    if (this.weights !== null) {
      const w = n.float()
      if (!n.ok) this.fail('io/not-a-number', `'${n.token()}' is not a number`)
      this.weights.push(this.encode(w, this.line))
      if (this.separator(n)) this.fail('io/columns', `unexpected '${n.token()}'`, 'two or three columns')
    }
    this.sources.push(source)
    this.targets.push(target)
    if (source > this.largest) this.largest = source
    if (target > this.largest) this.largest = target
  }

  /** Skips blanks and at most one comma; true where the line goes on. */
  private separator(n: Numbers): boolean {
    if (!n.skipBlanks()) return false
    if (n.bytes[n.pos] !== COMMA) return true
    n.pos++
    if (!n.skipBlanks()) this.fail('io/missing-number', 'the line ends after a comma')
    return true
  }

  private id(n: Numbers, id: number, dimension: 0 | 1): void {
    const what = dimension === 0 ? 'source' : 'target'
    if (!n.ok) {
      const token = n.token()
      if (token === '') this.fail('io/missing-number', `the ${what} is missing`, 'two or three columns')
      this.fail('io/not-a-number', `'${token}' is not a node's number`)
    }
    const size = this.options.shape?.[dimension] ?? MAX_ID + 1
    if (id < 0 || id >= size)
      this.fail('io/index-range', `the ${what} ${n.lastToken()} is out of range`, `0 to ${size - 1}`)
  }

  private fail(code: string, message: string, expected?: string): never {
    return fail({ code, message: `${this.name}:${this.line}: ${message}`, ...(expected && { expected }) })
  }

  finish(): CoordTensor {
    const n = this.largest + 1
    return {
      kind: 'coords',
      shape: this.options.shape ?? [n, n],
      coords: [this.sources.take() as Int32Array, this.targets.take() as Int32Array],
      values: this.weights?.take() ?? null,
      dtype: this.weights ? this.dtype : (this.options.dtype ?? 'f32'),
    }
  }
}

/** Edges in file order; weights default to f64. Throws `io/…` with the line. */
export async function readEdges(chunks: Chunks, options: EdgeOptions = {}): Promise<CoordTensor> {
  const parser = new Parser(options)
  await scan(chunks, 'line', options.name ?? 'edges', parser)
  return parser.finish()
}
