/**
 * Runs a Stage III plan: what a device is meant to do, one block after the other, the threads of a block in
 * turns from barrier to barrier. Undefined behaviour that a device may hide is an `InternalError` here: an index
 * out of its buffer, two threads touching one element with nothing between them, threads of a block waiting at
 * different barriers.
 *
 * Memory holds numbers; 16-bit floats are not rounded.
 */
import { InternalError, invariant, unreachable } from '../ast/diagnostic.ts'
import { computeType, type Dtype } from './dtype.ts'
import { evaluate } from './evaluate.ts'
import { type BinaryOp, type Expr, THREAD_AXES, type ThreadAxis } from './expr.ts'
import type { Cells } from './interpret.ts'
import type { Buffer, Launch, Plan, Reduce, Stmt } from './loops.ts'
import { printExpr } from './print2.ts'
import { Memory, poison, type Who } from './races.ts'
import { arithmetic, COMPARE, convert, mathOf, wrap } from './reference/numeric.ts'
import { bodiesOf } from './tree.ts'

/**
 * Runs `plan` in place on `buffers`, one array for each of `plan.buffers` (a missing `local` is allocated).
 * Throws `InternalError` where an access is out of range, where threads race, and where a barrier is not met by
 * all threads of a block.
 */
export function interpretPlan(
  plan: Plan,
  buffers: ReadonlyMap<string, Cells>,
  params: ReadonlyMap<string, number>,
): void {
  const memory = new Map<string, Memory>()
  for (const b of plan.buffers) {
    const length = Math.max(0, evaluate(b.shape[0]!, params))
    const cells = buffers.get(b.name) ?? new Array<number>(length).fill(poison(b.dtype))
    invariant(buffers.has(b.name) || b.role === 'local', `no array for buffer ${b.name}`)
    invariant(cells.length === length, `${b.name} has ${cells.length} elements, not ${length}`)
    memory.set(b.name, new Memory(b, cells))
  }
  for (const step of plan.steps) {
    if (step.kind === 'clear') memory.get(step.buffer)!.clear()
    else {
      for (const m of memory.values()) m.begin()
      runLaunch(step, memory, params)
    }
  }
}

/** What one thread has of its own; shared memory is one `Memory` in the frames of all threads of a block. */
interface Frame {
  readonly who: Who
  readonly index: Readonly<Record<ThreadAxis, number>>
  readonly vars: Map<string, number>
  readonly memory: Map<string, Memory>
  readonly shared: Map<string, Memory>
  /** At an exchange between lanes: what the thread has, then what its partner has. */
  readonly mail: number[]
}

function runLaunch(
  launch: Launch,
  memory: ReadonlyMap<string, Memory>,
  params: ReadonlyMap<string, number>,
): void {
  const run = compileBody(launch.body)
  const grid = launch.grid.map((e) => evaluate(e, params))
  const [bx, by, bz] = launch.block
  let block = 0
  for (let z = 0; z < grid[2]!; z++)
    for (let y = 0; y < grid[1]!; y++)
      for (let x = 0; x < grid[0]!; x++) {
        const shared = new Map<string, Memory>()
        const threads: { run: Iterator<Stop, void>; frame: Frame }[] = []
        for (let tz = 0; tz < bz; tz++)
          for (let ty = 0; ty < by; ty++)
            for (let tx = 0; tx < bx; tx++) {
              const frame: Frame = {
                who: { block, row: tz * by + ty, thread: threads.length, epoch: 0, phase: 0 },
                index: {
                  'block.x': x,
                  'block.y': y,
                  'block.z': z,
                  'thread.x': tx,
                  'thread.y': ty,
                  'thread.z': tz,
                },
                vars: new Map(params),
                memory: new Map(memory),
                shared,
                mail: [],
              }
              threads.push({ run: run(frame), frame })
            }
        lockstep(launch.name, threads)
        block++
      }
}

type Threads = readonly { readonly run: Iterator<Stop, void>; readonly frame: Frame }[]

