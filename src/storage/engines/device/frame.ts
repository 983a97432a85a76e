/**
 * Entries on a device: one column for each name that expressions mention, one element for each entry. Expressions
 * over names become expressions over an entry's index, so that a kernel fuses whatever it needs.
 */

import { HIGHEST } from '../../../analysis/integers/interval.ts'
import { overflowIn } from '../../../analysis/integers/ranges.ts'
import { fail } from '../../../ast/diagnostic.ts'
import type { Dtype } from '../../../ir/dtype.ts'
import { evaluate } from '../../../ir/evaluate.ts'
import { cast, constant, type Expr, load, variable } from '../../../ir/expr.ts'
import { freeVars, rewriteExpr, walkExpr } from '../../../ir/expr-tree.ts'
import { printExpr } from '../../../ir/print-stage2.ts'
import { type Column, type LaunchSpec, natural, read, type Use, write } from './column-types.ts'
import { gather } from './gather.ts'
import { store } from './kernel.ts'
import type { Order, Rising } from './known-orders.ts'
import type { Queue } from './queue.ts'

/** The index of an entry, as a name in expressions. */
export const ENTRY = '@entry'

/** Expressions of one frame, ready for kernels. */
export interface Terms extends Required<Pick<LaunchSpec, 'key' | 'columns' | 'sizes'>> {
  /** Their values at entry `e`. */
  readonly at: (e: Expr) => readonly Expr[]
}

export class Frame {
  readonly queue: Queue
  readonly n: number
  /** One element for each entry. */
  readonly columns = new Map<string, Column>()
  /** Columns and tables with other elements than non-negative i32. */
  readonly signed = new Set<string>()
  /** Arrays that expressions load at an index. */
  readonly tables: Map<string, Column>
  readonly sizes: Map<string, number>
  /** Least and greatest value, where known: by column or size. */
  readonly bounds = new Map<string, readonly [number, number]>()
  /** Entry of the source; `null`: entry e is e. */
  entry: Column | null = null
  /** Keys in whose lexicographic order the entries are known to stand. */
  sortedBy: Order = []
  /** Columns that are known to rise. */
  readonly rising = new Map<string, Rising>()
  readonly #owned = new Set<Column>()

  constructor(
    queue: Queue,
    n: number,
    sizes: ReadonlyMap<string, number>,
    tables: ReadonlyMap<string, Column>,
  ) {
    this.queue = queue
    this.n = n
    this.sizes = new Map(sizes)
    this.tables = new Map(tables)
  }

  /** A column under a name; the frame releases what it owns. */
  set(name: string, column: Column, owned = true): void {
    this.drop(name)
    this.columns.set(name, column)
    if (owned) this.#owned.add(column)
  }

  /** An uninitialised column of the frame's length under a name. */
  make(name: string): Column {
    const column = this.queue.column(this.n, 'i32', name)
    this.set(name, column)
    return column
  }

