/**
 * Runs a Stage II kernel, one statement after the other: what a schedule step must not change. Every index is
 * checked, and memory that nothing has written holds a poison value, so that a wrong rewrite shows.
 *
 * `f32` is rounded after every operation, integers wrap; 16-bit floats are held as plain numbers, unrounded.
 */
import { InternalError, invariant, unreachable } from '../ast/diagnostic.ts'
import { type Dtype, isFloat } from './dtype.ts'
import { type Expr, type Load, load, type Search, type Select } from './expr.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt, Store } from './loops.ts'
import { printExpr } from './print2.ts'
import { arithmetic, COMPARE, convert, mathOf, wrap } from './reference/numeric.ts'
import { Threads } from './threads.ts'
import { initLoops, reductionsOf } from './tree.ts'

/** Row-major elements of a buffer. */
export type Cells = { readonly length: number; [k: number]: number }

type Value = () => number
type Action = () => void

interface Cell {
  readonly buffer: Buffer
  /** Sizes by dimension, and the elements; an allocation gets both each time it is reached. */
  sizes: readonly number[]
  data: Cells
}

/** What unwritten memory holds: no value that a kernel would compute. */
const poison = (t: Dtype): number =>
  isFloat(t) ? Number.NaN : t === 'bool' ? 1 : t === 'u32' || t === 'i32' ? 1234567 : 77

/**
 * How bound and vector loops run. They have no order, so `backward` must give the same results as `forward`;
 * and `threads` gives each thread registers of its own, as devices do (see `threads.ts`).
 */
export type Order = 'forward' | 'backward' | 'threads'

/**
 * Runs `kernel` in place on `buffers` (one array for each of `kernel.buffers`; a missing `local` is allocated).
 * Throws `InternalError` naming the access where an index is out of its buffer.
 */
export function interpret(
  kernel: Kernel2,
  buffers: ReadonlyMap<string, Cells>,
  params: ReadonlyMap<string, number>,
  order: Order = 'forward',
): void {
  new Interpreter(kernel, buffers, params, order).run()
}

class Interpreter {
  readonly #vars = new Map<string, { value: number }>()
  readonly #cells = new Map<string, Cell>()
  readonly #inits: ReadonlyMap<string, readonly Reduce[]>
  readonly #paths = new Map<Reduce, readonly For[]>()
  readonly #program: Action
  readonly #order: Order
  readonly #threads: Threads

  constructor(
    kernel: Kernel2,
    buffers: ReadonlyMap<string, Cells>,
    params: ReadonlyMap<string, number>,
    order: Order,
  ) {
    this.#order = order
    this.#threads = new Threads(kernel.body, order === 'threads')
    for (const p of kernel.params) {
      const value = params.get(p.name)
      invariant(value !== undefined, `no value for parameter ${p.name}`)
      this.#vars.set(p.name, { value })
    }
    for (const b of kernel.buffers) {
      const sizes = b.shape.map((e) => this.#expr(e)())
      const length = sizes.reduce((x, y) => x * y, 1)
      const data = buffers.get(b.name) ?? new Array<number>(length).fill(poison(b.dtype))
      invariant(buffers.has(b.name) || b.role === 'local', `no array for buffer ${b.name}`)
      invariant(data.length === length, `${b.name} has ${data.length} elements, not ${sizes.join(' × ')}`)
      this.#cells.set(b.name, { buffer: b, sizes, data })
    }
    const inits = new Map<string, Reduce[]>()
    for (const { reduce, path } of reductionsOf(kernel.body)) {
      this.#paths.set(reduce, path)
      if (!reduce.init) continue
      const outermost = path.find((l) => l.reduce)
      if (outermost) inits.set(outermost.var, [...(inits.get(outermost.var) ?? []), reduce])
    }
    this.#inits = inits
    this.#program = this.#block(kernel.body)
  }

  run(): void {
    this.#program()
  }

  #block(body: readonly Stmt[]): Action {
    const actions = body.map((s) => this.#stmt(s))
    if (actions.length === 1) return actions[0]!
    return () => {
      for (const a of actions) a()
    }
  }

  #stmt(s: Stmt): Action {
    switch (s.kind) {
      case 'for': {
        const inits = (this.#inits.get(s.var) ?? []).map((r) => this.#initNest(r))
        const loop = this.#loop(s, this.#slot(s.var), () => this.#block(s.body))
        if (inits.length === 0) return loop
        return () => {
          for (const init of inits) init()
          loop()
        }
      }
      case 'if': {
        const cond = this.#expr(s.cond)
        const then = this.#block(s.then)
        const otherwise = this.#block(s.else)
        return () => (cond() !== 0 ? then() : otherwise())
      }
      case 'store': {
        const value = this.#expr(s.value)
        const write = this.#writer(s, s.value.dtype)
        return this.#threads.statement(() => write(value()), this.#inRegisters(s.buffer))
      }
      case 'reduce':
        return this.#reduce(s)
      case 'alloc': {
        const cell = this.#alloc(s.buffer)
        const length = cell.sizes.reduce((x, y) => x * y, this.#copies(s.buffer))
        return () => {
          cell.data = new Array<number>(length).fill(poison(s.buffer.dtype))
        }
      }
      case 'fill': {
        const cell = this.#cell(s.buffer)
        const value = this.#expr(s.value)
        return () => {
          const v = value()
          for (let k = 0; k < cell.data.length; k++) cell.data[k] = v
        }
      }
      case 'instr':
      case 'barrier':
        // What orders asynchronous instructions: here everything is done when it is said.
        return () => {}
      case 'let':
      case 'while':
      case 'vector_load':
      case 'vector_store':
        throw new InternalError(`${s.kind} does not occur in Stage II`)
      default:
        return unreachable(s)
    }
  }

  #slot(name: string): { value: number } {
    const slot = this.#vars.get(name) ?? { value: 0 }
    this.#vars.set(name, slot)
    return slot
  }

  #loop(s: For, slot: { value: number }, inside: () => Action): Action {
    const extent = this.#expr(s.extent)
    const guards = s.guards.map((g) => this.#expr(g))
    const { inner: body, enter } = this.#threads.inside(s, inside)
    const backward = this.#order === 'backward' && (s.mode.kind === 'bind' || s.mode.kind === 'vectorize')
    return () => {
      const n = extent()
      for (let k = 0; k < n; k++) {
        slot.value = backward ? n - 1 - k : k
        enter(k)
        if (guards.every((g) => g() !== 0)) body()
      }
    }
  }

  /** The targets of a reduction become the identity, under copies of the loops that run over them. */
  #initNest(s: Reduce): Action {
    const path = this.#paths.get(s)!
    const inside = path.slice(path.findIndex((l) => l.reduce))
    const loops = initLoops(s, inside)
    const build = (k: number): Action => {
      const l = loops[k]
      return l ? this.#loop(l, this.#slot(l.var), () => build(k + 1)) : this.#identity(s)
    }
    return build(0)
  }