/** All threads up to their next barrier, which has to be the same one, until all are done. */
function lockstep(name: string, threads: Threads): void {
  const at = threads.map((t) => t.run.next())
  for (let epoch = 1; ; epoch++) {
    while (exchanges(threads, at)) {}
    const done = at.filter((r) => r.done).length
    if (done === threads.length) return
    if (done > 0) throw new InternalError(`${name}: ${done} of ${threads.length} threads miss a barrier`)
    const first = at[0]!.value
    if (!first || first.lane || at.some((r) => r.value?.stmt !== first.stmt))
      throw new InternalError(`${name}: threads of a block wait at different barriers`)
    threads.forEach((t, k) => {
      t.frame.who.epoch = epoch
      at[k] = t.run.next()
    })
  }
}

/** Neighbours that have all arrived at one exchange make it and go on; whether there were any. */
function exchanges(threads: Threads, at: IteratorResult<Stop, void>[]): boolean {
  let any = false
  for (let k = 0; k < at.length; k++) {
    const stop = at[k]!.value
    if (!stop?.lane || k % stop.lane.among !== 0) continue
    const { xor, among } = stop.lane
    const group = at.slice(k, k + among)
    if (group.some((r) => r.value?.stmt !== stop.stmt || r.value.lane?.xor !== xor)) continue
    const mail = group.map((_, n) => [...threads[k + n]!.frame.mail])
    group.forEach((_, n) => {
      const other = mail[n ^ xor]
      if (!other) throw new InternalError(`thread ${k + n} exchanges with one that is not there`)
      threads[k + n]!.frame.mail.splice(0, Number.POSITIVE_INFINITY, ...other)
      if (stop.stmt.kind === 'barrier') threads[k + n]!.frame.who.phase++
      at[k + n] = threads[k + n]!.run.next()
    })
    any = true
  }
  return any
}

type Value = (f: Frame) => number
type Action = (f: Frame) => void
type Body = (f: Frame) => Iterator<Stop, void>

/** Where a thread waits for others: a barrier, or an exchange between lanes. */
interface Stop {
  readonly stmt: Stmt
  readonly lane?: { readonly xor: number; readonly among: number } | undefined
}

const waits = (s: Stmt): boolean =>
  s.kind === 'barrier' ||
  (s.kind === 'reduce' && s.lanes !== undefined) ||
  (s.kind === 'let' && s.lane !== undefined) ||
  bodiesOf(s).some((b) => b.some(waits))

/** Statements without barriers are plain closures; the others are generators that yield where they wait. */
function compileBody(body: readonly Stmt[]): Body {
  const steps = body.map((s) => (waits(s) ? { waiting: compileWaiting(s) } : { plain: compile(s) }))
  return function* (f) {
    for (const s of steps)
      if (s.plain) s.plain(f)
      else yield* iterate(s.waiting(f))
  }
}

function* iterate(it: Iterator<Stop, void>): Generator<Stop, void> {
  for (let r = it.next(); !r.done; r = it.next()) yield r.value
}

function compileWaiting(s: Stmt): Body {
  switch (s.kind) {
    case 'barrier': {
      const stop = s.lanes ? { stmt: s, lane: { xor: 0, among: s.lanes.among } } : { stmt: s }
      return function* () {
        yield stop
      }
    }
    case 'let': {
      const value = converted(s.value, s.dtype)
      const stop = { stmt: s, lane: s.lane }
      return function* (f) {
        f.mail[0] = value(f)
        yield stop
        f.vars.set(s.name, f.mail[0])
      }
    }
    case 'reduce': {
      const { width, among } = s.lanes!
      const take = combining(s)
      const own = s.values.map((v, k) => converted(v, s.reducer.right[k]!.dtype))
      return function* (f) {
        for (let xor = 1; xor < width; xor *= 2) {
          own.forEach((v, k) => {
            f.mail[k] = v(f)
          })
          yield { stmt: s, lane: { xor, among } }
          take(f, f.mail)
        }
      }
    }
    case 'for': {
      const extent = compileExpr(s.extent)
      const body = compileBody(s.body)
      return function* (f) {
        const n = extent(f)
        for (let k = 0; k < n; k++) {
          f.vars.set(s.var, k)
          yield* iterate(body(f))
        }
      }
    }
    case 'if': {
      const cond = compileExpr(s.cond)
      const then = compileBody(s.then)
      const otherwise = compileBody(s.else)
      return function* (f) {
        yield* iterate(cond(f) !== 0 ? then(f) : otherwise(f))
      }
    }
    default:
      throw new InternalError(`a barrier inside of ${s.kind}`)
  }
}

