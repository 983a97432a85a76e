/**
 * Sequential interpreter of Stage II kernels; schedule steps must preserve its results. Every index is checked, and unwritten
 * memory holds a poison value, so that wrong rewrites are detected.
 */
import { InternalError, invariant, unreachable } from '../ast/diagnostics/diagnostic.ts'
import { repeat, sectionsOf } from '../ir/coordinates/rounds.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../ir/statements/loops.ts'
import { initLoops, reductionsOf, scattersElements } from '../ir/statements/reductions.ts'
import { type Monoid, widen } from '../ir/values/monoid.ts'
import { threadsOf } from './bound-threads.ts'
import { type Cell, expressionsOf } from './expressions.ts'
import { type Cells, cellsOf, createPoisoned } from './memory-cells.ts'

type Action = () => void

/**
 * Execution order of bound and vector loops. These loops are unordered, so `backward` must give the same results as
 * `forward`; `threads` gives each thread registers of its own, as devices do (see `bound-threads.ts`).
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
  const block = (body: readonly Stmt[]): Action => {
    const actions = body.map((s) => stmt(s))
    return () => {
      for (const a of actions) a()
    }
  }
  const stmt = (s: Stmt): Action => {
    switch (s.kind) {
      case 'for': {
        const inits = (initsOf.get(s.var) ?? []).map((r) => initNest(r))
        const loop = loopOf(s, exprs.slotOf(s.var), () => block(s.body))
        if (inits.length === 0) return loop
        return () => {
          for (const init of inits) init()
          loop()
        }
      }
      case 'if': {
        const cond = exprs.compile(s.cond)
        const then = block(s.then)
        const otherwise = block(s.else)
        return () => {
          exprs.begin()
          if (cond() !== 0) then()
          else otherwise()
        }
      }
      case 'while': {
        const [cond, body] = [exprs.compile(s.cond), block(s.body)]
        return () => {
          for (exprs.begin(); cond() !== 0; exprs.begin()) body()
        }
      }
      case 'store': {
        const { accumulate } = exprs.cellOf(s.buffer).buffer
        const uncast = s.combined && s.value.kind === 'cast' ? s.value.x : undefined
        const value = exprs.compile(uncast ?? s.value)
        const write = exprs.writer(s, (uncast ?? s.value).dtype, uncast && accumulate)
        return threads.statement(() => {
          exprs.begin()
          write(value())
        }, isInRegisters(s.buffer))
      }
      case 'reduce':
        return reduce(s)
      case 'alloc': {
        const cell = declareAllocation(s.buffer)
        // Each thread has its own copy of a register array.
        const copies = isInRegisters(s.buffer.name) ? threads.count : 1
        const length = cell.sizes.reduce((x, y) => x * y, copies)
        return () => {
          cell.data = createPoisoned(s.buffer.dtype, length)
        }
      }
      case 'fill': {
        const cell = exprs.cellOf(s.buffer)
        const value = exprs.compile(s.value)
        return () => {
          exprs.begin()
          const v = value()
          for (let k = 0; k < cell.data.length; k++) cell.data[k] = v
        }
      }
      case 'instr':
      case 'barrier':
        // These order asynchronous instructions; here every instruction is complete when it is issued.
        return () => {}
      case 'let':
      case 'rounds':
      case 'vector_load':
      case 'vector_store':
        throw new InternalError(`${s.kind} does not occur in Stage II`)
      default:
        return unreachable(s)
    }
  }
  const loopOf = (s: For, slot: { value: number }, compileBody: () => Action): Action => {
    const extent = exprs.compile(s.extent)
    const guards = s.guards.map((g) => exprs.compile(g))
    const { inner: body, enter } = threads.compileLoop(s, compileBody)
    const backward = order === 'backward' && (s.mode.kind === 'bind' || s.mode.kind === 'vectorize')
    return () => {
      exprs.begin()
      const n = extent()
      for (let k = 0; k < n; k++) {
        slot.value = backward ? n - 1 - k : k
        enter?.(k)
        exprs.begin()
        if (guards.every((g) => g() !== 0)) body()
      }
    }
  }
  /** Sets the targets of a reduction to the identity, in copies of the loops that iterate over them. */
  const initNest = (s: Reduce): Action => {
    const path = paths.get(s)!
    const inner = path.slice(path.findIndex((l) => l.reduce))
    const loops = initLoops(s, inner)
    const build = (k: number): Action => {
      const l = loops[k]
      return l ? loopOf(l, exprs.slotOf(l.var), () => build(k + 1)) : initialize(s)
    }
    return build(0)
  }
  const initialize = (s: Reduce): Action => {
    const writes = s.targets.map((t, k) => {
      const value = exprs.compile(s.reducer.identity[k]!)
      const write = exprs.writer(t, s.reducer.identity[k]!.dtype)
      return (): void => {
        exprs.begin()
        write(value())
      }
    })
    const initialize = (): void => {
      for (const w of writes) w()
    }
    return threads.statement(
      initialize,
      s.targets.some((t) => isInRegisters(t.buffer)),
    )
  }
  const reduce = (s: Reduce): Action => {
    const path = paths.get(s)!
    const reducer = accumulationMonoid(s)
    const init = s.init && !path.some((l) => l.reduce) ? initialize(s) : undefined
    const values = s.values.map((v, k) => exprs.compileAs(v, reducer.right[k]!.dtype))
    const old = s.targets.map((t, k) => exprs.compileAccumulator(t, reducer.left[k]!.dtype))
    const left = reducer.left.map(() => ({ value: 0 }))
    const right = reducer.right.map(() => ({ value: 0 }))
    const operands = new Map([
      ...reducer.left.map((v, k) => [v.name, left[k]!] as const),
      ...reducer.right.map((v, k) => [v.name, right[k]!] as const),
    ])
    const results = reducer.result.map((e) => exprs.compile(e, operands))
    const writes = s.targets.map((t, k) =>
      exprs.writer(t, reducer.result[k]!.dtype, exprs.cellOf(t.buffer).buffer.accumulate),
    )
    const update = (): void => {
      exprs.begin()
      old.forEach((v, k) => {
        left[k]!.value = v()
      })
      const combined = results.map((r) => r())
      writes.forEach((w, k) => {
        w(combined[k]!)
      })
    }
    if (s.lanes)
      return threads.exchange(
        s.lanes,
        () => {
          exprs.begin()
          return values.map((v) => v())
        },
        (other) => {
          other.forEach((v, k) => {
            right[k]!.value = v
          })
          update()
        },
      )
    const reduceLoops = s.atomic && scattersElements(s, path) ? [] : path.filter((l) => l.reduce)
    const inRegisters = s.targets.some((t) => isInRegisters(t.buffer))
    const combine = threads.atThreads(reduceLoops, inRegisters, update)
    const action = (): void => {
      exprs.begin()
      for (let k = 0; k < values.length; k++) right[k]!.value = values[k]!()
      combine()
    }
    const statement = threads.statement(action, inRegisters)
    if (!init) return statement
    return () => {
      init()
      statement()
    }
  }
  /** The monoid of a reduction in the accumulation types of its targets. */
  const accumulationMonoid = ({ reducer, targets }: Reduce): Monoid => {
    const buffers = targets.map((t) => exprs.cellOf(t.buffer).buffer)
    if (buffers.every((b) => b.accumulate === b.dtype)) return reducer
    return widen(
      reducer,
      buffers.map((b) => b.accumulate),
    )
  }
  const isInRegisters = (buffer: string): boolean => exprs.cellOf(buffer).buffer.scope === 'register'
  const declareAllocation = (buffer: Buffer): Cell => {
    const existing = exprs.find(buffer.name)
    if (existing) return existing
    const sizes = buffer.shape.map((e) => exprs.compile(e)())
    const cell: Cell = { buffer, sizes, data: [] }
    exprs.declare(cell)
    return cell
  }
  const paths = new Map<Reduce, readonly For[]>()
  const threads = threadsOf(kernel.body, order === 'threads')
  const exprs = expressionsOf(threads.count > 1 ? () => threads.rank() : null)
  for (const p of kernel.params) {
    const value = params.get(p.name)
    invariant(value !== undefined, `no value for parameter ${p.name}`)
    exprs.slotOf(p.name).value = value
  }
  for (const b of kernel.buffers) {
    const sizes = b.shape.map((e) => exprs.compile(e)())
    const length = sizes.reduce((x, y) => x * y, 1)
    exprs.declare({ buffer: b, sizes, data: cellsOf(b, length, buffers) })
  }
  const inits = new Map<string, Reduce[]>()
  for (const { reduce, path } of reductionsOf(kernel.body)) {
    paths.set(reduce, path)
    if (!reduce.init) continue
    const outermost = path.find((l) => l.reduce)
    if (outermost) inits.set(outermost.var, [...(inits.get(outermost.var) ?? []), reduce])
  }
  const initsOf = inits
  for (const s of sectionsOf(kernel.body)) {
    if (s.kind !== 'section') {
      block([s])()
      continue
    }
    const { count, flag } = s.rounds
    const round = block(s.body)
    const isLast = flag ? () => exprs.cellOf(flag).data[0] === 0 : () => false
    repeat(s.rounds, count && exprs.compile(count)(), isLast, round)
  }
}