  #identity(s: Reduce): Action {
    const writes = s.targets.map((t, k) => {
      const value = this.#expr(s.reducer.identity[k]!)
      const write = this.#writer(t, s.reducer.identity[k]!.dtype)
      return (): void => write(value())
    })
    const all = (): void => {
      for (const w of writes) w()
    }
    return this.#threads.statement(
      all,
      s.targets.some((t) => this.#inRegisters(t.buffer)),
    )
  }

  #reduce(s: Reduce): Action {
    const path = this.#paths.get(s)!
    const init = s.init && !path.some((l) => l.reduce) ? this.#identity(s) : undefined
    const values = s.values.map((v, k) => this.#converted(v, s.reducer.right[k]!.dtype))
    const old = s.targets.map((t, k) =>
      this.#converted(load(t.buffer, t.index, t.dtype), s.reducer.left[k]!.dtype),
    )
    const left = s.reducer.left.map(() => ({ value: 0 }))
    const right = s.reducer.right.map(() => ({ value: 0 }))
    const operands = new Map([
      ...s.reducer.left.map((v, k) => [v.name, left[k]!] as const),
      ...s.reducer.right.map((v, k) => [v.name, right[k]!] as const),
    ])
    const results = s.reducer.result.map((e) => this.#expr(e, operands))
    const writes = s.targets.map((t, k) => this.#writer(t, s.reducer.result[k]!.dtype))
    const update = (): void => {
      old.forEach((v, k) => {
        left[k]!.value = v()
      })
      const next = results.map((r) => r())
      writes.forEach((w, k) => {
        w(next[k]!)
      })
    }
    if (s.lanes)
      return this.#threads.exchange(
        s.lanes.width,
        () => values.map((v) => v()),
        (other) => {
          other.forEach((v, k) => {
            right[k]!.value = v
          })
          update()
        },
      )
    const together = path.filter((l) => l.reduce)
    const inRegisters = s.targets.some((t) => this.#inRegisters(t.buffer))
    const combine = this.#threads.reached(together, inRegisters, update)
    const action = (): void => {
      values.forEach((v, k) => {
        right[k]!.value = v()
      })
      combine()
    }
    const own = this.#threads.statement(action, inRegisters)
    if (!init) return own
    return () => {
      init()
      own()
    }
  }

  #inRegisters(buffer: string): boolean {
    return this.#cell(buffer).buffer.scope === 'register'
  }

  /** How many threads have a copy of the buffer. */
  #copies(buffer: Buffer): number {
    return buffer.scope === 'register' ? this.#threads.count : 1
  }

  #cell(name: string): Cell {
    const cell = this.#cells.get(name)
    invariant(cell, `no buffer ${name} here`)
    return cell
  }

  #alloc(buffer: Buffer): Cell {
    const known = this.#cells.get(buffer.name)
    if (known) return known
    const sizes = buffer.shape.map((e) => this.#expr(e)())
    const cell: Cell = { buffer, sizes, data: [] }
    this.#cells.set(buffer.name, cell)
    return cell
  }

  /** The flat position of an access; out of range is a bug of a rewrite. */
  #address(t: Load | Store): () => number {
    const cell = this.#cell(t.buffer)
    const index = t.index.map((e) => this.#expr(e))
    const text = `${t.buffer}[${t.index.map((e) => printExpr(e)).join(', ')}]`
    const own = cell.buffer.scope === 'register'
    return () => {
      let flat = own ? this.#threads.rank() : 0
      for (let d = 0; d < index.length; d++) {
        const k = index[d]!()
        const n = cell.sizes[d]!
        if (!(k >= 0 && k < n))
          throw new InternalError(
            `${text}: index ${k} of dimension ${d} is outside of 0..${n} (${this.#where()})`,
          )
        flat = flat * n + k
      }
      return flat
    }
  }

  #where(): string {
    return [...this.#vars].map(([name, slot]) => `${name}=${slot.value}`).join(' ')
  }

  #writer(t: Load | Store, from: Dtype): (value: number) => void {
    const cell = this.#cell(t.buffer)
    const address = this.#address(t)
    const to = cell.buffer.dtype
    const toType = round(to, convert(from, to))
    return (value) => {
      const k = address()
      cell.data[k] = toType(value)
    }
  }

  #converted(e: Expr, to: Dtype): Value {
    const value = this.#expr(e)
    if (e.dtype === to) return value
    const toType = round(to, convert(e.dtype, to))
    return () => toType(value())
  }

  #expr(e: Expr, operands?: ReadonlyMap<string, { value: number }>): Value {
    const go = (x: Expr): Value => this.#expr(x, operands)
    switch (e.kind) {
      case 'const': {
        const { value } = e
        return () => value
      }
      case 'var': {
        const slot = operands?.get(e.name) ?? this.#slot(e.name)
        return () => slot.value
      }
      case 'unary': {
        const x = go(e.x)
        if (e.op === 'not') return () => (x() === 0 ? 1 : 0)
        const toType = wrap(e.dtype)
        return () => toType(-x())
      }
      case 'binary':
        return this.#binary(e.op, go(e.a), go(e.b), e.dtype)
      case 'call': {
        const [x, y] = e.args.map(go)
        const f = mathOf(e.fn)
        const toType = round(e.dtype, wrap(e.dtype))
        return y ? () => toType(f(x!(), y())) : () => toType(f(x!(), 0))
      }
      case 'select':
        return this.#select(e, go)
      case 'cast': {
        const x = go(e.x)
        const toType = round(e.dtype, convert(e.x.dtype, e.dtype))
        return () => toType(x())
      }
      case 'load': {
        const cell = this.#cell(e.buffer)
        const address = this.#address(e)
        return () => cell.data[address()]!
      }
      case 'search':
        return this.#search(e, go)
      case 'builtin':
        throw new InternalError(`${e.axis} does not occur in Stage II`)
      default:
        return unreachable(e)
    }
  }

  #binary(op: Extract<Expr, { kind: 'binary' }>['op'], a: Value, b: Value, dtype: Dtype): Value {
    if (op === 'and') return () => (a() !== 0 && b() !== 0 ? 1 : 0)
    if (op === 'or') return () => (a() !== 0 || b() !== 0 ? 1 : 0)
    if (op === 'lt' || op === 'le' || op === 'gt' || op === 'ge' || op === 'eq' || op === 'ne') {
      const f = COMPARE[op]
      return () => f(a(), b())
    }
    const f = arithmetic(op, dtype)
    return dtype === 'f32' ? () => Math.fround(f(a(), b())) : () => f(a(), b())
  }

  #select(e: Select, go: (e: Expr) => Value): Value {
    const cond = go(e.cond)
    const then = go(e.then)
    const otherwise = go(e.else)
    return () => (cond() !== 0 ? then() : otherwise())
  }

  #search(e: Search, go: (e: Expr) => Value): Value {
    const cell = this.#cell(e.buffer)
    const [lo, hi, wanted] = [go(e.lo), go(e.hi), go(e.value)]
    const hit = {
      lower: (x: number, v: number) => x >= v,
      upper: (x: number, v: number) => x > v,
      next: (x: number, v: number) => x > v,
      linear: (x: number, v: number) => x === v,
    }[e.method]
    const text = printExpr(e)
    return () => {
      const end = hi()
      const value = wanted()
      for (let p = lo(); p < end; p++) {
        if (!(p >= 0 && p < cell.data.length)) throw new InternalError(`${text} leaves its buffer at ${p}`)
        if (hit(cell.data[p]!, value)) return p
      }
      return end
    }
  }
}

const round = (t: Dtype, f: (x: number) => number): ((x: number) => number) =>
  t === 'f32' ? (x) => Math.fround(f(x)) : f