function compileAll(body: readonly Stmt[]): Action {
  const actions = body.map(compile)
  return (f) => {
    for (const a of actions) a(f)
  }
}

function compile(s: Stmt): Action {
  switch (s.kind) {
    case 'for': {
      invariant(s.mode.kind !== 'bind', 'a bound loop is a hardware index in Stage III')
      const extent = compileExpr(s.extent)
      const guards = s.guards.map(compileExpr)
      const body = compileAll(s.body)
      return (f) => {
        const n = extent(f)
        for (let k = 0; k < n; k++) {
          f.vars.set(s.var, k)
          if (guards.every((g) => g(f) !== 0)) body(f)
        }
      }
    }
    case 'while': {
      const cond = compileExpr(s.cond)
      const body = compileAll(s.body)
      return (f) => {
        while (cond(f) !== 0) body(f)
      }
    }
    case 'if': {
      const cond = compileExpr(s.cond)
      const then = compileAll(s.then)
      const otherwise = compileAll(s.else)
      return (f) => (cond(f) !== 0 ? then(f) : otherwise(f))
    }
    case 'let': {
      const value = converted(s.value, s.dtype)
      return (f) => f.vars.set(s.name, value(f))
    }
    case 'alloc':
      return (f) => f.memory.set(s.buffer.name, allocate(f, s.buffer))
    case 'store': {
      const value = compileExpr(s.value)
      const at = addressOf(s)
      return (f) => {
        const v = value(f)
        const [m, k] = at(f)
        m.write(k, toMemory(v, s.value.dtype, m.buffer.dtype), f.who, false)
      }
    }
    case 'reduce':
      return compileReduce(s)
    case 'instr':
      throw new InternalError(`what ${s.instr} does is known to devices only: interpret an earlier stage`)
    case 'fill':
    case 'barrier':
    case 'vector_load':
    case 'vector_store':
      throw new InternalError(`${s.kind} cannot stand here in Stage III`)
    default:
      return unreachable(s)
  }
}

/** A fresh register array; the first thread to arrive makes shared memory for all of its block. */
function allocate(f: Frame, buffer: Buffer): Memory {
  const length = buffer.shape.reduce((n, e) => n * evaluate(e, f.vars), 1)
  const fresh = (): Memory => new Memory(buffer, new Array<number>(length).fill(poison(buffer.dtype)))
  if (buffer.scope !== 'shared') return fresh()
  const known = f.shared.get(buffer.name)
  if (known) return known
  const made = fresh()
  f.shared.set(buffer.name, made)
  return made
}

function compileReduce(s: Reduce): Action {
  const values = s.values.map((v, k) => converted(v, s.reducer.right[k]!.dtype))
  const take = combining(s)
  return (f) =>
    take(
      f,
      values.map((v) => v(f)),
    )
}

/** The update of the targets by values that are there. */
function combining(s: Reduce): (f: Frame, right: readonly number[]) => void {
  const { reducer } = s
  const at = s.targets.map(addressOf)
  const results = reducer.result.map(compileExpr)
  return (f, right) => {
    const places = at.map((a) => a(f))
    // The operands' names are the monoid's own, and may be names of the kernel too.
    const operands: Frame = { ...f, vars: new Map() }
    places.forEach(([m, k], n) => {
      const old = m.read(k, f.who, s.atomic)
      operands.vars.set(reducer.left[n]!.name, toMemory(old, m.buffer.dtype, reducer.left[n]!.dtype))
      operands.vars.set(reducer.right[n]!.name, right[n]!)
    })
    const next = results.map((r) => r(operands))
    places.forEach(([m, k], n) => {
      m.write(k, toMemory(next[n]!, reducer.result[n]!.dtype, m.buffer.dtype), f.who, s.atomic)
    })
  }
}

const round = (t: Dtype, x: number): number => (t === 'f32' ? Math.fround(x) : x)

/** A value of type `from` as an element of type `to`; a register of a narrow type is 32 bits wide. */
const toMemory = (x: number, from: Dtype, to: Dtype): number =>
  from === to ? round(to, wrap(to)(x)) : round(to, convert(from, to)(x))