  setEntry(column: Column): void {
    if (this.entry && this.#owned.delete(this.entry)) this.queue.release(this.entry)
    this.entry = column
    this.#owned.add(column)
  }

  drop(name: string): void {
    const old = this.columns.get(name)
    if (!old) return
    this.columns.delete(name)
    if (this.#owned.delete(old)) this.queue.release(old)
  }

  /** The column is no longer the frame's to release. */
  keep(column: Column): void {
    this.#owned.delete(column)
  }

  release(): void {
    this.queue.release(...this.#owned)
    this.#owned.clear()
    this.columns.clear()
  }

  /** Least and greatest value of a column or size, where known. */
  range(name: string): readonly [number, number] | undefined {
    const size = this.sizes.get(name)
    return this.bounds.get(name) ?? (size === undefined ? undefined : [size, size])
  }

  /** Kernels compute in 32 bits and do not see where that wraps. */
  #checkRange(e: Expr): void {
    const over = overflowIn(e, (name) => this.range(name))
    if (!over) return
    fail({
      code: 'format/map-overflow',
      message: `${printExpr(over.expr)} reaches ${over.hi > HIGHEST ? over.hi : over.lo}`,
      ...(over.expr.span ? { span: over.expr.span } : {}),
      expected: 'results that fit 32 bits, as kernels compute them',
      hint: 'divide before multiplying, or map to more axes',
    })
  }

  /** @throws SptError `format/unknown-name`, `format/map-overflow` */
  terms(exprs: readonly Expr[]): Terms {
    const columns: Record<string, Use> = {}
    const sizes: Record<string, number> = {}
    const names = new Map<string, string>()
    const tables = new Map<string, string>()
    const onColumn = new Map<string, string>()
    const dtypes = new Map<string, Dtype>()
    for (const e of exprs) {
      this.#checkRange(e)
      for (const name of freeVars(e)) {
        if (name === ENTRY || names.has(name) || onColumn.has(name)) continue
        const column = this.columns.get(name)
        const size = this.sizes.get(name)
        if (column) {
          const own = `f${onColumn.size}`
          onColumn.set(name, own)
          dtypes.set(name, column.dtype)
          columns[own] = this.signed.has(name) ? read(column) : natural(column)
        } else if (size !== undefined) {
          const own = `s${names.size}`
          names.set(name, own)
          sizes[own] = size
        } else unknown(name, [...this.columns.keys(), ...this.sizes.keys()])
      }
      walkExpr(e, (x) => {
        const buffer = x.kind === 'load' || x.kind === 'search' ? x.buffer : null
        if (buffer === null || tables.has(buffer)) return
        const column = this.tables.get(buffer)
        if (!column) unknown(buffer, [...this.tables.keys()])
        const own = `t${tables.size}`
        tables.set(buffer, own)
        columns[own] = this.signed.has(buffer) ? read(column) : natural(column)
      })
    }
    const narrow = this.queue.device.storage === 'words'
    const at = (e: Expr): readonly Expr[] => {
      const memo = new Map<Expr, Expr>()
      return exprs.map((x) =>
        rewriteExpr(
          x,
          (y) => {
            if (narrow && y.dtype === 'f64' && y.kind === 'const') return constant(y.value, 'f32')
            if (narrow && y.dtype === 'f64' && y.kind === 'cast') return cast(y.x, 'f32')
            if (y.kind === 'var') {
              if (y.name === ENTRY) return e
              const own = onColumn.get(y.name)
              if (own === undefined) {
                const size = names.get(y.name)
                return size === undefined ? undefined : variable(size)
              }
              // The frame may have other columns by now.
              const dtype = dtypes.get(y.name)!
              const value = load(own, [e], dtype)
              return dtype === y.dtype || (narrow && y.dtype === 'f64') ? value : cast(value, y.dtype)
            }
            if (y.kind === 'load') return load(tables.get(y.buffer)!, y.index, y.dtype)
            if (y.kind === 'search') return Object.freeze({ ...y, buffer: tables.get(y.buffer)! })
            return undefined
          },
          memo,
        ),
      )
    }
    const own = (name: string): string => onColumn.get(name) ?? names.get(name) ?? tables.get(name) ?? name
    return { key: exprs.map((e) => structureOf(e, own)).join(), columns, sizes, at }
  }

  /** Value of an expression over sizes. */
  size(e: Expr): number {
    for (const name of freeVars(e)) if (!this.sizes.has(name)) unknown(name, [...this.sizes.keys()])
    return evaluate(e, this.sizes)
  }

  /** Whether an expression is over sizes that are known. */
  isKnown(e: Expr): boolean {
    return [...freeVars(e)].every((v) => this.sizes.has(v))
  }

  /** A size of its own for a number, so that kernels serve other sizes. */
  sized(value: number): Expr {
    const name = `@size ${this.sizes.size}`
    this.sizes.set(name, value)
    return variable(name)
  }

  /** A new column with the values of an expression. */
  compute(name: string, e: Expr): void {
    const t = this.terms([e])
    const out = this.queue.column(this.n, 'i32', name)
    this.queue.launch({
      ...t,
      key: `compute ${t.key}`,
      threads: this.n,
      columns: { ...t.columns, x_out: write(out) },
      body: (at) => [store('x_out', at, t.at(at)[0]!)],
    })
    this.set(name, out)
  }

  /** Puts the entries in another order: place s gets entry `order[s]`. Takes `order` over. */
  reorder(order: Column): void {
    const moved: [from: Column, to: Column, name: string | null][] = []
    for (const [name, from] of this.columns)
      moved.push([from, this.queue.column(this.n, from.dtype, name), name])
    if (this.entry) moved.push([this.entry, this.queue.column(this.n, 'i32', 'entry'), null])
    gather(
      this.queue,
      order,
      moved.map(([from, to]) => [from, to] as const),
    )
    for (const [, to, name] of moved) {
      if (name === null) this.setEntry(to)
      else this.set(name, to)
    }
    if (this.entry) this.queue.release(order)
    else this.setEntry(order)
  }

  /** The entries `order[from …]`, `count` of them, as a frame of their own. */
  part(order: Column, from: number, count: number): Frame {
    const out = new Frame(this.queue, count, this.sizes, this.tables)
    for (const [name, b] of this.bounds) out.bounds.set(name, b)
    for (const name of this.signed) out.signed.add(name)
    const pairs = [...this.columns].map(([name, column]) => {
      const to = this.queue.column(count, column.dtype, name)
      out.set(name, to)
      return [column, to] as const
    })
    const entry = this.queue.column(count, 'i32', 'entry')
    out.setEntry(entry)
    if (this.entry) gather(this.queue, order, [...pairs, [this.entry, entry]], { first: from, count })
    else gather(this.queue, order, pairs, { first: from, count, places: entry })
    return out
  }
}

function unknown(name: string, candidates: readonly string[]): never {
  fail({
    code: 'format/unknown-name',
    message: `${name} is no coordinate, size or table here`,
    lookup: { name, candidates },
    expected: `one of ${candidates.join(', ')}`,
    hint: 'maps are over the coordinates, the sizes and what the format asks for',
  })
}

/** Tells expressions apart that differ in more than the names of what they mention. */
function structureOf(e: Expr, own: (name: string) => string): string {
  const of = (x: Expr): string => structureOf(x, own)
  switch (e.kind) {
    case 'const':
      return `${Object.is(e.value, -0) ? '-0' : e.value}:${e.dtype}`
    case 'var':
      return `${own(e.name)}:${e.dtype}`
    case 'builtin':
      return `@${e.axis}`
    case 'unary':
      return `(${e.op} ${of(e.x)})`
    case 'cast':
      return `(${e.dtype} ${of(e.x)})`
    case 'binary':
      return `(${e.op} ${of(e.a)} ${of(e.b)})`
    case 'call':
      return `(${e.fn} ${e.args.map(of).join(' ')})`
    case 'select':
      return `(? ${of(e.cond)} ${of(e.then)} ${of(e.else)})`
    case 'load':
      return `${own(e.buffer)}[${e.index.map(of).join()}]`
    case 'search':
      return `(${e.method} ${own(e.buffer)} ${of(e.lo)} ${of(e.hi)} ${of(e.value)})`
  }
}