function converted(e: Expr, to: Dtype): Value {
  const value = compileExpr(e)
  const wide = computeType(to)
  return e.dtype === to || computeType(e.dtype) === wide ? value : (f) => toMemory(value(f), e.dtype, to)
}

function addressOf(t: {
  readonly buffer: string
  readonly index: readonly Expr[]
}): (f: Frame) => [Memory, number] {
  invariant(t.index.length === 1, `${t.buffer}: an access of Stage III has one index`)
  const index = compileExpr(t.index[0]!)
  return (f) => {
    const m = f.memory.get(t.buffer)
    invariant(m, `no buffer ${t.buffer} here`)
    const k = index(f)
    if (!(k >= 0 && k < m.length))
      throw new InternalError(
        `${t.buffer}[${printExpr(t.index[0]!)}]: index ${k} is outside of 0..${m.length} (${where(f)})`,
      )
    return [m, k]
  }
}

const where = (f: Frame): string =>
  [
    ...[...f.vars].map(([name, value]) => `${name}=${value}`),
    ...THREAD_AXES.map((a) => `${a}=${f.index[a]}`),
  ].join(' ')

function compileExpr(e: Expr): Value {
  switch (e.kind) {
    case 'const': {
      const { value } = e
      return () => value
    }
    case 'var': {
      const { name } = e
      return (f) => {
        const v = f.vars.get(name)
        if (v === undefined) throw new InternalError(`${name} has no value here`)
        return v
      }
    }
    case 'builtin':
      return (f) => f.index[e.axis]
    case 'unary': {
      const x = compileExpr(e.x)
      if (e.op === 'not') return (f) => (x(f) === 0 ? 1 : 0)
      const toType = wrap(computeType(e.dtype))
      return (f) => toType(-x(f))
    }
    case 'binary':
      return binaryOf(e.op, compileExpr(e.a), compileExpr(e.b), computeType(e.dtype))
    case 'call': {
      const [x, y] = e.args.map(compileExpr)
      const type = computeType(e.dtype)
      const fn = mathOf(e.fn)
      const toType = wrap(type)
      return (f) => round(type, toType(fn(x!(f), y ? y(f) : 0)))
    }
    case 'select': {
      const cond = compileExpr(e.cond)
      const then = compileExpr(e.then)
      const otherwise = compileExpr(e.else)
      return (f) => (cond(f) !== 0 ? then(f) : otherwise(f))
    }
    case 'cast': {
      const x = compileExpr(e.x)
      return (f) => toMemory(x(f), e.x.dtype, e.dtype)
    }
    case 'load': {
      const at = addressOf(e)
      return (f) => {
        const [m, k] = at(f)
        return m.read(k, f.who, false)
      }
    }
    case 'search':
      return searchOf(e)
    default:
      return unreachable(e)
  }
}

function binaryOf(op: BinaryOp, a: Value, b: Value, dtype: Dtype): Value {
  if (op === 'and') return (f) => (a(f) !== 0 && b(f) !== 0 ? 1 : 0)
  if (op === 'or') return (f) => (a(f) !== 0 || b(f) !== 0 ? 1 : 0)
  if (op === 'lt' || op === 'le' || op === 'gt' || op === 'ge' || op === 'eq' || op === 'ne') {
    const compare = COMPARE[op]
    return (f) => compare(a(f), b(f))
  }
  const combine = arithmetic(op, dtype)
  return (f) => round(dtype, combine(a(f), b(f)))
}

/** Passes before `searches` leave these; the first match, however it is found. */
function searchOf(e: Extract<Expr, { kind: 'search' }>): Value {
  const [lo, hi, wanted] = [compileExpr(e.lo), compileExpr(e.hi), compileExpr(e.value)]
  const hit = {
    lower: (x: number, v: number) => x >= v,
    upper: (x: number, v: number) => x > v,
    next: (x: number, v: number) => x > v,
    linear: (x: number, v: number) => x === v,
  }[e.method]
  return (f) => {
    const m = f.memory.get(e.buffer)
    invariant(m, `no buffer ${e.buffer} here`)
    const end = hi(f)
    const v = wanted(f)
    for (let p = lo(f); p < end; p++) {
      if (!(p >= 0 && p < m.length)) throw new InternalError(`${printExpr(e)} leaves its buffer at ${p}`)
      if (hit(m.read(p, f.who, false), v)) return p
    }
    return end
  }
}
